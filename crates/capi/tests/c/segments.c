/* Segments and endpoints beyond the first: memory of the program's and of the library's, made known, reached by pairs in all forms of put and
 * get, by some ranks or all, one after the other; what is refused. */
#include <gasnetex.h>

#include "check.h"

enum { LEN = 1 << 20, SHARED = 24576 };

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, size;
static unsigned char given[LEN];

/* What every rank tells every other of where its segment begins. */
struct place {
  void *at;
  uintptr_t len;
};
static struct place places[64];

static void tell(void *at, uintptr_t len) {
  gex_Rank_t root;
  for (root = 0; root < size; root++) {
    if (root == me) {
      places[me].at = at;
      places[me].len = len;
    }
    gex_Event_Wait(gex_Coll_BroadcastNB(tm, root, &places[root], &places[root], sizeof(struct place), 0));
  }
}

/* Puts and gets to all of a pair's ranks, of lengths that go by copies, by systems and by pieces. */
static void moves(gex_EP_t from, gex_EP_Index_t index, unsigned char *mine) {
  const size_t lengths[] = {1, 8, 4093, SHARED};
  static unsigned char out[SHARED], in[SHARED];
  gex_TM_t pair = gex_TM_Pair(from, index);
  gex_Rank_t rank;
  size_t i, at;
  for (rank = 0; rank < size; rank++) {
    void *owner = NULL, *local = NULL;
    uintptr_t len = 0;
    unsigned char *there = (unsigned char *)places[rank].at;
    CHECK(gex_Segment_QueryBound(pair, rank, &owner, &local, &len) == 0);
    CHECK(owner == there && len == places[rank].len && (rank != me || local == owner));
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, rank, &owner, &local, &len, 0));
    CHECK(owner == there && len == places[rank].len);
    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
      unsigned char *to = there + (size_t)me * SHARED;
      gex_Event_t event;
      len = lengths[i];
      for (at = 0; at < len; at++) out[at] = (unsigned char)(at + i + me * 3 + rank);
      memset(in, 0, len);
      CHECK(gex_RMA_PutBlocking(pair, rank, to, out, len, 0) == 0);
      CHECK(gex_RMA_GetBlocking(pair, in, rank, to, len, 0) == 0 && memcmp(in, out, len) == 0);
      memset(out, 9, len);
      event = gex_RMA_PutNB(pair, rank, to, out, len, GEX_EVENT_DEFER, 0);
      gex_Event_Wait(event);
      gex_Event_Wait(gex_RMA_GetNB(pair, in, rank, to, len, 0));
      CHECK(memcmp(in, out, len) == 0);
      memset(out, 10, len);
      CHECK(gex_RMA_PutNBI(pair, rank, to, out, len, GEX_EVENT_DEFER, 0) == 0);
      gex_NBI_Wait(GEX_EC_PUT, 0);
      CHECK(gex_RMA_GetNBI(pair, in, rank, to, len, 0) == 0);
      gex_NBI_Wait(GEX_EC_GET, 0);
      CHECK(memcmp(in, out, len) == 0);
    }
    CHECK(gex_RMA_PutBlockingVal(pair, rank, there + (size_t)me * SHARED, 0x1234567890u + me, 8, 0) == 0);
    CHECK(gex_RMA_GetBlockingVal(pair, rank, there + (size_t)me * SHARED, 8, 0) == 0x1234567890u + me);
  }
  gex_Coll_BarrierBlocking(tm, 0);
  for (rank = 0; rank < size; rank++) CHECK(mine[(size_t)rank * SHARED + 8] == 10 || SHARED == 8);
  gex_Coll_BarrierBlocking(tm, 0);
}

/* Scattered transfers by a pair: every second word of a square, there and back, with events and without. */
static void scatters(gex_EP_t from, gex_EP_Index_t index) {
  static uint64_t out[32], in[32];
  const ptrdiff_t here = 8, there = 16;
  const size_t count = 32;
  gex_TM_t pair = gex_TM_Pair(from, index);
  gex_Rank_t rank;
  size_t at;
  for (rank = 0; rank < size; rank++) {
    char *to = (char *)places[rank].at + (size_t)me * SHARED;
    gex_Memvec_t pieces[2], whole;
    for (at = 0; at < 32; at++) out[at] = at * 7 + me + rank;
    memset(in, 0, sizeof(in));
    CHECK(gex_VIS_StridedPutBlocking(pair, rank, to, &there, out, &here, 8, &count, 1, 0) == 0);
    gex_Event_Wait(gex_VIS_StridedGetNB(pair, in, &here, rank, to, &there, 8, &count, 1, 0));
    CHECK(memcmp(in, out, sizeof(in)) == 0);
    pieces[0].gex_addr = to;
    pieces[0].gex_len = 8;
    pieces[1].gex_addr = to + 16;
    pieces[1].gex_len = 8;
    whole.gex_addr = in;
    whole.gex_len = 16;
    CHECK(gex_VIS_VectorGetBlocking(pair, 1, &whole, rank, 2, pieces, 0) == 0 && in[0] == out[0] && in[1] == out[1]);
  }
  gex_Coll_BarrierBlocking(tm, 0);
}

static void refusals(gex_EP_t second, gex_Segment_t bound) {
  gex_Segment_t other = GEX_SEGMENT_INVALID, none = GEX_SEGMENT_INVALID;
  gex_EP_t third = GEX_EP_INVALID;
  gex_MK_t device;
  gex_MK_Create_args_t args;
  gex_System_SetVerboseErrors(0);
  CHECK(gex_Segment_Create(&none, client, NULL, 0, GEX_MK_HOST, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gex_Segment_Create(&none, client, given, LEN, GEX_MK_INVALID, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gex_Segment_Create(&none, client, (void *)(uintptr_t)-4096, 8192, GEX_MK_HOST, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gex_EP_Create(&third, client, GEX_EP_CAPABILITY_AM, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gex_EP_Create(&third, client, GEX_EP_CAPABILITY_ALL, 0) == GASNET_ERR_BAD_ARG);
  CHECK(none == GEX_SEGMENT_INVALID && third == GEX_EP_INVALID);
  CHECK(gex_Segment_Create(&other, client, NULL, 4096, GEX_MK_HOST, 0) == GASNET_OK);
  /* Both have what they have. */
  CHECK(gex_EP_BindSegment(second, other, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gex_EP_BindSegment(ep, other, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gex_EP_Create(&third, client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
  CHECK(gex_EP_BindSegment(third, bound, 0) == GASNET_ERR_BAD_ARG);
  /* Of all, and of one: then the others are told, too. */
  CHECK(gex_EP_PublishBoundSegment(tm, &third, 1, 0) == GASNET_ERR_BAD_ARG);
  CHECK(gex_EP_PublishBoundSegment(tm, &third, me == 0 ? 1 : 0, 0) == GASNET_ERR_BAD_ARG);
  gex_Segment_Destroy(other, 0);
  memset(&args, 0, sizeof(args));
  args.gex_class = GEX_MK_CLASS_CUDA_UVA;
  CHECK(gex_MK_Create(&device, client, &args, 0) == GASNET_ERR_RESOURCE);
  args.gex_class = GEX_MK_CLASS_HOST;
  CHECK(gex_MK_Create(&device, client, &args, 0) == GASNET_ERR_BAD_ARG);
  gex_System_SetVerboseErrors(1);
}

/* An endpoint that members of a team know first, and the others later. */
static void of_half(gex_TM_t half) {
  gex_EP_t fourth;
  gex_Segment_t last;
  gex_Rank_t rank;
  void *at;
  CHECK(gex_EP_Create(&fourth, client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
  CHECK(gex_Segment_Create(&last, client, NULL, LEN, GEX_MK_HOST, 0) == GASNET_OK);
  CHECK(gex_EP_BindSegment(fourth, last, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(half, &fourth, 1, 0) == GASNET_OK);
  tell(gex_Segment_QueryAddr(last), LEN);
  for (rank = 0; rank < size; rank++) {
    int knows = rank % 2 == me % 2;
    CHECK(gex_Segment_QueryBound(gex_TM_Pair(ep, 4), rank, &at, NULL, NULL) == (knows ? 0 : 1));
    if (knows) {
      uint64_t word = 0, sum = 100 * me + rank;
      CHECK(at == places[rank].at);
      CHECK(gex_RMA_PutBlockingVal(gex_TM_Pair(ep, 4), rank, (char *)at + 8 * me, sum, 8, 0) == 0);
      CHECK(gex_RMA_GetBlocking(gex_TM_Pair(fourth, 4), &word, rank, (char *)at + 8 * me, 8, 0) == 0 && word == sum);
    }
  }
  /* Nothing new; then all know it. */
  CHECK(gex_EP_PublishBoundSegment(half, &fourth, 1, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(tm, &fourth, 1, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(half, &fourth, 1, 0) == GASNET_OK);
  moves(fourth, 4, (unsigned char *)gex_Segment_QueryAddr(last));
}

static void kinds(void) {
  static int own_data;
  CHECK(gex_MK_QueryClass(GEX_MK_HOST) == GEX_MK_CLASS_HOST && gex_MK_QueryFlags(GEX_MK_HOST) == 0);
  CHECK(gex_MK_QueryClient(GEX_MK_HOST) == client && gex_MK_QueryCData(GEX_MK_HOST) == NULL);
  gex_MK_SetCData(GEX_MK_HOST, &own_data);
  CHECK(gex_MK_QueryCData(GEX_MK_HOST) == &own_data);
}

int main(int argc, char **argv) {
  gex_EP_t second, third, both[2];
  gex_Segment_t of_mine, of_library;
  gex_Event_t pending[2];
  static int own_data;
  gex_TM_t half;
  void *at;
  CHECK(gex_Client_Init(&client, &ep, &tm, "segments", &argc, &argv, 0) == GASNET_OK);
  me = gex_TM_QueryRank(tm);
  size = gex_TM_QuerySize(tm);
  CHECK(size <= LEN / SHARED && GASNET_MAXEPS >= 4);
  /* As Realm does: its own memory, bound and published, the first endpoint with it. */
  CHECK(gex_Segment_Attach(&segment, tm, 65536) == GASNET_OK);
  CHECK(gex_Segment_Create(&of_mine, client, given, LEN, GEX_MK_HOST, 0) == GASNET_OK);
  CHECK(gex_Segment_QueryAddr(of_mine) == given && gex_Segment_QuerySize(of_mine) == LEN);
  CHECK(gex_Segment_QueryClient(of_mine) == client && gex_Segment_QueryFlags(of_mine) == 0);
  gex_Segment_SetCData(of_mine, &own_data);
  CHECK(gex_Segment_QueryCData(of_mine) == &own_data);
  CHECK(gex_EP_Create(&second, client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
  CHECK(gex_EP_QueryIndex(second) == 1 && gex_EP_QuerySegment(second) == GEX_SEGMENT_INVALID);
  CHECK(gex_EP_BindSegment(second, of_mine, 0) == GASNET_OK && gex_EP_QuerySegment(second) == of_mine);
  CHECK(gex_TM_Pair(second, 1) == gex_TM_Pair(second, 1) && gex_TM_Pair(second, 1) != gex_TM_Pair(ep, 1));
  CHECK(gex_Segment_QueryBound(gex_TM_Pair(ep, 1), me, &at, NULL, NULL) != 0);
  both[0] = ep;
  both[1] = second;
  /* With barriers under way. */
  pending[0] = gex_Coll_BarrierNB(tm, 0);
  pending[1] = gex_Coll_BarrierNB(tm, 0);
  CHECK(gex_EP_PublishBoundSegment(tm, both, 2, 0) == GASNET_OK);
  gex_Event_WaitAll(pending, 2, 0);
  CHECK(gex_TM_TranslateRankToEP(gex_TM_Pair(ep, 1), 0, 0).gex_ep_index == 1);
  tell(given, LEN);
  moves(ep, 1, given);
  moves(second, 1, given);
  scatters(second, 1);
  /* The first endpoint's segment, by pairs of the second. */
  tell(gex_Segment_QueryAddr(segment), 65536);
  CHECK(gex_RMA_PutBlockingVal(gex_TM_Pair(second, 0), (me + 1) % size, (char *)places[(me + 1) % size].at + 8 * me, me + 5, 8, 0) == 0);
  gex_Coll_BarrierBlocking(tm, 0);
  CHECK(((uint64_t *)places[me].at)[(me + size - 1) % size] == (me + size - 1) % size + 5);
  /* Memory of the library's; and of some ranks first, then the others. */
  CHECK(gex_Segment_Create(&of_library, client, NULL, LEN, GEX_MK_HOST, 0) == GASNET_OK);
  at = gex_Segment_QueryAddr(of_library);
  CHECK(at != NULL && ((unsigned char *)at)[LEN - 1] == 0);
  CHECK(gex_EP_Create(&third, client, GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_VIS | GEX_EP_CAPABILITY_AD, 0) == GASNET_OK);
  CHECK(gex_EP_BindSegment(third, of_library, 0) == GASNET_OK && gex_EP_QueryIndex(third) == 2);
  CHECK(gex_EP_PublishBoundSegment(tm, &third, me == 0 ? 1 : 0, 0) == GASNET_OK);
  CHECK(gex_Segment_QueryBound(gex_TM_Pair(ep, 2), size - 1, &at, NULL, NULL) == (size == 1 ? 0 : 1));
  CHECK(gex_EP_PublishBoundSegment(tm, &third, 1, 0) == GASNET_OK);
  at = gex_Segment_QueryAddr(of_library);
  tell(at, LEN);
  moves(third, 2, (unsigned char *)at);
  /* Nothing new, on a part of the job as well. */
  gex_TM_Split(&half, tm, (int)(me % 2), 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK(gex_EP_PublishBoundSegment(half, both, 2, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(half, NULL, 0, 0) == GASNET_OK);
  kinds();
  refusals(second, of_mine);
  of_half(half);
  gex_Coll_BarrierBlocking(half, 0);
  gex_TM_Destroy(half, NULL, 0);
  DONE("segments");
  gasnet_exit(0);
  return 0;
}
