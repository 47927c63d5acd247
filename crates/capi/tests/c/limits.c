/* Limits of the system and of the settings: what there is room for, how much of it is shown before anybody has asked for it, and a segment of it.
   limits SIZE: a segment of so many bytes, or of the most that there can be, where SIZE is "most". */
#include <gasnetex.h>

#include "check.h"

/* How many bytes of shared memory this process can write to. */
static unsigned long shown(void) {
  unsigned long first, last, sum = 0;
  char line[512], access[8];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (sscanf(line, "%lx-%lx %7s", &first, &last, access) == 3 && !strcmp(access, "rw-s")) sum += last - first;
  if (maps) fclose(maps);
  return sum;
}

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  gex_Segment_t segment = GEX_SEGMENT_INVALID;
  gex_Rank_t me, size;
  const size_t used = (size_t)64 << 20;
  unsigned long most, before;
  size_t want;
  char *own, byte = 0;
  CHECK(gex_Client_Init(&client, &ep, &tm, "limits", &argc, &argv, 0) == GASNET_OK);
  me = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm);
  most = gasnet_getMaxLocalSegmentSize();
  before = shown();
  if (me == 0) printf("limits: at most %lu, %s\n", most, before < (unsigned long)size << 28 ? "little is shown" : "much is shown");
  fflush(stdout);
  CHECK(most > 0 && most % GASNET_PAGESIZE == 0 && gasnet_getMaxGlobalSegmentSize() <= most);
  /* What a program uses for itself before takes nothing of what it was promised. */
  own = (char *)malloc(used);
  CHECK(own != NULL);
  memset(own, 1, used);
  want = strcmp(argv[argc - 1], "most") ? (size_t)strtoul(argv[argc - 1], NULL, 10) : gasnet_getMaxGlobalSegmentSize();
  CHECK(gex_Segment_Attach(&segment, tm, want) == GASNET_OK);
  /* Its last byte, from the rank before. */
  own = (char *)gex_Segment_QueryAddr(segment);
  {
    void *owner;
    uintptr_t len;
    gex_Rank_t next = (me + 1) % size;
    CHECK(gex_Segment_QueryBound(tm, next, &owner, NULL, &len) == 0 && len == want);
    byte = (char)(me + 1);
    CHECK(gex_RMA_PutBlocking(tm, next, (char *)owner + len - 1, &byte, 1, 0) == 0);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    CHECK(own[want - 1] == (char)((me + size - 1) % size + 1));
    CHECK(gex_RMA_GetBlocking(tm, &byte, next, (char *)owner + len - 1, 1, 0) == 0 && byte == (char)(me + 1));
  }
  gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
  if (me == 0) printf("limits: done\n");
  gasnet_exit(0);
  return 0;
}
