/* Short messages around the ring: every length, tags, more than there is credit for, both kinds of mailboxes. */
#include "net.h"

enum { CREDITS = 6, LONGEST = 1000, ROUNDS = 400 };

static gni_ep_handle_t to_next, to_last;
static unsigned char *mailboxes;
static gni_mem_handle_t handle;

/* What ranks tell each other of their mailboxes: one for messages from the last rank and to it, one for the next. */
struct boxes {
    gni_smsg_attr_t last, next;
};

static struct boxes all[MOST_RANKS];

static gni_smsg_attr_t attributes(gni_smsg_type_t type, unsigned int size, uint32_t offset)
{
    gni_smsg_attr_t box = net_mailbox(type, mailboxes, handle, size, CREDITS, LONGEST);
    box.mbox_offset = offset;
    return box;
}

static void connect(gni_smsg_type_t type, gni_cq_handle_t arrivals)
{
    int next = (job.rank + 1) % job.size, last = (job.rank + job.size - 1) % job.size;
    unsigned int size = 0;
    gni_smsg_attr_t question = attributes(type, 0, 0);
    WORKS(GNI_SmsgBufferSizeNeeded(&question, &size));
    size = (size + 63) & ~63u;
    CHECK(size > LONGEST);
    mailboxes = aligned_alloc(4096, (2 * size + 4095) & ~4095u);
    memset(mailboxes, 0, 2 * size);
    WORKS(GNI_MemRegister(net.nic, (uint64_t)mailboxes, 2 * size, arrivals, 0, (uint32_t)-1, &handle));
    struct boxes mine = {attributes(type, size, 0), attributes(type, size, size)};
    job_gather(&mine, all, sizeof mine);
    WORKS(GNI_EpCreate(net.nic, net.events, &to_next));
    WORKS(GNI_EpCreate(net.nic, net.events, &to_last));
    GIVES(GNI_RC_INVALID_STATE, GNI_SmsgInit(to_next, &mine.next, &all[next].last));
    WORKS(GNI_EpBind(to_next, places[next].address, (uint32_t)next));
    WORKS(GNI_EpBind(to_last, places[last].address, (uint32_t)last));
    void *message;
    GIVES(GNI_RC_INVALID_PARAM, GNI_SmsgGetNext(to_next, &message));
    WORKS(GNI_SmsgInit(to_next, &mine.next, &all[next].last));
    WORKS(GNI_SmsgInit(to_last, &mine.last, &all[last].next));
    GIVES(GNI_RC_NOT_DONE, GNI_SmsgGetNext(to_next, &message));
    GIVES(GNI_RC_NOT_DONE, GNI_SmsgRelease(to_next));
    char longer[LONGEST + 1] = {0};
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_SmsgSend(to_next, longer, sizeof longer, NULL, 0, 1));
    GIVES(GNI_RC_INVALID_PARAM, GNI_SmsgSend(to_next, NULL, 8, NULL, 0, 1));
    job_barrier();
}

static unsigned char value(int rank, uint32_t number, uint32_t at)
{
    return (unsigned char)((uint32_t)rank * 101 + number * 13 + at * 7);
}

static uint32_t length_of(uint32_t number)
{
    return number * 37 % (LONGEST - 8);
}

/* Reads what has come from the last rank, all of it, each after the other. */
static void receive(uint32_t *received)
{
    int last = (job.rank + job.size - 1) % job.size;
    for (;;) {
        void *message = NULL;
        uint8_t tag = GNI_SMSG_ANY_TAG;
        gni_return_t code = GNI_SmsgGetNextWTag(to_last, &message, &tag);
        if (code == GNI_RC_NOT_DONE)
            return;
        CHECK(code == GNI_RC_SUCCESS && tag == *received % 200);
        uint8_t other = (uint8_t)(tag + 1);
        GIVES(GNI_RC_NO_MATCH, GNI_SmsgGetNextWTag(to_last, &message, &other));
        WORKS(GNI_SmsgGetNextWTag(to_last, &message, &tag));
        uint32_t header[2];
        memcpy(header, message, sizeof header);
        CHECK(header[0] == *received && header[1] == length_of(*received));
        for (uint32_t at = 0; at < header[1]; at++)
            CHECK(((unsigned char *)message)[8 + at] == value(last, *received, at));
        WORKS(GNI_SmsgRelease(to_last));
        ++*received;
    }
}

static void traffic(gni_cq_handle_t arrivals)
{
    static uint32_t headers[ROUNDS][2];
    static unsigned char bodies[ROUNDS][LONGEST];
    uint32_t sent = 0, received = 0, told = 0, heard = 0, refused = 0;
    int seen[ROUNDS] = {0};
    while (sent < ROUNDS || received < ROUNDS || told < ROUNDS) {
        if (sent < ROUNDS) {
            headers[sent][0] = sent;
            headers[sent][1] = length_of(sent);
            for (uint32_t at = 0; at < length_of(sent); at++)
                bodies[sent][at] = value(job.rank, sent, at);
            gni_return_t code = GNI_SmsgSendWTag(to_next, headers[sent], 8, bodies[sent], length_of(sent),
                                                 0x80000000u + sent, (uint8_t)(sent % 200));
            CHECK(code == GNI_RC_SUCCESS || code == GNI_RC_NOT_DONE);
            sent += code == GNI_RC_SUCCESS;
            refused += code == GNI_RC_NOT_DONE;
        }
        gni_cq_entry_t event;
        gni_return_t code = GNI_CqGetEvent(net.events, &event);
        if (code == GNI_RC_SUCCESS) {
            CHECK(GNI_CQ_GET_TYPE(event) == GNI_CQ_EVENT_TYPE_SMSG);
            uint32_t id = (uint32_t)GNI_CQ_GET_MSG_ID(event) - 0x80000000u;
            CHECK(id < sent && !seen[id]++);
            gni_post_descriptor_t *none;
            GIVES(GNI_RC_DESCRIPTOR_ERROR, GNI_GetCompleted(net.events, event, &none));
            told++;
        } else {
            CHECK(code == GNI_RC_NOT_DONE);
        }
        code = GNI_CqGetEvent(arrivals, &event);
        if (code == GNI_RC_SUCCESS) {
            /* From the last rank a message, from the next one perhaps credit. */
            heard++;
            receive(&received);
        } else {
            CHECK(code == GNI_RC_NOT_DONE);
            sched_yield();
        }
    }
    CHECK(heard >= 1 && received == ROUNDS && refused > 0);
}

int main(void)
{
    job_begin();
    net_begin(0, ENTRIES);
    gni_smsg_type_t types[] = {GNI_SMSG_TYPE_MBOX, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT};
    for (int i = 0; i < 2; i++) {
        gni_cq_handle_t arrivals;
        WORKS(GNI_CqCreate(net.nic, 4096, 0, GNI_CQ_NOBLOCK, NULL, NULL, &arrivals));
        connect(types[i], arrivals);
        traffic(arrivals);
        /* All events of messages were taken: that credit may be on its way is no concern of the client's. */
        WORKS(GNI_EpIdle(to_next));
        WORKS(GNI_EpIdle(to_last));
        job_barrier();
        WORKS(GNI_EpUnbind(to_next));
        WORKS(GNI_EpUnbind(to_last));
        WORKS(GNI_EpDestroy(to_next));
        WORKS(GNI_EpDestroy(to_last));
        WORKS(GNI_MemDeregister(net.nic, &handle));
        WORKS(GNI_CqDestroy(arrivals));
        free(mailboxes);
    }
    net_end();
    return 0;
}
