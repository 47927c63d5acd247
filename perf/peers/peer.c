#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static int other_end = -1;
static pid_t other_process;

double peer_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void peer_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    /* It may spin for what now never comes, and join_other would wait for it. */
    if (other_process > 0)
        kill(other_process, SIGKILL);
    exit(3);
}

void peer_pin(int rank)
{
    cpu_set_t may, one;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        peer_die("reading which cores may be used", strerror(errno));
    int wanted = rank % CPU_COUNT(&may);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &may) || wanted-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0)
            peer_die("pinning to a core", strerror(errno));
        return;
    }
}

static unsigned char pattern(size_t at, unsigned seed)
{
    return (unsigned char)((at * 131 + seed * 29 + (at >> 8)) ^ 0x5a);
}

void peer_fill(unsigned char *bytes, size_t length, unsigned seed)
{
    for (size_t at = 0; at < length; at++)
        bytes[at] = pattern(at, seed);
}

void peer_check(const unsigned char *bytes, size_t length, unsigned seed, const char *where)
{
    for (size_t at = 0; at < length; at++)
        if (bytes[at] != pattern(at, seed))
            peer_die(where, "a byte is not the one that was sent");
}

void peer_stamp(unsigned char *bytes, size_t length, uint64_t stamp)
{
    memcpy(bytes, &stamp, length < sizeof stamp ? length : sizeof stamp);
}

void peer_check_stamp(const unsigned char *bytes, size_t length, uint64_t stamp, const char *where)
{
    if (memcmp(bytes, &stamp, length < sizeof stamp ? length : sizeof stamp) != 0)
        peer_die(where, "the message is not the one that was due");
}

static void whole_write(int fd, const void *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t now = write(fd, (const char *)bytes + done, length - done);
        if (now < 0 && errno != EINTR)
            peer_die("writing to the other process", strerror(errno));
        done += now > 0 ? (size_t)now : 0;
    }
}

static void whole_read(int fd, void *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t now = read(fd, (char *)bytes + done, length - done);
        if (now == 0)
            peer_die("reading from the other process", "it has gone");
        if (now < 0 && errno != EINTR)
            peer_die("reading from the other process", strerror(errno));
        done += now > 0 ? (size_t)now : 0;
    }
}

/* Nobody answers this process any more, and it would wait for ever. */
static void on_end_of_other(int signal)
{
    int status = 0;
    (void)signal;
    if (waitpid(other_process, &status, WNOHANG) == other_process && status != 0)
        _exit(4);
}

static void join_other(void)
{
    int status = 0;
    if (waitpid(other_process, &status, 0) == other_process && status != 0)
        _exit(4);
}

int peer_fork(void)
{
    int ends[2];
    pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        peer_die("making a socket", strerror(errno));
    signal(SIGCHLD, on_end_of_other);
    other_process = fork();
    if (other_process < 0)
        peer_die("making a process", strerror(errno));
    int rank = other_process == 0;
    if (rank == 1) {
        signal(SIGCHLD, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(4);
    } else {
        atexit(join_other);
    }
    other_end = ends[rank];
    close(ends[1 - rank]);
    return rank;
}

void peer_swap(const void *mine, void *theirs, size_t length)
{
    whole_write(other_end, mine, length);
    whole_read(other_end, theirs, length);
}

static FILE *named_pipe(const char *name, const char *mode)
{
    const char *dir = getenv("PEER_DIR");
    char path[4096];
    if (dir == NULL)
        peer_die("PEER_DIR is not set", "it names the folder with the pipes `ask.RANK` and `answer`");
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, mode);
    if (file == NULL)
        peer_die(path, strerror(errno));
    return file;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const struct bench *named(const struct peer *peer, const char *name)
{
    for (const struct bench *bench = peer->benches; bench->name != NULL; bench++)
        if (strcmp(bench->name, name) == 0)
            return bench;
    return NULL;
}

static double part(const double *sorted, unsigned count, double share)
{
    unsigned at = (unsigned)(share * count);
    return sorted[at < count ? at : count - 1];
}

static void answer_one(const struct peer *peer, const char *line, FILE *answer)
{
    static double samples[MOST_SAMPLES];
    char name[32];
    size_t bytes;
    unsigned iterations, count;
    if (sscanf(line, "%31s %zu %u %u", name, &bytes, &iterations, &count) != 4 || count == 0 || count > MOST_SAMPLES ||
        iterations == 0)
        peer_die("not a question", line);
    const struct bench *bench = named(peer, name);
    if (bench == NULL || bytes > bench->most_bytes) {
        if (answer != NULL)
            fprintf(answer, "{\"none\":\"%s of %zu bytes is not measured over %s\"}\n", name, bytes, peer->name);
        return;
    }
    for (unsigned sample = 0; sample < count; sample++) {
        peer->meet();
        samples[sample] = bench->run(bytes, iterations) / iterations;
    }
    if (answer == NULL)
        return;
    qsort(samples, count, sizeof *samples, ascending);
    fprintf(answer,
            "{\"bench\":\"%s\",\"transport\":\"%s\",\"mode\":\"seq\",\"ranks\":%d,\"bytes\":%zu,\"unit\":\"ns\","
            "\"min\":%.3f,\"p50\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"samples\":%u}\n",
            name, peer->name, peer->ranks, bytes, samples[0], part(samples, count, 0.5), part(samples, count, 0.99),
            part(samples, count, 0.999), count);
}

void peer_serve(const struct peer *peer)
{
    char name[32], line[256];
    snprintf(name, sizeof name, "ask.%d", peer->rank);
    FILE *ask = named_pipe(name, "r"), *answer = peer->rank == 0 ? named_pipe("answer", "w") : NULL;
    if (answer != NULL) {
        fprintf(answer, "{\"ready\":\"%s\"}\n", peer->version);
        fflush(answer);
    }
    while (fgets(line, sizeof line, ask) != NULL) {
        answer_one(peer, line, answer);
        if (answer != NULL)
            fflush(answer);
    }
}
