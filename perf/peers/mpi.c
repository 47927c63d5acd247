/* The measurements over MPI: compiled once with each MPI's own compiler. Ranks talk in pairs (0 and 1, 2 and 3), all
 * pairs at once. */
#include "peer.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, TAG = 1, TAG_END = 2 };

static int rank, ranks, partner;
static unsigned char *out, *in; /* WINDOW times the largest small message, or one large one */
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

static const struct bench benches[] = {
    {"am-latency", LARGEST, am_latency},   {"am-rate", 64, flood},
    {"am-bandwidth", LARGEST, flood},      {"put-latency", LARGEST, put_latency},
    {"get-latency", LARGEST, get_latency}, {"barrier", 0, barrier},
    {"atomic", 8, atomic},                 {NULL, 0, NULL},
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
    out = aligned_alloc(4096, 2 * LARGEST);
    in = aligned_alloc(4096, 2 * LARGEST);
    if (out == NULL || in == NULL)
        peer_die("allocating buffers", "no memory");
    MPI_Win_allocate(LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
    memset(out, 1, 2 * LARGEST);
    memset(in, 1, 2 * LARGEST);
    memset(shared, 1, LARGEST);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    const struct peer peer = {argv[1], version, rank, ranks, meet, benches};
    peer_serve(&peer);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
