/* Copies within one process, checks, and atomics. */
#include "raw.h"
#include <string.h>

uint64_t raw_ticks(void) { return ticks(); }

/* The bytes may be written by a peer that misbehaves, so they are read through volatile words or by assembly only. */
#if defined(__x86_64__)
static __attribute__((target("avx2"))) int all_words_wide(const unsigned char *bytes, size_t len, uint64_t word) {
    __m256i wanted = _mm256_set1_epi64x((long long)word), a = _mm256_setzero_si256(), b = a, x, y;
    size_t at = 0;
    for (; at + 64 <= len; at += 64) {
        __asm__ volatile("vmovdqu %1, %0" : "=x"(x) : "m"(*(const unsigned char(*)[32])(bytes + at)));
        __asm__ volatile("vmovdqu %1, %0" : "=x"(y) : "m"(*(const unsigned char(*)[32])(bytes + at + 32)));
        a = _mm256_or_si256(a, _mm256_xor_si256(x, wanted));
        b = _mm256_or_si256(b, _mm256_xor_si256(y, wanted));
    }
    uint64_t different = !_mm256_testz_si256(_mm256_or_si256(a, b), _mm256_or_si256(a, b));
    for (; at + 8 <= len; at += 8)
        different |= *(const volatile uint64_t *)(bytes + at) ^ word;
    return different == 0;
}
#endif

int raw_all_words(const unsigned char *bytes, size_t len, uint64_t word) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return all_words_wide(bytes, len, word);
#endif
    uint64_t different = 0;
    for (size_t at = 0; at + 8 <= len; at += 8)
        different |= *(const volatile uint64_t *)(bytes + at) ^ word;
    return different == 0;
}

void raw_copy_past(void *to, const void *from, size_t n) {
#if defined(__x86_64__)
    unsigned char *t = to;
    const unsigned char *f = from;
    size_t head = (16 - (uintptr_t)t % 16) % 16;
    if (n < 256) {
        memcpy(to, from, n);
        return;
    }
    memcpy(t, f, head);
    t += head, f += head, n -= head;
    for (; n >= 64; t += 64, f += 64, n -= 64)
        for (int k = 0; k < 64; k += 16)
            _mm_stream_si128((__m128i *)(void *)(t + k), _mm_loadu_si128((const __m128i *)(const void *)(f + k)));
    memcpy(t, f, n);
    _mm_sfence();
#else
    memcpy(to, from, n);
#endif
}

/* From one half of the memory to the other: always the same place, or walking on so that no cache holds it. */
static uint64_t copies(const struct call *c, int cold) {
    size_t half = c->room / 2, step = cold ? (c->bytes + 63) / 64 * 64 : 0, at = 0;
    unsigned char *from = c->own, *to = c->own + half;
    if (cold)
        at = (size_t)(c->base % (half / step)) * step;
    uint64_t begin = ticks();
    for (uint64_t i = 0; i < c->n; i++) {
        if (at + c->bytes > half)
            at = 0;
        switch (c->variant) {
        case 0: memcpy(to + at, from + at, c->bytes); break;
        case 1: copy_string(to + at, from + at, c->bytes); break;
        default: raw_copy_past(to + at, from + at, c->bytes); break;
        }
        __asm__ volatile("" : : "r"(to) : "memory");
        at += step;
    }
    return c->me ? 0 : ticks() - begin;
}

const char *const raw_copy_names[] = {"memcpy", "rep movsb", "past the caches", NULL};
uint64_t raw_warm(const struct call *c) { return copies(c, 0); }
uint64_t raw_cold(const struct call *c) { return copies(c, 1); }

const char *const raw_atomic_names[] = {"fetch-add, alone", "compare-and-swap, alone", "fetch-add, by two", "compare-and-swap, by two", NULL};

/* Rank 0 alone, or both on one line; the time is an operation's of one rank. */
uint64_t raw_atomic(const struct call *c) {
    int both = c->variant >= 2, swap = c->variant % 2;
    uint64_t *word = (uint64_t *)(void *)c->shared;
    if (c->me && !both)
        return 0;
    if (both) { /* begin together */
        show(c->shared + (4 + 2 * c->me) * LINE, c->base + 1);
        await_least(c->shared + (6 - 2 * c->me) * LINE, c->base + 1, 0);
    }
    uint64_t begin = ticks(), seen = get_word(word);
    for (uint64_t i = 0; i < c->n; i++) {
        if (swap) {
            while (!__atomic_compare_exchange_n(word, &seen, seen + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            }
            seen++;
        } else {
            __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
        }
    }
    return ticks() - begin;
}
