/* What the programs of this folder have in common: checks that say where they failed, and endpoints of one process that
 * talk to each other. */
#ifndef CHECK_H
#define CHECK_H

#include <cci.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond)                                                                  \
    do {                                                                             \
        if (!(cond)) {                                                               \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);       \
            exit(2);                                                                 \
        }                                                                            \
    } while (0)

/* The call returns this status. */
#define GIVES(wanted, call)                                                                                    \
    do {                                                                                                       \
        int status_ = (call);                                                                                  \
        if (status_ != (wanted)) {                                                                             \
            fprintf(stderr, "%s:%d: %s gives %d (%s), and %s was wanted\n", __FILE__, __LINE__, #call, status_, \
                    cci_strerror(NULL, (enum cci_status)status_), #wanted);                                    \
            exit(2);                                                                                           \
        }                                                                                                      \
    } while (0)

#define OK(call) GIVES(CCI_SUCCESS, call)

/* How long anything may take before a program gives up. */
#define LIMIT_SECONDS 60

enum { MOST_EVENTS = 1 << 14 };

/* An endpoint and the events that came to it and were not looked at. */
typedef struct side {
    cci_endpoint_t *endpoint;
    char *uri;
    unsigned first, behind;
    cci_event_t *events[MOST_EVENTS];
} side;

static side server, client;

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline void start_library(void)
{
    uint32_t caps = 77;
    OK(cci_init(CCI_ABI_VERSION, 0, &caps));
    CHECK(caps == 0);
}

static inline void open_side(side *of)
{
    memset(of, 0, sizeof *of);
    OK(cci_create_endpoint(NULL, 0, &of->endpoint, NULL));
    OK(cci_get_opt(of->endpoint, CCI_OPT_ENDPT_URI, &of->uri));
}

static inline void close_side(side *of)
{
    OK(cci_destroy_endpoint(of->endpoint));
    free(of->uri);
}

static inline void start_both(void)
{
    start_library();
    open_side(&server);
    open_side(&client);
}

static inline void end_both(void)
{
    close_side(&client);
    close_side(&server);
    OK(cci_finalize());
}

/* Takes what has come to an endpoint. */
static inline void look(side *of)
{
    cci_event_t *event = NULL;
    int status;
    while (of->behind - of->first < MOST_EVENTS && (status = cci_get_event(of->endpoint, &event)) != CCI_EAGAIN) {
        if (status == CCI_ENOBUFS)
            return;
        OK(status);
        CHECK(event != NULL);
        of->events[of->behind++ % MOST_EVENTS] = event;
    }
}

static inline void look_at_both(void)
{
    look(&server);
    look(&client);
}

/* The next event of an endpoint, of whatever type. */
static inline cci_event_t *next_event(side *of)
{
    double end = now() + LIMIT_SECONDS;
    while (of->first == of->behind) {
        look_at_both();
        CHECK(now() < end);
    }
    return of->events[of->first++ % MOST_EVENTS];
}

/* The next event of an endpoint, which has this type. */
static inline cci_event_t *next_of(side *of, cci_event_type_t type)
{
    cci_event_t *event = next_event(of);
    if (event->type != type) {
        fprintf(stderr, "%s has come, and %s was wanted\n", cci_event_type_str(event->type), cci_event_type_str(type));
        exit(2);
    }
    return event;
}

/* Nothing comes for some time. */
static inline void nothing_comes(side *of)
{
    double end = now() + 0.05;
    while (now() < end)
        look_at_both();
    CHECK(of->first == of->behind);
}

/* Connects both: the client's connection, and the server's in *accepted. */
static inline cci_connection_t *connect_both(cci_conn_attribute_t attribute, cci_connection_t **accepted)
{
    static int of_client, of_server;
    OK(cci_connect(client.endpoint, server.uri, "hello", 5, attribute, &of_client, 0, NULL));
    cci_event_t *request = next_of(&server, CCI_EVENT_CONNECT_REQUEST);
    CHECK(request->request.attribute == attribute);
    CHECK(request->request.data_len == 5 && memcmp(request->request.data_ptr, "hello", 5) == 0);
    OK(cci_accept(request, &of_server));
    OK(cci_return_event(request));
    cci_event_t *connect = next_of(&client, CCI_EVENT_CONNECT);
    CHECK(connect->connect.status == CCI_SUCCESS && connect->connect.context == &of_client);
    cci_connection_t *connection = connect->connect.connection;
    CHECK(connection->context == &of_client && connection->attribute == attribute);
    CHECK(connection->endpoint == client.endpoint && connection->max_send_size > 0);
    OK(cci_return_event(connect));
    cci_event_t *accept = next_of(&server, CCI_EVENT_ACCEPT);
    CHECK(accept->accept.status == CCI_SUCCESS && accept->accept.context == &of_server);
    *accepted = accept->accept.connection;
    CHECK((*accepted)->context == &of_server && (*accepted)->attribute == attribute);
    CHECK((*accepted)->endpoint == server.endpoint);
    OK(cci_return_event(accept));
    return connection;
}

/* A message has come, with these bytes. */
static inline void message_comes(side *to, cci_connection_t *by, const void *bytes, uint32_t len)
{
    cci_event_t *event = next_of(to, CCI_EVENT_RECV);
    CHECK(event->recv.connection == by && event->recv.len == len);
    CHECK(len == 0 ? event->recv.ptr == NULL : (uintptr_t)event->recv.ptr % 8 == 0);
    CHECK(len == 0 || memcmp(event->recv.ptr, bytes, len) == 0);
    OK(cci_return_event(event));
}

/* An operation is over. */
static inline void is_over(side *of, cci_connection_t *by, const void *context, cci_status_t status)
{
    cci_event_t *event = next_of(of, CCI_EVENT_SEND);
    if (event->send.status != status)
        fprintf(stderr, "it ended with: %s\n", cci_strerror(NULL, event->send.status));
    CHECK(event->send.status == status);
    CHECK(event->send.connection == by && event->send.context == context);
    OK(cci_return_event(event));
}

/* What a thread does that looks after an endpoint while another call blocks: it returns all events, and counts them. */
typedef struct helper {
    cci_endpoint_t *endpoint;
    pthread_t thread;
    volatile int stop;
    unsigned long messages, others;
} helper;

static inline void *help(void *of)
{
    helper *self = (helper *)of;
    while (!self->stop) {
        cci_event_t *event;
        int status = cci_get_event(self->endpoint, &event);
        if (status == CCI_EAGAIN) {
            sched_yield();
            continue;
        }
        OK(status);
        if (event->type == CCI_EVENT_RECV)
            self->messages++;
        else
            self->others++;
        OK(cci_return_event(event));
    }
    return NULL;
}

static inline void start_helper(helper *self, cci_endpoint_t *endpoint)
{
    memset(self, 0, sizeof *self);
    self->endpoint = endpoint;
    CHECK(pthread_create(&self->thread, NULL, help, self) == 0);
}

static inline void stop_helper(helper *self)
{
    self->stop = 1;
    CHECK(pthread_join(self->thread, NULL) == 0);
}

#endif
