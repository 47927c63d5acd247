/* The objects of a job, its segments, put and get in all forms, events, sets of them, and the barriers. */
#include <gasnetex.h>

#include "check.h"

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, size, next;
static unsigned char *own, *there, *mapped;
static int near;

#if GASNET_CONDUIT_SMP
#define NEIGHBOURS_ARE_NEAR 1
#else
#define NEIGHBOURS_ARE_NEAR 0
#endif

static void objects(void) {
  static int own_data;
  uintptr_t most = gasnet_getMaxLocalSegmentSize();
  CHECK(gex_TM_QueryRank(tm) == me && gex_TM_QuerySize(tm) == size && me < size);
  CHECK(gex_TM_QueryClient(tm) == client && gex_TM_QueryEP(tm) == ep && gex_EP_QueryClient(ep) == client);
  CHECK(gex_EP_QueryIndex(ep) == 0 && gex_EP_QuerySegment(ep) == GEX_SEGMENT_INVALID);
  CHECK(strcmp(gex_Client_QueryName(client), "memory") == 0 && gex_Client_QueryFlags(client) == 0);
  CHECK(gex_TM_QueryCData(tm) == NULL);
  gex_TM_SetCData(tm, &own_data);
  CHECK(gex_TM_QueryCData(tm) == &own_data && gex_EP_QueryCData(ep) == NULL);
  CHECK(most >= gasnet_getMaxGlobalSegmentSize() && gasnet_getMaxGlobalSegmentSize() >= GASNET_PAGESIZE);
  CHECK(gex_TM_Pair(ep, 0) == gex_TM_Pair(ep, 0) && gex_TM_Pair(ep, 0) != gex_TM_Pair(ep, 1));
  CHECK(gex_TM_TranslateRankToJobrank(tm, me) == me && gex_TM_TranslateJobrankToRank(tm, me) == me);
  CHECK(gex_TM_TranslateJobrankToRank(tm, size) == GEX_RANK_INVALID);
  CHECK(gex_TM_TranslateRankToEP(tm, me, 0).gex_rank == me);
}

static void neighbours(void) {
  gex_RankInfo_t *info;
  gex_Rank_t count, mine, position[4];
  gex_Rank_t together = 1; /* over a network the rows have each rank alone */
#if GASNET_CONDUIT_SMP
  together = size;
#endif
  gex_System_QueryNbrhdInfo(&info, &count, &mine);
  CHECK(count == together && info[mine].gex_jobrank == me);
  gex_System_QueryHostInfo(&info, &count, &mine);
  CHECK(count == size && info[size - 1].gex_jobrank == size - 1 && mine == me);
  gex_System_QueryMyPosition(&position[0], &position[1], &position[2], &position[3]);
  CHECK(position[0] == size / together && position[1] == me / together && position[2] == 1 && position[3] == 0);
}

static void segments(void) {
  void *owner, *local;
  uintptr_t len;
  size_t want = (size_t)GASNET_PAGESIZE * (17 + me);
  gex_System_SetVerboseErrors(0);
  CHECK(gex_Segment_QueryBound(tm, me, &owner, &local, &len) != 0);
  CHECK(gex_Segment_Attach(&segment, tm, 100) == GASNET_ERR_BAD_ARG);
  CHECK(gex_Segment_Attach(&segment, tm, GASNET_PAGESIZE + 1) == GASNET_ERR_BAD_ARG);
  CHECK(gex_Segment_Attach(&segment, tm, want) == GASNET_OK);
  CHECK(gex_Segment_Attach(&segment, tm, want) == GASNET_ERR_RESOURCE);
  gex_System_SetVerboseErrors(1);
  CHECK(gex_EP_QuerySegment(ep) == segment && gex_Segment_QuerySize(segment) == want);
  CHECK(gex_Segment_QueryClient(segment) == client);
  own = (unsigned char *)gex_Segment_QueryAddr(segment);
  CHECK(gex_Segment_QueryBound(tm, next, &owner, &local, &len) == 0);
  there = (unsigned char *)owner;
  mapped = (unsigned char *)local;
  near = mapped != NULL;
  CHECK(there != NULL && near == (next == me || NEIGHBOURS_ARE_NEAR) && len == (uintptr_t)GASNET_PAGESIZE * (17 + next));
  CHECK(next != me || there == own);
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, next, &owner, NULL, &len, 0));
  CHECK(owner == there);
}

static int all(const unsigned char *bytes, int value, size_t len) {
  while (len > 0 && bytes[len - 1] == value) len--;
  return len == 0;
}

/* Whether the neighbour's bytes from some on are these: as they are mapped here, or fetched. */
static int has(size_t from, int value, size_t len) {
  static unsigned char bytes[65536];
  if (near) return all(mapped + from, value, len);
  CHECK(gex_RMA_GetBlocking(tm, bytes, next, there + from, len, 0) == 0);
  return all(bytes, value, len);
}

static void transfers(gex_TM_t team) {
  static const size_t lens[] = {0, 1, 7, 8, 64, 4095, 4096, 65536};
  unsigned char *source = (unsigned char *)malloc(65536), *target = (unsigned char *)malloc(65536);
  gex_Event_t events[4], leaf;
  size_t i;
  for (i = 0; i < sizeof lens / sizeof *lens; i++) {
    size_t len = lens[i];
    int value = (int)(i + 1);
    memset(source, value, 65536);
    memset(target, 0, 65536);
    CHECK(gex_RMA_PutBlocking(team, next, there + 3, source, len, 0) == 0);
    CHECK(has(3, value, len));
    CHECK(gex_RMA_GetBlocking(team, target, next, there + 3, len, 0) == 0);
    CHECK(all(target, value, len) && all(target + len, 0, 65536 - len));
    memset(source, value + 100, 65536);
    events[0] = gex_RMA_PutNB(team, next, there, source, len, GEX_EVENT_NOW, 0);
    events[1] = gex_RMA_PutNB(team, next, there, source, len, GEX_EVENT_DEFER, 0);
    events[2] = gex_RMA_PutNB(team, next, there, source, len, &leaf, 0);
    events[3] = GEX_EVENT_INVALID;
    gex_Event_Wait(leaf);
    gex_Event_WaitAll(events, 4, 0);
    CHECK(events[0] == GEX_EVENT_INVALID && gex_Event_TestAll(events, 4, 0) == GASNET_OK);
    CHECK(gex_Event_TestSome(events, 4, 0) == GASNET_OK && has(0, value + 100, len));
    memset(target, 0, len);
    gex_Event_Wait(gex_RMA_GetNB(team, target, next, there, len, 0));
    CHECK(all(target, value + 100, len));
    memset(source, value + 50, 65536);
    CHECK(gex_RMA_PutNBI(team, next, there, source, len, GEX_EVENT_GROUP, 0) == 0);
    gex_NBI_Wait(GEX_EC_LC, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    CHECK(has(0, value + 50, len));
    CHECK(gex_RMA_GetNBI(team, target, next, there, len, 0) == 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK && all(target, value + 50, len));
  }
  gex_NBI_BeginAccessRegion(0);
  CHECK(gex_RMA_PutNBI(team, next, there, source, 100, GEX_EVENT_DEFER, 0) == 0);
  gex_Event_Wait(gex_NBI_EndAccessRegion(0));
  CHECK(gex_Event_Test(GEX_EVENT_INVALID) == GASNET_OK);
  CHECK(gex_RMA_PutBlocking(team, next, there, source, 8, GEX_FLAG_IMMEDIATE) == 0);
  free(source);
  free(target);
}

static void values(void) {
  size_t len;
  for (len = 1; len <= 8; len++) {
    gex_RMA_Value_t value = (gex_RMA_Value_t)0x8877665544332211u;
    gex_RMA_Value_t low = len == 8 ? value : value & (((gex_RMA_Value_t)1 << 8 * len) - 1);
    CHECK(gex_RMA_PutBlockingVal(tm, next, there + 1, value, len, 0) == 0);
    CHECK(gex_RMA_GetBlockingVal(tm, next, there + 1, len, 0) == low);
    gex_Event_Wait(gex_RMA_PutNBVal(tm, next, there + 16, value + 1, len, 0));
    CHECK(gex_RMA_PutNBIVal(tm, next, there + 32, value + 2, len, 0) == 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    CHECK((gex_RMA_GetBlockingVal(tm, next, there + 32, 1, 0) & 0xff) == 0x13);
  }
}

/* A named barrier, waited for or tried by turns. */
static int finish(int id, int flags, int then, int flags_then) {
  static int turn;
  int code;
  gasnet_barrier_notify(id, flags);
  if (turn++ % 2) return gasnet_barrier_wait(then, flags_then);
  while ((code = gasnet_barrier_try(then, flags_then)) == GASNET_ERR_NOT_READY) {
  }
  return code;
}

enum { NOBODYS = 12345 };
static int agreed(void) {
  int id = NOBODYS;
  return gasnet_barrier_result(&id) == 0 ? id : NOBODYS;
}

/* Who waits need not say by what name it came: it is the name of all that counts. */
static void names(void) {
  const int named = 0, any = GASNET_BARRIERFLAG_ANONYMOUS, none = GASNET_BARRIERFLAG_MISMATCH;
  const int own = me == 0 ? named : any;
  CHECK(finish(-9, own, 3, any) == GASNET_OK && agreed() == -9);
  CHECK(finish(-9, own, -9, named) == GASNET_OK && agreed() == -9);
  CHECK(finish(-9, own, me == 0 ? 9 : -9, named) == (me == 0 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
  CHECK(agreed() == -9);
  CHECK(finish(5, named, 5, me == 0 ? none : any) == (me == 0 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
  CHECK(agreed() == 5);
  CHECK(finish(5, any, (int)me, named) == GASNET_OK && agreed() == NOBODYS);
  CHECK(finish(5, me == 0 ? none : named, 5, named) == GASNET_ERR_BARRIER_MISMATCH);
  CHECK(finish(5, me == 0 ? none : any, 5, any) == GASNET_ERR_BARRIER_MISMATCH && agreed() == NOBODYS);
}

static void barriers(void) {
  gex_Event_t two[2];
  int id = 0;
  CHECK(gasnet_barrier(7, 0) == GASNET_OK && gasnet_barrier_result(&id) == 0 && id == 7);
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_UNNAMED);
  while (gasnet_barrier_try(0, GASNET_BARRIERFLAG_UNNAMED) == GASNET_ERR_NOT_READY) {
  }
  CHECK(gasnet_barrier_result(&id) != 0);
  if (size > 1) {
    CHECK(gasnet_barrier(me == 0 ? 1 : 2, 0) == GASNET_ERR_BARRIER_MISMATCH);
  }
  CHECK(gasnet_barrier(0, GASNET_BARRIERFLAG_MISMATCH) == GASNET_ERR_BARRIER_MISMATCH);
  CHECK(gasnet_barrier(5, me == 0 ? 0 : GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
  names();
  two[0] = gex_Coll_BarrierNB(tm, 0);
  two[1] = gex_Coll_BarrierNB(tm, 0);
  gex_Event_WaitAll(two, 2, 0);
  gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

/* Of two barriers that are under way the second is not over before all have come to it. */
static void barriers_in_turn(void) {
  gex_Event_t first, second;
  gex_Rank_t rank;
  int looks;
  own[0] = 0;
  gex_Coll_BarrierBlocking(tm, 0);
  first = gex_Coll_BarrierNB(tm, 0);
  if (me == 0) {
    second = gex_Coll_BarrierNB(tm, 0);
    gex_Event_Wait(first);
    for (looks = 0; looks < 100 && size > 1; looks++) {
      gasnet_AMPoll();
      CHECK(gex_Event_Test(second) == GASNET_ERR_NOT_READY);
    }
    for (rank = 1; rank < size; rank++) {
      void *owner;
      CHECK(gex_Segment_QueryBound(tm, rank, &owner, NULL, NULL) == 0);
      CHECK(gex_RMA_PutBlockingVal(tm, rank, owner, 1, 1, 0) == 0);
    }
    gex_Event_Wait(second);
  } else {
    gex_Event_Wait(first);
    GASNET_BLOCKUNTIL(*(volatile unsigned char *)own == 1);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
  }
}

int main(int argc, char **argv) {
  CHECK(gex_Client_Init(&client, &ep, &tm, "memory", &argc, &argv, 0) == GASNET_OK);
  me = gex_System_QueryJobRank();
  size = gex_System_QueryJobSize();
  next = (me + 1) % size;
  objects();
  neighbours();
  segments();
  transfers(tm);
  gex_Coll_BarrierBlocking(tm, 0);
  transfers(gex_TM_Pair(ep, 0));
  gex_Coll_BarrierBlocking(tm, 0);
  values();
  barriers();
  barriers_in_turn();
  CHECK(strcmp(gasnet_ErrorName(GASNET_ERR_BAD_ARG), "GASNET_ERR_BAD_ARG") == 0 && gasnet_ErrorDesc(3) != NULL);
  CHECK(gasnet_getenv("NOBODY_SETS_THIS") == NULL && gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK) == GASNET_OK);
  DONE("memory");
  return 0;
}
