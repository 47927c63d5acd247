/* What the library gives for what it cannot do: the code that the genuine one gives, and nothing else happens. */
#include <sys/mman.h>

#include "net.h"

static void foreign_handles(void)
{
    uint32_t number;
    uint64_t long_number;
    gni_cq_entry_t event;
    gni_mem_handle_t memory;
    gni_ep_handle_t end;
    gni_cq_handle_t queue;
    gni_post_descriptor_t post, *found;
    void *strangers[] = {NULL, (void *)8, &number, (void *)-1, (void *)net.nic, (char *)net.nic + 1};
    memset(&post, 0, sizeof post);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        /* A NIC is a stranger where an endpoint is wanted, and good where a NIC is. */
        void *any = strangers[i];
        GIVES(GNI_RC_INVALID_PARAM, GNI_EpBind(any, 1, 1));
        GIVES(GNI_RC_INVALID_PARAM, GNI_EpUnbind(any));
        GIVES(GNI_RC_INVALID_PARAM, GNI_EpDestroy(any));
        GIVES(GNI_RC_INVALID_PARAM, GNI_EpSetEventData(any, 1, 1));
        GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(any, &post));
        GIVES(GNI_RC_INVALID_PARAM, GNI_PostRdma(any, &post));
        GIVES(GNI_RC_INVALID_PARAM, GNI_PostCqWrite(any, &post));
        GIVES(GNI_RC_INVALID_PARAM, GNI_CqGetEvent(any, &event));
        GIVES(GNI_RC_INVALID_PARAM, GNI_CqTestEvent(any));
        GIVES(GNI_RC_INVALID_PARAM, GNI_CqDestroy(any));
        GIVES(GNI_RC_INVALID_PARAM, GNI_GetCompleted(any, 0, &found));
        GIVES(GNI_RC_INVALID_PARAM, GNI_CdmDestroy(any));
        GIVES(GNI_RC_INVALID_PARAM, GNI_CdmAttach(any, 0, &number, (gni_nic_handle_t *)&long_number));
        if (any == (void *)net.nic)
            continue;
        GIVES(GNI_RC_INVALID_PARAM, GNI_CqCreate(any, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue));
        GIVES(GNI_RC_INVALID_PARAM, GNI_EpCreate(any, net.events, &end));
        GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(any, (uint64_t)net.memory, 8, NULL, 0, (uint32_t)-1, &memory));
        GIVES(GNI_RC_INVALID_PARAM, GNI_MemDeregister(any, &places[job.rank].handle));
        if (any)
            GIVES(GNI_RC_INVALID_PARAM, GNI_EpCreate(net.nic, any, &end));
    }
    GIVES(GNI_RC_INVALID_PARAM, GNI_CdmCreate(9, 1, 1, 0, NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CqGetEvent(net.events, NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(net.ends[0], NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_EpCreate(net.nic, net.events, NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemDeregister(net.nic, NULL));
}

static void domains_and_devices(void)
{
    gni_cdm_handle_t domain;
    gni_nic_handle_t nic;
    uint32_t address, processor;
    int devices = 0, list[4] = {9, 9, 9, 9};
    GIVES(GNI_RC_INVALID_STATE, GNI_CdmAttach(net.domain, 0, &address, &nic));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CdmCreate(9, net_tag(), 1, GNI_CDM_MODE_FMA_SHARED | GNI_CDM_MODE_FMA_DEDICATED, &domain));
    WORKS(GNI_CdmCreate((uint32_t)job.rank, net_tag(), net_cookie(), 0, &domain));
    GIVES(GNI_RC_NO_MATCH, GNI_CdmAttach(domain, 3, &address, &nic));
    /* The first domain has that name. */
    GIVES(GNI_RC_INVALID_PARAM, GNI_CdmAttach(domain, 0, &address, &nic));
    WORKS(GNI_CdmDestroy(domain));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CdmDestroy(domain));
    WORKS(GNI_CdmCreate((1u << 24) + (uint32_t)job.rank, net_tag(), net_cookie(), 0, &domain));
    GIVES(net.chip == GNI_DEVICE_ARIES ? GNI_RC_INVALID_PARAM : GNI_RC_SUCCESS,
          GNI_CdmAttach(domain, (uint32_t)-1, &address, &nic));
    WORKS(GNI_CdmDestroy(domain));

    GIVES(GNI_RC_NO_MATCH, GNI_CdmGetNicAddress(1, &address, &processor));
    WORKS(GNI_CdmGetNicAddress(0, &address, &processor));
    CHECK(address == net.address);
    WORKS(GNI_GetNumLocalDevices(&devices));
    CHECK(devices == 1);
    GIVES(GNI_RC_INVALID_PARAM, GNI_GetLocalDeviceIds(0, list));
    WORKS(GNI_GetLocalDeviceIds(4, list));
    CHECK(list[0] == 0 && list[1] == 9);
    gni_version_info_t version;
    WORKS(GNI_GetVersionInformation(&version));
    CHECK(version.ugni_version == GNI_VERSION && strstr(version.ugni_build_string, "Gasworks"));

    /* The tag of a job goes with its cookie. */
    uint8_t tag = 0;
    uint32_t cookie = net_cookie();
    GIVES(GNI_RC_NO_MATCH, GNI_GetPtag(0, cookie + 1, &tag));
    WORKS(GNI_GetPtag(0, cookie, &tag));
    CHECK(tag == net_tag());
    WORKS(GNI_CdmCreate(77, tag, cookie + 1, 0, &domain));
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_CdmAttach(domain, 0, &address, &nic));
    WORKS(GNI_CdmDestroy(domain));
}

static const uint64_t constant[512] = {1};

static void memory(void)
{
    gni_mem_handle_t handle;
    uint32_t none = (uint32_t)-1;
    int yes = 9;
    uint64_t mine = (uint64_t)net.memory;
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, mine, 0, NULL, 0, none, &handle));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, 0, 8, NULL, 0, none, &handle));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, mine, UINT64_MAX, NULL, 0, none, &handle));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, mine, (uint64_t)1 << 46, NULL, 0, none, &handle));
    /* A queue of endpoints is not for memory. */
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegister(net.nic, mine, 8, net.events, 0, none, &handle));
    gni_ep_handle_t end;
    GIVES(GNI_RC_INVALID_PARAM, GNI_EpCreate(net.nic, net.arrivals, &end));
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_MemRegister(net.nic, (uint64_t)constant, 8, NULL, 0, none, &handle));
    WORKS(GNI_MemRegister(net.nic, (uint64_t)constant, 8, NULL, GNI_MEM_READ_ONLY, none, &handle));
    WORKS(GNI_MemHndlQueryAttr(&handle, GNI_MEMHNDL_ATTR_READONLY, &yes));
    CHECK(yes == 1);
    WORKS(GNI_MemHndlQueryAttr(&places[job.rank].handle, GNI_MEMHNDL_ATTR_READONLY, &yes));
    CHECK(yes == 0);
    gni_mem_handle_t broken = handle;
    broken.qword1 ^= 4;
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemHndlQueryAttr(&broken, GNI_MEMHNDL_ATTR_READONLY, &yes));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemDeregister(net.nic, &broken));
    WORKS(GNI_MemDeregister(net.nic, &handle));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemDeregister(net.nic, &handle));
}

/* A transaction that ends badly: its event says how. */
static void fails(int peer, gni_post_descriptor_t *post, int recoverable, const char *why)
{
    gni_cq_entry_t event;
    gni_post_descriptor_t *found = NULL;
    char text[100], little[4];
    uint32_t again = 9;
    WORKS(GNI_PostFma(net.ends[peer], post));
    GIVES(GNI_RC_TRANSACTION_ERROR, net_event(net.events, &event));
    CHECK(post->status == GNI_RC_TRANSACTION_ERROR);
    WORKS(GNI_CqErrorRecoverable(event, &again));
    CHECK(again == (uint32_t)recoverable);
    WORKS(GNI_CqErrorStr(event, text, sizeof text));
    CHECK(strcmp(text, why) == 0);
    GIVES(GNI_RC_SIZE_ERROR, GNI_CqErrorStr(event, little, sizeof little));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CqErrorStr(event, NULL, 9));
    GIVES(GNI_RC_TRANSACTION_ERROR, GNI_GetCompleted(net.events, event, &found));
    CHECK(found == post);
}

static void transactions(int peer)
{
    gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT, peer, 0, 0, 8), *found = &post;
    post.cq_mode |= GNI_CQMODE_LOCAL_EVENT;
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(net.ends[peer], &post));
    post = net_post(GNI_POST_FMA_GET, peer, 0, 0, 0);
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(net.ends[peer], &post));
    post = net_post(GNI_POST_RDMA_PUT, peer, 0, 0, 0);
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostRdma(net.ends[peer], &post));
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(net.ends[peer], &post));
    post.length = (uint64_t)1 << 32;
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostRdma(net.ends[peer], &post));
    post = net_post(GNI_POST_RDMA_PUT, peer, 0, 0, BYTES + 4096);
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostRdma(net.ends[peer], &post));
    post = net_post(GNI_POST_AMO, peer, 0, 4, 8);
    post.amo_cmd = GNI_FMA_ATOMIC_ADD;
    GIVES(GNI_RC_ALIGNMENT_ERROR, GNI_PostFma(net.ends[peer], &post));
    post.amo_cmd = 0xffff;
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(net.ends[peer], &post));
    post = net_post(GNI_POST_FMA_PUT, peer, 0, 0, 8);
    post.src_cq_hndl = net.arrivals;
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(net.ends[peer], &post));
    GIVES(GNI_RC_DESCRIPTOR_ERROR, GNI_GetCompleted(net.events, 0, &found));
    CHECK(found == NULL);
    /* Nothing of all that is on its way. */
    gni_cq_entry_t event;
    GIVES(GNI_RC_NOT_DONE, GNI_CqGetEvent(net.events, &event));
    WORKS(GNI_EpIdle(net.ends[peer]));

    post = net_post(GNI_POST_FMA_PUT, peer, 0, BYTES + 4096, 8);
    fails(peer, &post, 0, "the address is outside the registration");
    post = net_post(GNI_POST_FMA_PUT, peer, 0, 0, 8);
    post.remote_mem_hndl.qword1 ^= 1;
    fails(peer, &post, 0, "the memory handle is of no registration");
    /* An endpoint to nobody. */
    gni_ep_handle_t end;
    WORKS(GNI_EpCreate(net.nic, net.events, &end));
    post = net_post(GNI_POST_FMA_PUT, peer, 0, 0, 8);
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(end, &post));
    WORKS(GNI_EpBind(end, net.address, 4242));
    /* What the handle names is found without: these bytes are nobody's. */
    post.remote_addr += 2 * BYTES;
    gni_ep_handle_t known = net.ends[peer];
    net.ends[peer] = end;
    fails(peer, &post, 0, "the target cannot be reached");
    net.ends[peer] = known;
    WORKS(GNI_EpDestroy(end));
    /* The queue is used by others. */
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_CqDestroy(net.events));
}

/* Memory that is unmapped before it is deregistered, and what was registered there. */
static void unmapped(int peer)
{
    struct place mine = {0}, all[MOST_RANKS];
    char *pages = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mine.memory = (uint64_t)pages;
    WORKS(GNI_MemRegister(net.nic, mine.memory, 1 << 16, NULL, 0, (uint32_t)-1, &mine.handle));
    net_unmap(pages, 1 << 16);
    job_gather(&mine, all, sizeof mine);
    gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT, peer, 0, 0, 8);
    post.remote_addr = all[peer].memory;
    post.remote_mem_hndl = all[peer].handle;
    fails(peer, &post, 0, "the registered memory is not mapped");
    job_barrier();
    WORKS(GNI_MemDeregister(net.nic, &mine.handle));
    job_barrier();
    fails(peer, &post, 0, "the memory handle is of no registration");
}

int main(void)
{
    job_begin();
    net_begin(GNI_CDM_MODE_DUAL_EVENTS, ENTRIES);
    foreign_handles();
    domains_and_devices();
    memory();
    transactions((job.rank + 1) % job.size);
    unmapped((job.rank + 1) % job.size);
    net_end();
    return 0;
}
