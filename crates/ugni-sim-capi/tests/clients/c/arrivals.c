/* The event of a put at its target, and the bytes: who takes the event looks at once. Bytes come first for all registrations where the
   mood is not `unordered`; there too for memory that was registered with STRICT_PI_ORDERING or PI_FLUSH. */
#include "net.h"

enum { ROUNDS = 100, LENGTH = 96, LARGE = 4096 };

struct flags {
    uint32_t flags;
    int are_ordered;
};

static const struct flags kinds[] = {
    {0, 0},
    {GNI_MEM_RELAXED_PI_ORDERING, 0},
    {GNI_MEM_STRICT_PI_ORDERING, 1},
    {GNI_MEM_PI_FLUSH, 1},
    {GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH, 1},
};
enum way { FMA, ENGINE, CHAIN, FLAGGED, WAYS };

static _Alignas(4096) unsigned char target[3 * LARGE];

static void put(enum way way, int value, uint64_t there, gni_mem_handle_t handle)
{
    int length = way == ENGINE ? LARGE : LENGTH;
    memset(net.memory, value, 2 * LARGE);
    gni_post_type_t types[] = {GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_PUT, GNI_POST_FMA_PUT_W_SYNCFLAG};
    gni_post_descriptor_t it = net_post(types[way], 1, 0, 0, (uint64_t)length);
    it.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    it.remote_addr = there;
    it.remote_mem_hndl = handle;
    it.sync_flag_addr = there + 2 * LARGE;
    it.sync_flag_value = 1;
    if (way != CHAIN) {
        net_run(1, &it);
        return;
    }
    gni_ct_put_post_descriptor_t link;
    memset(&link, 0, sizeof link);
    link.ep_hndl = net.ends[1];
    link.length = LENGTH;
    link.remote_addr = there + LARGE;
    link.remote_mem_hndl = handle;
    link.local_addr = it.local_addr + LARGE;
    it.next_descr = &link;
    WORKS(GNI_CtPostFma(net.ends[1], &it));
    net_done(&it);
}

/* Whether all bytes of a part are there. */
static int is_there(int part, int length, int value)
{
    volatile unsigned char *bytes = target + part * LARGE;
    for (int i = 0; i < length; i++)
        if (bytes[i] != value)
            return 0;
    return 1;
}

/* Takes the events of a put, and returns whether one has come too early. */
static int take(enum way way, int value)
{
    gni_cq_entry_t event;
    WORKS(net_event(net.arrivals, &event));
    if (way != CHAIN)
        return !is_there(0, way == ENGINE ? LARGE : LENGTH, value);
    /* Links overtake each other: the first event is of either, the second of the other. */
    int early = !is_there(0, LENGTH, value) && !is_there(1, LENGTH, value);
    WORKS(net_event(net.arrivals, &event));
    return early || !is_there(0, LENGTH, value) || !is_there(1, LENGTH, value);
}

int main(void)
{
    job_begin();
    net_begin(0, ENTRIES);
    const char *mood = getenv("GASWORKS_UGNI_MOOD");
    int is_unordered = mood && strcmp(mood, "unordered") == 0;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        struct note {
            uint64_t at;
            gni_mem_handle_t handle;
        } mine, all[MOST_RANKS];
        WORKS(GNI_MemRegister(net.nic, (uint64_t)target, sizeof target, net.arrivals, kinds[kind].flags, (uint32_t)-1,
                              &mine.handle));
        mine.at = (uint64_t)target;
        job_gather(&mine, all, sizeof mine);
        for (int way = 0; way < WAYS; way++) {
            int early = 0;
            for (int round = 1; round <= ROUNDS; round++) {
                if (job.rank == 0)
                    put((enum way)way, round, all[1].at, all[1].handle);
                if (job.rank == 1)
                    early += take((enum way)way, round);
                job_barrier();
            }
            if (job.rank == 1)
                CHECK(is_unordered && !kinds[kind].are_ordered ? early > 0 : early == 0);
        }
        WORKS(GNI_MemDeregister(net.nic, &mine.handle));
    }
    net_end();
    return 0;
}
