/* Shared message queues: every rank sends to every rank, over connections that one rank of each node makes for all of it. */
#include "net.h"

enum { ROUNDS = 60, LONGEST = 100, MOST_NODES = MOST_RANKS };

static gni_msgq_handle_t queue;
static gni_cq_handle_t events;
static uint32_t nodes[MOST_NODES];
static int node_count, my_node;

/* What is told of each rank's part in a round of connecting: to one node a connection of its own node. */
struct told {
    uint32_t size;
    unsigned char bytes[16 + 32 * MOST_RANKS];
};

static uint32_t received[MOST_RANKS], wanted_stops;
static int total, stopping;

static uint32_t length_of(uint32_t number)
{
    return 12 + number * 7 % (LONGEST - 12);
}

static unsigned char value(int from, int to, uint32_t number, uint32_t at)
{
    return (unsigned char)((uint32_t)from * 101 + (uint32_t)to * 31 + number * 13 + at * 7);
}

static int receive(uint32_t id, uint32_t address, void *message, uint8_t tag, void *data)
{
    uint32_t header[3];
    CHECK(data == (void *)received);
    CHECK(id < (uint32_t)job.size && places[id].address == address);
    memcpy(header, message, sizeof header);
    CHECK(header[0] == id && header[1] == (uint32_t)job.rank);
    CHECK(header[2] == received[id] && tag == header[2] % 200);
    for (uint32_t at = 12; at < length_of(header[2]); at++)
        CHECK(((unsigned char *)message)[at] == value((int)id, job.rank, header[2], at));
    /* The message is the receiver's until this returns. */
    memset(message, 0xee, length_of(header[2]));
    received[id]++;
    total++;
    wanted_stops += stopping;
    return !stopping;
}

static gni_msgq_attr_t attributes(int instances)
{
    gni_msgq_attr_t all = {.max_msg_sz = LONGEST, .smsg_q_sz = 4, .rcv_pool_sz = 16,
                           .num_msgq_eps = MOST_NODES, .rcv_cq_sz = 64};
    all.nloc_insts = (uint32_t)instances;
    return all;
}

static void find_nodes(void)
{
    for (int rank = 0; rank < job.size; rank++) {
        int node = 0;
        while (node < node_count && nodes[node] != places[rank].address)
            node++;
        if (node == node_count)
            nodes[node_count++] = places[rank].address;
        if (rank == job.rank)
            my_node = node;
    }
}

static int ranks_of(int node, int *first)
{
    int count = 0;
    *first = -1;
    for (int rank = 0; rank < job.size; rank++)
        if (places[rank].address == nodes[node]) {
            if (*first < 0)
                *first = rank;
            count++;
        }
    return count;
}

/* For each node, another of this one's ranks has a turn at connecting with it. */
static int does_it(int of, int with)
{
    int first, count = ranks_of(of, &first);
    for (int rank = first, turn = with % count; rank < job.size; rank++)
        if (places[rank].address == nodes[of] && turn-- == 0)
            return rank;
    return first;
}

static void connect(void)
{
    gni_msgq_ep_attr_t mine;
    uint32_t size;
    for (int other = 0; other < node_count; other++) {
        struct told all[MOST_RANKS], own;
        memset(&own, 0, sizeof own);
        if (job.rank == does_it(my_node, other)) {
            WORKS(GNI_MsgqGetConnAttrs(queue, nodes[other], &mine, &size));
            CHECK(size <= sizeof own.bytes && mine.pe_addr == net.address);
            own.size = size;
            memcpy(own.bytes, &mine, size);
        }
        job_gather(&own, all, sizeof own);
        /* In this round all nodes have told what is for node `other`. */
        for (int node = 0; my_node == other && node < node_count; node++) {
            if (job.rank != does_it(other, node))
                continue;
            struct told *told = &all[does_it(node, other)];
            /* What lies behind what was told is nobody's. */
            unsigned char *exact = malloc(told->size);
            memcpy(exact, told->bytes, told->size);
            gni_msgq_ep_attr_t *theirs = (void *)exact;
            WORKS(GNI_MsgqGetConnAttrs(queue, nodes[node], &mine, &size));
            GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqConnect(queue, nodes[node] + 1, theirs));
            WORKS(GNI_MsgqConnect(queue, nodes[node], theirs));
            GIVES(GNI_RC_INVALID_STATE, GNI_MsgqConnect(queue, nodes[node], theirs));
            free(exact);
        }
    }
    job_barrier();
}

static void refused(void)
{
    gni_msgq_attr_t good = attributes(1), bad = good;
    gni_msgq_handle_t none;
    uint32_t size = 0, more = 0;
    WORKS(GNI_MsgqSize(&good, &size));
    CHECK(size >= MOST_NODES * 128 * 4 * LONGEST);
    bad.smsg_q_sz = 8;
    WORKS(GNI_MsgqSize(&bad, &more));
    CHECK(more > size);
    bad.max_msg_sz = GNI_MSGQ_MSG_SZ_MAX + 1;
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqSize(&bad, &size));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqInit(net.nic, receive, NULL, net.events, &bad, &none));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqInit(net.nic, NULL, NULL, net.events, &good, &none));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqInit(net.nic, receive, NULL, net.arrivals, &good, &none));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqInit(net.nic, receive, NULL, net.events, NULL, &none));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqIdle(NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqRelease((gni_msgq_handle_t)net.nic));
    job_barrier();
}

/* Everything goes everywhere, in order from each to each; now and then the receiver wants one at a time. */
static void traffic(void)
{
    uint32_t sent[MOST_RANKS] = {0};
    int told = 0, wanted = job.size * ROUNDS, refusals = 0;
    while (total < wanted || told < wanted) {
        /* To each as long as it goes: at the latest to itself it does not for ever. */
        for (int to = 0; to < job.size;) {
            if (sent[to] == ROUNDS) {
                to++;
                continue;
            }
            uint32_t number = sent[to], header[3] = {(uint32_t)job.rank, (uint32_t)to, number};
            unsigned char body[LONGEST];
            for (uint32_t at = 12; at < length_of(number); at++)
                body[at - 12] = value(job.rank, to, number, at);
            gni_return_t code = GNI_MsgqSend(queue, net.ends[to], header, sizeof header, body,
                                             length_of(number) - 12, number * 8 + (uint32_t)to,
                                             (uint8_t)(number % 200));
            memset(body, 0, sizeof body);
            CHECK(code == GNI_RC_SUCCESS || code == GNI_RC_NOT_DONE);
            sent[to] += code == GNI_RC_SUCCESS;
            refusals += code == GNI_RC_NOT_DONE;
            to += code == GNI_RC_NOT_DONE;
        }
        gni_cq_entry_t event;
        gni_return_t code;
        while ((code = GNI_CqGetEvent(events, &event)) == GNI_RC_SUCCESS) {
            CHECK(GNI_CQ_GET_TYPE(event) == GNI_CQ_EVENT_TYPE_MSGQ);
            uint32_t id = (uint32_t)GNI_CQ_GET_MSG_ID(event);
            CHECK((int)(id % 8) < job.size && id / 8 < sent[id % 8]);
            gni_post_descriptor_t *none;
            GIVES(GNI_RC_DESCRIPTOR_ERROR, GNI_GetCompleted(events, event, &none));
            told++;
        }
        CHECK(code == GNI_RC_NOT_DONE);
        int before = total;
        stopping = total % 5 == 0;
        uint32_t stops = wanted_stops;
        code = GNI_MsgqProgress(queue, 1);
        if (stopping)
            CHECK(total <= before + 1 && (wanted_stops == stops + 1) == (code == GNI_RC_NOT_DONE));
        CHECK(code == GNI_RC_SUCCESS || (code == GNI_RC_NOT_DONE && total > before));
        CHECK(total <= before + 16);
        if (code == GNI_RC_SUCCESS)
            sched_yield();
    }
    CHECK(refusals > 0);
    for (int from = 0; from < job.size; from++)
        CHECK(received[from] == ROUNDS);
}

static void errors(void)
{
    unsigned char longer[LONGEST + 1] = {0};
    gni_ep_handle_t end;
    GIVES(GNI_RC_SIZE_ERROR, GNI_MsgqSend(queue, net.ends[0], longer, sizeof longer, NULL, 0, 1, 0));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqSend(queue, net.ends[0], NULL, 8, NULL, 0, 1, 0));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqSend(queue, NULL, longer, 8, NULL, 0, 1, 0));
    WORKS(GNI_EpCreate(net.nic, NULL, &end));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqSend(queue, end, longer, 8, NULL, 0, 1, 0));
    WORKS(GNI_EpBind(end, net.address, 77));
    GIVES(GNI_RC_NO_MATCH, GNI_MsgqSend(queue, end, longer, 8, NULL, 0, 1, 0));
    WORKS(GNI_EpUnbind(end));
    WORKS(GNI_EpBind(end, net.address + 1000, 0));
    GIVES(GNI_RC_NO_MATCH, GNI_MsgqSend(queue, end, longer, 8, NULL, 0, 1, 0));
    WORKS(GNI_EpDestroy(end));
    GIVES(GNI_RC_NO_MATCH, GNI_MsgqConnRelease(queue, net.address + 1000));
    /* What tells of messages is not to be destroyed under them. */
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_CqDestroy(events));
}

/* Takes the events of what goes back, until there are none. */
static void settle(void)
{
    gni_return_t code;
    while ((code = GNI_MsgqIdle(queue)) == GNI_RC_NOT_DONE)
        sched_yield();
    CHECK(code == GNI_RC_SUCCESS);
}

static void run(uint8_t modes)
{
    int first, local = ranks_of(my_node, &first);
    gni_msgq_attr_t mine = attributes(local);
    gni_msgq_handle_t second;
    uint32_t size;
    gni_msgq_ep_attr_t told;
    memset(received, 0, sizeof received);
    total = 0;
    mine.modes = modes;
    WORKS(GNI_CqCreate(net.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &events));
    if (local > 1 && job.rank == first) {
        /* The others are not there yet. */
        WORKS(GNI_MsgqInit(net.nic, receive, received, events, &mine, &queue));
        GIVES(GNI_RC_INVALID_STATE, GNI_MsgqGetConnAttrs(queue, nodes[0], &told, &size));
        job_barrier();
    } else {
        job_barrier();
        WORKS(GNI_MsgqInit(net.nic, receive, received, events, &mine, &queue));
    }
    GIVES(GNI_RC_INVALID_STATE, GNI_MsgqInit(net.nic, receive, received, events, &mine, &second));
    job_barrier();
    unsigned char byte = 0;
    GIVES(GNI_RC_NO_MATCH, GNI_MsgqSend(queue, net.ends[0], &byte, 1, NULL, 0, 1, 0));
    job_barrier();
    connect();
    traffic();
    settle();
    job_barrier();
    settle();
    errors();
    job_barrier();
    if (job.rank == first)
        WORKS(GNI_MsgqConnRelease(queue, nodes[0]));
    job_barrier();
    GIVES(GNI_RC_NO_MATCH, GNI_MsgqConnRelease(queue, nodes[0]));
    GIVES(GNI_RC_NO_MATCH, GNI_MsgqSend(queue, net.ends[0], &byte, 1, NULL, 0, 1, 0));
    WORKS(GNI_MsgqRelease(queue));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MsgqIdle(queue));
    WORKS(GNI_CqDestroy(events));
    job_barrier();
}

int main(void)
{
    job_begin();
    net_begin(0, ENTRIES);
    find_nodes();
    const char *nodes_wanted = getenv("GASWORKS_UGNI_NODES");
    int wanted = nodes_wanted ? atoi(nodes_wanted) : node_count;
    CHECK(node_count == (wanted < job.size ? wanted : job.size));
    refused();
    run(0);
    run(GNI_MSGQ_MODE_BLOCKING);
    net_end();
    return 0;
}
