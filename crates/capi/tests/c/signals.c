/* No thread of the library takes a signal of the program's, but for its own faults, from its first instruction on: whoever makes one
   has all others blocked. Then a program gets what it blocks itself, whenever it does so. */
#include <dlfcn.h>
#include <gasnetex.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/* The keeper, and in `par` the thread that makes progress. */
#ifdef GASNET_PAR
#define LEAST 2
#else
#define LEAST 1
#endif

static gex_EP_t ep;
static gex_TM_t tm;
static int threads, takes;

/* Of the library's threads too, wherever it lies. */
int pthread_create(pthread_t *made, const pthread_attr_t *how, void *(*body)(void *), void *with) {
  static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGKILL, SIGSTOP};
  sigset_t blocked;
  int number;
  unsigned fault;
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  for (fault = 0; fault < sizeof faults / sizeof *faults; fault++) sigaddset(&blocked, faults[fault]);
  for (number = 1; number <= 64; number++) {
    /* The system's own two, 32 and 33, can be in no mask. */
    if (number != 32 && number != 33 && !sigismember(&blocked, number)) takes++;
  }
  threads++;
  return next(made, how, body, with);
}

/* Each is waited for where nobody else may have taken it. */
static void waits(int number) {
  const struct timespec second = {10, 0};
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, number);
  CHECK(pthread_sigmask(SIG_BLOCK, &own, NULL) == 0);
  CHECK(kill(getpid(), number) == 0);
  CHECK(sigtimedwait(&own, NULL, &second) == number);
}

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_Segment_t segment;
  const int numbers[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGWINCH, SIGIO, SIGPROF, SIGXCPU};
  unsigned at;
  CHECK(gex_Client_Init(&client, &ep, &tm, "signals", &argc, &argv, 0) == GASNET_OK);
  for (at = 0; at < sizeof numbers / sizeof *numbers; at++) waits(numbers[at]);
  waits(SIGRTMIN + 3);
  CHECK(gex_Segment_Attach(&segment, tm, GASNET_PAGESIZE) == GASNET_OK);
  gex_Coll_BarrierBlocking(tm, 0);
  CHECK(threads >= LEAST);
  CHECK(takes == 0);
  gex_Coll_BarrierBlocking(tm, 0);
  if (gex_TM_QueryRank(tm) == 0) printf("signals: done\n");
  gasnet_exit(0);
}
