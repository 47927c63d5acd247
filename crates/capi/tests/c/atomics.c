/* Atomic operations: every one on every type against a plain model, known to the compiler and not, with events and implicit, by processors,
 * the NIC and messages; in the forms in which runtimes call them; counters that all ranks and threads change at once. */
#include <gasnetex.h>

#include "check.h"

/* Over a network less will do: it is the same headers. */
#ifdef GASNET_CONDUIT_SMP
enum { TURNS = 40, STEPS = 400, BURST = 40 };
#else
enum { TURNS = 8, STEPS = 48, BURST = 1 };
#endif
enum { WORDS = 64, THREADS = 4 };

static gex_TM_t tm;
static gex_Rank_t me, size;
static unsigned char **bases;
/* Words of this rank's at each rank that were used; a domain gets new ones. */
static size_t used;
/* The compiler does not know what it is. */
static volatile gex_OP_t late;

/* The word of that number that a rank has at another. */
static void *word_of(gex_Rank_t rank, gex_Rank_t owner, size_t number) {
  CHECK(number < WORDS);
  return bases[rank] + 8 * (owner * (size_t)WORDS + number);
}

static gex_OP_t plain(gex_OP_t op) {
  return op == GEX_OP_GET || op < GEX_OP_FAND ? op : GEX_OP_TO_NONFETCHING(op);
}
static int fetches(gex_OP_t op) { return op >= GEX_OP_FAND; }

#define ARITHMETIC(type, bits)                                     \
  case GEX_OP_ADD: return (type)((bits)was + (bits)first);         \
  case GEX_OP_SUB: return (type)((bits)was - (bits)first);         \
  case GEX_OP_MULT: return (type)((bits)was * (bits)first);        \
  case GEX_OP_INC: return (type)((bits)was + 1);                   \
  case GEX_OP_DEC: return (type)((bits)was - 1);                   \
  case GEX_OP_MIN: return was < first ? was : first;               \
  case GEX_OP_MAX: return was > first ? was : first;               \
  case GEX_OP_SET: return first;                                   \
  case GEX_OP_CAS: return memcmp(&was, &first, sizeof was) == 0 ? second : was;
#define BITS(type)                          \
  case GEX_OP_AND: return was & first;      \
  case GEX_OP_OR: return was | first;       \
  case GEX_OP_XOR: return was ^ first;
#define NO_BITS(type)

/* What a value becomes. */
#define MODEL(of, type, bits, bitwise)                                          \
  static type model_##of(gex_OP_t op, type was, type first, type second) {      \
    switch (plain(op)) {                                                        \
      ARITHMETIC(type, bits)                                                    \
      bitwise(type)                                                             \
      default: return was;                                                      \
    }                                                                           \
  }
MODEL(I32, int32_t, uint32_t, BITS)
MODEL(U32, uint32_t, uint32_t, BITS)
MODEL(I64, int64_t, uint64_t, BITS)
MODEL(U64, uint64_t, uint64_t, BITS)
MODEL(FLT, float, float, NO_BITS)
MODEL(DBL, double, double, NO_BITS)

#define ALL_NUMBERS(EACH, of, type)                                                                               \
  EACH(of, type, GEX_OP_ADD) EACH(of, type, GEX_OP_SUB) EACH(of, type, GEX_OP_MULT) EACH(of, type, GEX_OP_MIN)    \
  EACH(of, type, GEX_OP_MAX) EACH(of, type, GEX_OP_INC) EACH(of, type, GEX_OP_DEC) EACH(of, type, GEX_OP_SET)     \
  EACH(of, type, GEX_OP_CAS) EACH(of, type, GEX_OP_FADD) EACH(of, type, GEX_OP_FSUB) EACH(of, type, GEX_OP_FMULT) \
  EACH(of, type, GEX_OP_FMIN) EACH(of, type, GEX_OP_FMAX) EACH(of, type, GEX_OP_FINC) EACH(of, type, GEX_OP_FDEC) \
  EACH(of, type, GEX_OP_SWAP) EACH(of, type, GEX_OP_FCAS) EACH(of, type, GEX_OP_GET)
#define ALL_BITS(EACH, of, type)                                                                           \
  EACH(of, type, GEX_OP_AND) EACH(of, type, GEX_OP_OR) EACH(of, type, GEX_OP_XOR) EACH(of, type, GEX_OP_FAND) \
  EACH(of, type, GEX_OP_FOR) EACH(of, type, GEX_OP_FXOR)
#define ALL_INTEGER(EACH, of, type) ALL_NUMBERS(EACH, of, type) ALL_BITS(EACH, of, type)

/* One that the compiler knows, and one that it does not. */
#define KNOWN(of, type, op)                                                                            \
  case op:                                                                                             \
    if (implicit) CHECK(gex_AD_OpNBI_##of(ad, result, rank, word, op, first, second, flags) == 0);     \
    if (!implicit) gex_Event_Wait(gex_AD_OpNB_##of(ad, result, rank, word, op, first, second, flags)); \
    break;
#define BY_THE_COMPILER(of, type, family)                                                                    \
  static void known_##of(gex_AD_t ad, type *result, gex_Rank_t rank, void *word, gex_OP_t op, type first,    \
                         type second, gex_Flags_t flags, int implicit) {                                     \
    switch (op) { family(KNOWN, of, type) }                                                                  \
  }                                                                                                          \
  static void unknown_##of(gex_AD_t ad, type *result, gex_Rank_t rank, void *word, gex_OP_t op, type first,  \
                           type second, gex_Flags_t flags, int implicit) {                                   \
    late = op;                                                                                               \
    if (implicit) CHECK(gex_AD_OpNBI_##of(ad, result, rank, word, late, first, second, flags) == 0);         \
    if (!implicit) gex_Event_Wait(gex_AD_OpNB_##of(ad, result, rank, word, late, first, second, flags));     \
  }

/* Operations on a word of this rank's and one of the next's: as the compiler knows them and as it does not, with events and implicit, by either
   kind of rank. The result of one that fetches nothing stays as it is, or there is none. */
#define TRIES(of, type)                                                                                       \
  static void try_##of(gex_AD_t ad, gex_OP_t op, const type *values, size_t count) {                          \
    gex_EC_t counts = op == GEX_OP_SET ? GEX_EC_PUT : op == GEX_OP_GET ? GEX_EC_GET : GEX_EC_RMW;             \
    size_t at;                                                                                                \
    for (at = 0; at < 2 * TURNS; at++) {                                                                      \
      int is_known = at / 2 % 2, is_implicit = at / 4 % 2, by_job = at / 8 % 2;                               \
      gex_Rank_t rank = (me + at % 2) % size;                                                                 \
      type was = values[at / 2 % count], first = values[(at / 2 + at / 2 / count + 1) % count], second = 7;   \
      type none = 55, wanted = model_##of(op, was, first, second), result = none, now = 0;                    \
      type *place = fetches(op) || at % 3 ? &result : NULL;                                                   \
      gex_Flags_t flags = by_job ? GEX_FLAG_RANK_IS_JOBRANK : GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ;              \
      void *word = word_of(rank, me, used);                                                                   \
      if (plain(op) == GEX_OP_CAS && ((at ^ at >> 1 ^ at >> 2 ^ at >> 3) & 1)) {                              \
        first = was;                                                                                          \
        wanted = second;                                                                                      \
      }                                                                                                       \
      unknown_##of(ad, NULL, rank, word, GEX_OP_SET, was, 0, 0, 0);                                           \
      (is_known ? known_##of : unknown_##of)(ad, place, rank, word, op, first, second, flags, is_implicit);   \
      if (is_implicit) gex_NBI_Wait(counts, 0);                                                               \
      CHECK(memcmp(&result, fetches(op) ? &was : &none, sizeof was) == 0);                                    \
      unknown_##of(ad, &now, rank, word, GEX_OP_GET, 0, 0, 0, 0);                                             \
      CHECK(memcmp(&now, &wanted, sizeof now) == 0);                                                          \
    }                                                                                                         \
  }

/* All operations of a type in one domain; then a domain for each alone, which a NIC may do. */
#define EVERY(of, type, family, ...)                                                                       \
  BY_THE_COMPILER(of, type, family)                                                                        \
  TRIES(of, type)                                                                                          \
  static void every_##of(void) {                                                                           \
    const type values[] = {__VA_ARGS__};                                                                   \
    const size_t count = sizeof values / sizeof *values;                                                   \
    const gex_OP_t all = 0 family(OR, of, type);                                                           \
    const gex_Flags_t favors[] = {GEX_FLAG_AD_FAVOR_REMOTE, GEX_FLAG_AD_FAVOR_MY_RANK};                    \
    gex_OP_t op;                                                                                           \
    gex_AD_t ad;                                                                                           \
    size_t at;                                                                                             \
    for (at = 0; at < sizeof favors / sizeof *favors; at++) {                                              \
      gex_AD_Create(&ad, tm, GEX_DT_##of, all, favors[at]);                                                \
      CHECK(gex_AD_QueryTM(ad) == tm && gex_AD_QueryDT(ad) == GEX_DT_##of && gex_AD_QueryOps(ad) == all);  \
      CHECK(gex_AD_QueryFlags(ad) == favors[at] && gex_AD_QueryCData(ad) == NULL);                         \
      gex_AD_SetCData(ad, &used);                                                                          \
      CHECK(gex_AD_QueryCData(ad) == &used);                                                               \
      for (op = 1; op <= GEX_OP_GET; op <<= 1)                                                             \
        if (op & all) try_##of(ad, op, values, count);                                                     \
      used++;                                                                                              \
      gex_AD_Destroy(ad);                                                                                  \
    }                                                                                                      \
    for (op = 1; op <= GEX_OP_GET; op <<= 1) {                                                             \
      if (!(op & all)) continue;                                                                           \
      gex_AD_Create(&ad, tm, GEX_DT_##of, op | GEX_OP_SET | GEX_OP_GET, 0);                                \
      try_##of(ad, op, values, count);                                                                     \
      used++;                                                                                              \
      gex_AD_Destroy(ad);                                                                                  \
    }                                                                                                      \
    used = 0;                                                                                              \
    gex_Coll_BarrierBlocking(tm, 0);                                                                       \
  }
#define OR(of, type, op) | (op)
EVERY(I32, int32_t, ALL_INTEGER, 0, 5, -9, INT32_MAX, INT32_MIN)
EVERY(U32, uint32_t, ALL_INTEGER, 0, 5, 0xfffffff7u, UINT32_MAX)
EVERY(I64, int64_t, ALL_INTEGER, 0, 5, -9, INT64_MAX, INT64_MIN)
EVERY(U64, uint64_t, ALL_INTEGER, 0, 5, UINT64_MAX - 9, (uint64_t)1 << 63)
EVERY(FLT, float, ALL_NUMBERS, 0, 1.5f, -2.25f, 1e30f)
EVERY(DBL, double, ALL_NUMBERS, 0, 1.5, -2.25, 1e300)

/* What each thread of all ranks does to words of the first rank's. */
static gex_AD_t counting, tickets, summing, swapping, least;
static uint64_t *seen;

static void *contend(void *unused) {
  int64_t was, expected;
  double before;
  int32_t low;
  int i, times;
  (void)unused;
  for (i = 0; i < STEPS; i++) {
    CHECK(gex_AD_OpNBI_I64(counting, NULL, 0, word_of(0, 0, 0), GEX_OP_INC, 0, 0, 0) == 0);
    for (times = 0; times < BURST; times++) {
      void *word = word_of(0, 0, 1);
      gex_Event_Wait(gex_AD_OpNB_I64(tickets, &was, 0, word, GEX_OP_FADD, 3, 0, GEX_FLAG_RANK_IS_JOBRANK));
      CHECK(was >= 0 && was % 3 == 0);
      /* Each ticket once: marked here, and counted below. */
      __atomic_fetch_add(&seen[was / 3], 1, __ATOMIC_RELAXED);
    }
    gex_Event_Wait(gex_AD_OpNB_DBL(summing, &before, 0, word_of(0, 0, 2), GEX_OP_FADD, 0.5, 0, 0));
    CHECK(before >= 0);
    gex_Event_Wait(gex_AD_OpNB_I32(least, &low, 0, word_of(0, 0, 4), GEX_OP_FMIN, -(int32_t)(i * size + me), 0, 0));
    if (i % 8 == 0) {
      gex_Event_Wait(gex_AD_OpNB_I64(swapping, &expected, 0, word_of(0, 0, 3), GEX_OP_GET, 0, 0, 0));
      for (;;) {
        gex_Event_Wait(gex_AD_OpNB_I64(swapping, &was, 0, word_of(0, 0, 3), GEX_OP_FCAS, expected, expected + 2, 0));
        if (was == expected) break;
        expected = was;
      }
    }
  }
  gex_NBI_Wait(GEX_EC_RMW, 0);
  return NULL;
}

static void contended(gex_Flags_t favor) {
  const gex_OP_t get = GEX_OP_SET | GEX_OP_GET;
  uint64_t all, sum = 0, at;
  int64_t found;
  double total;
  int32_t low;
#ifdef GASNET_PAR
  pthread_t threads[THREADS];
  int i;
  all = (uint64_t)THREADS * STEPS * size;
#else
  all = (uint64_t)STEPS * size;
#endif
  seen = (uint64_t *)calloc(all * BURST, sizeof *seen);
  CHECK(seen);
  gex_AD_Create(&counting, tm, GEX_DT_I64, GEX_OP_INC | get, favor);
  gex_AD_Create(&tickets, tm, GEX_DT_I64, GEX_OP_FADD | get, favor);
  gex_AD_Create(&summing, tm, GEX_DT_DBL, GEX_OP_FADD | get, favor);
  gex_AD_Create(&swapping, tm, GEX_DT_I64, GEX_OP_FCAS | get, favor);
  gex_AD_Create(&least, tm, GEX_DT_I32, GEX_OP_FMIN | get, favor);
  if (me == 0) memset(bases[0], 0, 64);
  gex_Coll_BarrierBlocking(tm, 0);
#ifdef GASNET_PAR
  for (i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, contend, NULL) == 0);
  for (i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
#else
  contend(NULL);
#endif
  gex_Coll_BarrierBlocking(tm, 0);
  gex_Event_Wait(gex_AD_OpNB_I64(counting, &found, 0, word_of(0, 0, 0), GEX_OP_GET, 0, 0, 0));
  CHECK(found == (int64_t)all);
  gex_Event_Wait(gex_AD_OpNB_I64(tickets, &found, 0, word_of(0, 0, 1), GEX_OP_GET, 0, 0, 0));
  CHECK(found == (int64_t)(3 * all * BURST));
  gex_Event_Wait(gex_AD_OpNB_DBL(summing, &total, 0, word_of(0, 0, 2), GEX_OP_GET, 0, 0, 0));
  CHECK(total >= 0.5 * (double)all && total <= 0.5 * (double)all);
  gex_Event_Wait(gex_AD_OpNB_I64(swapping, &found, 0, word_of(0, 0, 3), GEX_OP_GET, 0, 0, 0));
  CHECK(found == (int64_t)(2 * (all / 8)));
  gex_Event_Wait(gex_AD_OpNB_I32(least, &low, 0, word_of(0, 0, 4), GEX_OP_GET, 0, 0, 0));
  CHECK(low == 1 - (int32_t)(STEPS * size));
  gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, seen, seen, GEX_DT_U64, 8, all * BURST, GEX_OP_ADD, NULL, NULL, 0));
  for (at = 0; at < all * BURST; at++) sum += seen[at] == 1;
  CHECK(sum == all * BURST);
  free(seen);
  gex_AD_Destroy(counting);
  gex_AD_Destroy(tickets);
  gex_AD_Destroy(summing);
  gex_AD_Destroy(swapping);
  gex_AD_Destroy(least);
  gex_Coll_BarrierBlocking(tm, 0);
}

/* What counts as what in a set, regions, what is refused at once, and comparisons that only fail for a reason. */
static void in_sets(void) {
  gex_Rank_t next = (me + 1) % size;
  void *word = word_of(next, me, 8);
  uint32_t value = 0;
  gex_Event_t event;
  gex_AD_t ad;
  int i;
  gex_AD_Create(&ad, tm, GEX_DT_U32, GEX_OP_SET | GEX_OP_GET | GEX_OP_INC | GEX_OP_FCAS, 0);
  for (i = 0; i < STEPS / 4; i++) {
    CHECK(gex_AD_OpNBI_U32(ad, NULL, next, word, GEX_OP_SET, 10, 0, 0) == 0);
    CHECK(gex_NBI_Test(GEX_EC_RMW, 0) == GASNET_OK && gex_NBI_Test(GEX_EC_GET, 0) == GASNET_OK);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    CHECK(gex_AD_OpNBI_U32(ad, NULL, next, word, GEX_OP_INC, 0, 0, 0) == 0);
    CHECK(gex_NBI_Test(GEX_EC_PUT, 0) == GASNET_OK && gex_NBI_Test(GEX_EC_GET, 0) == GASNET_OK);
    gex_NBI_Wait(GEX_EC_RMW, 0);
    CHECK(gex_AD_OpNBI_U32(ad, &value, next, word, GEX_OP_GET, 0, 0, 0) == 0);
    CHECK(gex_NBI_Test(GEX_EC_PUT, 0) == GASNET_OK && gex_NBI_Test(GEX_EC_RMW, 0) == GASNET_OK);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK(value == 11);
    gex_Event_Wait(gex_AD_OpNB_U32(ad, &value, next, word, GEX_OP_FCAS, 11, 12, 0));
    CHECK(value == 11);
  }
  gex_NBI_BeginAccessRegion(0);
  for (i = 0; i < 20; i++)
    while (gex_AD_OpNBI_U32(ad, NULL, next, word, GEX_OP_INC, 0, 0, GEX_FLAG_IMMEDIATE) != 0) gasnet_AMPoll();
  gex_Event_Wait(gex_NBI_EndAccessRegion(0));
  do {
    event = gex_AD_OpNB_U32(ad, &value, next, word, GEX_OP_GET, 0, 0, GEX_FLAG_IMMEDIATE);
  } while (event == GEX_EVENT_NO_OP && gasnet_AMPoll() == GASNET_OK);
  gex_Event_Wait(event);
  CHECK(value == 32);
  gex_Event_Wait(gex_AD_OpNB_U32(ad, NULL, me, word_of(me, me, 9), GEX_OP_SET, 4, 0, GEX_FLAG_AD_MY_RANK));
  gex_Event_Wait(gex_AD_OpNB_U32(ad, &value, me, word_of(me, me, 9), GEX_OP_GET, 0, 0, GEX_FLAG_AD_MY_NBRHD));
  CHECK(value == 4);
  gex_AD_Destroy(ad);
  gex_Coll_BarrierBlocking(tm, 0);
}

/* What was put before an operation with GEX_FLAG_AD_REL is there for whoever has seen that, with GEX_FLAG_AD_ACQ. */
static void passes_on(void) {
  gex_Rank_t next = (me + 1) % size;
  uint64_t *mine = (uint64_t *)word_of(me, (me + size - 1) % size, 11);
  uint64_t round, came, back;
  gex_AD_t ad;
  gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_SET | GEX_OP_GET | GEX_OP_FSUB, 0);
  for (round = 1; round <= STEPS / 4; round++) {
    gex_RMA_PutBlockingVal(tm, next, word_of(next, me, 11), round * 3, 8, 0);
    gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, next, word_of(next, me, 10), GEX_OP_SET, round, 0, GEX_FLAG_AD_REL));
    do {
      gasnet_AMPoll();
      gex_Event_Wait(gex_AD_OpNB_U64(ad, &came, me, mine - 1, GEX_OP_GET, 0, 0, GEX_FLAG_AD_ACQ));
    } while (came < round);
    CHECK(*mine >= round * 3);
    /* The writer goes on when its word is taken. */
    gex_Event_Wait(gex_AD_OpNB_U64(ad, &back, me, mine - 1, GEX_OP_FSUB, 0, 0, GEX_FLAG_AD_ACQ | GEX_FLAG_AD_REL));
    CHECK(back >= round);
    gex_Coll_BarrierBlocking(tm, 0);
  }
  gex_AD_Destroy(ad);
}

/* Every second rank, the last one first: by the team's numbers, which the library looks at first, and by the job's. */
static void on_a_team(void) {
  const gex_Flags_t by_job = GEX_FLAG_RANK_IS_JOBRANK;
  gex_Rank_t member, members, own;
  uint64_t was = 77, last = 0;
  gex_TM_t half;
  gex_AD_t ad;
  int i;
  gex_TM_Split(&half, tm, (int)(me % 2), (int)(size - me), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  own = gex_TM_QueryRank(half);
  members = gex_TM_QuerySize(half);
  gex_AD_Create(&ad, half, GEX_DT_U64, GEX_OP_SET | GEX_OP_FADD | GEX_OP_INC | GEX_OP_GET, 0);
  CHECK(gex_AD_QueryTM(ad) == half);
  gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, own, word_of(me, 0, 12), GEX_OP_SET, 0, 0, 0));
  gex_Coll_BarrierBlocking(half, 0);
  for (member = 0; member < members; member++) {
    gex_Rank_t rank = gex_TM_TranslateRankToJobrank(half, member);
    void *word = word_of(rank, 0, 12);
    CHECK(rank % 2 == me % 2);
    late = GEX_OP_FADD;
    for (i = 0; i < STEPS; i++) {
      gex_Event_Wait(gex_AD_OpNB_U64(ad, &was, member, word, GEX_OP_FADD, 1, 0, 0));
      CHECK(i == 0 || was > last);
      gex_Event_Wait(gex_AD_OpNB_U64(ad, &last, rank, word, late, 1, 0, by_job));
      CHECK(last > was);
      CHECK(gex_AD_OpNBI_U64(ad, NULL, member, word, GEX_OP_INC, 0, 0, 0) == 0);
      CHECK(gex_AD_OpNBI_U64(ad, NULL, rank, word, GEX_OP_INC, 0, 0, by_job) == 0);
      gex_NBI_Wait(GEX_EC_RMW, 0);
    }
  }
  gex_Coll_BarrierBlocking(half, 0);
  gex_Event_Wait(gex_AD_OpNB_U64(ad, &was, own, word_of(me, 0, 12), GEX_OP_GET, 0, 0, 0));
  CHECK(was == (uint64_t)members * STEPS * 4);
  gex_AD_Destroy(ad);
  CHECK(gex_TM_Destroy(half, NULL, 0) == 0);
  gex_Coll_BarrierBlocking(tm, 0);
}

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_Segment_t segment;
  gex_Rank_t rank;
  void *base;
  CHECK(gex_Client_Init(&client, &ep, &tm, "atomics", &argc, &argv, 0) == GASNET_OK);
  me = gex_TM_QueryRank(tm);
  size = gex_TM_QuerySize(tm);
  CHECK(gex_Segment_Attach(&segment, tm, 16 * (size_t)GASNET_PAGESIZE) == GASNET_OK);
  CHECK((size_t)size * WORDS * 8 <= gex_Segment_QuerySize(segment));
  bases = (unsigned char **)calloc(size, sizeof *bases);
  CHECK(bases);
  for (rank = 0; rank < size; rank++) {
    CHECK(gex_Segment_QueryBound(tm, rank, &base, NULL, NULL) == 0);
    bases[rank] = (unsigned char *)base;
  }
  gex_Coll_BarrierBlocking(tm, 0);
  every_I32();
  every_U32();
  every_I64();
  every_U64();
  every_FLT();
  every_DBL();
  contended(0);
  contended(GEX_FLAG_AD_FAVOR_MY_NBRHD);
  in_sets();
  passes_on();
  on_a_team();
  free(bases);
  DONE("atomics");
  gasnet_exit(0);
  return 0;
}
