/* A rank's NIC, memory that is registered with a queue, and an endpoint to every rank. */
#ifndef NET_H
#define NET_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job.h"

enum { BYTES = 1 << 16, ENTRIES = 512 };

static struct {
    gni_cdm_handle_t domain;
    gni_nic_handle_t nic;
    gni_cq_handle_t events, arrivals;
    gni_ep_handle_t ends[MOST_RANKS];
    gni_nic_device_t chip;
    uint32_t address;
    _Alignas(4096) unsigned char memory[BYTES];
} net;

/* What ranks tell each other. */
struct place {
    uint32_t address;
    uint64_t memory;
    gni_mem_handle_t handle;
};

static struct place places[MOST_RANKS];

/* What the launcher has given the job; of several, the first. */
static inline uint32_t net_given(const char *name)
{
    const char *value = getenv(name);
    CHECK(value != NULL);
    return (uint32_t)strtoul(value, NULL, 10);
}

static inline uint32_t net_cookie(void)
{
    return net_given("PMI_GNI_COOKIE");
}

static inline uint8_t net_tag(void)
{
    return (uint8_t)net_given("PMI_GNI_PTAG");
}

/* Memory of a sealed file, such as a segment that ranks share, is reached in another way than a process's own: every other pair of
   seeds has one. */
static inline void net_share(void)
{
    const char *seed = getenv("GASWORKS_UGNI_SEED");
    if (!seed || !(strtoul(seed, NULL, 10) & 2))
        return;
    int file = memfd_create("net", MFD_ALLOW_SEALING);
    CHECK(file >= 0 && ftruncate(file, BYTES) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    CHECK(pwrite(file, net.memory, BYTES, 0) == BYTES);
    CHECK(mmap(net.memory, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == net.memory);
}

static inline void net_begin(uint32_t modes, uint32_t arrivals)
{
    struct place mine = {0};
    net_share();
    WORKS(GNI_GetDeviceType(&net.chip));
    WORKS(GNI_CdmCreate((uint32_t)job.rank, net_tag(), net_cookie(), modes, &net.domain));
    WORKS(GNI_CdmAttach(net.domain, 0, &net.address, &net.nic));
    WORKS(GNI_CqCreate(net.nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &net.events));
    WORKS(GNI_CqCreate(net.nic, arrivals, 0, GNI_CQ_NOBLOCK, NULL, NULL, &net.arrivals));
    WORKS(GNI_MemRegister(net.nic, (uint64_t)net.memory, BYTES, net.arrivals, GNI_MEM_READWRITE, (uint32_t)-1,
                          &mine.handle));
    mine.address = net.address;
    mine.memory = (uint64_t)net.memory;
    job_gather(&mine, places, sizeof mine);
    for (int rank = 0; rank < job.size; rank++) {
        WORKS(GNI_EpCreate(net.nic, net.events, &net.ends[rank]));
        WORKS(GNI_EpBind(net.ends[rank], places[rank].address, (uint32_t)rank));
    }
}

static inline void net_end(void)
{
    job_barrier();
    for (int rank = 0; rank < job.size; rank++) {
        WORKS(GNI_EpUnbind(net.ends[rank]));
        WORKS(GNI_EpDestroy(net.ends[rank]));
    }
    WORKS(GNI_MemDeregister(net.nic, &places[job.rank].handle));
    WORKS(GNI_CqDestroy(net.arrivals));
    WORKS(GNI_CqDestroy(net.events));
    WORKS(GNI_CdmDestroy(net.domain));
    job_end();
}

/* Ends a mapping. What is there from now on may not be touched, so that no other mapping of this process comes to lie there. */
static inline void net_unmap(void *at, size_t len)
{
    int flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    CHECK(mmap(at, len, PROT_NONE, flags, -1, 0) == at);
}

/* A transaction between bytes here and there. */
static inline gni_post_descriptor_t net_post(gni_post_type_t type, int peer, uint64_t here, uint64_t there,
                                             uint64_t length)
{
    gni_post_descriptor_t post;
    memset(&post, 0, sizeof post);
    post.type = type;
    post.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    post.dlvr_mode = GNI_DLVMODE_PERFORMANCE;
    post.local_addr = places[job.rank].memory + here;
    post.local_mem_hndl = places[job.rank].handle;
    post.remote_addr = places[peer].memory + there;
    post.remote_mem_hndl = places[peer].handle;
    post.length = length;
    return post;
}

/* What ranks tell each other of a mailbox, for messages up to the longest. */
static inline gni_smsg_attr_t net_mailbox(gni_smsg_type_t type, void *buffer, gni_mem_handle_t handle,
                                          unsigned int size, uint16_t credits, uint32_t longest)
{
    gni_smsg_attr_t box;
    memset(&box, 0, sizeof box);
    box.msg_type = type;
    box.msg_buffer = buffer;
    box.buff_size = size;
    box.mem_hndl = handle;
    box.mbox_maxcredit = credits;
    box.msg_maxsize = longest;
    return box;
}

/* The next event of a queue, however it ended. */
static inline gni_return_t net_event(gni_cq_handle_t queue, gni_cq_entry_t *event)
{
    gni_return_t code;
    while ((code = GNI_CqGetEvent(queue, event)) == GNI_RC_NOT_DONE)
        sched_yield();
    return code;
}

/* Waits for an event of a descriptor. */
static inline void net_done(gni_post_descriptor_t *post)
{
    gni_cq_entry_t event;
    gni_post_descriptor_t *found = NULL;
    WORKS(net_event(net.events, &event));
    CHECK(GNI_CQ_GET_TYPE(event) == GNI_CQ_EVENT_TYPE_POST);
    WORKS(GNI_GetCompleted(net.events, event, &found));
    CHECK(found == post && post->status == GNI_RC_SUCCESS);
}

/* Posts it and waits until it is over. */
static inline void net_run(int peer, gni_post_descriptor_t *post)
{
    int engine = post->type == GNI_POST_RDMA_PUT || post->type == GNI_POST_RDMA_GET;
    if (post->type == GNI_POST_CQWRITE)
        WORKS(GNI_PostCqWrite(net.ends[peer], post));
    else
        WORKS(engine ? GNI_PostRdma(net.ends[peer], post) : GNI_PostFma(net.ends[peer], post));
    net_done(post);
}

#endif
