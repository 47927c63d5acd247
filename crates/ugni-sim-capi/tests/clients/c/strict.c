/* One mistake at a time, by its name; with a second argument the same client without it. A mistake ends well all the same where
   nobody is strict. */
#include <sys/mman.h>

#include "net.h"

/* Without the mistake. */
static int well;

enum { PAGE = 4096, APART = 1 << 15 };

static gni_post_descriptor_t put(gni_post_type_t type, uint64_t length)
{
    return net_post(type, 0, 0, APART, length);
}

static void post(gni_post_descriptor_t *post)
{
    int engine = post->type == GNI_POST_RDMA_PUT || post->type == GNI_POST_RDMA_GET;
    WORKS(engine ? GNI_PostRdma(net.ends[0], post) : GNI_PostFma(net.ends[0], post));
}

static void source_fma(void)
{
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT, 100);
    post(&it);
    if (!well)
        net.memory[7]++, net.memory[9]++;
    net_done(&it);
    net.memory[7]++;
}

static void source_flag(void)
{
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT_W_SYNCFLAG, 8);
    it.sync_flag_addr = it.remote_addr + 8;
    post(&it);
    net.memory[0] += !well;
    net_done(&it);
}

/* With both events, the first frees the source. */
static void source_bte(void)
{
    gni_post_descriptor_t it = put(GNI_POST_RDMA_PUT, 5000), *found;
    it.cq_mode |= GNI_CQMODE_LOCAL_EVENT;
    gni_cq_entry_t event;
    post(&it);
    net.memory[4999] += !well;
    for (int i = 0; i < 2; i++) {
        WORKS(net_event(net.events, &event));
        WORKS(GNI_GetCompleted(net.events, event, &found));
        net.memory[4999]++;
    }
}

static void source_chain(void)
{
    gni_ct_put_post_descriptor_t link;
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT, 8);
    memset(&link, 0, sizeof link);
    link.ep_hndl = net.ends[0];
    link.length = 8;
    link.remote_addr = it.remote_addr + 8;
    link.remote_mem_hndl = it.remote_mem_hndl;
    link.local_addr = it.local_addr + 64;
    it.next_descr = &link;
    WORKS(GNI_CtPostFma(net.ends[0], &it));
    net.memory[64] += !well;
    net_done(&it);
}

/* The peer's answer comes to where the question lay: that is none of the client's doing, but what it does before is. */
static void source_answered(void)
{
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT, 64), answer = net_post(GNI_POST_FMA_PUT, 0, PAGE, 16, 8);
    net.memory[PAGE + 3] = 77;
    post(&it);
    answer.cq_mode = GNI_CQMODE_SILENT;
    net.memory[24] += !well;
    post(&answer);
    while (net.memory[19] != 77)
        GNI_CqTestEvent(net.events), sched_yield();
    net_done(&it);
}

static void source_message(void)
{
    static _Alignas(PAGE) unsigned char mailbox[PAGE];
    gni_smsg_attr_t box;
    gni_mem_handle_t handle;
    gni_ep_handle_t end;
    gni_cq_entry_t event;
    void *message;
    char text[] = "a message";
    WORKS(GNI_MemRegister(net.nic, (uint64_t)mailbox, sizeof mailbox, NULL, 0, (uint32_t)-1, &handle));
    box = net_mailbox(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, mailbox, handle, sizeof mailbox, 4, 64);
    WORKS(GNI_EpCreate(net.nic, net.events, &end));
    WORKS(GNI_EpBind(end, net.address, 0));
    WORKS(GNI_SmsgInit(end, &box, &box));
    WORKS(GNI_SmsgSend(end, text, sizeof text, NULL, 0, 4711));
    text[0] += !well;
    WORKS(net_event(net.events, &event));
    while (GNI_SmsgGetNext(end, &message) != GNI_RC_SUCCESS)
        sched_yield();
    WORKS(GNI_SmsgRelease(end));
    for (int i = 0; i < 100; i++)
        GIVES(GNI_RC_NOT_DONE, GNI_CqGetEvent(net.events, &event));
    WORKS(GNI_EpUnbind(end));
    WORKS(GNI_EpDestroy(end));
    WORKS(GNI_MemDeregister(net.nic, &handle));
}

static char *pages(void)
{
    char *pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    return pages;
}

/* A source that is not there any more when its event is taken. */
static void unmapped_source(void)
{
    char *source = pages();
    gni_cq_entry_t event;
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT, 8), *found;
    it.local_addr = (uint64_t)source;
    post(&it);
    if (!well)
        net_unmap(source, PAGE);
    net_event(net.events, &event);
    GNI_GetCompleted(net.events, event, &found);
    munmap(source, PAGE);
}

/* Memory may be unmapped before it is deregistered, but not be used then: at the target, or here. */
static void unmapped(int here)
{
    char *place = pages();
    gni_mem_handle_t handle;
    gni_cq_entry_t event;
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT, 8), *found;
    WORKS(GNI_MemRegister(net.nic, (uint64_t)place, PAGE, NULL, 0, (uint32_t)-1, &handle));
    it.remote_addr = (uint64_t)place;
    it.remote_mem_hndl = handle;
    if (here) {
        it = net_post(GNI_POST_FMA_GET, 0, 0, APART, 8);
        it.local_addr = (uint64_t)place;
        it.local_mem_hndl = handle;
    }
    if (!well)
        net_unmap(place, PAGE);
    post(&it);
    net_event(net.events, &event);
    GNI_GetCompleted(net.events, event, &found);
    munmap(place, PAGE);
    WORKS(GNI_MemDeregister(net.nic, &handle));
}

static void unmapped_target(void)
{
    unmapped(0);
}

static void unmapped_here(void)
{
    unmapped(1);
}

static void bounds(void)
{
    gni_cq_entry_t event;
    gni_post_descriptor_t it = net_post(GNI_POST_FMA_PUT, 0, 0, well ? BYTES - 8 : BYTES + PAGE, 8), *found;
    post(&it);
    net_event(net.events, &event);
    GNI_GetCompleted(net.events, event, &found);
}

static void leak_registration(void)
{
    gni_mem_handle_t handle;
    WORKS(GNI_MemRegister(net.nic, (uint64_t)net.memory, 512, NULL, 0, (uint32_t)-1, &handle));
    if (well)
        WORKS(GNI_MemDeregister(net.nic, &handle));
}

/* A transaction of which nobody hears, at an endpoint that goes, and then its queue. */
static void leak_request(void)
{
    gni_cq_handle_t queue;
    gni_ep_handle_t end;
    gni_cq_entry_t event;
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT, 8), *found;
    it.post_id = 0xabc;
    WORKS(GNI_CqCreate(net.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue));
    WORKS(GNI_EpCreate(net.nic, queue, &end));
    WORKS(GNI_EpBind(end, net.address, 0));
    WORKS(GNI_PostFma(end, &it));
    if (well) {
        WORKS(net_event(queue, &event));
        WORKS(GNI_GetCompleted(queue, event, &found));
    }
    WORKS(GNI_EpDestroy(end));
    WORKS(GNI_CqDestroy(queue));
}

/* Its event is taken, and that is all. */
static void leak_answer(void)
{
    gni_ep_handle_t end;
    gni_cq_entry_t event;
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT, 8), *found;
    WORKS(GNI_EpCreate(net.nic, net.events, &end));
    WORKS(GNI_EpBind(end, net.address, 0));
    WORKS(GNI_PostFma(end, &it));
    WORKS(net_event(net.events, &event));
    if (well)
        WORKS(GNI_GetCompleted(net.events, event, &found));
    WORKS(GNI_EpDestroy(end));
}

/* The process ends well, and its domain is as it was. */
static void leak_exit(void)
{
    if (!well) {
        CHECK(PMI_Finalize() == PMI_SUCCESS);
        exit(0);
    }
}

/* The same by a way out at which no hooks run. */
static void leak_exit_at_once(void)
{
    if (!well) {
        CHECK(PMI_Finalize() == PMI_SUCCESS);
        _exit(0);
    }
}

static void stale_queue(void)
{
    gni_cq_handle_t queue;
    gni_cq_entry_t event;
    WORKS(GNI_CqCreate(net.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue));
    GIVES(GNI_RC_NOT_DONE, GNI_CqGetEvent(queue, &event));
    WORKS(GNI_CqDestroy(queue));
    if (!well)
        GIVES(GNI_RC_INVALID_PARAM, GNI_CqGetEvent(queue, &event));
}

static void stale_source_queue(void)
{
    gni_cq_handle_t queue;
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT, 8);
    WORKS(GNI_CqCreate(net.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue));
    WORKS(GNI_CqDestroy(queue));
    it.src_cq_hndl = queue;
    if (!well)
        GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(net.ends[0], &it));
}

static void stale_endpoint(void)
{
    gni_ep_handle_t end;
    WORKS(GNI_EpCreate(net.nic, net.events, &end));
    WORKS(GNI_EpDestroy(end));
    if (!well)
        GIVES(GNI_RC_INVALID_PARAM, GNI_EpDestroy(end));
}

static void stale_nic(void)
{
    gni_cdm_handle_t domain;
    gni_nic_handle_t nic;
    gni_cq_handle_t queue;
    uint32_t address;
    WORKS(GNI_CdmCreate(77, net_tag(), net_cookie(), 0, &domain));
    WORKS(GNI_CdmAttach(domain, 0, &address, &nic));
    WORKS(GNI_CdmDestroy(domain));
    if (!well)
        GIVES(GNI_RC_INVALID_PARAM, GNI_CqCreate(nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue));
}

static gni_mem_handle_t ended(void)
{
    gni_mem_handle_t handle;
    WORKS(GNI_MemRegister(net.nic, (uint64_t)net.memory, PAGE, NULL, 0, (uint32_t)-1, &handle));
    WORKS(GNI_MemDeregister(net.nic, &handle));
    return handle;
}

static void stale_registration(void)
{
    gni_mem_handle_t handle = ended();
    if (!well)
        GIVES(GNI_RC_INVALID_PARAM, GNI_MemDeregister(net.nic, &handle));
}

static void stale_memory_here(void)
{
    gni_post_descriptor_t it = put(GNI_POST_RDMA_PUT, 8);
    gni_mem_handle_t handle = ended();
    if (well) {
        net_run(0, &it);
        return;
    }
    it.local_mem_hndl = handle;
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostRdma(net.ends[0], &it));
}

static void stale_memory_there(void)
{
    gni_cq_entry_t event;
    gni_mem_handle_t handle = ended();
    gni_post_descriptor_t it = net_post(GNI_POST_FMA_PUT, 0, APART, 0, 8), *found;
    if (!well)
        it.remote_mem_hndl = handle;
    post(&it);
    net_event(net.events, &event);
    GNI_GetCompleted(net.events, event, &found);
}

static void get(uint64_t here, uint64_t there, uint64_t length)
{
    gni_post_descriptor_t it = net_post(GNI_POST_FMA_GET, 0, here, APART + there, length);
    gni_return_t code = GNI_PostFma(net.ends[0], &it);
    CHECK(code == GNI_RC_SUCCESS || !well);
    if (code == GNI_RC_SUCCESS)
        net_done(&it);
}

static void align_remote(void)
{
    get(0, well ? 4 : 2, 8);
}

static void align_length(void)
{
    get(0, 0, well ? 8 : 7);
}

/* On Gemini alone. */
static void align_local(void)
{
    get(well ? 4 : 3, 0, 8);
}

static void align_atomic(void)
{
    gni_post_descriptor_t it = net_post(GNI_POST_AMO, 0, 0, APART + (well ? 8 : 4), 8);
    it.amo_cmd = GNI_FMA_ATOMIC_FADD;
    if (GNI_PostFma(net.ends[0], &it) == GNI_RC_SUCCESS)
        net_done(&it);
}

static void align_line(void)
{
    gni_post_descriptor_t it = net_post(GNI_POST_FMA_GET_W_FLAG, 0, 0, APART, 8);
    it.sync_flag_addr = it.local_addr + (well ? 60 : 64);
    if (GNI_PostFma(net.ends[0], &it) == GNI_RC_SUCCESS)
        net_done(&it);
}

static void align_flag(void)
{
    gni_cq_entry_t event;
    gni_post_descriptor_t it = put(GNI_POST_FMA_PUT_W_SYNCFLAG, 8), *found;
    it.sync_flag_addr = it.remote_addr + (well ? 8 : 12);
    post(&it);
    net_event(net.events, &event);
    GNI_GetCompleted(net.events, event, &found);
}

#define MISTAKES(DO)                                                                                         \
    DO(source_fma) DO(source_flag) DO(source_bte) DO(source_chain) DO(source_answered) DO(source_message)    \
    DO(unmapped_source) DO(unmapped_target) DO(unmapped_here) DO(bounds) DO(leak_registration)               \
    DO(leak_request) DO(leak_answer) DO(leak_exit) DO(leak_exit_at_once) DO(stale_queue) DO(stale_source_queue)   \
    DO(stale_endpoint) DO(stale_nic) DO(stale_registration) DO(stale_memory_here) DO(stale_memory_there)     \
    DO(align_remote) DO(align_length) DO(align_local) DO(align_atomic) DO(align_line) DO(align_flag)
#define NAMED(name) {#name, name},

static const struct {
    const char *name;
    void (*make)(void);
} mistakes[] = {MISTAKES(NAMED)};

int main(int argc, char **argv)
{
    job_begin();
    well = argc > 2;
    net_begin(GNI_CDM_MODE_DUAL_EVENTS, ENTRIES);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        if (argc > 1 && strcmp(argv[1], mistakes[i].name) == 0)
            mistakes[i].make();
    net_end();
    return 0;
}
