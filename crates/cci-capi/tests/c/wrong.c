/* What is wrong: null, objects that are none or are none any more, options, flags, addresses. Nothing of it harms what goes
 * on besides. */
#include "check.h"

static char garbage[256];

/* Pointers that are no object: null, memory of the program, addresses of nothing, and the inside of an object. */
#define EACH_WRONG(type, own, call)                                                                    \
    do {                                                                                               \
        type *const wrong_[] = {NULL, (type *)(void *)garbage, (type *)(uintptr_t)1, (type *)(uintptr_t)-8, \
                                (type *)((uintptr_t)(own) + 8)};                                        \
        for (unsigned at_ = 0; at_ < sizeof wrong_ / sizeof *wrong_; at_++) {                          \
            type *none = wrong_[at_];                                                                  \
            GIVES(CCI_EINVAL, call);                                                                   \
        }                                                                                              \
    } while (0)

static void objects(cci_connection_t *connection, cci_event_t *event)
{
    cci_event_t *got;
    cci_rma_handle_t *handle;
    uint32_t value = 1;
    const struct iovec part = {garbage, 1};
    cci_rma_handle_t remote = {{0, 0, 0, 0}};
    EACH_WRONG(cci_endpoint_t, client.endpoint, cci_get_event(none, &got));
    EACH_WRONG(cci_endpoint_t, client.endpoint, cci_arm_os_handle(none, 0));
    EACH_WRONG(cci_endpoint_t, client.endpoint, cci_destroy_endpoint(none));
    EACH_WRONG(cci_endpoint_t, client.endpoint,
               cci_connect(none, server.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    EACH_WRONG(cci_endpoint_t, client.endpoint, cci_rma_register(none, garbage, 1, 0, &handle));
    EACH_WRONG(cci_endpoint_t, client.endpoint, cci_get_opt(none, CCI_OPT_ENDPT_SEND_TIMEOUT, &value));
    EACH_WRONG(cci_endpoint_t, client.endpoint, cci_set_opt(none, CCI_OPT_ENDPT_SEND_TIMEOUT, &value));
    EACH_WRONG(cci_connection_t, connection, cci_send(none, "x", 1, NULL, 0));
    EACH_WRONG(cci_connection_t, connection, cci_sendv(none, &part, 1, NULL, 0));
    EACH_WRONG(cci_connection_t, connection, cci_disconnect(none));
    EACH_WRONG(cci_connection_t, connection, cci_get_opt(none, CCI_OPT_CONN_SEND_TIMEOUT, &value));
    EACH_WRONG(cci_connection_t, connection, cci_set_opt(none, CCI_OPT_CONN_SEND_TIMEOUT, &value));
    EACH_WRONG(cci_connection_t, connection,
               cci_rma(none, NULL, 0, &remote, 0, &remote, 0, 1, NULL, CCI_FLAG_READ));
    EACH_WRONG(cci_event_t, event, cci_return_event(none));
    EACH_WRONG(cci_event_t, event, cci_accept(none, NULL));
    EACH_WRONG(cci_event_t, event, cci_reject(none));
    /* Objects of another kind. */
    GIVES(CCI_EINVAL, cci_send((cci_connection_t *)(uintptr_t)client.endpoint, "x", 1, NULL, 0));
    GIVES(CCI_EINVAL, cci_get_event((cci_endpoint_t *)(uintptr_t)connection, &got));
    GIVES(CCI_EINVAL, cci_return_event((cci_event_t *)(uintptr_t)connection));
    GIVES(CCI_EINVAL, cci_get_opt(connection, CCI_OPT_ENDPT_SEND_TIMEOUT, &value));
    GIVES(CCI_EINVAL, cci_get_opt(client.endpoint, CCI_OPT_CONN_SEND_TIMEOUT, &value));
    GIVES(CCI_EINVAL, cci_rma_deregister(client.endpoint, (cci_rma_handle_t *)(uintptr_t)event));
    /* An event that is no request. */
    GIVES(CCI_EINVAL, cci_accept(event, NULL));
    GIVES(CCI_EINVAL, cci_reject(event));
}

static void arguments(cci_connection_t *connection)
{
    cci_endpoint_t *endpoint = client.endpoint;
    const struct iovec nowhere = {NULL, 1}, part = {garbage, 1};
    GIVES(CCI_EINVAL, cci_get_event(endpoint, NULL));
    GIVES(CCI_EINVAL, cci_send(connection, NULL, 1, NULL, 0));
    GIVES(CCI_EINVAL, cci_sendv(connection, NULL, 1, NULL, 0));
    GIVES(CCI_EINVAL, cci_sendv(connection, &nowhere, 1, NULL, 0));
    const int flags[] = {4, CCI_FLAG_READ, CCI_FLAG_WRITE, CCI_FLAG_FENCE, 128, -1};
    for (unsigned at = 0; at < sizeof flags / sizeof *flags; at++) {
        GIVES(CCI_EINVAL, cci_send(connection, "x", 1, NULL, flags[at]));
        GIVES(CCI_EINVAL, cci_sendv(connection, &part, 1, NULL, flags[at]));
    }
    /* Addresses. */
    static char data[1025], longer[5000] = "sm:///";
    memset(longer + 6, 'x', sizeof longer - 7);
    const char *uris[] = {"",           "sm://",       "sm:///1/2",         "tcp://host:1", "sm://a/1/2", "sm:///a/01/2",
                          "sm:///a/+1/2", "sm:///a/1", "sm:///a/../b/1/2", "sm:///a/1/4294967296", "\xff\xfe", longer};
    for (unsigned at = 0; at < sizeof uris / sizeof *uris; at++)
        GIVES(CCI_EINVAL, cci_connect(endpoint, uris[at], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    GIVES(CCI_EINVAL, cci_connect(endpoint, NULL, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    GIVES(CCI_EINVAL, cci_connect(endpoint, server.uri, NULL, 1, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    GIVES(CCI_EINVAL, cci_connect(endpoint, server.uri, data, 1025, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    GIVES(CCI_EINVAL, cci_connect(endpoint, server.uri, data, UINT32_MAX, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    const int attributes[] = {CCI_CONN_ATTR_UU_MC_TX, CCI_CONN_ATTR_UU_MC_RX, 5, -1};
    for (unsigned at = 0; at < sizeof attributes / sizeof *attributes; at++)
        GIVES(CCI_EINVAL,
              cci_connect(endpoint, server.uri, NULL, 0, (cci_conn_attribute_t)attributes[at], NULL, 0, NULL));
    const struct timeval times[] = {{-1, 0}, {0, -1}, {0, 1000000}};
    for (unsigned at = 0; at < sizeof times / sizeof *times; at++)
        GIVES(CCI_EINVAL, cci_connect(endpoint, server.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &times[at]));
    nothing_comes(&server);
    nothing_comes(&client);
}

/* Options: each is read, written where it can be, and read again. */
static void options(cci_connection_t *connection)
{
    const struct { cci_opt_handle_t *of; cci_opt_name_t name; int is_count; } all[] = {
        {client.endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, 0},      {client.endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, 1},
        {client.endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, 1},    {client.endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, 0},
        {connection, CCI_OPT_CONN_SEND_TIMEOUT, 0},            {connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 0},
    };
    for (unsigned at = 0; at < sizeof all / sizeof *all; at++) {
        uint32_t before = 77, after = 77, set = 5000000, zero = 0;
        OK(cci_get_opt(all[at].of, all[at].name, &before));
        CHECK(all[at].is_count ? before > 0 : before == 0);
        OK(cci_set_opt(all[at].of, all[at].name, &set));
        OK(cci_get_opt(all[at].of, all[at].name, &after));
        CHECK(after == set);
        GIVES(all[at].is_count ? CCI_EINVAL : CCI_SUCCESS, cci_set_opt(all[at].of, all[at].name, &zero));
        OK(cci_set_opt(all[at].of, all[at].name, &before));
        OK(cci_get_opt(all[at].of, all[at].name, &after));
        CHECK(after == before);
        GIVES(CCI_EINVAL, cci_get_opt(all[at].of, all[at].name, NULL));
        GIVES(CCI_EINVAL, cci_set_opt(all[at].of, all[at].name, NULL));
    }
    cci_alignment_t align;
    memset(&align, 0xFF, sizeof align);
    OK(cci_get_opt(client.endpoint, CCI_OPT_ENDPT_RMA_ALIGN, &align));
    CHECK(align.rma_write_local_addr == 0 && align.rma_write_remote_addr == 0 && align.rma_write_length == 0);
    CHECK(align.rma_read_local_addr == 0 && align.rma_read_remote_addr == 0 && align.rma_read_length == 0);
    GIVES(CCI_EINVAL, cci_set_opt(client.endpoint, CCI_OPT_ENDPT_RMA_ALIGN, &align));
    GIVES(CCI_EINVAL, cci_set_opt(client.endpoint, CCI_OPT_ENDPT_URI, "sm:///a/1/2"));
    const uint32_t value = 1;
    uint32_t got;
    GIVES(CCI_EINVAL, cci_set_opt(client.endpoint, (cci_opt_name_t)8, &value));
    GIVES(CCI_EINVAL, cci_get_opt(client.endpoint, (cci_opt_name_t)8, &got));
    GIVES(CCI_EINVAL, cci_get_opt(client.endpoint, (cci_opt_name_t)-1, &got));
}

/* Nobody is at an address; nobody answers there. CCI's defect 7. */
static void nobody(void)
{
    char uri[300];
    int context;
    const struct timeval soon = {0, 100000};
    snprintf(uri, sizeof uri, "%.*s/4000000000/0", (int)(strrchr(strstr(server.uri, "sm"), '/') - server.uri), server.uri);
    double began = now();
    OK(cci_connect(client.endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, &context, 0, &soon));
    cci_event_t *event = next_of(&client, CCI_EVENT_CONNECT);
    CHECK(event->connect.status == CCI_ETIMEDOUT || event->connect.status == CCI_ECONNREFUSED);
    CHECK(event->connect.context == &context && event->connect.connection == NULL);
    OK(cci_return_event(event));
    /* The server does not look. */
    began = now();
    OK(cci_connect(client.endpoint, server.uri, NULL, 0, CCI_CONN_ATTR_RO, &context, 0, &soon));
    int status;
    while ((status = cci_get_event(client.endpoint, &event)) == CCI_EAGAIN)
        CHECK(now() < began + LIMIT_SECONDS);
    OK(status);
    CHECK(event->type == CCI_EVENT_CONNECT && event->connect.status == CCI_ETIMEDOUT);
    CHECK(now() - began >= 0.1);
    OK(cci_return_event(event));
    /* What comes of it at the server. */
    double end = now() + 0.2;
    while (now() < end)
        look(&server);
    while (server.first != server.behind) {
        event = next_event(&server);
        if (event->type == CCI_EVENT_CONNECT_REQUEST)
            (void)cci_reject(event);
        OK(cci_return_event(event));
    }
}

/* Objects of an endpoint that is destroyed go with it. */
static void destroyed(void)
{
    cci_connection_t *accepted, *connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    cci_rma_handle_t *handle;
    OK(cci_rma_register(server.endpoint, garbage, sizeof garbage, 0, &handle));
    OK(cci_send(connection, "x", 1, NULL, 0));
    cci_event_t *held = next_of(&server, CCI_EVENT_RECV), *got;
    is_over(&client, connection, NULL, CCI_SUCCESS);
    cci_endpoint_t *endpoint = server.endpoint;
    close_side(&server);
    GIVES(CCI_EINVAL, cci_return_event(held));
    GIVES(CCI_EINVAL, cci_send(accepted, "x", 1, NULL, 0));
    GIVES(CCI_EINVAL, cci_disconnect(accepted));
    GIVES(CCI_EINVAL, cci_get_event(endpoint, &got));
    GIVES(CCI_EINVAL, cci_rma_deregister(endpoint, handle));
    open_side(&server);
    GIVES(CCI_EINVAL, cci_return_event(held));
    GIVES(CCI_EINVAL, cci_send(accepted, "x", 1, NULL, 0));
    GIVES(CCI_EINVAL, cci_rma_deregister(server.endpoint, handle));
    double end = now() + LIMIT_SECONDS;
    int status;
    while ((status = cci_send(connection, "x", 1, NULL, CCI_FLAG_SILENT)) != CCI_ERR_DISCONNECTED) {
        GIVES(CCI_SUCCESS, status);
        look_at_both();
        CHECK(now() < end);
    }
    OK(cci_disconnect(connection));
    /* What was under way has failed. */
    end = now() + 0.05;
    while (now() < end)
        look_at_both();
    while (client.first != client.behind) {
        got = next_of(&client, CCI_EVENT_SEND);
        CHECK(got->send.status == CCI_ERR_DISCONNECTED);
        OK(cci_return_event(got));
    }
}

int main(void)
{
    start_both();
    cci_connection_t *accepted, *connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    OK(cci_send(connection, "x", 1, NULL, CCI_FLAG_SILENT));
    cci_event_t *event = next_of(&server, CCI_EVENT_RECV);
    objects(connection, event);
    arguments(connection);
    options(connection);
    OK(cci_return_event(event));
    for (int times = 0; times < 3; times++)
        GIVES(CCI_EINVAL, cci_return_event(event));
    nobody();
    destroyed();
    /* All of it has harmed nothing. */
    connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    OK(cci_send(connection, "fine", 4, NULL, 0));
    message_comes(&server, accepted, "fine", 4);
    is_over(&client, connection, NULL, CCI_SUCCESS);
    end_both();
    puts("wrong: done");
    return 0;
}
