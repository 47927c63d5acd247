/* What the programs that measure other libraries share: they stay up and answer questions, so that `cargo xtask bench`
 * can take turns between them and ours block by block.
 *
 * In the folder PEER_DIR there is a named pipe `ask.RANK` for each rank and one, `answer`, for rank 0. A question is a
 * line `BENCH BYTES ITERATIONS SAMPLES`; every rank gets it, and between questions every rank sleeps in read(2), so
 * that a program whose turn it is not costs nothing. The answer is a line of JSON in the shape of gasperf's rows. The
 * end of the questions is the end of the program. */
#ifndef GASWORKS_PEER_H
#define GASWORKS_PEER_H

#include <stddef.h>
#include <stdint.h>

enum { LARGEST = 4 << 20, MOST_SAMPLES = 1024 };

/* One measurement: every rank calls it; it returns on rank 0 how many nanoseconds `iterations` operations took, after
 * checking the bytes that were moved. */
struct bench {
    const char *name;
    size_t most_bytes;
    double (*run)(size_t bytes, unsigned iterations);
};

struct peer {
    const char *name, *version;
    int rank, ranks;
    void (*meet)(void); /* all ranks have come here */
    const struct bench *benches; /* the last has no name */
};

/* Answers questions until there are no more. */
void peer_serve(const struct peer *peer);

/* Pins this process to one of the cores it may use: the rank-th, or that modulo their number. */
void peer_pin(int rank);

/* Nanoseconds of a clock that only goes forward. */
double peer_now(void);

/* Ends the program with a reason. */
_Noreturn void peer_die(const char *what, const char *why);

/* Bytes that differ from one message to the next: the first eight (or fewer) are `stamp`, the rest follow from `seed`. */
void peer_fill(unsigned char *bytes, size_t length, unsigned seed);
void peer_check(const unsigned char *bytes, size_t length, unsigned seed, const char *where);
void peer_stamp(unsigned char *bytes, size_t length, uint64_t stamp);
void peer_check_stamp(const unsigned char *bytes, size_t length, uint64_t stamp, const char *where);

/* Makes two processes of this one, with a socket between them, and returns the rank; rank 0 waits for rank 1 at exit. */
int peer_fork(void);
/* Sends `mine` to the other of two processes made by peer_fork and receives its block of as many bytes. */
void peer_swap(const void *mine, void *theirs, size_t length);

#endif
