/* Ranks of one job, which a launcher has started. */
#ifndef JOB_H
#define JOB_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <time.h>

#include <gni_pub.h>
#include <pmi.h>
#include <pmi_cray_ext.h>

/* Seconds since some time. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

enum { MOST_RANKS = 8, NOTE = 512 };

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

/* The same of a call that breaks a rule: where the NIC is strict it is left out, for it would end the process. */
#define REFUSES(code, call)                                                                                  \
    do {                                                                                                     \
        if (getenv("GASWORKS_UGNI_STRICT") == NULL)                                                          \
            GIVES(code, call);                                                                               \
    } while (0)

static struct {
    int rank, size;
} job;

/* Waits until all ranks are here. */
static inline void job_barrier(void)
{
    CHECK(PMI_Barrier() == PMI_SUCCESS);
}

/* Everybody's notes, in the order of the ranks; they come in another. */
static inline void job_gather(const void *mine, void *all, size_t length)
{
    struct note {
        int rank;
        char text[NOTE];
    } own = {.rank = job.rank}, notes[MOST_RANKS];
    CHECK(length <= NOTE);
    memcpy(own.text, mine, length);
    CHECK(PMI_Allgather(&own, notes, sizeof own) == PMI_SUCCESS);
    for (int i = 0; i < job.size; i++)
        memcpy((char *)all + (size_t)notes[i].rank * length, notes[i].text, length);
}

static inline void job_begin(void)
{
    int spawned = 0;
    CHECK(PMI_Init(&spawned) == PMI_SUCCESS);
    CHECK(PMI_Get_rank(&job.rank) == PMI_SUCCESS && PMI_Get_size(&job.size) == PMI_SUCCESS);
    CHECK(job.size <= MOST_RANKS);
}

/* One of the ranks says that all of them have come here. */
static inline void job_end(void)
{
    job_barrier();
    if (job.rank == 0)
        puts("all is well");
    CHECK(PMI_Finalize() == PMI_SUCCESS);
}

#endif
