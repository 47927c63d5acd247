/* What GASNet lets programs do though it is no use, and some do: no segment, waiting for nothing, and in optimised builds what only debug builds look at. */
#include <gasnet.h>

#include "check.h"

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, size, next;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static char bytes[64];
static int asked, answers, landed;

enum { ASKS = 200, ANSWER, LANDS, FEWER, MORE, BYTES };

/* Nothing is under way, which needs no communication to find out, wherever a thread is. */
static void wait_for_nothing(void) {
  gex_Event_t none[3] = {GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID};
  size_t count;
  gex_Event_Wait(GEX_EVENT_INVALID);
  CHECK(gex_Event_Test(GEX_EVENT_INVALID) == GASNET_OK);
  gasnet_wait_syncnb(GASNET_INVALID_HANDLE);
  CHECK(gasnet_try_syncnb_nopoll(GASNET_INVALID_HANDLE) == GASNET_OK);
  for (count = 0; count <= 3; count += 3) {
    gex_Event_WaitSome(none, count, 0);
    gex_Event_WaitAll(none, count, 0);
    CHECK(gex_Event_TestSome(none, count, 0) == GASNET_OK && gex_Event_TestAll(none, count, 0) == GASNET_OK);
    gasnet_wait_syncnb_some(none, count);
    gasnet_wait_syncnb_all(none, count);
    CHECK(gasnet_try_syncnb_some_nopoll(none, count) == GASNET_OK);
    CHECK(gasnet_try_syncnb_all_nopoll(none, count) == GASNET_OK);
  }
}

static void asks(gex_Token_t token) {
  wait_for_nothing();
  asked++;
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static void answer(gex_Token_t token) {
  (void)token;
  wait_for_nothing();
  answers++;
}
static void lands(gex_Token_t token, void *place, size_t len) {
  void *own = gex_Segment_QueryAddr(segment);
  (void)token;
  CHECK(place == own && len == 0);
  landed++;
}
static void fewer(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b, gex_AM_Arg_t c) {
  CHECK(a == 1 && b == -2 && c == 3);
  gex_AM_ReplyShort1(token, MORE, 0, 4);
}
static void more(gex_Token_t token, gex_AM_Arg_t a) {
  (void)token;
  CHECK(a == 4);
  answers++;
}
static void counted_bytes(gex_Token_t token, void *buffer, size_t len, gex_AM_Arg_t a) {
  CHECK(len == 8 && memcmp(buffer, "prepared", 8) == 0 && a == 5);
  gex_AM_ReplyShort0(token, ANSWER, 0);
}
static gex_AM_Entry_t table[] = {
    {ASKS, (gex_AM_Fn_t)asks, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "asks"},
    {ANSWER, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"},
    {LANDS, (gex_AM_Fn_t)lands, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, "lands"},
    {FEWER, (gex_AM_Fn_t)fewer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "fewer"},
    {MORE, (gex_AM_Fn_t)more, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 16, NULL, "more"},
    {BYTES, (gex_AM_Fn_t)counted_bytes, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP, 0, NULL, "counted_bytes"},
};

/* Every second rank, from the first on, has no segment. */
static size_t length_of(gex_Rank_t rank) { return rank % 2 ? 2 * (size_t)GASNET_PAGESIZE : 0; }

static void segments(void) {
  gasnet_seginfo_t *infos = (gasnet_seginfo_t *)calloc(size, sizeof *infos);
  gex_Rank_t rank;
  CHECK(gasnet_getSegmentInfo(infos, (int)size) == GASNET_OK);
  CHECK(gex_EP_QuerySegment(ep) == segment && gex_Segment_QuerySize(segment) == length_of(me));
  for (rank = 0; rank < size; rank++) {
    void *there;
    uintptr_t len = 1;
    CHECK(gex_Segment_QueryBound(tm, rank, &there, NULL, &len) == 0);
    CHECK(len == length_of(rank) && infos[rank].size == len && infos[rank].addr == there);
    CHECK(gex_RMA_PutBlocking(tm, rank, there, bytes, 0, 0) == 0);
    CHECK(gex_RMA_GetBlocking(tm, bytes, rank, there, 0, 0) == 0);
    CHECK(gex_AM_RequestLong0(tm, rank, LANDS, bytes, 0, there, GEX_EVENT_NOW, 0) == 0);
    if (len != 0) CHECK(gex_RMA_PutBlockingVal(tm, rank, (char *)there + len - 1 - me, me + 1, 1, 0) == 0);
  }
  GASNET_BLOCKUNTIL(landed == (int)size);
  gex_Coll_BarrierBlocking(tm, 0);
  for (rank = 0; rank < size && length_of(me) != 0; rank++)
    CHECK(((char *)infos[me].addr)[length_of(me) - 1 - rank] == (char)(rank + 1));
  free(infos);
}

static void nothing(void) {
  gex_AM_SrcDesc_t source;
  wait_for_nothing();
  gex_HSL_Lock(&lock);
  wait_for_nothing();
  gex_HSL_Unlock(&lock);
  source = gex_AM_PrepareRequestMedium(tm, next, NULL, 4, 4, NULL, 0, 0);
  wait_for_nothing();
  CHECK(gex_AM_CancelRequestMedium(source, 0) == 0);
  CHECK(gex_AM_RequestShort0(tm, next, ASKS, 0) == 0);
  GASNET_BLOCKUNTIL(asked == 1 && answers == 1);
}

#ifndef GASNET_DEBUG
static void prepared(gex_Event_t *local) {
  gex_AM_SrcDesc_t source = gex_AM_PrepareRequestMedium(tm, next, NULL, 8, 8, local, 0, 1);
  memcpy(gex_AM_SrcDescAddr(source), "prepared", 8);
  gex_AM_CommitRequestMedium1(source, BYTES, 8, 5);
}

static void not_looked_at(void) {
  gex_Event_t freed = GEX_EVENT_INVALID;
  answers = 0;
  /* Handlers that are entered for other numbers of arguments. */
  CHECK(gex_AM_RequestShort3(tm, next, FEWER, 0, 1, -2, 3) == 0);
  CHECK(gex_AM_RequestMedium1(tm, next, BYTES, "prepared", 8, GEX_EVENT_NOW, 0, 5) == 0);
  prepared(NULL);
  prepared(GEX_EVENT_NOW);
  prepared(&freed);
  GASNET_BLOCKUNTIL(answers == 5);
  /* A lock is as free after one unlock too many as before, and this thread communicates. */
  gex_HSL_Unlock(&lock);
  gex_HSL_Lock(&lock);
  gex_HSL_Unlock(&lock);
  gex_HSL_Unlock(&lock);
  CHECK(gex_HSL_Trylock(&lock) == GASNET_OK);
#ifndef GASNET_SEQ
  CHECK(gex_HSL_Trylock(&lock) == GASNET_ERR_NOT_READY);
#endif
  gex_HSL_Unlock(&lock);
  gex_HSL_Destroy(&lock);
  gasnet_AMPoll();
}
#endif

int main(int argc, char **argv) {
  CHECK(gex_Client_Init(&client, &ep, &tm, "allowed", &argc, &argv, 0) == GASNET_OK);
  me = gex_System_QueryJobRank();
  size = gex_System_QueryJobSize();
  next = (me + 1) % size;
  CHECK(gex_EP_RegisterHandlers(ep, table, sizeof table / sizeof *table) == GASNET_OK);
  CHECK(gex_Segment_Attach(&segment, tm, length_of(me)) == GASNET_OK);
  segments();
  nothing();
#ifndef GASNET_DEBUG
  gex_Coll_BarrierBlocking(tm, 0);
  not_looked_at();
#endif
  DONE("allowed");
  return 0;
}
