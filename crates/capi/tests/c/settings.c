/* What programs are told and made to do by variables of their environment. */
#include <gasnetex.h>
#include <gasnet_tools.h>
#include <signal.h>

#include "check.h"

/* Whether memory of just this size is mapped, as the stacks of threads are. */
static int is_mapped(unsigned long size) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  int found = 0;
  unsigned long from, to;
  CHECK(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx", &from, &to) == 2 && to - from == size) found = 1;
  }
  fclose(maps);
  return found;
}

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  const char *way = argc > 1 ? argv[1] : "";
  const char *more = argc > 2 ? argv[2] : "";
  if (strcmp(way, "own-limit") == 0) gasnet_max_segsize_str = more;
  CHECK(gex_Client_Init(&client, &ep, &tm, "settings", &argc, &argv, 0) == GASNET_OK);
  if (strcmp(way, "arguments") == 0) CHECK(argc == 3 && strcmp(argv[2], "a b") == 0);
  if (strcmp(way, "stack") == 0) CHECK(is_mapped(25UL << 20));
  if (gex_TM_QueryRank(tm) == 0) {
    printf("ranks %d, threads %llu, segment %llu\n", (int)gex_TM_QuerySize(tm),
           (unsigned long long)gex_System_QueryMaxThreads(), (unsigned long long)gasnet_getMaxGlobalSegmentSize());
    fflush(stdout);
    (void)gasnett_getenv_withdefault("GASNET_OF_THE_PROGRAM", "usual");
    if (strcmp(way, "crash") == 0) raise(SIGSEGV);
    if (strcmp(way, "fail") == 0) gasnet_barrier_wait(0, 0);
    if (strcmp(way, "told-to-end") == 0) raise(SIGTERM);
  }
  DONE("settings");
  gasnet_exit(0);
}
