/* Connections and messages: what is wanted of each function, in one process with two endpoints. */
#include "check.h"

static char bytes[65536 + 1];
static int silent_context;

static void of_any_length(cci_conn_attribute_t attribute)
{
    cci_connection_t *accepted, *connection = connect_both(attribute, &accepted);
    const uint32_t lengths[] = {0, 1, 7, 8, 127, 128, 129, 4096, 40000, 65536};
    for (unsigned at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        OK(cci_send(connection, bytes, lengths[at], &bytes[at], 0));
        message_comes(&server, accepted, bytes, lengths[at]);
        is_over(&client, connection, &bytes[at], CCI_SUCCESS);
        OK(cci_send(accepted, bytes + 1, lengths[at], &bytes[at], CCI_FLAG_NO_COPY));
        message_comes(&client, connection, bytes + 1, lengths[at]);
        is_over(&server, accepted, &bytes[at], CCI_SUCCESS);
    }
    OK(cci_send(connection, NULL, 0, NULL, 0));
    message_comes(&server, accepted, NULL, 0);
    is_over(&client, connection, NULL, CCI_SUCCESS);
    /* CCI's defect 3: what is too long. */
    GIVES(CCI_EMSGSIZE, cci_send(connection, bytes, connection->max_send_size + 1, NULL, 0));
    const struct iovec two[2] = {{bytes, 40000}, {bytes, 40000}};
    GIVES(CCI_EMSGSIZE, cci_sendv(connection, two, 2, NULL, 0));
    const struct iovec huge[2] = {{bytes, SIZE_MAX}, {bytes, 1}};
    GIVES(CCI_EMSGSIZE, cci_sendv(connection, huge, 2, NULL, 0));
    nothing_comes(&client);
    OK(cci_disconnect(connection));
    OK(cci_disconnect(accepted));
}

/* Parts follow each other. */
static void of_parts(void)
{
    cci_connection_t *accepted, *connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    struct iovec parts[20];
    for (uint32_t count = 0; count <= 20; count++) {
        uint32_t len = 0;
        for (uint32_t at = 0; at < count; at++) {
            parts[at].iov_base = bytes + len;
            parts[at].iov_len = 13 * at;
            len += 13 * at;
        }
        OK(cci_sendv(connection, parts, count, NULL, 0));
        message_comes(&server, accepted, bytes, len);
        is_over(&client, connection, NULL, CCI_SUCCESS);
    }
    OK(cci_sendv(connection, NULL, 0, NULL, 0));
    message_comes(&server, accepted, bytes, 0);
    is_over(&client, connection, NULL, CCI_SUCCESS);
    OK(cci_disconnect(connection));
}

/* CCI's defects 1 and 2: many messages under way at once, and many without bytes, each an event of its own. */
static void many(uint32_t len)
{
    enum { COUNT = 1000 };
    cci_connection_t *accepted, *connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    for (uintptr_t nth = 0; nth < COUNT; nth++) {
        int status = cci_send(connection, &nth, len, (void *)nth, 0);
        OK(status);
    }
    cci_event_t *held[COUNT];
    for (uintptr_t nth = 0; nth < COUNT; nth++) {
        held[nth] = next_of(&server, CCI_EVENT_RECV);
        CHECK(held[nth]->recv.len == len && (len == 0 || memcmp(held[nth]->recv.ptr, &nth, len) == 0));
        for (uintptr_t other = nth; other-- > 0;)
            CHECK(held[nth] != held[other]);
    }
    /* In any order. */
    for (unsigned step = 0; step < COUNT; step++)
        OK(cci_return_event(held[step * 7 % COUNT]));
    for (uintptr_t nth = 0; nth < COUNT; nth++)
        is_over(&client, connection, (void *)nth, CCI_SUCCESS);
    OK(cci_disconnect(connection));
}

/* More is under way than an endpoint admits; more is held than it admits. */
static void full(void)
{
    cci_connection_t *accepted, *connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    const uint32_t few = 10, usual = 1024;
    OK(cci_set_opt(client.endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &few));
    OK(cci_set_opt(server.endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few));
    for (uint32_t nth = 0; nth < few; nth++)
        OK(cci_send(connection, &nth, sizeof nth, NULL, 0));
    GIVES(CCI_ENOBUFS, cci_send(connection, &few, sizeof few, NULL, 0));
    cci_event_t *held[10], *event;
    for (uint32_t nth = 0; nth < few; nth++)
        held[nth] = next_of(&server, CCI_EVENT_RECV);
    GIVES(CCI_ENOBUFS, cci_get_event(server.endpoint, &event));
    for (uint32_t nth = 0; nth < few; nth++)
        is_over(&client, connection, NULL, CCI_SUCCESS);
    OK(cci_send(connection, &few, sizeof few, NULL, 0));
    for (int times = 0; times < 100; times++)
        GIVES(CCI_ENOBUFS, cci_get_event(server.endpoint, &event));
    OK(cci_return_event(held[3]));
    message_comes(&server, accepted, &few, sizeof few);
    is_over(&client, connection, NULL, CCI_SUCCESS);
    for (uint32_t nth = 0; nth < few; nth++)
        if (nth != 3)
            OK(cci_return_event(held[nth]));
    OK(cci_set_opt(client.endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &usual));
    OK(cci_set_opt(server.endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &usual));
    OK(cci_disconnect(connection));
}

/* Success of a silent message is not told; a later completion implies it. */
static void silent(void)
{
    cci_connection_t *accepted, *connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    for (int nth = 0; nth < 5; nth++)
        OK(cci_send(connection, &nth, sizeof nth, NULL, CCI_FLAG_SILENT | (nth % 2 ? CCI_FLAG_NO_COPY : 0)));
    OK(cci_send(connection, "x", 1, &silent_context, 0));
    for (int nth = 0; nth < 5; nth++)
        message_comes(&server, accepted, &nth, sizeof nth);
    message_comes(&server, accepted, "x", 1);
    is_over(&client, connection, &silent_context, CCI_SUCCESS);
    OK(cci_disconnect(connection));
    /* Bytes that are not copied want somebody to say when they can be used again. */
    connection = connect_both(CCI_CONN_ATTR_RU, &accepted);
    GIVES(CCI_EINVAL, cci_send(connection, "x", 1, NULL, CCI_FLAG_SILENT | CCI_FLAG_NO_COPY));
    OK(cci_send(connection, "y", 1, NULL, CCI_FLAG_SILENT));
    message_comes(&server, accepted, "y", 1);
    nothing_comes(&client);
    OK(cci_disconnect(connection));
}

/* A blocking call returns the status, and makes no event. */
static void blocking(void)
{
    cci_connection_t *accepted, *connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    helper helper;
    start_helper(&helper, server.endpoint);
    for (int nth = 0; nth < 100; nth++)
        OK(cci_send(connection, &nth, sizeof nth, NULL, CCI_FLAG_BLOCKING | (nth % 2 ? CCI_FLAG_SILENT : 0)));
    const struct iovec part = {bytes, 1000};
    OK(cci_sendv(connection, &part, 1, NULL, CCI_FLAG_BLOCKING));
    stop_helper(&helper);
    CHECK(helper.messages == 101 && helper.others == 0);
    nothing_comes(&client);
    OK(cci_disconnect(connection));
}

/* A request that is turned away. */
static void rejected(void)
{
    int context;
    OK(cci_connect(client.endpoint, server.uri, NULL, 0, CCI_CONN_ATTR_RO, &context, 0, NULL));
    cci_event_t *request = next_of(&server, CCI_EVENT_CONNECT_REQUEST);
    CHECK(request->request.data_len == 0 && request->request.data_ptr == NULL);
    GIVES(CCI_EINVAL, cci_return_event(request));
    OK(cci_reject(request));
    GIVES(CCI_EINVAL, cci_reject(request));
    GIVES(CCI_EINVAL, cci_accept(request, NULL));
    OK(cci_return_event(request));
    GIVES(CCI_EINVAL, cci_return_event(request));
    GIVES(CCI_EINVAL, cci_accept(request, NULL));
    cci_event_t *connect = next_of(&client, CCI_EVENT_CONNECT);
    CHECK(connect->connect.status == CCI_ECONNREFUSED && connect->connect.context == &context);
    CHECK(connect->connect.connection == NULL);
    OK(cci_return_event(connect));
}

/* A connection that is closed by the other side. */
static void closed(void)
{
    cci_connection_t *accepted, *connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    OK(cci_send(connection, "last", 4, NULL, CCI_FLAG_SILENT));
    OK(cci_disconnect(connection));
    GIVES(CCI_EINVAL, cci_disconnect(connection));
    GIVES(CCI_EINVAL, cci_send(connection, "x", 1, NULL, 0));
    message_comes(&server, accepted, "last", 4);
    nothing_comes(&server);
    GIVES(CCI_ERR_DISCONNECTED, cci_send(accepted, "x", 1, NULL, 0));
    GIVES(CCI_ERR_DISCONNECTED, cci_send(accepted, "x", 1, NULL, CCI_FLAG_BLOCKING));
    OK(cci_disconnect(accepted));
    GIVES(CCI_EINVAL, cci_send(accepted, "x", 1, NULL, 0));
    while (client.first != client.behind)
        OK(cci_return_event(client.events[client.first++ % MOST_EVENTS]));
}

/* Two connections between the same endpoints have nothing to do with each other. */
static void several(void)
{
    enum { COUNT = 200 };
    static cci_connection_t *connections[COUNT], *accepted[COUNT];
    for (int nth = 0; nth < COUNT; nth++) {
        connections[nth] = connect_both(nth % 2 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO, &accepted[nth]);
        for (int other = 0; other < nth; other++)
            CHECK(connections[nth] != connections[other] && accepted[nth] != accepted[other]);
    }
    for (int nth = 0; nth < COUNT; nth += 3)
        OK(cci_disconnect(connections[nth]));
    for (int nth = 0; nth < COUNT; nth++) {
        if (nth % 3 == 0) {
            GIVES(CCI_EINVAL, cci_send(connections[nth], &nth, sizeof nth, NULL, 0));
            continue;
        }
        OK(cci_send(connections[nth], &nth, sizeof nth, &nth, 0));
        message_comes(&server, accepted[nth], &nth, sizeof nth);
        is_over(&client, connections[nth], &nth, CCI_SUCCESS);
    }
    for (int nth = 0; nth < COUNT; nth++) {
        OK(cci_disconnect(accepted[nth]));
        if (nth % 3 != 0)
            OK(cci_disconnect(connections[nth]));
    }
}

int main(void)
{
    for (unsigned at = 0; at < sizeof bytes; at++)
        bytes[at] = (char)(at * 31 + at / 256);
    start_both();
    of_any_length(CCI_CONN_ATTR_RO);
    of_any_length(CCI_CONN_ATTR_RU);
    of_any_length(CCI_CONN_ATTR_UU);
    of_parts();
    many(8);
    many(0);
    full();
    silent();
    blocking();
    rejected();
    closed();
    several();
    end_both();
    puts("messages: done");
    return 0;
}
