/* A key-value server, and clients that come and go.
 *
 *     kv serve                  prints the server's address and serves until a client stops it
 *     kv ADDRESS put KEY VALUE
 *     kv ADDRESS get KEY        prints the value
 *     kv ADDRESS delete KEY
 *     kv ADDRESS stop
 *
 * The server is one thread that sleeps in poll(2). A client that is killed is noticed by its keepalive time. */
#include <cci.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 64, MAX_VALUE = 256, MAX_KEYS = 1024, KEEPALIVE_MICROSECONDS = 2000000 };

enum operation { PUT, GET, DELETE, STOP, BYE };
enum answer { DONE, NO_SUCH_KEY, FULL };

/* What a client sends, and what it gets back. */
struct request {
    uint32_t operation;
    char key[MAX_KEY], value[MAX_VALUE];
};
struct reply {
    uint32_t answer;
    char value[MAX_VALUE];
};

static struct request store[MAX_KEYS];
static unsigned keys;

static void check(int status, const char *what)
{
    if (status == CCI_SUCCESS)
        return;
    fprintf(stderr, "kv: %s: %s\n", what, cci_strerror(NULL, (enum cci_status)status));
    exit(1);
}

/* Makes an endpoint, and a descriptor that becomes readable when there is an event. */
static cci_endpoint_t *start(cci_os_handle_t *fd)
{
    uint32_t caps;
    cci_endpoint_t *endpoint;
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(NULL, 0, &endpoint, fd), "cci_create_endpoint");
    return endpoint;
}

/* The next event. The descriptor tells of events only after cci_get_event has found none. */
static cci_event_t *next(cci_endpoint_t *endpoint, cci_os_handle_t fd)
{
    cci_event_t *event;
    int status;
    while ((status = cci_get_event(endpoint, &event)) == CCI_EAGAIN) {
        struct pollfd ready = {fd, POLLIN, 0};
        poll(&ready, 1, -1);
    }
    check(status, "cci_get_event");
    return event;
}

static struct request *find(const char *key)
{
    unsigned at;
    for (at = 0; at < keys; at++)
        if (strcmp(store[at].key, key) == 0)
            return &store[at];
    return NULL;
}

static struct reply answer(const struct request *request)
{
    struct reply reply = {DONE, ""};
    struct request *found = find(request->key);
    if (request->operation == PUT) {
        if (found == NULL && keys < MAX_KEYS)
            found = &store[keys++];
        if (found == NULL)
            reply.answer = FULL;
        else
            *found = *request;
    } else if (request->operation != STOP) {
        if (found == NULL) {
            reply.answer = NO_SUCH_KEY;
        } else if (request->operation == GET) {
            memcpy(reply.value, found->value, sizeof reply.value);
        } else {
            *found = store[--keys];
        }
    }
    return reply;
}

static void serve(void)
{
    cci_os_handle_t fd;
    cci_endpoint_t *endpoint = start(&fd);
    const uint32_t keepalive = KEEPALIVE_MICROSECONDS;
    uint32_t operation = GET;
    char *uri;
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &keepalive), "cci_set_opt");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    puts(uri);
    fflush(stdout);
    free(uri);
    while (operation != STOP) {
        cci_event_t *event = next(endpoint, fd);
        switch (event->type) {
        case CCI_EVENT_CONNECT_REQUEST:
            check(cci_accept(event, NULL), "cci_accept");
            break;
        case CCI_EVENT_RECV: {
            struct request request;
            struct reply reply;
            int status = CCI_EINVAL;
            if (event->recv.len == sizeof request) {
                memcpy(&request, event->recv.ptr, sizeof request);
                request.key[MAX_KEY - 1] = request.value[MAX_VALUE - 1] = '\0';
                operation = request.operation;
                if (operation != BYE) {
                    reply = answer(&request);
                    status = cci_send(event->recv.connection, &reply, sizeof reply, NULL, CCI_FLAG_SILENT);
                }
            }
            /* A client that says good-bye, that has gone, or that sends something else. */
            if (status != CCI_SUCCESS)
                cci_disconnect(event->recv.connection);
            break;
        }
        case CCI_EVENT_KEEPALIVE_TIMEDOUT:
            cci_disconnect(event->keepalive.connection);
            break;
        default: /* A client has gone before it knew that it was accepted, or before it had its answer. */
            break;
        }
        check(cci_return_event(event), "cci_return_event");
    }
    /* The last answer is on its way: the client takes it and says good-bye. */
    while (operation != BYE) {
        cci_event_t *event = next(endpoint, fd);
        if (event->type == CCI_EVENT_RECV)
            memcpy(&operation, event->recv.ptr, sizeof operation);
        if (event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT)
            operation = BYE;
        if (event->type == CCI_EVENT_CONNECT_REQUEST)
            cci_reject(event);
        check(cci_return_event(event), "cci_return_event");
    }
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
}

static int ask(const char *uri, struct request *request)
{
    const struct timeval timeout = {5, 0};
    cci_os_handle_t fd;
    cci_endpoint_t *endpoint = start(&fd);
    cci_connection_t *connection;
    cci_event_t *event;
    struct reply reply;
    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &timeout), "cci_connect");
    event = next(endpoint, fd);
    check((int)event->connect.status, uri);
    connection = event->connect.connection;
    check(cci_return_event(event), "cci_return_event");

    check(cci_send(connection, request, sizeof *request, NULL, CCI_FLAG_SILENT), "cci_send");
    event = next(endpoint, fd);
    if (event->type == CCI_EVENT_SEND)
        check((int)event->send.status, "cci_send");
    memcpy(&reply, event->recv.ptr, sizeof reply);
    check(cci_return_event(event), "cci_return_event");

    if (reply.answer == DONE && request->operation == GET)
        puts(reply.value);
    if (reply.answer != DONE)
        fprintf(stderr, "kv: %s: %s\n", request->key, reply.answer == FULL ? "the store is full" : "no such key");
    request->operation = BYE;
    check(cci_send(connection, request, sizeof *request, NULL, CCI_FLAG_BLOCKING), "cci_send");
    check(cci_disconnect(connection), "cci_disconnect");
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    return reply.answer == DONE ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        enum operation operation;
        int arguments;
    } commands[] = {{"put", PUT, 2}, {"get", GET, 1}, {"delete", DELETE, 1}, {"stop", STOP, 0}};
    unsigned at;
    int status = 2;
    if (argc == 2 && strcmp(argv[1], "serve") == 0) {
        serve();
        status = 0;
    }
    for (at = 0; argc > 2 && at < sizeof commands / sizeof *commands; at++) {
        if (strcmp(argv[2], commands[at].name) == 0 && argc == 3 + commands[at].arguments) {
            struct request request;
            memset(&request, 0, sizeof request);
            request.operation = commands[at].operation;
            if (argc > 3)
                strncpy(request.key, argv[3], MAX_KEY - 1);
            if (argc > 4)
                strncpy(request.value, argv[4], MAX_VALUE - 1);
            status = ask(argv[1], &request);
        }
    }
    if (status == 2)
        fprintf(stderr, "usage: kv serve | kv ADDRESS put KEY VALUE | get KEY | delete KEY | stop\n");
    else
        check(cci_finalize(), "cci_finalize");
    return status;
}
