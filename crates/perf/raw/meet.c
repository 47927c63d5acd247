/* Barriers by flags, wake-ups, and sharing a processor. */
#define _GNU_SOURCE
#include "raw.h"
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Each rank has a line; all look at all. */
static inline __attribute__((always_inline)) void by_flags(const struct call *c, uint64_t phase, int with_pause) {
    show(c->shared + c->me * LINE, phase);
    for (uint32_t r = 0; r < c->ranks; r++)
        if (r != c->me)
            await_least(c->shared + r * LINE, phase, with_pause);
}

/* All count in one line; the last one opens another. */
static inline __attribute__((always_inline)) void by_counter(const struct call *c, uint64_t phase, int with_pause) {
    unsigned char *count = c->shared, *open = c->shared + 2 * LINE;
    if (__atomic_add_fetch((uint64_t *)(void *)count, 1, __ATOMIC_ACQ_REL) == phase * c->ranks)
        show(open, phase);
    else
        await_least(open, phase, with_pause);
}

/* In round k each rank tells the one 2^k further on. */
static inline __attribute__((always_inline)) void by_dissemination(const struct call *c, uint64_t phase, int with_pause) {
    for (uint32_t k = 0, step = 1; step < c->ranks; k++, step *= 2) {
        uint32_t peer = (c->me + step) % c->ranks;
        show(c->shared + ((size_t)peer * 16 + k) * LINE, phase);
        await_least(c->shared + ((size_t)c->me * 16 + k) * LINE, phase, with_pause);
    }
}

const char *const raw_barrier_names[] = {"flags", "flags, pause", "counter", "counter, pause", "dissemination", "dissemination, pause", NULL};

uint64_t raw_barrier(const struct call *c) {
    uint64_t begin = ticks();
    for (uint64_t phase = c->base + 1; phase <= c->base + c->n; phase++) {
        switch (c->variant) {
        case 0: by_flags(c, phase, 0); break;
        case 1: by_flags(c, phase, 1); break;
        case 2: by_counter(c, phase, 0); break;
        case 3: by_counter(c, phase, 1); break;
        case 4: by_dissemination(c, phase, 0); break;
        default: by_dissemination(c, phase, 1); break;
        }
    }
    return ticks() - begin;
}

static long futex(uint32_t *word, int what, uint32_t value) {
    struct timespec limit = {1, 0}; /* nobody sleeps for ever because somebody died */
    return syscall(SYS_futex, word, what, value, what == FUTEX_WAIT ? &limit : NULL, NULL, 0);
}

/* Rank 1 sleeps on a word; some time later rank 0 wakes it. From before the wake to after the sleep. */
static uint64_t wakes(const struct call *c, int sleeps) {
    uint32_t *word = (uint32_t *)(void *)c->shared;
    unsigned char *asleep = c->shared + 2 * LINE, *stamp = c->shared + 4 * LINE, *took = c->shared + 6 * LINE, *done = c->shared + 8 * LINE;
    uint64_t sum = 0;
    for (uint64_t i = c->base + 1; i <= c->base + c->n; i++) {
        if (c->me) {
            show(asleep, i);
            while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != (uint32_t)i)
                futex(word, FUTEX_WAIT, (uint32_t)(i - 1));
            put_word(took, ticks() - get_word(stamp));
            show(done, i);
            continue;
        }
        await(asleep, i, 1);
        struct timespec now, pause = {0, 2000000};
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (sleeps) {
            nanosleep(&pause, NULL);
        } else {
            int64_t until = now.tv_sec * 1000000000ll + now.tv_nsec + pause.tv_nsec;
            do {
                pause_now();
                clock_gettime(CLOCK_MONOTONIC, &now);
            } while (now.tv_sec * 1000000000ll + now.tv_nsec < until);
        }
        put_word(stamp, ticks());
        __atomic_store_n(word, (uint32_t)i, __ATOMIC_RELEASE);
        futex(word, FUTEX_WAKE, 1);
        await(done, i, 1);
        uint64_t one = get_word(took);
        sum += one;
        if (c->samples)
            c->samples[i - c->base - 1] = one;
    }
    return sum;
}

const char *const raw_wake_names[] = {"waker busy", "waker slept too", NULL};
uint64_t raw_wake(const struct call *c) { return wakes(c, c->variant == 1); }

/* Both ranks on one processor hand over to each other; the time is that of one hand-over. */
static uint64_t hand_over(const struct call *c) {
    uint32_t *turn = (uint32_t *)(void *)c->shared;
    uint64_t begin = ticks();
    for (uint64_t i = 0; i < c->n; i++) {
        uint32_t mine = (uint32_t)(2 * (c->base + i) + c->me), seen;
        while ((seen = __atomic_load_n(turn, __ATOMIC_ACQUIRE)) != mine) {
            if (c->variant == 0)
                sched_yield();
            else
                futex(turn, FUTEX_WAIT, seen);
        }
        __atomic_store_n(turn, mine + 1, __ATOMIC_RELEASE);
        if (c->variant == 1)
            futex(turn, FUTEX_WAKE, 1);
    }
    return (ticks() - begin) / 2;
}

const char *const raw_share_names[] = {"sched_yield", "futex", NULL};

uint64_t raw_share(const struct call *c) {
    cpu_set_t before, one;
    if (sched_getaffinity(0, sizeof before, &before))
        return WRONG;
    CPU_ZERO(&one);
    CPU_SET(c->together, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        return WRONG;
    uint64_t took = hand_over(c);
    return sched_setaffinity(0, sizeof before, &before) ? WRONG : took;
}
