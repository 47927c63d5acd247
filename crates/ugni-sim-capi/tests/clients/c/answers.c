/* A client that knows that its bytes have arrived, since their receiver has answered, and so uses their source again before it takes
   the event. It breaks no rule. The answers: bytes, the event of a put, a value for a queue, a message, a meeting of all ranks. */
#include "net.h"

enum { ROUNDS = 20, QUESTION = 0, THERE = 4096, FLAG = 8192, ANSWER = 12288, MINE = 16384, CREDITS = 4, LONGEST = 64 };
enum answer { BYTES_ANSWER, EVENT_ANSWER, VALUE_ANSWER, MESSAGE_ANSWER, MEETING_ANSWER, ANSWERS };

static gni_ep_handle_t talk;
static gni_mem_handle_t mailboxes;

static volatile uint64_t *word(uint64_t at)
{
    return (volatile uint64_t *)(net.memory + at);
}

static void await_word(uint64_t at, uint64_t value)
{
    while (*word(at) != value)
        GNI_CqTestEvent(net.events), sched_yield();
}

/* Mailboxes, one at each of the two. */
static void connect(void)
{
    static _Alignas(4096) unsigned char mailbox[4096];
    struct note {
        uint64_t at;
        gni_mem_handle_t handle;
    } mine, all[MOST_RANKS];
    WORKS(GNI_MemRegister(net.nic, (uint64_t)mailbox, sizeof mailbox, net.arrivals, 0, (uint32_t)-1, &mine.handle));
    mine.at = (uint64_t)mailbox;
    mailboxes = mine.handle;
    job_gather(&mine, all, sizeof mine);
    int peer = job.rank ^ 1;
    gni_smsg_attr_t here = net_mailbox(GNI_SMSG_TYPE_MBOX, mailbox, mine.handle, sizeof mailbox, CREDITS, LONGEST);
    gni_smsg_attr_t there =
        net_mailbox(GNI_SMSG_TYPE_MBOX, (void *)all[peer].at, all[peer].handle, sizeof mailbox, CREDITS, LONGEST);
    WORKS(GNI_EpCreate(net.nic, net.events, &talk));
    WORKS(GNI_EpBind(talk, places[peer].address, (uint32_t)peer));
    WORKS(GNI_SmsgInit(talk, &here, &there));
    job_barrier();
}

static void ask(enum answer answer, uint64_t round)
{
    gni_cq_entry_t event;
    void *message;
    gni_post_descriptor_t put = net_post(GNI_POST_FMA_PUT_W_SYNCFLAG, 1, QUESTION, THERE, 8);
    put.sync_flag_addr = places[1].memory + FLAG;
    put.sync_flag_value = round;
    *word(QUESTION) = round;
    WORKS(GNI_PostFma(net.ends[1], &put));
    if (answer == BYTES_ANSWER)
        await_word(ANSWER, round);
    else if (answer == EVENT_ANSWER || answer == VALUE_ANSWER)
        WORKS(net_event(net.arrivals, &event));
    else if (answer == MESSAGE_ANSWER) {
        while (GNI_SmsgGetNext(talk, &message) != GNI_RC_SUCCESS)
            sched_yield();
        WORKS(GNI_SmsgRelease(talk));
        WORKS(net_event(net.arrivals, &event));
    } else
        job_barrier();
    *word(QUESTION) = ~round;
    net_done(&put);
}

static void reply(enum answer answer, uint64_t round)
{
    gni_cq_entry_t event;
    await_word(FLAG, round);
    CHECK(*word(THERE) == round);
    *word(MINE) = round;
    if (answer == BYTES_ANSWER || answer == EVENT_ANSWER) {
        gni_post_descriptor_t put = net_post(GNI_POST_FMA_PUT, 0, MINE, ANSWER, 8);
        put.cq_mode |= answer == EVENT_ANSWER ? GNI_CQMODE_REMOTE_EVENT : 0;
        net_run(0, &put);
    } else if (answer == VALUE_ANSWER) {
        gni_post_descriptor_t value = net_post(GNI_POST_CQWRITE, 0, 0, 0, 0);
        value.cqwrite_value = round;
        net_run(0, &value);
    } else if (answer == MESSAGE_ANSWER) {
        WORKS(GNI_SmsgSend(talk, net.memory + MINE, 8, NULL, 0, 1));
        WORKS(net_event(net.events, &event));
    } else
        job_barrier();
}

int main(void)
{
    job_begin();
    CHECK(job.size == 2);
    net_begin(0, ENTRIES);
    connect();
    for (int answer = 0; answer < ANSWERS; answer++) {
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            uint64_t number = (uint64_t)answer * 100 + round;
            if (job.rank == 0)
                ask((enum answer)answer, number);
            else
                reply((enum answer)answer, number);
        }
        job_barrier();
    }
    WORKS(GNI_EpUnbind(talk));
    WORKS(GNI_EpDestroy(talk));
    job_barrier();
    WORKS(GNI_MemDeregister(net.nic, &mailboxes));
    net_end();
    return 0;
}
