/* The measurements over MPI: compiled once with each MPI's own compiler. Ranks talk in pairs (0 and 1, 2 and 3), all
 * pairs at once; collectives are of all. */
#include "peer.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, TAG = 1, TAG_END = 2 };

static int rank, ranks, partner;
static unsigned char *out, *in; /* WINDOW times the largest small message, or two of the largest */
static unsigned char *shared;   /* this rank's part of the window */
static MPI_Win window;

static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static double am_latency(size_t bytes, unsigned iterations)
{
    int length = (int)bytes;
    peer_fill(out, bytes, iterations);
    memset(in, 0, bytes);
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        if (rank < partner) {
            peer_stamp(out, bytes, i);
            MPI_Send(out, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
            MPI_Recv(in, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            peer_check_stamp(in, bytes, i, "a message that came back");
        } else {
            MPI_Recv(in, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(in, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        }
    }
    double took = peer_now() - begun;
    peer_fill(out, bytes, iterations);
    peer_stamp(out, bytes, iterations - 1);
    if (memcmp(in, out, bytes) != 0)
        peer_die("a message that came back", "its bytes are others");
    return took;
}

/* Messages one way, as many under way as fit into `out`; the last is answered. */
static double flood(size_t bytes, unsigned iterations)
{
    static MPI_Request requests[WINDOW];
    static MPI_Status statuses[WINDOW];
    /* Few enough of the large ones that both sides' buffers stay in a cache. */
    unsigned wide = bytes * WINDOW <= 512 << 10 ? WINDOW : bytes <= 128 << 10 ? 8 : 2;
    unsigned char end = 0;
    int length = (int)bytes;
    for (unsigned w = 0; w < wide; w++)
        peer_fill(out + w * bytes, bytes, w);
    memset(in, 0, wide * bytes);
    double begun = peer_now();
    for (unsigned done = 0; done < iterations;) {
        unsigned now = iterations - done < wide ? iterations - done : wide;
        for (unsigned w = 0; w < now; w++) {
            if (rank < partner) {
                peer_stamp(out + w * bytes, bytes, done + w);
                MPI_Isend(out + w * bytes, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[w]);
            } else {
                MPI_Irecv(in + w * bytes, length, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, &requests[w]);
            }
        }
        MPI_Waitall((int)now, requests, statuses);
        if (rank > partner)
            for (unsigned w = 0; w < now; w++)
                peer_check_stamp(in + w * bytes, bytes, done + w, "a message of a flood");
        done += now;
    }
    if (rank < partner)
        MPI_Recv(&end, 1, MPI_BYTE, partner, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&end, 1, MPI_BYTE, partner, TAG_END, MPI_COMM_WORLD);
    double took = peer_now() - begun;
    for (unsigned w = 0; rank > partner && bytes > 8 && w < wide && w < iterations; w++) {
        peer_fill(out, bytes, w);
        if (memcmp(in + w * bytes + 8, out + 8, bytes - 8) != 0)
            peer_die("a message of a flood", "its bytes are others");
    }
    return took;
}

static double put_latency(size_t bytes, unsigned iterations)
{
    peer_fill(out, bytes, iterations);
    double begun = peer_now();
    for (unsigned i = 0; rank < partner && i < iterations; i++) {
        peer_stamp(out, bytes, i);
        MPI_Put(out, (int)bytes, MPI_BYTE, partner, 0, (int)bytes, MPI_BYTE, window);
        MPI_Win_flush(partner, window);
    }
    double took = peer_now() - begun;
    meet();
    if (rank > partner) {
        peer_fill(in, bytes, iterations);
        peer_stamp(in, bytes, iterations - 1);
        MPI_Win_sync(window);
        if (memcmp(in, shared, bytes) != 0)
            peer_die("a put", "the bytes in the window are others");
    }
    return took;
}

static double get_latency(size_t bytes, unsigned iterations)
{
    if (rank > partner) {
        peer_fill(shared, bytes, iterations);
        MPI_Win_sync(window);
    }
    memset(in, 0, bytes);
    meet();
    double begun = peer_now();
    for (unsigned i = 0; rank < partner && i < iterations; i++) {
        MPI_Get(in, (int)bytes, MPI_BYTE, partner, 0, (int)bytes, MPI_BYTE, window);
        MPI_Win_flush(partner, window);
    }
    double took = peer_now() - begun;
    meet();
    if (rank < partner)
        peer_check(in, bytes, iterations, "a get");
    return took;
}

static double barrier(size_t bytes, unsigned iterations)
{
    (void)bytes;
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return peer_now() - begun;
}

static double atomic(size_t bytes, unsigned iterations)
{
    (void)bytes;
    uint64_t three = 3, before = 0, word = 0;
    memcpy(shared, &word, sizeof word);
    MPI_Win_sync(window);
    meet();
    double begun = peer_now();
    for (unsigned i = 0; rank < partner && i < iterations; i++) {
        MPI_Fetch_and_op(&three, &before, MPI_UINT64_T, partner, 0, MPI_SUM, window);
        MPI_Win_flush(partner, window);
        if (before != 3 * (uint64_t)i)
            peer_die("a fetch-and-add", "it fetched another value");
    }
    double took = peer_now() - begun;
    meet();
    MPI_Win_sync(window);
    memcpy(&word, shared, sizeof word);
    if (rank > partner && word != 3 * (uint64_t)iterations)
        peer_die("a fetch-and-add", "the sum is another");
    return took;
}

/* The collectives are those of gasperf, in the same loops. Each operation moves a number of its own in the first and the
 * last bytes of each part, and every rank looks for it; the bytes between are compared in the end. */
static void stamp(unsigned char *bytes, size_t length, uint64_t number)
{
    if (length < sizeof number) {
        memcpy(bytes, &number, length);
        return;
    }
    memcpy(bytes, &number, sizeof number);
    if (length >= 2 * sizeof number)
        memcpy(bytes + length - sizeof number, &number, sizeof number);
}

static int is_stamped(const unsigned char *bytes, size_t length, uint64_t number)
{
    if (length < sizeof number)
        return memcmp(bytes, &number, length) == 0;
    return memcmp(bytes, &number, sizeof number) == 0 &&
           (length < 2 * sizeof number || memcmp(bytes + length - sizeof number, &number, sizeof number) == 0);
}

/* All have laid out what they give. Short data takes no time, and a barrier may: of ranks that share cores and never
 * yield, most of a second. */
static void laid_out(size_t bytes)
{
    if (bytes > 4096)
        meet();
}

/* After the last operation of a loop: `right` is whether the numbers were right, `scratch` has room for a part. */
static void check_part(int right, unsigned char *scratch, const unsigned char *part, size_t length, unsigned seed,
                       uint64_t last)
{
    if (!right)
        peer_die("a collective", "the bytes that came are those of another, or of another rank");
    peer_fill(scratch, length, seed);
    stamp(scratch, length, last);
    if (memcmp(scratch, part, length) != 0)
        peer_die("a collective", "the bytes that came are others");
}

/* The root may be some broadcasts ahead of the others: so the rank that takes longest counts. */
static double broadcast(size_t bytes, unsigned iterations)
{
    int length = (int)bytes, right = 1;
    memset(out, 0, bytes);
    if (rank == 0)
        peer_fill(out, bytes, iterations);
    laid_out(bytes);
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        if (rank == 0)
            stamp(out, bytes, i);
        MPI_Bcast(out, length, MPI_BYTE, 0, MPI_COMM_WORLD);
        right &= is_stamped(out, bytes, i);
    }
    double took = peer_now() - begun;
    check_part(right, in, out, bytes, iterations, iterations - 1);
    double longest = took;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return longest;
}

/* The maximum of words of 8 bytes: in each place another rank has the greatest, which is odd. */
static double reduce_all(size_t bytes, unsigned iterations)
{
    uint64_t *words = (uint64_t *)(void *)out;
    size_t count = bytes / sizeof *words, last = count - 1;
    int next = 0, right = 1;
    if (count == 0 || bytes % sizeof *words != 0)
        peer_die("a reduction", "it is of words of 8 bytes");
    for (size_t at = 0; at < count; at++)
        words[at] = 2 * (at + iterations) + ((int)(at % (size_t)ranks) == rank);
    laid_out(bytes);
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        words[0] = words[last] = 2 * (uint64_t)i + (next == rank);
        next = next + 1 == ranks ? 0 : next + 1;
        MPI_Allreduce(MPI_IN_PLACE, words, (int)count, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
        right &= words[0] == 2 * (uint64_t)i + 1 && words[last] == 2 * (uint64_t)i + 1;
    }
    double took = peer_now() - begun;
    for (size_t at = 1; at < last; at++)
        right &= words[at] == 2 * (at + iterations) + 1;
    if (!right)
        peer_die("a reduction", "a maximum is another");
    return took;
}

static double all_gather(size_t bytes, unsigned iterations)
{
    int length = (int)bytes, right = 1;
    peer_fill(out, bytes, iterations + (unsigned)rank);
    memset(in, 0, bytes * (size_t)ranks);
    laid_out(bytes);
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        stamp(out, bytes, i + (uint64_t)rank);
        MPI_Allgather(out, length, MPI_BYTE, in, length, MPI_BYTE, MPI_COMM_WORLD);
        for (int other = 0; other < ranks; other++)
            right &= is_stamped(in + (size_t)other * bytes, bytes, i + (uint64_t)other);
    }
    double took = peer_now() - begun;
    for (int other = 0; other < ranks; other++)
        check_part(right, out, in + (size_t)other * bytes, bytes, iterations + (unsigned)other,
                   iterations - 1 + (uint64_t)other);
    return took;
}

/* What tells one pair's bytes from another's, and from those the other way. */
static unsigned pair(int from, int to)
{
    return 3 * (unsigned)from + 5 * (unsigned)to;
}

static double all_to_all(size_t bytes, unsigned iterations)
{
    int length = (int)bytes, right = 1;
    for (int other = 0; other < ranks; other++)
        peer_fill(out + (size_t)other * bytes, bytes, iterations + pair(rank, other));
    memset(in, 0, bytes * (size_t)ranks);
    laid_out(bytes);
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        for (int other = 0; other < ranks; other++)
            stamp(out + (size_t)other * bytes, bytes, i + (uint64_t)pair(rank, other));
        MPI_Alltoall(out, length, MPI_BYTE, in, length, MPI_BYTE, MPI_COMM_WORLD);
        for (int other = 0; other < ranks; other++)
            right &= is_stamped(in + (size_t)other * bytes, bytes, i + (uint64_t)pair(other, rank));
    }
    double took = peer_now() - begun;
    for (int other = 0; other < ranks; other++)
        check_part(right, out, in + (size_t)other * bytes, bytes, iterations + pair(other, rank),
                   iterations - 1 + (uint64_t)pair(other, rank));
    return took;
}

/* With their largest sizes: main lowers them where many ranks share the host's memory. */
static struct bench benches[] = {
    {"am-latency", LARGEST, am_latency},   {"am-rate", 64, flood},
    {"am-bandwidth", LARGEST, flood},      {"put-latency", LARGEST, put_latency},
    {"get-latency", LARGEST, get_latency}, {"barrier", 0, barrier},
    {"atomic", 8, atomic},                 {"broadcast", LARGEST, broadcast},
    {"reduce-all", LARGEST, reduce_all},   {"all-gather", LARGEST, all_gather},
    {"all-to-all", LARGEST, all_to_all},   {NULL, 0, NULL},
};

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1 && strcmp(argv[1], "--empty") == 0) {
        MPI_Finalize();
        return 0;
    }
    partner = rank ^ 1;
    if (argc != 2 || ranks % 2 != 0)
        peer_die("usage", "mpi NAME on an even number of ranks, or mpi --empty");
    peer_pin(rank);
    MPI_Get_library_version(version, &length);
    for (char *at = version; *at != 0; at++)
        if (*at == '\n' || *at == ',' || *at == '\t' || *at == '"')
            *at = *at == '\t' ? ' ' : 0;
    size_t largest = ranks <= 8 ? LARGEST : LARGEST / 8;
    for (struct bench *bench = benches; bench->name != NULL; bench++) {
        int of_all = bench->run == all_gather || bench->run == all_to_all;
        size_t most = of_all ? 2 * largest / (size_t)ranks : largest;
        if (bench->most_bytes > most)
            bench->most_bytes = most;
    }
    out = aligned_alloc(4096, 2 * largest);
    in = aligned_alloc(4096, 2 * largest);
    if (out == NULL || in == NULL)
        peer_die("allocating buffers", "no memory");
    MPI_Win_allocate((MPI_Aint)largest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
    memset(out, 1, 2 * largest);
    memset(in, 1, 2 * largest);
    memset(shared, 1, largest);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    const struct peer peer = {argv[1], version, rank, ranks, meet, benches};
    peer_serve(&peer);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
