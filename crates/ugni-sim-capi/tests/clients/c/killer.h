/* Who kills a process at any moment while this one goes on. */
#ifndef KILLER_H
#define KILLER_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"

/* Kills a child after so many microseconds. */
static inline pid_t killer_begin(pid_t child, useconds_t after)
{
    pid_t killer = fork();
    CHECK(killer >= 0);
    if (killer == 0) {
        usleep(after);
        kill(child, SIGKILL);
        _exit(0);
    }
    return killer;
}

/* It has done so. */
static inline void killer_end(pid_t killer, pid_t child)
{
    CHECK(waitpid(killer, NULL, 0) == killer && waitpid(child, NULL, 0) == child);
}

#endif
