/* Ends a job in the way that it is called with, with data in streams that nobody has closed, and with functions for its end that were
   registered before the library came. The second word is a folder for what it writes. */
#include <gasnetex.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"
#ifdef __cplusplus
#include <fstream>
static std::ofstream object;
#endif

static const char *folder;
static char path[4096];

static const char *in(const char *name) {
  snprintf(path, sizeof path, "%s/%s-%d", folder, name, (int)gex_System_QueryJobRank());
  return path;
}

static FILE *open_in(const char *name) {
  FILE *file = fopen(in(name), "w");
  CHECK(file);
  return file;
}

static void before(void) { fprintf(open_in("before"), "data\n"); }
static void after(void) { fprintf(open_in("after"), "data\n"); }
static void slow(void) { sleep(1); }
static void one_slow(void) { sleep(gex_System_QueryJobRank() == 1); }
static void for_ever(void) { sleep(1000); }

/* A thread that waits for a line has standard input locked. */
static void *reads(void *locked) {
  flockfile(stdin);
  *(volatile int *)locked = 1;
  pause();
  return locked;
}

int main(int argc, char **argv) {
  static volatile int locked;
  const char *way = argv[1];
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  pthread_t thread;
  folder = argv[2];
  atexit(before);
  if (strcmp(way, "slow") == 0) atexit(slow);
  if (strcmp(way, "for-ever") == 0) atexit(for_ever);
  if (strcmp(way, "one-slow") == 0) atexit(one_slow);
  CHECK(gex_Client_Init(&client, &ep, &tm, "left", &argc, &argv, 0) == GASNET_OK);
  atexit(after);
  fprintf(open_in("file"), "data\n");
#ifdef __cplusplus
  object.open(in("object"));
  object << "data\n";
#endif
  printf("said by rank %d", (int)gex_System_QueryJobRank());
  gex_Coll_BarrierBlocking(tm, 0);
  if (strcmp(way, "reads") == 0) {
    CHECK(pthread_create(&thread, NULL, reads, (void *)&locked) == 0);
    while (!locked) usleep(100);
  }
  if (strcmp(way, "gasnet-exit") == 0 || strcmp(way, "reads") == 0) gasnet_exit(0);
  if (strcmp(way, "gasnet-exit-4") == 0) gasnet_exit(4);
  if (strcmp(way, "exit-5") == 0) exit(5);
  if (strcmp(way, "exit") == 0) exit(0);
  if (strcmp(way, "one-slow") == 0) return 8;
  /* Another rank's code is the job's. */
  if (strcmp(way, "another") == 0 && gex_System_QueryJobRank() != 0) exit(6);
  return 0;
}
