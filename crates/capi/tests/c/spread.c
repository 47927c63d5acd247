/* Collectives from each its own, by our names and by GASNet-1's: gather, scatter, all-gather, all to all, scans, with as many bytes and with others for
 * each, short and long, on all ranks and on a part of them, several under way; barriers with names on teams. */
#include <gasnet.h>

#include "check.h"

enum { MOST = 20000, RANKS = 16 };

static gex_TM_t tm;
static gex_Rank_t me, size;
static unsigned char from[RANKS * MOST], to[3][RANKS * MOST];

/* What member `member` has at a place for member `other`. */
static unsigned char value(gex_Rank_t member, gex_Rank_t other, size_t at) {
  return (unsigned char)(member * 31 + other * 7 + at * 3);
}
static void fill(size_t len) {
  gex_Rank_t other;
  size_t at;
  for (other = 0; other < size; other++)
    for (at = 0; at < len; at++) from[other * len + at] = value(me, other, at);
  memset(to, 99, sizeof(to));
}

static void equal(size_t len) {
  gex_Event_t events[3];
  gex_Rank_t root, other;
  size_t at;
  for (root = 0; root < size; root++) {
    fill(len);
    events[0] = gasworks_coll_gather_nb(tm, root, to[0], from, len, 0);
    events[1] = gasworks_coll_scatter_nb(tm, root, to[1], me == root ? from : NULL, len, 0);
    events[2] = gex_Coll_BarrierNB(tm, 0);
    gex_Event_WaitAll(events, 3, 0);
    for (other = 0; other < size; other++)
      for (at = 0; at < len; at++)
        CHECK(to[0][other * len + at] == (me == root ? value(other, 0, at) : 99));
    for (at = 0; at < len; at++) CHECK(to[1][at] == value(root, me, at));
    CHECK(to[1][len] == 99);
  }
  fill(len);
  events[0] = gasworks_coll_all_gather_nb(tm, to[0], from, len, 0);
  events[1] = gasworks_coll_all_to_all_nb(tm, to[1], from, len, 0);
  events[2] = gex_Coll_BarrierNB(tm, 0);
  gex_Event_WaitAll(events, 3, 0);
  for (other = 0; other < size; other++)
    for (at = 0; at < len; at++)
      CHECK(to[0][other * len + at] == value(other, 0, at) && to[1][other * len + at] == value(other, me, at));
}

/* Each has its own where it belongs. */
static void in_place(size_t len) {
  gex_Rank_t other;
  size_t at;
  fill(len);
  memcpy(to[0] + me * len, from, len);
  gex_Event_Wait(gasworks_coll_all_gather_nb(tm, to[0], to[0] + me * len, len, 0));
  memset(to[1], 99, sizeof(to[1]));
  memcpy(to[1] + me * len, from, len);
  gex_Event_Wait(gasworks_coll_gather_nb(tm, size - 1, to[1], to[1] + me * len, len, 0));
  for (other = 0; other < size; other++)
    for (at = 0; at < len; at++) {
      CHECK(to[0][other * len + at] == value(other, 0, at));
      CHECK(to[1][other * len + at] == (me == size - 1 || other == me ? value(other, 0, at) : 99));
    }
}

/* Member m has m * 5 bytes for each, and one gets as many more as it is. */
static void each(void) {
  size_t lens[RANKS], coming[RANKS], going[RANKS], at, all = 0, sent = 0;
  gex_Rank_t root, other;
  for (other = 0; other < size; other++) {
    lens[other] = (size_t)other * 5;
    going[other] = (size_t)me * 100 + other;
    coming[other] = (size_t)other * 100 + me;
    all += lens[other];
  }
  for (root = 0; root < size; root++) {
    fill(100);
    for (at = 0; at < all; at++) from[at] = (unsigned char)(at + root);
    gex_Event_Wait(gasworks_coll_scatter_each_nb(tm, root, to[0], lens[me], from, me == root ? lens : NULL, 0));
    for (at = 0; at < lens[me]; at++) CHECK(to[0][at] == (unsigned char)(5u * me * (me - 1) / 2 + at + root));
    gex_Event_Wait(gasworks_coll_gather_each_nb(tm, root, to[1], me == root ? lens : NULL, to[0], lens[me], 0));
    for (at = 0; at < all; at++) CHECK(to[1][at] == (me == root ? (unsigned char)(at + root) : 99));
  }
  memset(to, 99, sizeof(to));
  for (other = 0; other < size; other++)
    for (at = 0; at < going[other]; at++) from[sent++] = value(me, other, at);
  gex_Event_Wait(gasworks_coll_all_to_all_each_nb(tm, to[2], coming, from, going, 0));
  sent = 0;
  for (other = 0; other < size; other++)
    for (at = 0; at < coming[other]; at++) CHECK(to[2][sent++] == value(other, me, at));
  CHECK(to[2][sent] == 99);
}

static void scans(void) {
  int64_t own[3], up_to[3], before[3];
  int i;
  for (i = 0; i < 3; i++) own[i] = (int64_t)(me + 1) * (i + 1);
  gex_Event_Wait(gasworks_coll_scan_nb(tm, up_to, own, GEX_DT_I64, 8, 3, GEX_OP_ADD, NULL, NULL, 0));
  gex_Event_Wait(gasworks_coll_scan_before_nb(tm, before, own, GEX_DT_I64, 8, 3, GEX_OP_ADD, NULL, NULL, 0));
  for (i = 0; i < 3; i++) {
    int64_t sum = (int64_t)(me + 1) * (me + 2) / 2 * (i + 1);
    CHECK(up_to[i] == sum && before[i] == (me == 0 ? own[i] : sum - own[i]));
  }
}

/* An address of this rank's in a list of all images' or of its own. The other images' are of no use to it. */
static void *const *list_of(void *list[], int flag, void *own) {
  gex_Rank_t other;
  for (other = 0; other < size; other++) list[other] = NULL;
  list[flag == GASNET_COLL_LOCAL ? 0 : me] = own;
  return list;
}

/* GASNet-1's with lists of addresses. */
static void lists(int flag) {
  const int flags = flag | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC;
  const size_t lengths[] = {8, 3000};
  void *dst[RANKS], *dst_too[RANKS], *src[RANKS];
  gasnet_coll_handle_t handles[2];
  gex_Rank_t root = size / 2, other;
  size_t l, at;
  for (l = 0; l < 2; l++) {
    const size_t len = lengths[l];
    fill(len);
    gasnet_coll_broadcastM(tm, list_of(dst, flag, to[0]), root, from, len, flags);
    for (at = 0; at < len; at++) CHECK(to[0][at] == value(root, 0, at));
    gasnet_coll_scatterM(tm, list_of(dst, flag, to[0]), root, from, len, flags);
    for (at = 0; at < len; at++) CHECK(to[0][at] == value(root, me, at));
    gasnet_coll_gatherM(tm, root, to[1], list_of(src, flag, from), len, flags);
    for (at = 0; at < size * len; at++) CHECK(to[1][at] == (me == root ? value((gex_Rank_t)(at / len), 0, at % len) : 99));
    gasnet_coll_gather_allM(tm, list_of(dst, flag, to[1]), list_of(src, flag, from), len, flags);
    gasnet_coll_exchangeM(tm, list_of(dst, flag, to[2]), list_of(src, flag, from), len, flags);
    for (other = 0; other < size; other++)
      for (at = 0; at < len; at++)
        CHECK(to[1][other * len + at] == value(other, 0, at) && to[2][other * len + at] == value(other, me, at));
    fill(len);
    handles[0] = gasnet_coll_gather_allM_nb(tm, list_of(dst, flag, to[1]), list_of(src, flag, from), len, flags);
    handles[1] = gasnet_coll_exchangeM_nb(tm, list_of(dst_too, flag, to[2]), list_of(src, flag, from), len, flags);
    gasnet_coll_wait_sync_all(handles, 2);
    CHECK(to[1][size * len - 1] == value(size - 1, 0, len - 1) && to[2][0] == value(0, me, 0));
    handles[0] = gasnet_coll_broadcastM_nb(tm, list_of(dst, flag, to[0]), root, from, len, flags);
    gasnet_coll_wait_sync(handles[0]);
    CHECK(to[0][len - 1] == value(root, 0, len - 1));
    handles[0] = gasnet_coll_scatterM_nb(tm, list_of(dst, flag, to[0]), root, from, len, flags);
    handles[1] = gasnet_coll_gatherM_nb(tm, root, to[1], list_of(src, flag, from), len, flags);
    gasnet_coll_wait_sync_all(handles, 2);
    CHECK(to[0][0] == value(root, me, 0) && to[1][0] == value(0, 0, 0));
  }
}

/* What is combined: x -> a * x + b, one behind the other, which depends on their order, and plain sums. */
typedef struct {
  int32_t a, b;
} affine_t;
static affine_t affine(gex_Rank_t member, int i) {
  affine_t made;
  made.a = (int32_t)(member % 3 + 1);
  made.b = (int32_t)member + i;
  return made;
}
static affine_t behind(affine_t left, affine_t right) {
  affine_t made;
  made.a = right.a * left.a % 10007;
  made.b = (right.a * left.b + right.b) % 10007;
  return made;
}
static void combine(void *results, size_t result_count, const void *left, size_t left_count, const void *right,
                    size_t elem_size, int flags, int arg) {
  affine_t first, second;
  size_t i;
  CHECK(elem_size == sizeof(affine_t) && flags == GASNET_COLL_NONCOMM && arg == 77 && left_count == result_count);
  for (i = 0; i < result_count; i++) {
    memcpy(&first, (const affine_t *)left + i, sizeof(first));
    memcpy(&second, (const affine_t *)right + i, sizeof(second));
    first = behind(first, second);
    memcpy((affine_t *)results + i, &first, sizeof(first));
  }
}
static void add(void *results, size_t result_count, const void *left, size_t left_count, const void *right, size_t elem_size,
                int flags, int arg) {
  size_t i;
  CHECK(elem_size == sizeof(int64_t) && flags == 0 && arg == 5 && left_count > 0);
  for (i = 0; i < result_count; i++)
    ((int64_t *)results)[i] = ((const int64_t *)left)[i] + ((const int64_t *)right)[i];
}

/* GASNet-1's reductions and scans, by functions of the program's. */
static void registered(int flag) {
  enum { COUNT = 700 };
  static affine_t own[COUNT], got[COUNT], scanned[COUNT], before[COUNT];
  static int64_t numbers[3], sums[3];
  const int flags = flag | GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC;
  const int up_to = flags | GASNET_COLL_INCLUSIVE_SCAN, up_to_before = flags | GASNET_COLL_EXCLUSIVE_SCAN;
  const size_t one = sizeof(affine_t);
  const size_t counts[] = {1, COUNT};
  void *dst[RANKS], *src[RANKS];
  gasnet_coll_handle_t handles[2];
  gex_Rank_t root = size - 1, other;
  size_t c, i;
  for (c = 0; c < 2; c++) {
    const size_t count = counts[c];
    for (i = 0; i < COUNT; i++) {
      own[i] = affine(me, (int)i);
      got[i].b = scanned[i].b = before[i].b = -1;
    }
    gasnet_coll_reduce(tm, root, got, own, 0, 0, one, count, 1, 77, flags);
    gasnet_coll_scan(tm, scanned, 0, 0, own, 0, 0, one, count, 1, 77, up_to);
    gasnet_coll_scanM(tm, list_of(dst, flag, before), 0, 0, list_of(src, flag, own), 0, 0, one, count, 1, 77, up_to_before);
    for (i = 0; i < count; i++) {
      affine_t all = affine(0, (int)i);
      if (me == 0) CHECK(scanned[i].a == all.a && scanned[i].b == all.b && before[i].b == -1);
      for (other = 1; other < size; other++) {
        if (other == me) CHECK(before[i].a == all.a && before[i].b == all.b);
        all = behind(all, affine(other, (int)i));
        if (other == me) CHECK(scanned[i].a == all.a && scanned[i].b == all.b);
      }
      if (me == root) CHECK(got[i].a == all.a && got[i].b == all.b);
      else CHECK(got[i].b == -1);
    }
    gasnet_coll_reduceM(tm, root, scanned, list_of(src, flag, own), 0, 0, one, count, 1, 77, flags);
    handles[0] = gasnet_coll_reduce_nb(tm, root, before, own, 0, 0, one, count, 1, 77, flags);
    handles[1] = gasnet_coll_reduceM_nb(tm, root, got, list_of(src, flag, own), 0, 0, one, count, 1, 77, flags);
    gasnet_coll_wait_sync_all(handles, 2);
    if (me == root) CHECK(memcmp(scanned, before, count * one) == 0 && memcmp(got, before, count * one) == 0);
  }
  for (i = 0; i < 3; i++) numbers[i] = (int64_t)me + (int64_t)i;
  gasnet_coll_reduce(tm, 0, sums, numbers, 0, 0, sizeof(int64_t), 3, 0, 5, flags);
  for (i = 0; i < 3 && me == 0; i++) CHECK(sums[i] == (int64_t)size * (size - 1) / 2 + (int64_t)(i * size));
  handles[0] = gasnet_coll_scan_nb(tm, sums, 0, 0, numbers, 0, 0, sizeof(int64_t), 3, 0, 5, up_to);
  gasnet_coll_wait_sync(handles[0]);
  CHECK(sums[2] == (int64_t)(me + 1) * me / 2 + 2 * (int64_t)(me + 1));
  handles[0] = gasnet_coll_scanM_nb(tm, list_of(dst, flag, sums), 0, 0, list_of(src, flag, numbers), 0, 0, sizeof(int64_t), 3, 0,
                                    5, up_to);
  gasnet_coll_wait_sync(handles[0]);
  CHECK(sums[0] == (int64_t)(me + 1) * me / 2);
}

/* Members that meet before a scan read when all have come: the first, who is late, writes what the others give. */
static void late(void) {
  const int flags = GASNET_COLL_LOCAL | GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC | GASNET_COLL_INCLUSIVE_SCAN;
  int64_t *own, sum = -1, wanted = 1, given;
  void *there;
  gex_Rank_t other;
  CHECK(gex_Segment_QueryBound(tm, me, &there, NULL, NULL) == GASNET_OK);
  own = (int64_t *)there;
  *own = 1;
  gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
  if (me == 0) {
    usleep(20000);
    for (other = 1; other < size; other++) {
      given = 10 + (int64_t)other;
      CHECK(gex_Segment_QueryBound(tm, other, &there, NULL, NULL) == GASNET_OK);
      gex_RMA_PutBlocking(tm, other, there, &given, sizeof(given), 0);
    }
  }
  gasnet_coll_scan(tm, &sum, 0, 0, own, 0, 0, sizeof(sum), 1, 0, 5, flags);
  for (other = 1; other <= me; other++) wanted += 10 + (int64_t)other;
  CHECK(sum == wanted);
}

/* GASNet-1's, with members that meet before, behind or not. */
static void older(void) {
  const int flags[] = {GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC, GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC,
                       GASNET_COLL_IN_NOSYNC | GASNET_COLL_OUT_ALLSYNC, GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_NOSYNC};
  const size_t lengths[] = {8, 3000};
  gasnet_coll_handle_t handles[3];
  gex_Rank_t root = size - 1, other;
  size_t i, l, at;
  for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
    for (l = 0; l < 2; l++) {
      size_t len = lengths[l];
      int local = flags[i] | GASNET_COLL_LOCAL;
      fill(len);
      gasnet_coll_broadcast(tm, to[0], root, from, len, local);
      for (at = 0; at < len; at++) CHECK(to[0][at] == value(root, 0, at));
      gasnet_coll_scatter(tm, to[0], root, from, len, local);
      for (at = 0; at < len; at++) CHECK(to[0][at] == value(root, me, at));
      gasnet_coll_gather(tm, root, to[1], from, len, local);
      for (at = 0; at < size * len; at++) CHECK(to[1][at] == (me == root ? value((gex_Rank_t)(at / len), 0, at % len) : 99));
      gasnet_coll_gather_all(tm, to[1], from, len, local);
      gasnet_coll_exchange(tm, to[2], from, len, local);
      for (other = 0; other < size; other++)
        for (at = 0; at < len; at++)
          CHECK(to[1][other * len + at] == value(other, 0, at) && to[2][other * len + at] == value(other, me, at));
      memset(to, 99, sizeof(to));
      handles[0] = gasnet_coll_broadcast_nb(tm, to[0], root, from, len, local);
      handles[1] = gasnet_coll_gather_all_nb(tm, to[1], from, len, local);
      handles[2] = gasnet_coll_exchange_nb(tm, to[2], from, len, local);
      while (gasnet_coll_try_sync_some(handles, 3) != GASNET_OK) {
      }
      gasnet_coll_wait_sync_all(handles, 3);
      CHECK(handles[0] == GASNET_COLL_INVALID_HANDLE && gasnet_coll_try_sync_all(handles, 3) == GASNET_OK);
      CHECK(to[0][len - 1] == value(root, 0, len - 1) && to[1][size * len - 1] == value(size - 1, 0, len - 1));
      CHECK(to[2][0] == value(0, me, 0));
      handles[0] = gasnet_coll_scatter_nb(tm, to[0], 0, from, len, local);
      gasnet_coll_wait_sync(handles[0]);
      handles[0] = gasnet_coll_gather_nb(tm, 0, to[1], from, len, local);
      while (gasnet_coll_try_sync(handles[0]) != GASNET_OK) {
      }
    }
  lists(GASNET_COLL_SINGLE);
  lists(GASNET_COLL_LOCAL);
  registered(GASNET_COLL_SINGLE);
  registered(GASNET_COLL_LOCAL);
  late();
  CHECK(gasnet_coll_team_size(tm) == size && gasnet_coll_team_rank2node(tm, (int)me) == gasnet_mynode());
  CHECK(gasnet_coll_team_node2rank(tm, gasnet_mynode()) == me);
  CHECK(gasnet_coll_get_num_tree_classes(tm, GASNET_COLL_BROADCAST_OP) == 1);
  gasnet_coll_set_tree_kind(tm, 0, 2, GASNET_COLL_BROADCAST_OP);
  gasnet_coll_set_dissem_limit(tm, 100, GASNET_COLL_EXCHANGE_OP);
}

static void with_names(void) {
  int id = 0;
  CHECK(gasnet_coll_barrier(tm, 5, 0) == GASNET_OK && gasnet_coll_barrier_result(tm, &id) == 0 && id == 5);
  gasnet_coll_barrier_notify(tm, (int)me, 0);
  CHECK(gasnet_coll_barrier_wait(tm, (int)me, 0) == (size == 1 ? GASNET_OK : GASNET_ERR_BARRIER_MISMATCH));
  gasnet_coll_barrier_notify(tm, 0, GASNET_BARRIERFLAG_ANONYMOUS);
  while ((id = gasnet_coll_barrier_try(tm, 0, GASNET_BARRIERFLAG_ANONYMOUS)) == GASNET_ERR_NOT_READY) {
  }
  CHECK(id == GASNET_OK);
}

static void all(gex_TM_t team) {
  const size_t lengths[] = {1, 8, 300, 4000, MOST};
  size_t i;
  tm = team;
  me = gex_TM_QueryRank(tm);
  size = gex_TM_QuerySize(tm);
  CHECK(size <= RANKS);
  for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) equal(lengths[i] * size <= sizeof(from) - 1 ? lengths[i] : 1000);
  in_place(8);
  in_place(3000);
  each();
  scans();
  older();
  with_names();
}

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t everyone, half;
  gasnet_coll_fn_entry_t functions[2];
  gex_Segment_t segment;
  CHECK(gex_Client_Init(&client, &ep, &everyone, "spread", &argc, &argv, GEX_FLAG_USES_GASNET1) == GASNET_OK);
  functions[0].fnptr = add;
  functions[0].flags = 0;
  functions[1].fnptr = combine;
  functions[1].flags = GASNET_COLL_NONCOMM;
  gasnet_coll_init(NULL, 0, functions, 2, 0);
  CHECK(gex_Segment_Attach(&segment, everyone, 4096) == GASNET_OK);
  all(everyone);
  gex_TM_Split(&half, everyone, (int)(me % 2), -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  all(half);
  gex_TM_Destroy(half, NULL, 0);
  DONE("spread");
  gasnet_exit(0);
  return 0;
}
