/* A client of whom everything is known: its counts are compared, one by one, with what the witness says. */
#include <gasworks_ugni.h>

#include "net.h"

enum { CREDITS = 4, LONGEST = 64, ROOM = 8 };

/* Takes so many events of a queue; each has its descriptor given back if it is of a post. */
static void take(gni_cq_handle_t queue, int count)
{
    for (int i = 0; i < count; i++) {
        gni_cq_entry_t event;
        gni_post_descriptor_t *found;
        WORKS(net_event(queue, &event));
        if (queue == net.events && GNI_CQ_GET_TYPE(event) == GNI_CQ_EVENT_TYPE_POST)
            WORKS(GNI_GetCompleted(queue, event, &found));
    }
}

/* Three puts by the processor, of which the first is refused and posted again; two by the engine, with both events; an
   addition; a value for the queue. */
static void transactions(int peer)
{
    gni_post_descriptor_t put = net_post(GNI_POST_FMA_PUT, peer, 0, 4096, 100);
    put.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_PostFma(net.ends[peer], &put));
    for (int i = 0; i < 3; i++)
        net_run(peer, &put);
    for (int i = 0; i < 2; i++) {
        gni_post_descriptor_t both = net_post(GNI_POST_RDMA_PUT, peer, 0, 8192, 1000);
        both.cq_mode |= GNI_CQMODE_LOCAL_EVENT;
        WORKS(GNI_PostRdma(net.ends[peer], &both));
        take(net.events, 2);
    }
    gni_post_descriptor_t add = net_post(GNI_POST_AMO, peer, 0, 16384, 8);
    add.amo_cmd = GNI_FMA_ATOMIC_FADD;
    net_run(peer, &add);
    gni_post_descriptor_t value = net_post(GNI_POST_CQWRITE, peer, 0, 0, 0);
    value.cqwrite_value = 0x123456789abc;
    net_run(peer, &value);
    job_barrier();
    take(net.arrivals, 4);
    job_barrier();
}

/* More values than a queue has room for. */
static void overrun(int peer)
{
    for (int i = 0; i < ROOM + 2; i++) {
        gni_post_descriptor_t value = net_post(GNI_POST_CQWRITE, peer, 0, 0, 0);
        net_run(peer, &value);
    }
    job_barrier();
    gni_cq_entry_t event;
    int overruns = 0;
    for (int i = 0; i < ROOM; i++)
        overruns += GNI_CqGetEvent(net.arrivals, &event) == GNI_RC_ERROR_RESOURCE;
    CHECK(overruns == 1);
    GIVES(GNI_RC_NOT_DONE, GNI_CqGetEvent(net.arrivals, &event));
    job_barrier();
}

/* As many messages as there is credit for, of which one is lost on its way, and one more, which waits. */
static void messages(int peer)
{
    static _Alignas(4096) unsigned char mailbox[8192];
    gni_smsg_attr_t mine, all[MOST_RANKS];
    gni_mem_handle_t handle;
    unsigned int size;
    WORKS(GNI_MemRegister(net.nic, (uint64_t)mailbox, sizeof mailbox, NULL, 0, (uint32_t)-1, &handle));
    mine = net_mailbox(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, mailbox, handle, 0, CREDITS, LONGEST);
    WORKS(GNI_SmsgBufferSizeNeeded(&mine, &size));
    CHECK(size <= sizeof mailbox);
    mine.buff_size = size;
    job_gather(&mine, all, sizeof mine);
    gni_ep_handle_t end;
    WORKS(GNI_EpCreate(net.nic, net.events, &end));
    WORKS(GNI_EpBind(end, places[peer].address, (uint32_t)peer));
    WORKS(GNI_SmsgInit(end, &mine, &all[peer]));
    job_barrier();
    char text[LONGEST] = "a message";
    for (uint32_t i = 0; i < CREDITS; i++)
        WORKS(GNI_SmsgSend(end, text, sizeof text, NULL, 0, i));
    GIVES(GNI_RC_NOT_DONE, GNI_SmsgSend(end, text, sizeof text, NULL, 0, CREDITS));
    take(net.events, CREDITS);
    job_barrier();
    void *message;
    for (int i = 0; i < CREDITS; i++) {
        WORKS(GNI_SmsgGetNext(end, &message));
        WORKS(GNI_SmsgRelease(end));
    }
    /* Credit goes on as events are looked for, of which there are none for the client. */
    gni_cq_entry_t event;
    for (int i = 0; i < 10; i++)
        GIVES(GNI_RC_NOT_DONE, GNI_CqGetEvent(net.events, &event));
    job_barrier();
    WORKS(GNI_SmsgSend(end, text, sizeof text, NULL, 0, CREDITS));
    take(net.events, 1);
    job_barrier();
    WORKS(GNI_SmsgGetNext(end, &message));
    WORKS(GNI_SmsgRelease(end));
    for (int i = 0; i < 10; i++)
        GIVES(GNI_RC_NOT_DONE, GNI_CqGetEvent(net.events, &event));
    /* Credit that comes to a mailbox which has gone is sent again and again. */
    job_barrier();
    WORKS(GNI_EpUnbind(end));
    WORKS(GNI_EpDestroy(end));
    WORKS(GNI_MemDeregister(net.nic, &handle));
}

int main(void)
{
    job_begin();
    net_begin(GNI_CDM_MODE_DUAL_EVENTS, ROOM);
    int peer = (job.rank + 1) % job.size;
    transactions(peer);
    gasworks_ugni_mark(7);
    overrun(peer);
    gasworks_ugni_mark(8);
    messages(peer);
    net_end();
    return 0;
}
