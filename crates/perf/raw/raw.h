/* What the machine itself does between two processes that share memory, without the library.
 *
 * Every measurement is collective: the ranks call it together with the same numbers, and rank 0 returns what it took.
 * Variants of one measurement do the same work in different ways; the best of them is the machine's limit. */
#ifndef GASWORKS_PERF_RAW_H
#define GASWORKS_PERF_RAW_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

/* One call. The layout is mirrored by `Call` in src/call.rs. */
struct call {
    unsigned char *shared; /* the same memory in every rank, zeroed before a variant's first call */
    unsigned char *own;    /* private memory */
    uint64_t *samples;     /* rank 0: room for `n` single latencies in ticks, or null */
    uint64_t room;         /* bytes of each of the two areas */
    uint64_t base;         /* operations done by earlier calls of this variant */
    uint64_t n;            /* operations to do */
    uint64_t bytes;        /* size of an operation */
    uint32_t me;
    uint32_t ranks;
    uint32_t variant;
    uint32_t together;     /* a processor that all ranks may use, for measurements of sharing one */
};

/* Ticks that the call took, or this if bytes arrived wrong. */
#define WRONG UINT64_MAX

typedef uint64_t measurement(const struct call *);

#define LINE 64
/* Looks before a waiting process lets others run: never in a good run, often where ranks share a processor. */
#define PATIENCE 4096

#if defined(__x86_64__)
#include <x86intrin.h>
static inline void pause_now(void) { _mm_pause(); }
static inline uint64_t ticks(void) { return __rdtsc(); }
static inline void want_for_writing(void *p) { __asm__ volatile("prefetchw %0" : : "m"(*(char *)p)); }
static inline void copy_string(void *to, const void *from, size_t n) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}
#else
#include <string.h>
#include <time.h>
static inline void pause_now(void) {}
static inline uint64_t ticks(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline void want_for_writing(void *p) { __builtin_prefetch(p, 1); }
static inline void copy_string(void *to, const void *from, size_t n) { memcpy(to, from, n); }
#endif

static inline uint64_t look(const void *p) { return __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE); }
static inline void show(void *p, uint64_t v) { __atomic_store_n((uint64_t *)p, v, __ATOMIC_RELEASE); }
static inline void put_word(void *p, uint64_t v) { __atomic_store_n((uint64_t *)p, v, __ATOMIC_RELAXED); }
static inline uint64_t get_word(const void *p) { return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED); }

/* Spins until the word at `p` is `v`. */
static inline __attribute__((always_inline)) void await(const void *p, uint64_t v, int with_pause) {
    unsigned looks = 0;
    while (look(p) != v) {
        if (with_pause)
            pause_now();
        if (++looks == PATIENCE) {
            looks = 0;
            sched_yield();
        }
    }
}

/* Spins until the word at `p` is at least `v`. */
static inline __attribute__((always_inline)) uint64_t await_least(const void *p, uint64_t v, int with_pause) {
    unsigned looks = 0;
    uint64_t seen;
    while ((seen = look(p)) < v) {
        if (with_pause)
            pause_now();
        if (++looks == PATIENCE) {
            looks = 0;
            sched_yield();
        }
    }
    return seen;
}

/* `ticks`, for callers outside. */
uint64_t raw_ticks(void);
/* Whether all whole words of the bytes are `word`; used by the library's benches too, so that reading costs both the same. */
int raw_all_words(const unsigned char *bytes, size_t len, uint64_t word);
/* Copies past the caches where the processor can. */
void raw_copy_past(void *to, const void *from, size_t n);

#endif
