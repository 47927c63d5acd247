/* One way, as fast as the receiver takes it: lines, and blocks that are copied in and read or not. */
#include "raw.h"
#include <string.h>

/* Lines with their flag inside. The receiver says how far it is every `every` lines; the sender looks there only when its
 * copy says full. `ahead` lines before its turn the sender asks for a line, so as not to wait for it then. */
static inline __attribute__((always_inline)) uint64_t lines(const struct call *c, unsigned ring, unsigned every, unsigned ahead, int with_pause) {
    unsigned char *slots = c->shared + 16 * LINE, *taken = c->shared;
    uint64_t begin = ticks(), last = c->base + c->n;
    if (c->me == 0) {
        uint64_t free_to = c->base + ring;
        for (uint64_t i = c->base + 1; i <= last; i++) {
            if (i > free_to)
                free_to = await_least(taken, i - ring, with_pause) + ring;
            unsigned char *slot = slots + (i % ring) * LINE;
            if (ahead)
                want_for_writing(slots + ((i + ahead) % ring) * LINE);
            for (int w = 1; w < 8; w++)
                put_word(slot + 8 * w, i);
            show(slot, i);
        }
        await(taken, last, with_pause);
        return ticks() - begin;
    }
    uint64_t sum = 0;
    for (uint64_t i = c->base + 1; i <= last; i++) {
        unsigned char *slot = slots + (i % ring) * LINE;
        await(slot, i, with_pause);
        uint64_t different = 0;
        for (int w = 1; w < 8; w++)
            different |= get_word(slot + 8 * w) ^ i;
        sum += different == 0;
        if (i % every == 0 || i == last)
            show(taken, i);
    }
    return sum == c->n ? ticks() - begin : WRONG;
}

/* Lines without a flag; the sender says how far it is every `batch` lines. */
static inline __attribute__((always_inline)) uint64_t counted(const struct call *c, unsigned ring, unsigned batch) {
    unsigned char *slots = c->shared + 16 * LINE, *taken = c->shared, *sent = c->shared + 4 * LINE;
    uint64_t begin = ticks(), last = c->base + c->n;
    if (c->me == 0) {
        uint64_t free_to = c->base + ring;
        for (uint64_t i = c->base + 1; i <= last; i++) {
            if (i > free_to)
                free_to = await_least(taken, i - ring, 0) + ring;
            unsigned char *slot = slots + (i % ring) * LINE;
            for (int w = 0; w < 8; w++)
                put_word(slot + 8 * w, i);
            if (i % batch == 0 || i == last)
                show(sent, i);
        }
        await(taken, last, 0);
        return ticks() - begin;
    }
    uint64_t sum = 0, i = c->base + 1;
    while (i <= last) {
        uint64_t to = await_least(sent, i, 0);
        for (; i <= to; i++) {
            unsigned char *slot = slots + (i % ring) * LINE;
            uint64_t different = 0;
            for (int w = 0; w < 8; w++)
                different |= get_word(slot + 8 * w) ^ i;
            sum += different == 0;
        }
        show(taken, to);
    }
    return sum == c->n ? ticks() - begin : WRONG;
}

const char *const raw_stream_names[] = {"flag in the line, 64 lines",  "flag in the line, 256 lines", "flag in the line, 1024 lines",
                                        "flag in the line, 256 lines, pause", "flag in the line, 256 lines, prefetchw",
                                        "flag in the line, 1024 lines, prefetchw",
                                        "counted each, 256 lines", "counted by 8, 256 lines", "counted by 64, 1024 lines", NULL};

uint64_t raw_stream(const struct call *c) {
    switch (c->variant) {
    case 0: return lines(c, 64, 16, 0, 0);
    case 1: return lines(c, 256, 64, 0, 0);
    case 2: return lines(c, 1024, 256, 0, 0);
    case 3: return lines(c, 256, 64, 0, 1);
    case 4: return lines(c, 256, 64, 8, 0);
    case 5: return lines(c, 1024, 256, 8, 0);
    case 6: return counted(c, 256, 1);
    case 7: return counted(c, 256, 8);
    default: return counted(c, 1024, 64);
    }
}

typedef void copy(void *, const void *, size_t);
static void copy_library(void *to, const void *from, size_t n) { memcpy(to, from, n); }

/* Blocks copied in, their flags apart; read and checked where they lie, or not read at all. */
static uint64_t blocks(const struct call *c, copy *in, unsigned ring, int reads) {
    size_t place = (c->bytes + LINE - 1) / LINE * LINE;
    unsigned char *flags = c->shared + 16 * LINE, *data = c->shared + 1024 * LINE, *taken = c->shared;
    /* The word that fills the source changes from call to call, so that a stale block is noticed. */
    uint64_t begin, last = c->base + c->n, word = c->base ^ 0x5a5a5a5a5a5a5a5aull;
    if (c->me == 0) {
        for (size_t w = 0; w < c->bytes / 8; w++)
            ((uint64_t *)c->own)[w] = word;
        begin = ticks();
        uint64_t free_to = c->base + ring;
        for (uint64_t i = c->base + 1; i <= last; i++) {
            if (i > free_to)
                free_to = await_least(taken, i - ring, 0) + ring;
            in(data + (i % ring) * place, c->own, c->bytes);
            show(flags + (i % ring) * LINE, i);
        }
        await(taken, last, 0);
        return ticks() - begin;
    }
    uint64_t sum = 0, every = ring / 4;
    for (uint64_t i = c->base + 1; i <= last; i++) {
        await(flags + (i % ring) * LINE, i, 0);
        sum += reads ? (uint64_t)raw_all_words(data + (i % ring) * place, c->bytes, word) : 1;
        if (i % every == 0 || i == last)
            show(taken, i);
    }
    return sum == c->n ? 0 : WRONG;
}

const char *const raw_block_names[] = {"memcpy, 4 blocks",  "memcpy, 12 blocks", "memcpy, 32 blocks",
                                       "rep movsb, 4 blocks", "rep movsb, 12 blocks", "past the caches, 12 blocks", NULL};

static uint64_t some_blocks(const struct call *c, int reads) {
    switch (c->variant) {
    case 0: return blocks(c, copy_library, 4, reads);
    case 1: return blocks(c, copy_library, 12, reads);
    case 2: return blocks(c, copy_library, 32, reads);
    case 3: return blocks(c, copy_string, 4, reads);
    case 4: return blocks(c, copy_string, 12, reads);
    default: return blocks(c, raw_copy_past, 12, reads);
    }
}

uint64_t raw_unread(const struct call *c) { return some_blocks(c, 0); }
uint64_t raw_checked(const struct call *c) { return some_blocks(c, 1); }
