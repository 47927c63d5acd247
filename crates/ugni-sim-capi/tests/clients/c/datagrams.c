/* A rendezvous: ranks that know only addresses find each other by datagrams, and trade what they need for puts. */
#include "net.h"

/* What ranks tell each other by datagram. */
struct card {
    struct place place;
    uint32_t rank;
};

static struct card mine;

/* Everybody calls the next one, and hears from the one before on an endpoint that is bound to nobody. */
static void ring(void)
{
    int next = (job.rank + 1) % job.size, last = (job.rank + job.size - 1) % job.size;
    gni_ep_handle_t listener, caller;
    struct card from_last, from_next;
    gni_post_state_t state;
    uint32_t address = 0, instance = 99;
    uint64_t id = 0;
    mine.rank = (uint32_t)job.rank;
    WORKS(GNI_EpCreate(net.nic, NULL, &listener));
    WORKS(GNI_EpCreate(net.nic, net.events, &caller));
    WORKS(GNI_EpBind(caller, places[next].address, (uint32_t)next));
    GIVES(GNI_RC_INVALID_PARAM, GNI_EpPostData(listener, &mine, sizeof mine, &from_last, sizeof from_last));
    GIVES(GNI_RC_INVALID_PARAM, GNI_EpPostDataWId(listener, &mine, sizeof mine, &from_last, sizeof from_last,
                                                  UINT64_MAX));
    GIVES(GNI_RC_SIZE_ERROR, GNI_EpPostDataWId(listener, &mine, 129, &from_last, sizeof from_last, 1));
    GIVES(GNI_RC_INVALID_PARAM, GNI_EpPostDataWId(listener, NULL, 8, &from_last, sizeof from_last, 1));
    GIVES(GNI_RC_INVALID_PARAM, GNI_EpPostDataWId(listener, &mine, 8, NULL, sizeof from_last, 1));
    GIVES(GNI_RC_NO_MATCH, GNI_EpPostDataTest(listener, &state, &address, &instance));
    WORKS(GNI_EpPostDataWId(listener, &mine, sizeof mine, &from_last, sizeof from_last, 0xabcdef0123));
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_EpPostDataWId(listener, &mine, sizeof mine, &from_last, sizeof from_last, 2));
    GIVES(GNI_RC_NOT_DONE, GNI_EpUnbind(listener));
    GIVES(GNI_RC_TIMEOUT, GNI_PostdataProbeWaitById(net.nic, 1, &id));
    job_barrier();
    WORKS(GNI_EpPostData(caller, &mine, sizeof mine, &from_next, sizeof from_next));
    GIVES(GNI_RC_INVALID_PARAM, GNI_EpPostDataWait(caller, 0, &state, &address, &instance));
    WORKS(GNI_EpPostDataWait(caller, (uint32_t)-1, &state, &address, &instance));
    CHECK(state == GNI_POST_COMPLETED && instance == (uint32_t)next && address == places[next].address);
    CHECK(from_next.rank == (uint32_t)next);
    WORKS(GNI_PostdataProbeWaitById(net.nic, 60000, &id));
    CHECK(id == 0xabcdef0123);
    WORKS(GNI_EpPostDataTestById(listener, id, &state, &address, &instance));
    CHECK(state == GNI_POST_COMPLETED && instance == (uint32_t)last && from_last.rank == (uint32_t)last);
    GIVES(GNI_RC_NO_MATCH, GNI_EpPostDataTestById(listener, id, &state, &address, &instance));
    GIVES(GNI_RC_NO_MATCH, GNI_PostDataProbeById(net.nic, &id));

    /* The card is good for a put. */
    *(uint64_t *)net.memory = 1000 + (uint64_t)job.rank;
    gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT, next, 0, 64, 8);
    post.remote_addr = from_next.place.memory + 64;
    post.remote_mem_hndl = from_next.place.handle;
    WORKS(GNI_PostFma(caller, &post));
    net_done(&post);
    job_barrier();
    CHECK(*(uint64_t *)(net.memory + 64) == 1000 + (uint64_t)last);
    WORKS(GNI_EpUnbind(caller));
    WORKS(GNI_EpDestroy(caller));
    WORKS(GNI_EpDestroy(listener));
}

/* One that is cancelled; one that goes with its endpoint. */
static void cancelled(void)
{
    gni_ep_handle_t end;
    gni_post_state_t state;
    uint32_t address, instance;
    WORKS(GNI_EpCreate(net.nic, NULL, &end));
    WORKS(GNI_EpBind(end, net.address, 4242));
    WORKS(GNI_EpPostDataWId(end, &mine, 0, NULL, 0, 5));
    GIVES(GNI_RC_TIMEOUT, GNI_EpPostDataWaitById(end, 5, 20, &state, &address, &instance));
    GIVES(GNI_RC_NO_MATCH, GNI_EpPostDataCancel(end));
    WORKS(GNI_EpPostDataCancelById(end, 5));
    uint64_t id = 0;
    WORKS(GNI_PostDataProbeById(net.nic, &id));
    CHECK(id == 5);
    WORKS(GNI_EpPostDataTestById(end, 5, &state, &address, &instance));
    CHECK(state == GNI_POST_TERMINATED);
    WORKS(GNI_EpPostDataWId(end, &mine, 0, NULL, 0, 6));
    WORKS(GNI_EpDestroy(end));
    GIVES(GNI_RC_NO_MATCH, GNI_PostDataProbeById(net.nic, &id));
}

int main(void)
{
    job_begin();
    net_begin(0, ENTRIES);
    mine.place = places[job.rank];
    ring();
    cancelled();
    net_end();
    return 0;
}
