/* Round trips: a line, and messages copied in and out. */
#include "raw.h"
#include <string.h>

enum { LINES = 64 };

/* One line each way with data and flag; `lines` of them used in turn. */
static inline __attribute__((always_inline)) uint64_t one_line(const struct call *c, int with_pause, int ahead, unsigned lines) {
    unsigned char *to = c->shared + (c->me ? LINES * LINE : 0), *from = c->shared + (c->me ? 0 : LINES * LINE);
    uint64_t begin = ticks(), sum = 0;
    for (uint64_t i = c->base + 1; i <= c->base + c->n; i++) {
        size_t at = (i % lines) * LINE;
        if (c->me == 0) {
            put_word(to + at + 8, i ^ 5);
            show(to + at, i);
        }
        if (ahead)
            want_for_writing(to + ((i + (c->me == 0)) % lines) * LINE);
        await(from + at, i, with_pause);
        sum += get_word(from + at + 8) == (i ^ 5);
        if (c->me) {
            put_word(to + at + 8, i ^ 5);
            show(to + at, i);
        }
    }
    return sum == c->n ? ticks() - begin : WRONG;
}

/* One line for both ways. */
static inline __attribute__((always_inline)) uint64_t same_line(const struct call *c, int with_pause) {
    unsigned char *line = c->shared;
    uint64_t begin = ticks(), sum = 0;
    for (uint64_t i = c->base; i < c->base + c->n; i++) {
        if (c->me == 0) {
            put_word(line + 8, i);
            show(line, 2 * i + 1);
            await(line, 2 * i + 2, with_pause);
            sum += get_word(line + 8) == ~i;
        } else {
            await(line, 2 * i + 1, with_pause);
            sum += get_word(line + 8) == i;
            put_word(line + 8, ~i);
            show(line, 2 * i + 2);
        }
    }
    return sum == c->n ? ticks() - begin : WRONG;
}

/* Data in one line, flag in another, each way. */
static inline __attribute__((always_inline)) uint64_t two_lines(const struct call *c, int with_pause) {
    unsigned char *to = c->shared + c->me * 4 * LINE, *from = c->shared + (1 - c->me) * 4 * LINE;
    uint64_t begin = ticks(), sum = 0;
    for (uint64_t i = c->base + 1; i <= c->base + c->n; i++) {
        if (c->me == 0) {
            put_word(to + 2 * LINE, i);
            show(to, i);
        }
        await(from, i, with_pause);
        sum += get_word(from + 2 * LINE) == i;
        if (c->me) {
            put_word(to + 2 * LINE, i);
            show(to, i);
        }
    }
    return sum == c->n ? ticks() - begin : WRONG;
}

const char *const raw_line_names[] = {"one line each way",       "one line each way, pause", "one line each way, prefetchw",
                                      "one line for both ways",  "one line for both ways, pause",
                                      "two lines each way",      "two lines each way, pause",
                                      "64 lines in turn",        "64 lines in turn, pause",  "64 lines in turn, prefetchw", NULL};

uint64_t raw_line(const struct call *c) {
    switch (c->variant) {
    case 0: return one_line(c, 0, 0, 1);
    case 1: return one_line(c, 1, 0, 1);
    case 2: return one_line(c, 0, 1, 1);
    case 3: return same_line(c, 0);
    case 4: return same_line(c, 1);
    case 5: return two_lines(c, 0);
    case 6: return two_lines(c, 1);
    case 7: return one_line(c, 0, 0, LINES);
    case 8: return one_line(c, 1, 0, LINES);
    default: return one_line(c, 0, 1, LINES);
    }
}

/* A whole line of seven words and a flag, each way. */
static inline void fill_line(unsigned char *line, uint64_t i) {
    for (int w = 1; w < 8; w++)
        put_word(line + 8 * w, i + (uint64_t)w);
    show(line, i);
}

static inline int read_line(const unsigned char *line, uint64_t i) {
    uint64_t different = 0;
    for (int w = 1; w < 8; w++)
        different |= get_word(line + 8 * w) ^ (i + (uint64_t)w);
    return different == 0;
}

static inline __attribute__((always_inline)) uint64_t whole_line(const struct call *c, int with_pause, unsigned lines) {
    unsigned char *to = c->shared + (c->me ? LINES * LINE : 0), *from = c->shared + (c->me ? 0 : LINES * LINE);
    uint64_t begin = ticks(), sum = 0;
    for (uint64_t i = c->base + 1; i <= c->base + c->n; i++) {
        size_t at = (i % lines) * LINE;
        if (c->me == 0)
            fill_line(to + at, i);
        await(from + at, i, with_pause);
        sum += (uint64_t)read_line(from + at, i);
        if (c->me)
            fill_line(to + at, i);
    }
    return sum == c->n ? ticks() - begin : WRONG;
}

#if defined(__x86_64__)
/* The line goes out and comes in by one instruction. */
static __attribute__((target("avx512f"), noinline)) uint64_t vector_line(const struct call *c, unsigned lines) {
    unsigned char *to = c->shared + (c->me ? LINES * LINE : 0), *from = c->shared + (c->me ? 0 : LINES * LINE);
    uint64_t begin = ticks(), sum = 0;
    const __m512i steps = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    for (uint64_t i = c->base + 1; i <= c->base + c->n; i++) {
        size_t at = (i % lines) * LINE;
        __m512i out = _mm512_add_epi64(_mm512_set1_epi64((long long)i), steps), in;
        if (c->me == 0)
            _mm512_store_si512((void *)(to + at), out);
        unsigned looks = 0, parts = 0;
        for (;;) {
            __asm__ volatile("vmovdqa64 %1, %0" : "=v"(in) : "m"(*(__m512i *)(from + at)));
            if ((uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(in)) == i) {
                /* Some processors store a line in two halves, of which the second follows. */
                if (_mm512_cmpeq_epi64_mask(in, out) == 0xff || ++parts == PATIENCE)
                    break;
                continue;
            }
            if (++looks == PATIENCE) {
                looks = 0;
                sched_yield();
            }
        }
        sum += _mm512_cmpeq_epi64_mask(in, out) == 0xff;
        if (c->me)
            _mm512_store_si512((void *)(to + at), out);
    }
    return sum == c->n ? ticks() - begin : WRONG;
}
static int has_vector(void) { return __builtin_cpu_supports("avx512f"); }
#else
static uint64_t vector_line(const struct call *c, unsigned lines) { return whole_line(c, 0, lines); }
static int has_vector(void) { return 0; }
#endif

const char *const raw_trip_names[] = {"words", "words, pause", "words, 64 lines in turn", "words, 64 lines in turn, pause",
                                      "one store of 64 bytes", "one store of 64 bytes, 64 lines in turn", NULL};

uint64_t raw_trip(const struct call *c) {
    switch (c->variant) {
    case 0: return whole_line(c, 0, 1);
    case 1: return whole_line(c, 1, 1);
    case 2: return whole_line(c, 0, LINES);
    case 3: return whole_line(c, 1, LINES);
    case 4: return has_vector() ? vector_line(c, 1) : whole_line(c, 0, 1);
    default: return has_vector() ? vector_line(c, LINES) : whole_line(c, 0, LINES);
    }
}

typedef void copy(void *, const void *, size_t);
static void copy_library(void *to, const void *from, size_t n) { memcpy(to, from, n); }

/* A message copied in, its flag apart, and copied out there; the same back. `turns` places are used in turn. */
static uint64_t message(const struct call *c, copy *in, copy *out, unsigned turns, int with_pause) {
    size_t place = (c->bytes + LINE - 1) / LINE * LINE + LINE;
    unsigned char *to = c->shared + c->me * turns * place, *from = c->shared + (1 - c->me) * turns * place;
    unsigned char *source = c->own, *target = c->own + place;
    uint64_t begin = ticks(), sum = 0;
    for (uint64_t i = c->base + 1; i <= c->base + c->n; i++) {
        size_t at = (i % turns) * place;
        if (c->me == 0) {
            memcpy(source, &i, 8);
            in(to + at + LINE, source, c->bytes);
            show(to + at, i);
        }
        await(from + at, i, with_pause);
        out(target, from + at + LINE, c->bytes);
        uint64_t first, last;
        memcpy(&first, target, 8);
        memcpy(&last, target + c->bytes - 8, 8);
        sum += first == i && (c->bytes == 8 || last == 7);
        if (c->me) {
            in(to + at + LINE, target, c->bytes);
            show(to + at, i);
        }
    }
    return sum == c->n ? ticks() - begin : WRONG;
}

/* The same with a flag in every line, so that a reader need not wait for one flag before it asks for the next line. */
static uint64_t flagged(const struct call *c, int with_pause) {
    size_t words = c->bytes / 8, lines = (words + 6) / 7;
    unsigned char *to = c->shared + c->me * lines * LINE, *from = c->shared + (1 - c->me) * lines * LINE;
    uint64_t *source = (uint64_t *)c->own, *target = source + words;
    uint64_t begin = ticks(), sum = 0;
    for (uint64_t i = c->base + 1; i <= c->base + c->n; i++) {
        for (int half = 0; half < 2; half++) {
            if ((half == 0) == (c->me == 0)) {
                uint64_t *out = c->me ? target : source;
                if (c->me == 0)
                    out[0] = i;
                for (size_t l = 0, w = 0; l < lines; l++) {
                    for (size_t k = 1; k < 8 && w < words; k++, w++)
                        put_word(to + l * LINE + 8 * k, out[w]);
                    show(to + l * LINE, i);
                }
            } else {
                for (size_t l = 0, w = 0; l < lines; l++) {
                    await(from + l * LINE, i, with_pause);
                    for (size_t k = 1; k < 8 && w < words; k++, w++)
                        target[w] = get_word(from + l * LINE + 8 * k);
                }
                sum += target[0] == i && (words == 1 || target[words - 1] == 7);
            }
        }
    }
    return sum == c->n ? ticks() - begin : WRONG;
}

const char *const raw_message_names[] = {"flag apart, memcpy", "flag apart, memcpy, pause", "flag apart, memcpy, 12 places in turn",
                                         "flag apart, rep movsb", "flag apart, in by rep movsb", "flag in every line",
                                         "flag in every line, pause", NULL};

uint64_t raw_message(const struct call *c) {
    /* The last word of every message is 7, the first its number. */
    size_t words = c->bytes / 8;
    memset(c->own, 0, 2 * (c->bytes + 2 * LINE));
    if (words > 1)
        ((uint64_t *)c->own)[words - 1] = 7;
    switch (c->variant) {
    case 0: return message(c, copy_library, copy_library, 1, 0);
    case 1: return message(c, copy_library, copy_library, 1, 1);
    case 2: return message(c, copy_library, copy_library, 12, 0);
    case 3: return message(c, copy_string, copy_string, 1, 0);
    case 4: return message(c, copy_string, copy_library, 1, 0);
    case 5: return flagged(c, 0);
    default: return flagged(c, 1);
    }
}
