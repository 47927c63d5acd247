/* A queue that runs over, at the target and at the source: who reads it learns it, nothing else is lost, and it goes on. */
#include "net.h"

enum { ROOM = 8 };

/* Writes into a queue until it is full, and beyond. */
static void target(int peer)
{
    enum { SENT = 3 * ROOM };
    int lost = 0;
    for (uint64_t i = 0; i < SENT; i++) {
        gni_post_descriptor_t post = net_post(GNI_POST_CQWRITE, peer, 0, 0, 0), *found;
        post.cqwrite_value = i;
        WORKS(GNI_PostCqWrite(net.ends[peer], &post));
        gni_cq_entry_t event;
        WORKS(net_event(net.events, &event));
        lost += (int)GNI_CQ_REM_OVERRUN(event);
        WORKS(GNI_GetCompleted(net.events, event, &found));
    }
    CHECK(lost == SENT - ROOM);
    job_barrier();
    int taken = 0, overruns = 0;
    gni_cq_entry_t event;
    gni_return_t code;
    while ((code = GNI_CqGetEvent(net.arrivals, &event)) != GNI_RC_NOT_DONE) {
        CHECK(code == GNI_RC_SUCCESS || code == GNI_RC_ERROR_RESOURCE);
        CHECK((code == GNI_RC_ERROR_RESOURCE) == (GNI_CQ_OVERRUN(event) != 0));
        overruns += code == GNI_RC_ERROR_RESOURCE;
        taken++;
    }
    CHECK(taken == ROOM && overruns == 1);
    job_barrier();
    /* It is as good as new. */
    gni_post_descriptor_t post = net_post(GNI_POST_CQWRITE, peer, 0, 0, 0);
    post.cqwrite_value = 4711;
    net_run(peer, &post);
    WORKS(net_event(net.arrivals, &event));
    CHECK(GNI_CQ_GET_DATA(event) == 4711);
    job_barrier();
}

/* A source queue has a request for every place, half as many with two events each: who takes none cannot post. */
static void source(int peer)
{
    gni_post_descriptor_t posts[ENTRIES / 2 + 1];
    for (int i = 0; i < ENTRIES / 2; i++) {
        posts[i] = net_post(GNI_POST_FMA_PUT, peer, 0, 64, 8);
        WORKS(GNI_PostFma(net.ends[peer], &posts[i]));
    }
    gni_post_descriptor_t *last = &posts[ENTRIES / 2];
    *last = net_post(GNI_POST_FMA_PUT, peer, 0, 64, 8);
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_PostFma(net.ends[peer], last));
    GIVES(GNI_RC_NOT_DONE, GNI_EpUnbind(net.ends[peer]));
    /* A put that nobody wants to hear of needs no request. */
    gni_post_descriptor_t silent = net_post(GNI_POST_FMA_PUT, peer, 0, 64, 8);
    silent.cq_mode = GNI_CQMODE_SILENT;
    WORKS(GNI_PostFma(net.ends[peer], &silent));
    int seen[ENTRIES / 2] = {0};
    for (int i = 0; i < ENTRIES / 2; i++) {
        gni_cq_entry_t event;
        gni_post_descriptor_t *found;
        WORKS(net_event(net.events, &event));
        /* Taken, and not answered: the request is not free yet. */
        if (i == 0)
            GIVES(GNI_RC_ERROR_RESOURCE, GNI_PostFma(net.ends[peer], last));
        WORKS(GNI_GetCompleted(net.events, event, &found));
        CHECK(found >= posts && found < last && !seen[found - posts]++);
    }
    net_run(peer, last);
}

int main(void)
{
    job_begin();
    net_begin(GNI_CDM_MODE_DUAL_EVENTS, ROOM);
    target((job.rank + 1) % job.size);
    source((job.rank + 1) % job.size);
    net_end();
    return 0;
}
