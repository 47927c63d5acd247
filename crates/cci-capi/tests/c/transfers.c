/* Registered memory and transfers. */
#include "check.h"

enum { LEN = 1 << 20 };

static unsigned char here[LEN], there[LEN];
static cci_connection_t *connection, *accepted;

static void fill(unsigned char *bytes, unsigned seed)
{
    for (unsigned at = 0; at < LEN; at++)
        bytes[at] = (unsigned char)((at * 2654435761u >> 13) + seed);
}

/* A copy of a handle, as a peer gets it by a message. */
static struct cci_rma_handle sent(cci_rma_handle_t *handle)
{
    struct cci_rma_handle copy;
    OK(cci_send(accepted, handle, sizeof *handle, NULL, CCI_FLAG_SILENT));
    cci_event_t *event = next_of(&client, CCI_EVENT_RECV);
    CHECK(event->recv.len == sizeof copy);
    memcpy(&copy, event->recv.ptr, sizeof copy);
    OK(cci_return_event(event));
    return copy;
}

static void moves(void)
{
    cci_rma_handle_t *local, *target;
    OK(cci_rma_register(client.endpoint, here, LEN, 0, &local));
    OK(cci_rma_register(server.endpoint, there, LEN, CCI_FLAG_READ | CCI_FLAG_WRITE, &target));
    struct cci_rma_handle remote = sent(target);
    const struct { uint64_t from, to, len; } cases[] = {{0, 0, 1},       {3, 5, 4093},      {0, 0, LEN},
                                                        {1, 0, LEN - 1}, {LEN - 1, 17, 1}, {64, 64, 65536}};
    for (unsigned nth = 0; nth < sizeof cases / sizeof *cases; nth++) {
        const uint64_t from = cases[nth].from, to = cases[nth].to, len = cases[nth].len;
        fill(here, nth);
        memset(there, 0xEE, LEN);
        OK(cci_rma(connection, NULL, 0, local, from, &remote, to, len, &remote, CCI_FLAG_WRITE));
        is_over(&client, connection, &remote, CCI_SUCCESS);
        CHECK(memcmp(here + from, there + to, len) == 0);
        CHECK(to == 0 || there[to - 1] == 0xEE);
        CHECK(to + len == LEN || there[to + len] == 0xEE);
        fill(there, nth + 100);
        OK(cci_rma(connection, NULL, 0, local, from, &remote, to, len, NULL, CCI_FLAG_READ | CCI_FLAG_NO_COPY));
        is_over(&client, connection, NULL, CCI_SUCCESS);
        CHECK(memcmp(here + from, there + to, len) == 0);
    }
    /* The message comes when the bytes are there, behind what was sent before and before what is sent later. */
    fill(here, 7);
    OK(cci_send(connection, "one", 3, NULL, CCI_FLAG_SILENT));
    OK(cci_rma(connection, "two", 3, local, 0, &remote, 0, LEN, NULL, CCI_FLAG_WRITE | CCI_FLAG_SILENT));
    OK(cci_send(connection, "three", 5, here, 0));
    message_comes(&server, accepted, "one", 3);
    message_comes(&server, accepted, "two", 3);
    CHECK(memcmp(here, there, LEN) == 0);
    message_comes(&server, accepted, "three", 5);
    is_over(&client, connection, here, CCI_SUCCESS);
    /* A fence: the second transfer reads what the first has written. */
    fill(here, 9);
    OK(cci_rma(connection, NULL, 0, local, 0, &remote, 0, LEN / 2, NULL, CCI_FLAG_WRITE | CCI_FLAG_SILENT));
    OK(cci_rma(connection, NULL, 0, local, LEN / 2, &remote, 0, LEN / 2, NULL, CCI_FLAG_READ | CCI_FLAG_FENCE));
    is_over(&client, connection, NULL, CCI_SUCCESS);
    CHECK(memcmp(here, here + LEN / 2, LEN / 2) == 0);
    /* Blocking. */
    helper helper;
    start_helper(&helper, server.endpoint);
    fill(here, 11);
    OK(cci_rma(connection, "told", 4, local, 0, &remote, 0, LEN, NULL, CCI_FLAG_WRITE | CCI_FLAG_BLOCKING));
    CHECK(memcmp(here, there, LEN) == 0);
    double end = now() + LIMIT_SECONDS;
    while (helper.messages == 0 && now() < end)
        sched_yield();
    GIVES(CCI_ERR_RMA_OP,
          cci_rma(connection, NULL, 0, local, 0, &remote, 1, LEN, NULL, CCI_FLAG_READ | CCI_FLAG_BLOCKING));
    stop_helper(&helper);
    CHECK(helper.messages == 1);
    nothing_comes(&client);
    OK(cci_rma_deregister(client.endpoint, local));
    OK(cci_rma_deregister(server.endpoint, target));
}

/* A transfer that the target does not admit: by the call's status, or by that of the event. */
static void refused(int wanted, cci_rma_handle_t *local, uint64_t from, cci_rma_handle_t *remote, uint64_t to, uint64_t len,
                    int flags)
{
    int status = cci_rma(connection, "never", 5, local, from, remote, to, len, NULL, flags);
    if (status == CCI_SUCCESS)
        is_over(&client, connection, NULL, (cci_status_t)wanted);
    else
        GIVES(wanted, status);
    nothing_comes(&server);
}

/* CCI's defect 5: what a handle does not admit. */
static void protection(void)
{
    cci_rma_handle_t *local, *readable, *writable, *closed;
    OK(cci_rma_register(client.endpoint, here, LEN, 0, &local));
    OK(cci_rma_register(server.endpoint, there, LEN / 2, CCI_FLAG_READ, &readable));
    OK(cci_rma_register(server.endpoint, there, LEN / 2, CCI_FLAG_WRITE, &writable));
    OK(cci_rma_register(server.endpoint, there, LEN / 2, 0, &closed));
    struct cci_rma_handle read = sent(readable), write = sent(writable), none = sent(closed);
    fill(here, 1);
    memset(there, 0xEE, LEN);
    refused(CCI_ERR_RMA_OP, local, 0, &read, 0, 8, CCI_FLAG_WRITE);
    refused(CCI_ERR_RMA_OP, local, 0, &write, 0, 8, CCI_FLAG_READ);
    refused(CCI_ERR_RMA_OP, local, 0, &none, 0, 8, CCI_FLAG_READ);
    refused(CCI_ERR_RMA_OP, local, 0, &none, 0, 8, CCI_FLAG_WRITE);
    refused(CCI_ERR_RMA_OP, local, 0, &write, LEN / 2, 1, CCI_FLAG_WRITE);
    refused(CCI_ERR_RMA_OP, local, 0, &write, LEN / 2 - 7, 8, CCI_FLAG_WRITE);
    refused(CCI_ERR_RMA_OP, local, 0, &write, UINT64_MAX, 8, CCI_FLAG_WRITE);
    refused(CCI_ERR_RMA_OP, local, 0, &read, UINT64_MAX - 3, UINT64_MAX, CCI_FLAG_READ);
    refused(CCI_ERR_RMA_OP, local, LEN - 7, &write, 0, 8, CCI_FLAG_WRITE);
    /* Handles of nothing: other words, another endpoint's, one that was deregistered. */
    struct cci_rma_handle nonsense = {{1, 2, 3, 4}}, zero = {{0, 0, 0, 0}}, own;
    memcpy((void *)&own, (const void *)local, sizeof own);
    refused(CCI_ERR_RMA_HANDLE, local, 0, &nonsense, 0, 8, CCI_FLAG_WRITE);
    refused(CCI_ERR_RMA_HANDLE, local, 0, &zero, 0, 8, CCI_FLAG_READ);
    refused(CCI_ERR_RMA_HANDLE, local, 0, &own, 0, 8, CCI_FLAG_READ);
    OK(cci_rma_deregister(server.endpoint, writable));
    refused(CCI_ERR_RMA_HANDLE, local, 0, &write, 0, 8, CCI_FLAG_WRITE);
    for (unsigned at = 0; at < LEN; at++)
        CHECK(there[at] == 0xEE);
    /* Local handles that are none: a copy, another endpoint's, NULL, one that was deregistered. */
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 0, &own, 0, &read, 0, 8, NULL, CCI_FLAG_READ));
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 0, readable, 0, &read, 0, 8, NULL, CCI_FLAG_READ));
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 0, NULL, 0, &read, 0, 8, NULL, CCI_FLAG_READ));
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 0, writable, 0, &read, 0, 8, NULL, CCI_FLAG_READ));
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 0, local, 0, NULL, 0, 8, NULL, CCI_FLAG_READ));
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 0, local, 0, &read, 0, 0, NULL, CCI_FLAG_READ));
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 0, local, 0, &read, 0, 8, NULL, 0));
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 0, local, 0, &read, 0, 8, NULL, CCI_FLAG_READ | CCI_FLAG_WRITE));
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 0, local, 0, &read, 0, 8, NULL, CCI_FLAG_READ | 4));
    GIVES(CCI_EINVAL, cci_rma(connection, NULL, 5, local, 0, &read, 0, 8, NULL, CCI_FLAG_READ));
    GIVES(CCI_EINVAL, cci_rma(NULL, NULL, 0, local, 0, &read, 0, 8, NULL, CCI_FLAG_READ));
    GIVES(CCI_EMSGSIZE,
          cci_rma(connection, there, connection->max_send_size + 1, local, 0, &read, 0, 8, NULL, CCI_FLAG_READ));
    /* Registrations. */
    cci_rma_handle_t *handle;
    GIVES(CCI_EINVAL, cci_rma_register(NULL, here, LEN, 0, &handle));
    GIVES(CCI_EINVAL, cci_rma_register(client.endpoint, NULL, LEN, 0, &handle));
    GIVES(CCI_EINVAL, cci_rma_register(client.endpoint, here, 0, 0, &handle));
    GIVES(CCI_EINVAL, cci_rma_register(client.endpoint, here, LEN, 0, NULL));
    GIVES(CCI_EINVAL, cci_rma_register(client.endpoint, here, LEN, CCI_FLAG_BLOCKING, &handle));
    GIVES(CCI_EINVAL, cci_rma_register(client.endpoint, here, UINT64_MAX, 0, &handle));
    GIVES(CCI_EINVAL, cci_rma_deregister(client.endpoint, readable));
    GIVES(CCI_EINVAL, cci_rma_deregister(client.endpoint, NULL));
    GIVES(CCI_EINVAL, cci_rma_deregister(NULL, local));
    GIVES(CCI_EINVAL, cci_rma_deregister(client.endpoint, &own));
    GIVES(CCI_EINVAL, cci_rma_deregister(server.endpoint, writable));
    OK(cci_rma_deregister(client.endpoint, local));
    GIVES(CCI_EINVAL, cci_rma_deregister(client.endpoint, local));
    OK(cci_rma_deregister(server.endpoint, readable));
    OK(cci_rma_deregister(server.endpoint, closed));
    /* Many, of which each is another. */
    cci_rma_handle_t *many[300];
    for (int nth = 0; nth < 300; nth++)
        OK(cci_rma_register(client.endpoint, here + nth, 1, 0, &many[nth]));
    for (int nth = 0; nth < 300; nth++)
        OK(cci_rma_deregister(client.endpoint, many[nth * 7 % 300]));
}

/* An unreliable connection has no transfers. */
static void unreliable(void)
{
    cci_connection_t *other, *unsure = connect_both(CCI_CONN_ATTR_UU, &other);
    cci_rma_handle_t *local, *target;
    OK(cci_rma_register(client.endpoint, here, LEN, 0, &local));
    OK(cci_rma_register(server.endpoint, there, LEN, CCI_FLAG_READ, &target));
    struct cci_rma_handle remote = sent(target);
    GIVES(CCI_EINVAL, cci_rma(unsure, NULL, 0, local, 0, &remote, 0, 8, NULL, CCI_FLAG_READ));
    OK(cci_disconnect(unsure));
    OK(cci_disconnect(other));
    /* What is left goes with the endpoints. */
}

int main(void)
{
    start_both();
    connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    moves();
    protection();
    unreliable();
    end_both();
    puts("transfers: done");
    return 0;
}
