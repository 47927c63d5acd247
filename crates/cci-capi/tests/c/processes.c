/* A server process that waits by poll(2), and clients, each a process: some end as they should, one is killed. CCI's
 * defects 6, 7 and 8 besides: what the server sees of a request, and that both sides know of a connection. */
#include "check.h"

enum { CLIENTS = 4, ROUNDS = 200, KILLED = 2 };

/* The next event, by waiting for the descriptor. */
static cci_event_t *sleep_for(cci_endpoint_t *endpoint, int fd)
{
    for (;;) {
        cci_event_t *event;
        int status = cci_get_event(endpoint, &event);
        if (status == CCI_SUCCESS)
            return event;
        GIVES(CCI_EAGAIN, status);
        struct pollfd what = {fd, POLLIN, 0};
        CHECK(poll(&what, 1, LIMIT_SECONDS * 1000) == 1);
    }
}

static int run_client(const char *uri, int nth)
{
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd = -1;
    start_library();
    OK(cci_create_endpoint(NULL, 0, &endpoint, &fd));
    CHECK(fd >= 0);
    cci_conn_attribute_t attribute = nth % 2 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO;
    const struct timeval limit = {LIMIT_SECONDS, 0};
    OK(cci_connect(endpoint, uri, &nth, sizeof nth, attribute, &nth, 0, &limit));
    cci_event_t *event = sleep_for(endpoint, fd);
    CHECK(event->type == CCI_EVENT_CONNECT && event->connect.status == CCI_SUCCESS);
    CHECK(event->connect.context == &nth);
    cci_connection_t *connection = event->connect.connection;
    CHECK(connection->attribute == attribute);
    OK(cci_return_event(event));
    for (int round = 0; round < ROUNDS; round++) {
        OK(cci_send(connection, &round, sizeof round, NULL, round % 3 ? CCI_FLAG_SILENT : CCI_FLAG_BLOCKING));
        event = sleep_for(endpoint, fd);
        CHECK(event->type == CCI_EVENT_RECV && event->recv.len == sizeof round);
        CHECK(memcmp(event->recv.ptr, &round, sizeof round) == 0);
        OK(cci_return_event(event));
        if (nth == KILLED && round == ROUNDS / 2)
            raise(SIGKILL);
    }
    OK(cci_disconnect(connection));
    OK(cci_destroy_endpoint(endpoint));
    OK(cci_finalize());
    return 0;
}

int main(void)
{
    int uri_pipe[2];
    pid_t children[CLIENTS];
    CHECK(pipe(uri_pipe) == 0);
    for (int nth = 0; nth < CLIENTS; nth++) {
        children[nth] = fork();
        CHECK(children[nth] >= 0);
        if (children[nth] == 0) {
            char uri[256] = "";
            CHECK(read(uri_pipe[0], uri, sizeof uri) == (ssize_t)sizeof uri);
            exit(run_client(uri, nth));
        }
    }
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd = -1;
    char *uri, padded[256] = "";
    start_library();
    OK(cci_create_endpoint(NULL, 0, &endpoint, &fd));
    OK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri));
    strcpy(padded, uri);
    free(uri);
    for (int nth = 0; nth < CLIENTS; nth++)
        CHECK(write(uri_pipe[1], padded, sizeof padded) == (ssize_t)sizeof padded);
    int accepted = 0, seen = 0;
    unsigned long messages = 0;
    const unsigned long wanted = (CLIENTS - 1) * ROUNDS + ROUNDS / 2 + 1;
    static int numbers[CLIENTS];
    while (messages < wanted) {
        cci_event_t *event = sleep_for(endpoint, fd);
        switch (event->type) {
        case CCI_EVENT_CONNECT_REQUEST: {
            int nth;
            CHECK(event->request.data_len == sizeof nth);
            memcpy(&nth, event->request.data_ptr, sizeof nth);
            CHECK(nth >= 0 && nth < CLIENTS);
            CHECK(event->request.attribute == (nth % 2 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO));
            numbers[nth] = nth;
            seen++;
            OK(cci_accept(event, &numbers[nth]));
            break;
        }
        case CCI_EVENT_ACCEPT:
            CHECK(event->accept.status == CCI_SUCCESS);
            CHECK(event->accept.connection->context == event->accept.context);
            accepted++;
            break;
        case CCI_EVENT_RECV:
            messages++;
            /* The client that is killed does not take its last answer. */
            (void)cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT);
            break;
        case CCI_EVENT_SEND:
            CHECK(event->send.status == CCI_ERR_DISCONNECTED);
            break;
        default:
            CHECK(!"no other event");
        }
        OK(cci_return_event(event));
    }
    CHECK(seen == CLIENTS && accepted == CLIENTS);
    for (int nth = 0; nth < CLIENTS; nth++) {
        int how;
        pid_t ended;
        /* Blocking sends of the clients want this process to look. */
        while ((ended = waitpid(children[nth], &how, WNOHANG)) == 0) {
            cci_event_t *event;
            if (cci_get_event(endpoint, &event) == CCI_SUCCESS)
                OK(cci_return_event(event));
        }
        CHECK(ended == children[nth]);
        CHECK(nth == KILLED ? WIFSIGNALED(how) : WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    OK(cci_destroy_endpoint(endpoint));
    OK(cci_finalize());
    puts("processes: done");
    return 0;
}
