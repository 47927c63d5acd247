/* A client of libfabric's provider for uGNI, whose source is somebody else's: tagged messages, reads and writes at any place, atomics.
 * Every byte is looked at. */
#include "job.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

enum { MOST = 1 << 20, AROUND = 64, HALF = MOST + AROUND, BURST = 64, ROUNDS = 30, NAME = 64 };

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *vector;
static struct fid_cq *queue;
static struct fid_ep *end;
static fi_addr_t ranks[MOST_RANKS];
/* Memory that others reach: its first half is written, its second read. */
static unsigned char shared[2 * HALF], own[HALF], answer[HALF];
static struct fid_mr *shared_region, *own_region;

struct window {
    uint64_t address, key;
};

static struct window windows[MOST_RANKS];

/* Lengths around those at which the provider goes another way. */
static const size_t lengths[] = {0, 1, 3, 4, 8, 63, 64, 1000, 4096, 8191, 16300, 16384, 16385, 65536, 100003, MOST - 8, MOST};

enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Operations that are over, and not waited for yet. */
static int over;

static void progress(void)
{
    struct fi_cq_tagged_entry entries[8];
    ssize_t count = fi_cq_read(queue, entries, 8);
    if (count == -FI_EAVAIL) {
        struct fi_cq_err_entry error = {0};
        fi_cq_readerr(queue, &error, 0);
        fprintf(stderr, "rank %d: an operation failed: %s\n", job.rank, fi_strerror(error.err));
    }
    CHECK(count > 0 || count == -FI_EAGAIN);
    over += count > 0 ? (int)count : 0;
    sched_yield();
}

static void await(int operations)
{
    double begun = now();
    while (over < operations) {
        progress();
        CHECK(now() - begun < 60);
    }
    over -= operations;
}

/* Begins an operation as soon as there is room for it. */
#define BEGIN(call)                                                                                          \
    do {                                                                                                     \
        ssize_t begun;                                                                                       \
        double since = now();                                                                                \
        while ((begun = (call)) == -FI_EAGAIN) {                                                             \
            progress();                                                                                      \
            CHECK(now() - since < 60);                                                                       \
        }                                                                                                    \
        CHECK(begun == 0);                                                                                   \
    } while (0)

static unsigned char byte_of(int rank, size_t at, int turn)
{
    return (unsigned char)(rank * 37 + (int)(at * 7 + (at >> 8) * 3) + turn * 11 + 1);
}

static void fill(unsigned char *bytes, size_t length, int rank, int turn)
{
    for (size_t at = 0; at < length; at++)
        bytes[at] = byte_of(rank, at, turn);
}

static void check(const unsigned char *bytes, size_t length, int rank, int turn)
{
    for (size_t at = 0; at < length; at++)
        CHECK(bytes[at] == byte_of(rank, at, turn));
}

/* All ranks meet, and the provider goes on meanwhile. */
static void meet(void)
{
    static uint64_t round;
    static char said, heard;
    round++;
    for (int step = 1; step < job.size; step *= 2) {
        uint64_t tag = 1ull << 40 | round << 8 | (uint64_t)step;
        BEGIN(fi_trecv(end, &heard, 1, NULL, ranks[(job.rank - step + job.size) % job.size], tag, 0, NULL));
        BEGIN(fi_tsend(end, &said, 1, NULL, ranks[(job.rank + step) % job.size], tag, NULL));
        await(2);
    }
}

static void open_all(void)
{
    struct fi_info *wanted = fi_allocinfo(), *found = NULL;
    char name[NAME] = {0}, names[MOST_RANKS][NAME], packed[MOST_RANKS * NAME];
    size_t length = sizeof name;
    wanted->caps = FI_TAGGED | FI_MSG | FI_RMA | FI_ATOMIC;
    wanted->mode = FI_CONTEXT;
    wanted->ep_attr->type = FI_EP_RDM;
    wanted->fabric_attr->prov_name = strdup("gni");
    wanted->domain_attr->mr_mode = FI_MR_BASIC;
    CHECK(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, wanted, &found) == 0);
    CHECK(fi_fabric(found->fabric_attr, &fabric, NULL) == 0);
    CHECK(fi_domain(fabric, found, &domain, NULL) == 0);
    struct fi_av_attr table = {.type = FI_AV_TABLE, .count = MOST_RANKS};
    struct fi_cq_attr events = {.format = FI_CQ_FORMAT_TAGGED, .size = 1024, .wait_obj = FI_WAIT_NONE};
    CHECK(fi_av_open(domain, &table, &vector, NULL) == 0);
    CHECK(fi_cq_open(domain, &events, &queue, NULL) == 0);
    CHECK(fi_endpoint(domain, found, &end, NULL) == 0);
    CHECK(fi_ep_bind(end, &vector->fid, 0) == 0 && fi_ep_bind(end, &queue->fid, FI_TRANSMIT | FI_RECV) == 0);
    CHECK(fi_enable(end) == 0);
    CHECK(fi_getname(&end->fid, name, &length) == 0);
    job_gather(name, names, sizeof name);
    for (int rank = 0; rank < job.size; rank++)
        memcpy(packed + (size_t)rank * length, names[rank], length);
    CHECK(fi_av_insert(vector, packed, (size_t)job.size, ranks, 0, NULL) == job.size);
    uint64_t all = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE;
    CHECK(fi_mr_reg(domain, shared, sizeof shared, all, 0, 0, 0, &shared_region, NULL) == 0);
    CHECK(fi_mr_reg(domain, own, sizeof own, FI_READ | FI_WRITE, 0, 0, 0, &own_region, NULL) == 0);
    struct window mine = {(uint64_t)shared, fi_mr_key(shared_region)};
    job_gather(&mine, windows, sizeof mine);
    fi_freeinfo(wanted);
    fi_freeinfo(found);
}

/* Of every length, at several places, expected or not. */
static void messages(int to, int from)
{
    for (int turn = 0; turn < 3 * LENGTHS; turn++) {
        size_t length = lengths[turn / 3], at = (size_t)turn % 3;
        uint64_t tag = (uint64_t)turn;
        fill(own + at, length, job.rank, turn);
        memset(answer, 0xee, length + AROUND);
        if (turn % 2)
            BEGIN(fi_tsend(end, own + at, length, NULL, ranks[to], tag, NULL));
        BEGIN(fi_trecv(end, answer + 3 - at, length, NULL, ranks[from], tag, 0, NULL));
        if (turn % 2 == 0)
            BEGIN(fi_tsend(end, own + at, length, NULL, ranks[to], tag, NULL));
        await(2);
        check(answer + 3 - at, length, from, turn);
        CHECK(answer[3 - at + length] == 0xee);
    }
    uint32_t sent[BURST], heard[BURST];
    for (uint32_t i = 0; i < BURST; i++) {
        sent[i] = (uint32_t)job.rank * 1000 + i;
        BEGIN(fi_tsend(end, &sent[i], sizeof sent[i], NULL, ranks[to], 1ull << 32 | i, NULL));
    }
    for (uint32_t i = BURST; i-- > 0;)
        BEGIN(fi_trecv(end, &heard[i], sizeof heard[i], NULL, ranks[from], 1ull << 32 | i, 0, NULL));
    await(2 * BURST);
    for (uint32_t i = 0; i < BURST; i++)
        CHECK(heard[i] == (uint32_t)from * 1000 + i);
}

/* Writes and reads between odd places. */
static void transfers(int to, int from)
{
    void *known = fi_mr_desc(own_region);
    fill(shared + HALF, MOST, job.rank, 5);
    for (int turn = 5; turn < 5 * LENGTHS; turn++) {
        size_t length = lengths[turn / 5], here = (size_t)turn % 5, there = here * 3 % 5;
        memset(shared, 0xee, length + AROUND);
        fill(own + here, length, job.rank, turn);
        meet();
        BEGIN(fi_write(end, own + here, length, known, ranks[to], windows[to].address + there, windows[to].key, NULL));
        await(1);
        meet();
        check(shared + there, length, from, turn);
        CHECK(shared[there + length] == 0xee && (there == 0 || shared[there - 1] == 0xee));
        memset(own, 0xee, length + AROUND);
        BEGIN(fi_read(end, own + here, length, known, ranks[to], windows[to].address + HALF, windows[to].key, NULL));
        await(1);
        check(own + here, length, to, 5);
        CHECK(own[here + length] == 0xee && (here == 0 || own[here - 1] == 0xee));
    }
    meet();
}

/* All ranks change words of the first one's. */
static void atomics(void)
{
    struct words {
        uint64_t sum, fetched, lock, guarded;
        uint32_t left, right;
        float half;
        int32_t unused;
        int64_t least;
    } *words = (struct words *)shared, *mine = (struct words *)own;
    void *known = fi_mr_desc(own_region);
    uint64_t base = windows[0].address, key = windows[0].key, last = 0;
#define AT(member) base + offsetof(struct words, member), key
    memset(shared, 0, sizeof *words);
    meet();
    for (int round = 0; round < ROUNDS; round++) {
        mine->sum = 1;
        BEGIN(fi_atomic(end, &mine->sum, 1, known, ranks[0], AT(sum), FI_UINT64, FI_SUM, NULL));
        await(1);
        mine->fetched = 1;
        BEGIN(fi_fetch_atomic(end, &mine->fetched, 1, known, &mine->guarded, known, ranks[0], AT(fetched), FI_UINT64,
                              FI_SUM, NULL));
        await(1);
        CHECK(round == 0 || mine->guarded > last);
        last = mine->guarded;
        /* A lock, and under it a word that is read and written. */
        uint64_t *before = &mine->guarded, *free = &mine->fetched;
        do {
            mine->lock = (uint64_t)job.rank + 1;
            *before = *free = 0;
            BEGIN(fi_compare_atomic(end, &mine->lock, 1, known, free, known, before, known, ranks[0], AT(lock),
                                    FI_UINT64, FI_CSWAP, NULL));
            await(1);
        } while (*before != 0);
        BEGIN(fi_read(end, before, sizeof *before, known, ranks[0], AT(guarded), NULL));
        await(1);
        *before += 1;
        BEGIN(fi_write(end, before, sizeof *before, known, ranks[0], AT(guarded), NULL));
        await(1);
        BEGIN(fi_atomic(end, free, 1, known, ranks[0], AT(lock), FI_UINT64, FI_ATOMIC_WRITE, NULL));
        await(1);
        mine->right = 1;
        BEGIN(fi_atomic(end, &mine->right, 1, known, ranks[0], AT(right), FI_UINT32, FI_SUM, NULL));
        await(1);
        mine->half = 0.5f;
        BEGIN(fi_atomic(end, &mine->half, 1, known, ranks[0], AT(half), FI_FLOAT, FI_SUM, NULL));
        await(1);
        mine->least = -job.rank - round;
        BEGIN(fi_atomic(end, &mine->least, 1, known, ranks[0], AT(least), FI_INT64, FI_MIN, NULL));
        await(1);
    }
#undef AT
    meet();
    uint64_t all = (uint64_t)job.size * ROUNDS;
    if (job.rank == 0) {
        CHECK(words->sum == all && words->fetched == all && words->guarded == all && words->lock == 0);
        CHECK(words->left == 0 && words->right == all && words->half == (float)all * 0.5f);
        CHECK(words->least == -(job.size - 1) - (ROUNDS - 1));
    }
}

int main(void)
{
    job_begin();
    open_all();
    for (int away = 1; away < job.size; away++) {
        int to = (job.rank + away) % job.size, from = (job.rank - away + job.size) % job.size;
        messages(to, from);
        transfers(to, from);
    }
    atomics();
    job_barrier();
    struct fid *all[] = {&shared_region->fid, &own_region->fid, &end->fid, &queue->fid, &vector->fid, &domain->fid,
                         &fabric->fid};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(fi_close(all[i]) == 0);
    job_end();
    return 0;
}
