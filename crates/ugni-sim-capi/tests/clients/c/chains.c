/* Several puts, gets, atomics and queue writes at once, to several ranks, with one event for all. */
#include "net.h"

enum { LINKS = 10, AREA = 1 << 13 };

/* The word of this rank in each place of its peers. */
static uint64_t place(int rank, int link)
{
    return AREA + (uint64_t)(rank * (LINKS + 1) + link) * 64;
}

static void puts_and_gets(void)
{
    uint64_t *mine = (uint64_t *)net.memory;
    gni_ct_put_post_descriptor_t puts[LINKS];
    gni_ct_get_post_descriptor_t gets[LINKS];
    memset(puts, 0, sizeof puts);
    memset(gets, 0, sizeof gets);
    for (int link = 0; link <= LINKS; link++)
        mine[link] = (uint64_t)job.rank << 32 | (uint64_t)link;
    gni_post_descriptor_t put = net_post(GNI_POST_FMA_PUT, 0, 0, place(job.rank, 0), 8);
    gni_post_descriptor_t get = net_post(GNI_POST_FMA_GET, 0, 512, place(job.rank, 0), 8);
    put.next_descr = &puts[0];
    get.next_descr = &gets[0];
    for (int link = 1; link <= LINKS; link++) {
        int peer = link % job.size;
        gni_ct_put_post_descriptor_t *p = &puts[link - 1];
        gni_ct_get_post_descriptor_t *g = &gets[link - 1];
        p->next_descr = link < LINKS ? p + 1 : NULL;
        g->next_descr = link < LINKS ? g + 1 : NULL;
        p->ep_hndl = g->ep_hndl = net.ends[peer];
        p->length = g->length = 8;
        p->remote_addr = g->remote_addr = places[peer].memory + place(job.rank, link);
        p->remote_mem_hndl = g->remote_mem_hndl = places[peer].handle;
        p->local_addr = (uint64_t)&mine[link];
        g->local_addr = (uint64_t)&mine[64 + link];
        g->local_mem_hndl = places[job.rank].handle;
    }
    WORKS(GNI_CtPostFma(net.ends[0], &put));
    net_done(&put);
    WORKS(GNI_CtPostFma(net.ends[0], &get));
    net_done(&get);
    for (int link = 0; link <= LINKS; link++)
        CHECK(mine[64 + link] == mine[link]);
    gni_cq_entry_t event;
    GIVES(GNI_RC_NOT_DONE, GNI_CqGetEvent(net.events, &event));

    /* A chain that is wrong anywhere does nothing at all. */
    puts[LINKS - 1].ep_hndl = NULL;
    GIVES(GNI_RC_INVALID_PARAM, GNI_CtPostFma(net.ends[0], &put));
    puts[LINKS - 1].ep_hndl = (gni_ep_handle_t)net.nic;
    GIVES(GNI_RC_INVALID_PARAM, GNI_CtPostFma(net.ends[0], &put));
    puts[LINKS - 1].ep_hndl = net.ends[0];
    puts[LINKS - 1].next_descr = &puts[0];
    GIVES(GNI_RC_SIZE_ERROR, GNI_CtPostFma(net.ends[0], &put));
    gets[LINKS - 1].length = 5;
    REFUSES(GNI_RC_ALIGNMENT_ERROR, GNI_CtPostFma(net.ends[0], &get));
    WORKS(GNI_EpIdle(net.ends[0]));
}

static void sums(void)
{
    volatile uint64_t *sum = (uint64_t *)(net.memory + 4 * AREA);
    memset((void *)sum, 0, 8 * (LINKS + 1));
    job_barrier();
    gni_ct_amo_post_descriptor_t adds[LINKS];
    memset(adds, 0, sizeof adds);
    gni_post_descriptor_t add = net_post(GNI_POST_AMO, 0, 0, 4 * AREA, 8);
    add.amo_cmd = GNI_FMA_ATOMIC_ADD;
    add.first_operand = 1;
    add.next_descr = &adds[0];
    for (int link = 1; link <= LINKS; link++) {
        gni_ct_amo_post_descriptor_t *a = &adds[link - 1];
        a->next_descr = link < LINKS ? a + 1 : NULL;
        a->ep_hndl = net.ends[0];
        a->length = 8;
        a->remote_addr = places[0].memory + 4 * AREA + (uint64_t)link * 8;
        a->remote_mem_hndl = places[0].handle;
        a->amo_cmd = GNI_FMA_ATOMIC_ADD;
        a->first_operand = (uint64_t)link + 1;
    }
    WORKS(GNI_CtPostFma(net.ends[0], &add));
    net_done(&add);
    job_barrier();
    if (job.rank == 0)
        for (int link = 0; link <= LINKS; link++)
            CHECK(sum[link] == (uint64_t)(job.size * (link + 1)));
    job_barrier();
}

static void queue_writes(void)
{
    int next = (job.rank + 1) % job.size, last = (job.rank + job.size - 1) % job.size;
    gni_ct_cqw_post_descriptor_t writes[LINKS];
    memset(writes, 0, sizeof writes);
    gni_post_descriptor_t write = net_post(GNI_POST_CQWRITE, next, 0, 0, 0);
    write.cqwrite_value = (uint64_t)job.rank << 8;
    write.next_descr = &writes[0];
    for (int link = 1; link <= LINKS; link++) {
        writes[link - 1] = (gni_ct_cqw_post_descriptor_t){
            .next_descr = link < LINKS ? &writes[link] : NULL,
            .ep_hndl = net.ends[next],
            .remote_mem_hndl = places[next].handle,
            .cqwrite_value = (uint64_t)job.rank << 8 | (uint64_t)link,
        };
    }
    WORKS(GNI_CtPostCqWrite(net.ends[next], &write));
    net_done(&write);
    int seen[LINKS + 1] = {0};
    for (int link = 0; link <= LINKS; link++) {
        gni_cq_entry_t event;
        WORKS(net_event(net.arrivals, &event));
        uint64_t data = GNI_CQ_GET_DATA(event);
        CHECK(data >> 8 == (uint64_t)last && (data & 0xff) <= LINKS && !seen[data & 0xff]++);
    }
}

int main(void)
{
    job_begin();
    net_begin(0, ENTRIES);
    puts_and_gets();
    sums();
    queue_writes();
    net_end();
    return 0;
}
