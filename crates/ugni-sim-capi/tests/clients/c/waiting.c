/* Waiting for one queue and for any of several; a function that is called with each event. */
#include "net.h"

static int called;

static void note(gni_cq_entry_t *event, void *context)
{
    CHECK(*event != 0 && context == &called);
    called++;
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
    GIVES(GNI_RC_TIMEOUT, GNI_CqVectorMonitor(queues, 2, 1, &which));
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
            WORKS(GNI_CqVectorMonitor(queues, 2, (uint64_t)-1, &which));
            CHECK(which == at);
            WORKS(GNI_CqGetEvent(queues[at], &event));
            break;
        }
        WORKS(GNI_GetCompleted(queues[at], event, &found));
        CHECK(found == &post && called == (int)round + 1);
    }
    for (int i = 0; i < 2; i++) {
        WORKS(GNI_EpDestroy(ends[i]));
        WORKS(GNI_CqDestroy(queues[i]));
    }
    net_end();
    return 0;
}
