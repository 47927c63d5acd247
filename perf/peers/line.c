/* What the cores themselves take, without any library: a cache line passed back and forth, a message copied in and out
 * with a flag in a line of its own, a ring of lines that any number may send to, a barrier of two flags, and a copy. It
 * tells the state that the machine is in while the others are measured, and it is the independent check of
 * `gasperf raw`. */
#include "peer.h"

#include <stdatomic.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { SMALL = 65536, RING = 256 };

struct slot {
    _Alignas(128) _Atomic uint64_t flag;
    _Alignas(128) unsigned char bytes[SMALL];
};

/* A slot of the ring: whose turn it is, and words. */
struct cell {
    _Alignas(64) _Atomic uint64_t turn;
    uint64_t words[7];
};

static struct shared {
    _Alignas(128) _Atomic uint64_t met[2][16];
    struct slot to[2];
    _Alignas(128) _Atomic uint64_t next;
    struct cell ring[RING];
} *shared;

static int rank;
static uint64_t turns, meetings;
static unsigned char out[LARGEST], in[LARGEST];

static void wait_for(_Atomic uint64_t *flag, uint64_t value)
{
    while (atomic_load_explicit(flag, memory_order_acquire) != value)
        ;
}

static void meet(void)
{
    atomic_store_explicit(&shared->met[rank][0], ++meetings, memory_order_release);
    while (atomic_load_explicit(&shared->met[1 - rank][0], memory_order_acquire) < meetings)
        ;
}

/* Nanoseconds for a way there and back. */
static double pass(size_t bytes, unsigned iterations)
{
    struct slot *from = &shared->to[rank], *to = &shared->to[1 - rank];
    (void)bytes;
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        turns++;
        if (rank == 0) {
            atomic_store_explicit(&to->flag, turns, memory_order_release);
            wait_for(&from->flag, turns);
        } else {
            wait_for(&from->flag, turns);
            atomic_store_explicit(&to->flag, turns, memory_order_release);
        }
    }
    return peer_now() - begun;
}

static void send(struct slot *to, size_t bytes)
{
    memcpy(to->bytes, out, bytes);
    atomic_store_explicit(&to->flag, turns, memory_order_release);
}

static void receive(struct slot *from, size_t bytes)
{
    wait_for(&from->flag, turns);
    memcpy(in, from->bytes, bytes);
}

static double copy_and_pass(size_t bytes, unsigned iterations)
{
    struct slot *from = &shared->to[rank], *to = &shared->to[1 - rank];
    peer_fill(out, bytes, iterations);
    meet();
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        turns++;
        peer_stamp(out, bytes, i);
        if (rank == 0) {
            send(to, bytes);
            receive(from, bytes);
        } else {
            receive(from, bytes);
            send(to, bytes);
        }
        peer_check_stamp(in, bytes, i, "a message through a slot");
    }
    double took = peer_now() - begun;
    if (memcmp(in, out, bytes) != 0)
        peer_die("a message through a slot", "its bytes are others");
    return took;
}

/* Lines one way, until the last is acknowledged. */
static double stream(size_t bytes, unsigned iterations)
{
    static uint64_t taken;
    (void)bytes;
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        uint64_t at = rank == 0 ? atomic_fetch_add(&shared->next, 1) : taken++;
        struct cell *cell = &shared->ring[at % RING];
        /* A slot's turn counts up: even when it is free, odd when it is full. */
        wait_for(&cell->turn, at / RING * 2 + (uint64_t)rank);
        for (unsigned word = 0; word < 7; word++) {
            if (rank == 0)
                cell->words[word] = at + word;
            else if (cell->words[word] != at + word)
                peer_die("a line of a stream", "its words are others");
        }
        atomic_store_explicit(&cell->turn, at / RING * 2 + 1 + (uint64_t)rank, memory_order_release);
    }
    turns++;
    if (rank == 0)
        wait_for(&shared->to[0].flag, turns);
    else
        atomic_store_explicit(&shared->to[0].flag, turns, memory_order_release);
    return peer_now() - begun;
}

static double barrier(size_t bytes, unsigned iterations)
{
    (void)bytes;
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++)
        meet();
    return peer_now() - begun;
}

static double copy(size_t bytes, unsigned iterations)
{
    if (rank != 0)
        return 0;
    peer_fill(out, bytes, iterations);
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        memcpy(in, out, bytes);
        __asm__ volatile("" : : "r"(in) : "memory");
    }
    double took = peer_now() - begun;
    peer_check(in, bytes, iterations, "a copy");
    return took;
}

static const struct bench benches[] = {
    {"line", 8, pass},       {"am-latency", SMALL, copy_and_pass}, {"am-rate", 64, stream},
    {"barrier", 0, barrier}, {"copy", LARGEST, copy},              {NULL, 0, NULL},
};

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        peer_die("mapping shared memory", strerror(errno));
    rank = peer_fork();
    peer_pin(rank);
    const struct peer peer = {"line", "the cores", rank, 2, meet, benches};
    peer_serve(&peer);
    return 0;
}
