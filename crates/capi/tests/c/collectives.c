/* Collectives in the forms in which runtimes call them: broadcast, reduction to one and to all, of every type, in place and not, several under
 * way, beside barriers; user operations with client data; a publication of the first endpoint. */
#include <gasnetex.h>
#include <string.h>

#include "check.h"

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, size;

enum { MANY = 40000 };

#define REDUCE_ALL(type, bits, op, value, wanted)                                            \
  do {                                                                                       \
    type own = (type)(value), result = 0;                                                    \
    gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, &result, &own, bits, sizeof(type), 1, op, 0, 0, 0)); \
    CHECK(result == (type)(wanted) && own == (type)(value));                                 \
    gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, &own, &own, bits, sizeof(type), 1, op, 0, 0, 0)); \
    CHECK(own == (type)(wanted));                                                            \
  } while (0)

#define INTEGERS(type, bits)                                          \
  do {                                                                \
    REDUCE_ALL(type, bits, GEX_OP_ADD, me + 1, sum);                  \
    REDUCE_ALL(type, bits, GEX_OP_MULT, 2, (uint64_t)1 << size);      \
    REDUCE_ALL(type, bits, GEX_OP_MIN, me + 3, 3);                    \
    REDUCE_ALL(type, bits, GEX_OP_MAX, me + 3, size + 2);             \
    REDUCE_ALL(type, bits, GEX_OP_AND, ~(1 << me), ~((1 << size) - 1)); \
    REDUCE_ALL(type, bits, GEX_OP_OR, 1 << me, (1 << size) - 1);      \
    REDUCE_ALL(type, bits, GEX_OP_XOR, 1 << me, (1 << size) - 1);     \
  } while (0)

#define FLOATING(type, bits)                                     \
  do {                                                           \
    REDUCE_ALL(type, bits, GEX_OP_ADD, (me + 1) * 0.5, sum * 0.5); \
    REDUCE_ALL(type, bits, GEX_OP_MULT, 2, (uint64_t)1 << size); \
    REDUCE_ALL(type, bits, GEX_OP_MIN, -1.0 * me, 1.0 - size);   \
    REDUCE_ALL(type, bits, GEX_OP_MAX, -1.0 * me, 0);            \
  } while (0)

/* Maps x -> a x + b modulo 2^32: what does not commute. */
struct map {
  uint32_t a, b;
  unsigned char rest[5];
};

static int key;

static void compose(const void *first, void *second, size_t count, const void *data) {
  const struct map *before = (const struct map *)first;
  struct map *after = (struct map *)second;
  size_t i;
  CHECK(data == &key && count > 0);
  for (i = 0; i < count; i++) {
    uint32_t a = before[i].a * after[i].a;
    after[i].b = before[i].b * after[i].a + after[i].b;
    after[i].a = a;
  }
}

static void shorts(const void *operand, void *in_out, size_t count, const void *data) {
  const int16_t *from = (const int16_t *)operand;
  int16_t *to = (int16_t *)in_out;
  size_t i;
  CHECK(data == NULL);
  for (i = 0; i < count; i++) to[i] = (int16_t)(to[i] + from[i]);
}

static void with_functions(void) {
  static struct map maps[3000], made[3000];
  int16_t *values = (int16_t *)malloc(MANY * sizeof(int16_t));
  gex_Rank_t root, i;
  size_t at;
  CHECK(values);
  for (root = 0; root < size; root++) {
    /* In the order of the ranks, whoever gets it. */
    struct map wanted = {1, 0, {0}};
    for (i = 0; i < size; i++) {
      gex_Rank_t member = i;
      wanted.b = wanted.b * (member + 2) + member + 1;
      wanted.a *= member + 2;
    }
    for (at = 0; at < 3000; at++) {
      maps[at].a = me + 2;
      maps[at].b = me + 1;
      made[at].a = 9;
    }
    gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, root, made, maps, GEX_DT_USER, sizeof(struct map), 3000,
                                          GEX_OP_USER_NC, compose, &key, 0));
    for (at = 0; at < 3000; at++) {
      CHECK(maps[at].a == me + 2 && maps[at].b == me + 1);
      CHECK(me == root ? made[at].a == wanted.a && made[at].b == wanted.b : made[at].a == 9);
    }
  }
  for (at = 0; at < MANY; at++) values[at] = (int16_t)(at % 100 + me);
  gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, values, values, GEX_DT_USER, 2, MANY, GEX_OP_USER, shorts, NULL, 0));
  for (at = 0; at < MANY; at++) CHECK(values[at] == (int16_t)(at % 100 * size + size * (size - 1) / 2));
  free(values);
}

static void broadcasts(void) {
  static unsigned char from[200001], to[3][200001];
  const size_t lengths[] = {0, 1, 8, 4096, 4097, 65536, 200001};
  gex_Event_t events[4];
  gex_Rank_t root;
  size_t i, at;
  for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
    for (root = 0; root < size; root++) {
      size_t len = lengths[i];
      for (at = 0; at < len; at++) from[at] = (unsigned char)(at * 7 + me + i);
      memset(to, 77, sizeof(to));
      if (me == root) memcpy(to[1], from, len);
      /* Several under way, with a barrier among them; in place, and with a source that only the root needs. */
      events[0] = gex_Coll_BroadcastNB(tm, root, to[0], from, len, 0);
      events[1] = gex_Coll_BroadcastNB(tm, root, to[1], to[1], len, 0);
      events[2] = gex_Coll_BarrierNB(tm, 0);
      events[3] = gex_Coll_BroadcastNB(tm, root, to[2], me == root ? from : NULL, len, 0);
      gex_Event_WaitAll(events, 4, 0);
      for (at = 0; at < len; at++)
        CHECK(to[0][at] == (unsigned char)(at * 7 + root + i) && to[1][at] == to[0][at] && to[2][at] == to[0][at]);
      CHECK(to[0][200000] == 77 || len == 200001);
    }
}

int main(int argc, char **argv) {
  uint64_t sum;
  int64_t three[3], results[3];
  int32_t one, at_root;
  gex_Rank_t root;
  CHECK(gex_Client_Init(&client, &ep, &tm, "collectives", &argc, &argv, 0) == GASNET_OK);
  me = gex_TM_QueryRank(tm);
  size = gex_TM_QuerySize(tm);
  sum = (uint64_t)size * (size + 1) / 2;
  /* As UPC++ does, before there is a segment. */
  REDUCE_ALL(int64_t, GEX_DT_I64, GEX_OP_MAX, me, size - 1);
  CHECK(gex_Segment_Attach(&segment, tm, 65536) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(tm, &ep, 1, 0) == GASNET_OK);
  CHECK(gex_EP_PublishBoundSegment(tm, NULL, 0, 0) == GASNET_OK);
  INTEGERS(int32_t, GEX_DT_I32);
  INTEGERS(uint32_t, GEX_DT_U32);
  INTEGERS(int64_t, GEX_DT_I64);
  INTEGERS(uint64_t, GEX_DT_U64);
  FLOATING(float, GEX_DT_FLT);
  FLOATING(double, GEX_DT_DBL);
  for (root = 0; root < size; root++) {
    one = (int32_t)me + 1;
    at_root = -1;
    gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, root, &at_root, &one, GEX_DT_I32, 4, 1, GEX_OP_ADD, NULL, NULL, 0));
    CHECK(one == (int32_t)me + 1 && at_root == (me == root ? (int32_t)sum : -1));
    gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, root, &one, &one, GEX_DT_I32, 4, 1, GEX_OP_ADD, NULL, NULL, 0));
    CHECK(one == (me == root ? (int32_t)sum : (int32_t)me + 1));
  }
  three[0] = me;
  three[1] = 1;
  three[2] = -(int64_t)me;
  /* In the segment, and nothing at all. */
  memcpy(gex_Segment_QueryAddr(segment), three, sizeof(three));
  gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, results, gex_Segment_QueryAddr(segment), GEX_DT_I64, 8, 3, GEX_OP_ADD, NULL,
                                        NULL, 0));
  CHECK(results[0] == (int64_t)sum - size && results[1] == (int64_t)size && results[2] == -results[0]);
  gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, NULL, NULL, GEX_DT_I64, 8, 0, GEX_OP_ADD, NULL, NULL, 0));
  broadcasts();
  with_functions();
  DONE("collectives");
  gasnet_exit(0);
  return 0;
}
