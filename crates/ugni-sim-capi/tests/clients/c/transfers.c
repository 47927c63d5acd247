/* Put and get by the processor and by the engine, at every alignment, with the events and flags that go with them. */
#include "net.h"

enum { AREA = 4096, APART = 8192 };

static unsigned char value(int rank, uint64_t at)
{
    return (unsigned char)(at * 7 + (uint64_t)rank * 31 + (at >> 8) + 1);
}

/* One transfer, and that it moved its bytes and no others. */
static void transfer(gni_post_type_t type, int peer, uint64_t here, uint64_t there, uint64_t length)
{
    int put = type == GNI_POST_FMA_PUT || type == GNI_POST_RDMA_PUT;
    unsigned char *mine = net.memory;
    /* Each rank writes to an area of its own of its neighbour's. */
    uint64_t base = APART + (uint64_t)job.rank % 2 * AREA;
    for (uint64_t at = 0; at < length + 128; at++)
        mine[at] = put ? value(job.rank, at) : 0;
    gni_post_descriptor_t post = net_post(type, peer, here, base + there, length);
    net_run(peer, &post);
    if (!put) {
        for (uint64_t at = 0; at < length + 128; at++) {
            int inside = at >= here && at < here + length;
            CHECK(mine[at] == (inside ? value(peer, base + there + at - here) : 0));
        }
        return;
    }
    /* Read back with what lies around it. */
    uint64_t first = there & ~(uint64_t)3, span = (length + there - first + 8 + 3) & ~(uint64_t)3;
    gni_post_descriptor_t back = net_post(GNI_POST_RDMA_GET, peer, AREA, base + first, span);
    net_run(peer, &back);
    for (uint64_t at = 0; at < span; at++) {
        uint64_t address = first + at;
        int inside = address >= there && address < there + length;
        unsigned char expected = inside ? value(job.rank, here + address - there) : value(peer, base + address);
        CHECK(mine[AREA + at] == expected);
    }
    /* As it was. */
    for (uint64_t at = 0; at < length; at++)
        mine[at] = value(peer, base + there + at);
    post = net_post(GNI_POST_FMA_PUT, peer, 0, base + there, length);
    net_run(peer, &post);
}

static void alignments(int peer)
{
    static const uint64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 12, 31, 64, 100, 1000};
    int gemini = net.chip == GNI_DEVICE_GEMINI;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (uint64_t here = 0; here < 8; here++) {
            for (uint64_t there = 0; there < 8; there++) {
                uint64_t length = lengths[i];
                transfer(GNI_POST_FMA_PUT, peer, here, there, length);
                transfer(GNI_POST_RDMA_PUT, peer, here, there, length);
                int aligned = there % 4 == 0 && length % 4 == 0 && !(gemini && here % 4);
                gni_post_descriptor_t get = net_post(GNI_POST_FMA_GET, peer, here, APART + there, length);
                if (aligned) {
                    transfer(GNI_POST_FMA_GET, peer, here, there, length);
                    transfer(GNI_POST_RDMA_GET, peer, here, there, length);
                } else {
                    REFUSES(GNI_RC_ALIGNMENT_ERROR, GNI_PostFma(net.ends[peer], &get));
                    get.type = GNI_POST_RDMA_GET;
                    REFUSES(GNI_RC_ALIGNMENT_ERROR, GNI_PostRdma(net.ends[peer], &get));
                }
            }
        }
    }
}

/* A put whose flag follows its bytes, and which its target hears of: around the ring, many times. */
static void ring(void)
{
    enum { ROUNDS = 50, SLOT = 64 };
    int next = (job.rank + 1) % job.size, last = (job.rank + job.size - 1) % job.size;
    uint64_t in = 4 * AREA, out = 5 * AREA;
    volatile uint64_t *flag = (uint64_t *)(net.memory + in + SLOT);
    memset(net.memory + in, 0, 2 * SLOT);
    job_barrier();
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        memset(net.memory + out, (int)(round & 0xff), SLOT);
        gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT_W_SYNCFLAG, next, out, in, SLOT);
        post.cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
        post.sync_flag_addr = places[next].memory + in + SLOT;
        post.sync_flag_value = round;
        post.post_id = round * 3;
        post.first_operand = 99;
        WORKS(GNI_EpSetEventData(net.ends[next], 1000 + (uint32_t)round, (uint32_t)job.rank << 16 | (uint32_t)round));
        WORKS(GNI_PostFma(net.ends[next], &post));
        /* What was set when it was posted counts, and what it says may be changed now. */
        WORKS(GNI_EpSetEventData(net.ends[next], 1, 2));
        uint64_t id = post.post_id;
        post.post_id = 0;
        post.cq_mode = 0;

        gni_cq_entry_t event;
        WORKS(net_event(net.events, &event));
        CHECK(GNI_CQ_GET_INST_ID(event) == 1000 + round);
        gni_post_descriptor_t *found;
        WORKS(GNI_GetCompleted(net.events, event, &found));
        CHECK(found == &post && post.post_id == id && post.first_operand == 99 && post.status == GNI_RC_SUCCESS);

        WORKS(net_event(net.arrivals, &event));
        CHECK(GNI_CQ_GET_REM_INST_ID(event) == ((uint32_t)last << 16 | round));
        /* The event may be before the flag, the flag not before the bytes. */
        while (*flag != round)
            WORKS(GNI_CqTestEvent(net.events) == GNI_RC_NOT_DONE ? GNI_RC_SUCCESS : GNI_RC_INVALID_STATE);
        for (int at = 0; at < SLOT; at++)
            CHECK(net.memory[in + (uint64_t)at] == (round & 0xff));
        job_barrier();
    }
    WORKS(GNI_EpSetEventData(net.ends[next], (uint32_t)next, (uint32_t)job.rank));
}

/* Values that go straight into a queue. */
static void queue_writes(void)
{
    int next = (job.rank + 1) % job.size, last = (job.rank + job.size - 1) % job.size;
    for (uint64_t round = 0; round < 25; round++) {
        gni_post_descriptor_t post = net_post(GNI_POST_CQWRITE, next, 0, 0, 0);
        post.cqwrite_value = (uint64_t)job.rank << 40 | 0x123400000000 >> 8 | round;
        uint64_t expected = (uint64_t)last << 40 | 0x123400000000 >> 8 | round;
        net_run(next, &post);
        gni_cq_entry_t event;
        WORKS(net_event(net.arrivals, &event));
        CHECK(GNI_CQ_GET_DATA(event) == expected);
        CHECK(GNI_CQ_GET_REM_INST_ID(event) == (uint32_t)expected);
        job_barrier();
    }
}

/* Both events of a transfer by the engine: the source is free before all is done. */
static void both_events(int peer)
{
    for (int round = 0; round < 50; round++) {
        gni_post_descriptor_t post = net_post(GNI_POST_RDMA_PUT, peer, 0, 6 * AREA + (uint64_t)job.rank % 2 * AREA, 512);
        post.cq_mode = GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT;
        WORKS(GNI_PostRdma(net.ends[peer], &post));
        GIVES(GNI_RC_NOT_DONE, GNI_EpIdle(net.ends[peer]));
        uint64_t sources[2];
        for (int event = 0; event < 2; event++) {
            gni_cq_entry_t entry;
            gni_post_descriptor_t *found;
            WORKS(net_event(net.events, &entry));
            WORKS(GNI_GetCompleted(net.events, entry, &found));
            CHECK(found == &post);
            sources[event] = GNI_CQ_GET_SOURCE(entry);
        }
        CHECK(sources[0] != sources[1]);
        WORKS(GNI_EpIdle(net.ends[peer]));
    }
}

int main(void)
{
    job_begin();
    for (uint64_t at = 0; at < BYTES; at++)
        net.memory[at] = value(job.rank, at);
    net_begin(GNI_CDM_MODE_DUAL_EVENTS, ENTRIES);
    job_barrier();
    int peer = (job.rank + 1) % job.size;
    alignments(peer);
    job_barrier();
    ring();
    queue_writes();
    both_events(peer);
    net_end();
    return 0;
}
