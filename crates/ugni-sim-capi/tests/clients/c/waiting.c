/* Waiting for one queue and for any of several; a function that is called with each event. */
#include "net.h"
#include <pthread.h>

static int called;

static void note(gni_cq_entry_t *event, void *context)
{
    CHECK(*event != 0 && context == &called);
    called++;
}

/* Waits until the one at a place has an event. A wait may end with the first although it has none. */
static void monitor(gni_cq_handle_t *queues, uint32_t at)
{
    uint32_t which = 9;
    do {
        WORKS(GNI_CqVectorMonitor(queues, 2, (uint64_t)-1, &which));
        CHECK(which == at || which == 0);
    } while (GNI_CqTestEvent(queues[which]) == GNI_RC_NOT_DONE);
    CHECK(which == at);
}

/* While the interrupts of one are masked, nobody waits for any; the first mask that is left is enough. */
static void masked(gni_cq_handle_t *queues)
{
    gni_cq_entry_t event;
    uint32_t which = 9;
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_CqInterruptMask(net.events));
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_CqInterruptUnmask(net.events));
    GIVES(GNI_RC_NOT_DONE, GNI_CqInterruptUnmask(queues[1]));
    WORKS(GNI_CqInterruptMask(queues[1]));
    WORKS(GNI_CqInterruptMask(queues[1]));
    WORKS(GNI_CqInterruptUnmask(queues[1]));
    GIVES(GNI_RC_NOT_DONE, GNI_CqVectorWaitEvent(queues, 2, 1, &event, &which));
    GIVES(GNI_RC_NOT_DONE, GNI_CqVectorMonitor(queues, 2, 1, &which));
    GIVES(GNI_RC_TIMEOUT, GNI_CqVectorWaitEvent(queues, 1, 1, &event, &which));
    WORKS(GNI_CqInterruptUnmask(queues[1]));
    GIVES(GNI_RC_TIMEOUT, GNI_CqVectorWaitEvent(queues, 2, 1, &event, &which));
    GIVES(GNI_RC_NOT_DONE, GNI_CqInterruptUnmask(queues[1]));
}

static gni_cq_handle_t *waited;
static volatile int cleaned;

static void clean(void *none)
{
    (void)none;
    cleaned++;
}

/* Waits in one call or another for what never comes. */
static void *wait_for_nothing(void *how)
{
    gni_cq_entry_t event;
    uint32_t which;
    uint64_t id;
    pthread_cleanup_push(clean, NULL);
    for (;;) {
        switch ((int)(intptr_t)how) {
        case 0:
            (void)GNI_CqWaitEvent(waited[0], (uint64_t)-1, &event);
            break;
        case 1:
            (void)GNI_CqVectorWaitEvent(waited, 2, (uint64_t)-1, &event, &which);
            break;
        case 2:
            (void)GNI_CqVectorMonitor(waited, 2, (uint64_t)-1, &which);
            break;
        default:
            (void)GNI_PostdataProbeWaitById(net.nic, (uint32_t)-1, &id);
        }
    }
    pthread_cleanup_pop(0);
    return NULL;
}

/* A client may end its threads in the midst of a call that waits, and goes on with the others. */
static void cancelled(gni_cq_handle_t *queues)
{
    waited = queues;
    for (int round = 0; round < 40; round++) {
        pthread_t thread;
        void *how;
        CHECK(pthread_create(&thread, NULL, wait_for_nothing, (void *)(intptr_t)(round % 4)) == 0);
        struct timespec pause = {0, round / 4 * 300000};
        nanosleep(&pause, NULL);
        CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &how) == 0);
        CHECK(how == PTHREAD_CANCELED && cleaned == round + 1);
    }
}

int main(void)
{
    job_begin();
    net_begin(0, ENTRIES);
    int peer = (job.rank + 1) % job.size;
    gni_cq_handle_t queues[2];
    gni_ep_handle_t ends[2];
    gni_cq_entry_t event;
    uint32_t which = 9;
    for (int i = 0; i < 2; i++) {
        WORKS(GNI_CqCreate(net.nic, 16, 0, GNI_CQ_BLOCKING, note, &called, &queues[i]));
        WORKS(GNI_EpCreate(net.nic, queues[i], &ends[i]));
        WORKS(GNI_EpBind(ends[i], places[peer].address, (uint32_t)peer));
    }
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_CqWaitEvent(net.events, 1, &event));
    GIVES(GNI_RC_TIMEOUT, GNI_CqWaitEvent(queues[0], 1, &event));
    GIVES(GNI_RC_TIMEOUT, GNI_CqVectorWaitEvent(queues, 2, 1, &event, &which));
    masked(queues);
    /* A wait begins anew each time. */
    for (int i = 0; i < 2; i++) {
        double begun = now();
        GIVES(GNI_RC_TIMEOUT, GNI_CqWaitEvent(queues[0], 20, &event));
        CHECK(now() - begun >= 0.02);
    }
    gni_return_t code;
    while ((code = GNI_CqVectorMonitor(queues, 2, 1, &which)) == GNI_RC_SUCCESS)
        CHECK(which == 0 && strcmp(getenv("GASWORKS_UGNI_MOOD"), "plain") != 0);
    CHECK(code == GNI_RC_TIMEOUT);
    GIVES(GNI_RC_INVALID_PARAM, GNI_CqVectorMonitor(queues, 0, 1, &which));
    for (uint32_t round = 0; round < 100; round++) {
        uint32_t at = round % 2;
        gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT, peer, 0, 64, 8), *found;
        WORKS(GNI_PostFma(ends[at], &post));
        switch (round % 3) {
        case 0:
            WORKS(GNI_CqWaitEvent(queues[at], (uint64_t)-1, &event));
            break;
        case 1:
            WORKS(GNI_CqVectorWaitEvent(queues, 2, (uint64_t)-1, &event, &which));
            CHECK(which == at);
            break;
        case 2:
            monitor(queues, at);
            WORKS(GNI_CqGetEvent(queues[at], &event));
            break;
        }
        WORKS(GNI_GetCompleted(queues[at], event, &found));
        CHECK(found == &post && called == (int)round + 1);
    }
    cancelled(queues);
    for (int i = 0; i < 2; i++) {
        WORKS(GNI_EpDestroy(ends[i]));
        WORKS(GNI_CqDestroy(queues[i]));
    }
    net_end();
    return 0;
}
