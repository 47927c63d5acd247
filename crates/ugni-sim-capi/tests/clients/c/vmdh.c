/* Registrations that are named by a place: who knows the place needs no handle of the peer's. */
#include "net.h"

#include <sys/mman.h>

enum { PLACES = 3, PAGE = 4096 };

static _Alignas(PAGE) unsigned char pages[PLACES][PAGE];

static void refused(void)
{
    gni_mem_handle_t handle, ordinary = places[job.rank].handle;
    uint64_t mine = (uint64_t)pages;
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, mine, PAGE, NULL, GNI_MEM_USE_VMDH, 0, &handle));
    GIVES(GNI_RC_INVALID_PARAM, GNI_SetMddResources(net.nic, 0));
    GIVES(GNI_RC_ERROR_NOMEM, GNI_SetMddResources(net.nic, 100000));
    WORKS(GNI_SetMddResources(net.nic, PLACES));
    GIVES(GNI_RC_INVALID_STATE, GNI_SetMddResources(net.nic, PLACES));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, mine, PAGE, NULL, GNI_MEM_USE_VMDH, PLACES, &handle));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, mine, PAGE, NULL, 0, 1, &handle));
    GIVES(GNI_RC_INVALID_STATE, GNI_RebuildMemHndl(&ordinary, 1, &handle));
    GIVES(GNI_RC_INVALID_PARAM, GNI_RebuildMemHndl(NULL, 1, &handle));
}

/* How many registrations there are, of which one is like this. */
static int listed(gni_mem_handle_t *wanted, uint64_t address)
{
    gni_mem_handle_t at;
    uint64_t first, length;
    int count = 0, found = 0;
    gni_return_t code;
    memset(&at, 0, sizeof at);
    while ((code = GNI_MemQueryHndls(net.nic, -1, &at, &first, &length)) == GNI_RC_SUCCESS) {
        count++;
        if (memcmp(&at, wanted, sizeof at) == 0) {
            CHECK(first == address && length == PAGE);
            found++;
        }
    }
    CHECK(code == GNI_RC_NO_MATCH && found == 1);
    return count;
}

/* Waits for an event of a transaction that may have failed. */
static gni_return_t ended(int peer, gni_post_descriptor_t *post)
{
    gni_cq_entry_t event;
    gni_post_descriptor_t *found = NULL;
    WORKS(GNI_PostFma(net.ends[peer], post));
    (void)net_event(net.events, &event);
    (void)GNI_GetCompleted(net.events, event, &found);
    CHECK(found == post);
    return post->status;
}

/* Addresses that are registered before there is memory behind them. */
static void reserved(int peer)
{
    gni_mem_handle_t mine = {0, 0};
    uint64_t at = (uint64_t)mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct place here = {0}, all[MOST_RANKS];
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, at, 4 * PAGE, NULL, GNI_MEM_USE_VMDH, 0, &mine));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, at, PAGE, NULL, GNI_MEM_UPDATE_REGION, 0, &mine));
    WORKS(GNI_MemRegister(net.nic, at, 4 * PAGE, NULL, GNI_MEM_USE_VMDH | GNI_MEM_RESERVE_REGION, 0, &mine));
    here.memory = at;
    here.handle = mine;
    job_gather(&here, all, sizeof here);
    gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT, peer, 0, 0, 8);
    post.remote_addr = all[peer].memory + PAGE;
    post.remote_mem_hndl = all[peer].handle;
    if (getenv("GASWORKS_UGNI_STRICT") == NULL)
        CHECK(ended(peer, &post) != GNI_RC_SUCCESS);
    job_barrier();
    GIVES(GNI_RC_INVALID_PARAM,
          GNI_MemRegister(net.nic, at + PAGE, PAGE, NULL, GNI_MEM_USE_VMDH | GNI_MEM_UPDATE_REGION, 0, &mine));
    CHECK(mprotect((void *)(at + PAGE), PAGE, PROT_READ | PROT_WRITE) == 0);
    WORKS(GNI_MemRegister(net.nic, at + PAGE, PAGE, NULL, GNI_MEM_USE_VMDH | GNI_MEM_UPDATE_REGION, 0, &mine));
    CHECK(memcmp(&mine, &here.handle, sizeof mine) == 0);
    /* Bytes of this process that are not the region's. */
    GIVES(GNI_RC_INVALID_PARAM,
          GNI_MemRegister(net.nic, (uint64_t)pages, PAGE, NULL, GNI_MEM_UPDATE_REGION, 0, &mine));
    job_barrier();
    *(uint64_t *)net.memory = 7;
    CHECK(ended(peer, &post) == GNI_RC_SUCCESS);
    job_barrier();
    CHECK(*(uint64_t *)(at + PAGE) == 7);
    WORKS(GNI_MemDeregister(net.nic, &mine));
    CHECK(munmap((void *)at, 4 * PAGE) == 0);
}

int main(void)
{
    job_begin();
    net_begin(GNI_CDM_MODE_MDD_SHARED, ENTRIES);
    int peer = (job.rank + 1) % job.size, yes = 9;
    refused();
    reserved(peer);
    gni_mem_handle_t mine[PLACES], theirs;
    for (uint32_t place = 0; place < PLACES; place++) {
        WORKS(GNI_MemRegister(net.nic, (uint64_t)pages[place], PAGE, net.arrivals, GNI_MEM_USE_VMDH, place,
                              &mine[place]));
        WORKS(GNI_MemHndlQueryAttr(&mine[place], GNI_MEMHNDL_ATTR_VMDH, &yes));
        CHECK(yes == 1);
        CHECK(listed(&mine[place], (uint64_t)pages[place]) == 2 + (int)place);
    }
    job_barrier();
    /* The place of a peer, made of another of one's own: addresses are one's own too. */
    for (uint32_t place = 0; place < PLACES; place++) {
        gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT, peer, 0, 0, 8);
        *(uint64_t *)net.memory = 100u * (uint32_t)job.rank + place;
        WORKS(GNI_RebuildMemHndl(&mine[0], place, &theirs));
        post.remote_addr = (uint64_t)pages[0] + 16;
        post.remote_mem_hndl = theirs;
        post.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        net_run(peer, &post);
    }
    job_barrier();
    for (uint32_t place = 0; place < PLACES; place++) {
        gni_cq_entry_t event;
        uint32_t from = (uint32_t)(job.rank + job.size - 1) % (uint32_t)job.size;
        WORKS(net_event(net.arrivals, &event));
        CHECK(GNI_CQ_GET_REM_INST_ID(event) == from);
        CHECK(*(uint64_t *)(pages[place] + 16) == 100u * from + place);
    }
    job_barrier();
    for (int place = 0; place < PLACES; place++)
        WORKS(GNI_MemDeregister(net.nic, &mine[place]));
    REFUSES(GNI_RC_INVALID_PARAM, GNI_MemDeregister(net.nic, &mine[0]));
    net_end();
    return 0;
}
