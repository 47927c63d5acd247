/* Two domains in each process: what is registered in one serves in the other, and nobody else's does. */
#include "net.h"

enum { WORDS = 512 };

static struct {
    gni_cdm_handle_t domain;
    gni_nic_handle_t nic;
    gni_cq_handle_t arrivals;
    _Alignas(4096) uint64_t words[WORDS];
} second;

/* A transaction through the first domain between what the second has registered, here and there. */
static gni_post_descriptor_t between(gni_post_type_t type, const struct place *here, const struct place *there)
{
    gni_post_descriptor_t post = net_post(type, 0, 0, 0, 8);
    post.local_addr = here->memory;
    post.local_mem_hndl = here->handle;
    post.remote_addr = there->memory + 8;
    post.remote_mem_hndl = there->handle;
    return post;
}

/* How a put from here through an endpoint to a number that nobody has ends. */
static gni_return_t nameless(const struct place *here, const struct place *there)
{
    gni_ep_handle_t end;
    gni_cq_entry_t event;
    gni_post_descriptor_t put = between(GNI_POST_RDMA_PUT, here, there), *found;
    WORKS(GNI_EpCreate(net.nic, net.events, &end));
    WORKS(GNI_EpBind(end, there->address, 1u << 20));
    WORKS(GNI_PostRdma(end, &put));
    gni_return_t code = net_event(net.events, &event);
    CHECK(GNI_GetCompleted(net.events, event, &found) == code && found == &put);
    WORKS(GNI_EpUnbind(end));
    WORKS(GNI_EpDestroy(end));
    return code;
}

/* A transaction goes to a node, and the handle says whose memory is meant: where one process there has registered such. */
static void of_a_node(const struct place *mine, const struct place *next)
{
    int near = next->address == mine->address;
    CHECK(nameless(mine, next) == (near ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR));
    job_barrier();
    /* What several ranks of a node name alike is none's. */
    struct place alike = *mine;
    WORKS(GNI_SetMddResources(second.nic, 1));
    WORKS(GNI_MemRegister(second.nic, mine->memory, 4096, NULL, GNI_MEM_USE_VMDH, 0, &alike.handle));
    job_barrier();
    if (near)
        CHECK(nameless(mine, &alike) == GNI_RC_TRANSACTION_ERROR);
    job_barrier();
    WORKS(GNI_MemDeregister(second.nic, &alike.handle));
}

int main(void)
{
    struct place mine = {0}, seconds[MOST_RANKS];
    gni_cq_entry_t event;
    job_begin();
    net_begin(GNI_CDM_MODE_DUAL_EVENTS, ENTRIES);
    uint32_t instance = (uint32_t)(job.size + job.rank);
    WORKS(GNI_CdmCreate(instance, net_tag(), net_cookie(), GNI_CDM_MODE_DUAL_EVENTS, &second.domain));
    WORKS(GNI_CdmAttach(second.domain, 0, &mine.address, &second.nic));
    WORKS(GNI_CqCreate(second.nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &second.arrivals));
    /* Others, so that descriptors of the two domains differ. */
    gni_mem_handle_t others[3];
    for (int i = 0; i < 3; i++)
        WORKS(GNI_MemRegister(net.nic, (uint64_t)net.memory + 4096 * (uint64_t)i, 8, NULL, 0, (uint32_t)-1, &others[i]));
    mine.memory = (uint64_t)second.words;
    WORKS(GNI_MemRegister(second.nic, mine.memory, sizeof second.words, second.arrivals, 0, (uint32_t)-1,
                          &mine.handle));
    job_gather(&mine, seconds, sizeof mine);
    int next = (job.rank + 1) % job.size, last = (job.rank + job.size - 1) % job.size;

    second.words[0] = 100 + (uint64_t)job.rank;
    gni_post_descriptor_t put = between(GNI_POST_RDMA_PUT, &mine, &seconds[next]);
    put.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    net_run(next, &put);
    WORKS(net_event(second.arrivals, &event));
    /* The event may come first. */
    job_barrier();
    CHECK(second.words[1] == 100 + (uint64_t)last);
    job_barrier();
    gni_post_descriptor_t add = between(GNI_POST_AMO, &mine, &seconds[next]);
    add.amo_cmd = GNI_FMA_ATOMIC_ADD;
    add.first_operand = 1;
    net_run(next, &add);
    job_barrier();
    CHECK(second.words[1] == 101 + (uint64_t)last);
    gni_post_descriptor_t get = between(GNI_POST_FMA_GET, &mine, &seconds[next]);
    net_run(next, &get);
    CHECK(second.words[0] == 101 + (uint64_t)job.rank);
    job_barrier();
    of_a_node(&mine, &seconds[next]);
    if (seconds[last].address == mine.address)
        CHECK(second.words[1] == 101 + (uint64_t)last);
    job_barrier();

    /* What this process has registered is nothing at another. */
    if (getenv("GASWORKS_UGNI_STRICT") == NULL) {
        gni_post_descriptor_t foreign = between(GNI_POST_RDMA_PUT, &mine, &mine), *found;
        WORKS(GNI_PostRdma(net.ends[next], &foreign));
        CHECK(net_event(net.events, &event) == GNI_RC_TRANSACTION_ERROR);
        CHECK(GNI_GetCompleted(net.events, event, &found) == GNI_RC_TRANSACTION_ERROR && found == &foreign);
        CHECK(second.words[1] == 101 + (uint64_t)last);
        GIVES(GNI_RC_INVALID_PARAM, GNI_MemDeregister(net.nic, &mine.handle));
    }
    job_barrier();
    WORKS(GNI_MemDeregister(second.nic, &mine.handle));
    job_barrier();
    if (getenv("GASWORKS_UGNI_STRICT") == NULL)
        GIVES(GNI_RC_INVALID_PARAM, GNI_PostRdma(net.ends[next], &put));
    for (int i = 0; i < 3; i++)
        WORKS(GNI_MemDeregister(net.nic, &others[i]));
    WORKS(GNI_CqDestroy(second.arrivals));
    WORKS(GNI_CdmDestroy(second.domain));
    net_end();
    return 0;
}
