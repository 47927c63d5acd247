/* Several threads use the same endpoints and the same connection, while others connect and close. */
#include "check.h"

enum { SENDERS = 3, MESSAGES = 2000, ROUNDS = 50 };

static cci_connection_t *shared;
static int is_full[SENDERS];

static void *sends(void *of)
{
    int nth = (int)(intptr_t)of;
    for (int message = 0; message < MESSAGES; message++) {
        int flags = message % 10 == 0 ? CCI_FLAG_BLOCKING : CCI_FLAG_SILENT, status;
        while ((status = cci_send(shared, &message, sizeof message, NULL, flags)) == CCI_ENOBUFS) {
            is_full[nth]++;
            sched_yield();
        }
        OK(status);
    }
    return NULL;
}

static void *comes_and_goes(void *of)
{
    (void)of;
    for (int round = 0; round < ROUNDS; round++) {
        cci_endpoint_t *endpoint;
        cci_event_t *event;
        int status;
        OK(cci_create_endpoint(NULL, 0, &endpoint, NULL));
        OK(cci_connect(endpoint, server.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
        while ((status = cci_get_event(endpoint, &event)) == CCI_EAGAIN)
            sched_yield();
        OK(status);
        CHECK(event->type == CCI_EVENT_CONNECT && event->connect.status == CCI_SUCCESS);
        OK(cci_send(event->connect.connection, "round", 5, NULL, CCI_FLAG_BLOCKING));
        OK(cci_return_event(event));
        OK(cci_destroy_endpoint(endpoint));
    }
    return NULL;
}

static unsigned long shorts, rounds;
static volatile int stop;

static void *serves(void *of)
{
    (void)of;
    while (!stop) {
        cci_event_t *event;
        int status = cci_get_event(server.endpoint, &event);
        if (status == CCI_EAGAIN || status == CCI_ENOBUFS) {
            sched_yield();
            continue;
        }
        OK(status);
        if (event->type == CCI_EVENT_CONNECT_REQUEST)
            (void)cci_accept(event, NULL);
        if (event->type == CCI_EVENT_RECV)
            __atomic_add_fetch(event->recv.len == 5 ? &rounds : &shorts, 1, __ATOMIC_RELAXED);
        OK(cci_return_event(event));
    }
    return NULL;
}

int main(void)
{
    start_both();
    pthread_t servers[2], senders[SENDERS], other;
    for (int nth = 0; nth < 2; nth++)
        CHECK(pthread_create(&servers[nth], NULL, serves, NULL) == 0);
    OK(cci_connect(client.endpoint, server.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    cci_event_t *event;
    int status;
    while ((status = cci_get_event(client.endpoint, &event)) == CCI_EAGAIN)
        sched_yield();
    OK(status);
    CHECK(event->type == CCI_EVENT_CONNECT && event->connect.status == CCI_SUCCESS);
    shared = event->connect.connection;
    OK(cci_return_event(event));
    helper helper;
    start_helper(&helper, client.endpoint);
    for (int nth = 0; nth < SENDERS; nth++)
        CHECK(pthread_create(&senders[nth], NULL, sends, (void *)(intptr_t)nth) == 0);
    CHECK(pthread_create(&other, NULL, comes_and_goes, NULL) == 0);
    for (int nth = 0; nth < SENDERS; nth++)
        CHECK(pthread_join(senders[nth], NULL) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    OK(cci_send(shared, "x", 1, NULL, CCI_FLAG_BLOCKING));
    double end = now() + LIMIT_SECONDS;
    while (__atomic_load_n(&shorts, __ATOMIC_RELAXED) < SENDERS * MESSAGES + 1 && now() < end)
        sched_yield();
    stop_helper(&helper);
    stop = 1;
    for (int nth = 0; nth < 2; nth++)
        CHECK(pthread_join(servers[nth], NULL) == 0);
    CHECK(shorts == SENDERS * MESSAGES + 1 && rounds == ROUNDS);
    CHECK(helper.messages == 0 && helper.others == 0);
    end_both();
    puts("threads: done");
    return 0;
}
