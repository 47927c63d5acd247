/* Ranks of one job: processes that one has made, with a board that all see. */
#ifndef JOB_H
#define JOB_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gni_pub.h>

enum { MOST_RANKS = 8, NOTE = 256 };

/* Ends the process unless it is true; the seed and the mood are in the environment. */
#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "rank %d: %s:%d: %s\n", job.rank, __FILE__, __LINE__, #condition);               \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

/* The same of a call of the library, with the code that it gives. */
#define GIVES(code, call)                                                                                    \
    do {                                                                                                     \
        gni_return_t given = (call);                                                                         \
        if (given != (code)) {                                                                               \
            fprintf(stderr, "rank %d: %s:%d: %s gives %s\n", job.rank, __FILE__, __LINE__, #call,            \
                    gni_err_str[given]);                                                                     \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define WORKS(call) GIVES(GNI_RC_SUCCESS, call)

struct board {
    atomic_int arrived;
    atomic_int failed;
    char notes[MOST_RANKS][NOTE];
};

static struct {
    int rank, size, rounds;
    struct board *board;
} job;

/* Waits until all ranks are here; a rank that failed keeps nobody. */
static inline void job_barrier(void)
{
    int all = ++job.rounds * job.size;
    atomic_fetch_add(&job.board->arrived, 1);
    while (atomic_load(&job.board->arrived) < all) {
        if (atomic_load(&job.board->failed))
            exit(1);
        sched_yield();
    }
}

/* Everybody's notes, in the order of the ranks. */
static inline void job_gather(const void *mine, void *all, size_t length)
{
    CHECK(length <= NOTE);
    memcpy(job.board->notes[job.rank], mine, length);
    job_barrier();
    for (int rank = 0; rank < job.size; rank++)
        memcpy((char *)all + (size_t)rank * length, job.board->notes[rank], length);
    job_barrier();
}

/* Makes the ranks; each goes on from here, and the first process says in the end whether all went well. */
static inline void job_begin(int size)
{
    CHECK(size >= 1 && size <= MOST_RANKS);
    job.size = size;
    job.board = mmap(NULL, sizeof *job.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(job.board != MAP_FAILED);
    fflush(stdout);
    for (int rank = 0; rank < size; rank++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            job.rank = rank;
            return;
        }
    }
    int failed = 0;
    for (int left = size; left > 0; left--) {
        int status = 0;
        CHECK(wait(&status) > 0);
        if (status != 0) {
            failed = 1;
            atomic_store(&job.board->failed, 1);
        }
    }
    if (!failed)
        puts("all is well");
    exit(failed);
}

#endif
