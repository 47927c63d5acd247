/* gasperf-c: what put, get and active messages cost a program in C, beside what `gasperf` finds for one in Rust.

   The loops are those of gasperf's rma.rs and am.rs, with the inline functions of our headers in them. Bytes that arrive are
   looked at, and a bench fails when one is wrong. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>

struct options options = {NULL, "", 0, 25, 0};

static const char HELP[] =
    "Usage: gasrun -n 2 gasperf-c [OPTIONS] BENCH\n"
    "\n"
    "  put-latency    8 bytes to places that are known at run time only: by value, by address, with an event that is\n"
    "                 waited for, implicit with a wait for every 256; bare: what any look-up takes, without the library\n"
    "  get-latency    the same for gets\n"
    "  atomic         fetch-and-add of 8 bytes at such places, with an event that is waited for, and where the operation is\n"
    "                 known at run time only; sums, implicit with a wait for every 256; bare: as above;\n"
    "                 instruction: the processor's own\n"
    "  am-latency     round trip of a Short and its reply\n"
    "  am-rate        one-way flood of Shorts, and of Shorts that are replied to, the last acknowledgement included\n"
    "\n"
    "  --iters N      operations in a block [default: as many as take 2 ms]\n"
    "  --blocks N     blocks of each measurement [default: 25]\n"
    "  --variant TEXT only variants whose name contains this\n"
    "  --json         rows as JSON, one to a line\n";

/* Begins a new round of values, so that a stale one is noticed. */
static uint64_t new_round(void) {
  static uint64_t number;
  return number += (uint64_t)1 << 32;
}

/* So many operations over the places in turn, and something after each turn. `rank` and `address` are the place's. */
#define WALK(n, operation, after)                                                        \
  do {                                                                                   \
    uint64_t left_ = (n);                                                                \
    while (left_ > 0) {                                                                  \
      uint64_t turn_ = left_ < PLACES ? left_ : PLACES;                                  \
      const struct place *place_ = session.places, *end_ = session.places + turn_;       \
      for (; place_ < end_; place_++) {                                                  \
        gex_Rank_t rank = place_->rank;                                                  \
        void *address = place_->address;                                                 \
        operation;                                                                       \
      }                                                                                  \
      after;                                                                             \
      left_ -= turn_;                                                                    \
    }                                                                                    \
  } while (0)

/* A word whose address the compiler does not know. */
static uint64_t word;
static uint64_t *volatile word_at = &word;

/* Whether each place has the value that went there last: places are used in turn. Of puts of one value, that one. */
static void check(uint64_t round, uint64_t n, int same) {
  uint64_t at, used = n < PLACES ? n : PLACES;
  for (at = 0; at < used; at++) {
    const struct place *place = &session.places[at];
    uint64_t wanted = same ? round : round + n - (n - 1 - at) % PLACES;
    uint64_t found = gex_RMA_GetBlockingVal(session.tm, place->rank, place->address, 8, 0);
    if (found != wanted)
      session_fail("word %u is %#lx after a put of %#lx", (unsigned int)at, (unsigned long)found, (unsigned long)wanted);
  }
}

/* The least that a look-up and a copy take on this machine: a table of our own, by rank, and nothing is looked at. Where it is,
   the compiler has to read again each time, as it has to read the library's. */
static struct reached {
  unsigned char *mapped;
  uintptr_t base;
} table[2];
static struct reached *volatile table_at = table;

static inline void *bare(gex_Rank_t rank, const void *address) {
  const struct reached *reached = &table_at[rank];
  return reached->mapped + ((uintptr_t)address - reached->base);
}

/* The function of a variant of puts. The operation stands in it once, with the next value, and a word that keeps one. */
#define PUTS(name, same, operation, after)        \
  static double name(struct block *block) {       \
    uint64_t round = new_round(), value = round;  \
    uint64_t *source = word_at;                   \
    gex_TM_t tm = session.tm;                     \
    double begin, took;                           \
    if (!session.leads) return 0;                 \
    (void)tm;                                     \
    *source = round;                              \
    begin = now();                                \
    WALK(block->n, value++; operation, after);    \
    took = now() - begin;                         \
    check(round, block->n, same);                 \
    return took;                                  \
  }
PUTS(put_value, 0, (void)gex_RMA_PutBlockingVal(tm, rank, address, value, 8, 0), (void)0)
PUTS(put_address, 1, (void)gex_RMA_PutBlocking(tm, rank, address, source, 8, 0), (void)0)
PUTS(put_event, 0, gex_Event_Wait(gex_RMA_PutNBVal(tm, rank, address, value, 8, 0)), (void)0)
PUTS(put_implicit, 0, (void)gex_RMA_PutNBIVal(tm, rank, address, value, 8, 0), gex_NBI_Wait(GEX_EC_PUT, 0))
PUTS(put_bare, 0, memcpy(bare(rank, address), &value, 8), (void)0)

/* Fills the places, and says what as many gets must add up to. */
static uint64_t fill(uint64_t n) {
  uint64_t round = new_round(), whole = 0, part = 0, at;
  for (at = 0; at < PLACES; at++) {
    const struct place *place = &session.places[at];
    (void)gex_RMA_PutBlockingVal(session.tm, place->rank, place->address, round ^ at, 8, 0);
    whole += round ^ at;
    if (at < n % PLACES) part += round ^ at;
  }
  return whole * (n / PLACES) + part;
}

/* The function of a variant of gets, which adds up what it got. */
#define GETS(name, operation, after)                                                                   \
  static double name(struct block *block) {                                                            \
    uint64_t wanted, got = 0, sum = 0;                                                                 \
    uint64_t *target = word_at;                                                                        \
    gex_TM_t tm = session.tm;                                                                          \
    double begin, took;                                                                                \
    if (!session.leads) return 0;                                                                      \
    wanted = fill(block->n);                                                                           \
    begin = now();                                                                                     \
    WALK(block->n, operation, after);                                                                  \
    took = now() - begin;                                                                              \
    if (sum != wanted)                                                                                 \
      session_fail("words add up to %#lx, not %#lx", (unsigned long)sum, (unsigned long)wanted);       \
    (void)tm, (void)target, (void)got;                                                                 \
    return took;                                                                                       \
  }
GETS(get_value, sum += gex_RMA_GetBlockingVal(tm, rank, address, 8, 0), (void)0)
GETS(get_address, (void)gex_RMA_GetBlocking(tm, target, rank, address, 8, 0); sum += *target, (void)0)
GETS(get_event, gex_Event_Wait(gex_RMA_GetNB(tm, target, rank, address, 8, 0)); sum += *target, (void)0)

GETS(get_bare, memcpy(&got, bare(rank, address), 8); sum += got, (void)0)

/* Implicit gets are over at the wait: each has a word of its own. */
static uint64_t words[PLACES];
static uint64_t *volatile words_at = words;
static double get_implicit(struct block *block) {
  uint64_t wanted, sum = 0, at = 0;
  uint64_t *target = words_at;
  gex_TM_t tm = session.tm;
  double begin, took;
  if (!session.leads) return 0;
  wanted = fill(block->n);
  begin = now();
  WALK(block->n, (void)gex_RMA_GetNBI(tm, &target[at++], rank, address, 8, 0), {
    gex_NBI_Wait(GEX_EC_GET, 0);
    while (at > 0) sum += target[--at];
  });
  took = now() - begin;
  if (sum != wanted) session_fail("words add up to %#lx, not %#lx", (unsigned long)sum, (unsigned long)wanted);
  return took;
}

/* Both ranks make it, and the first uses it. */
static gex_AD_t adding;
static volatile gex_OP_t known_late = GEX_OP_FADD;

/* The function of a variant of sums; what is fetched adds up. */
#define SUMS(name, fetches, operation, after)                                                                   \
  static double name(struct block *block) {                                                                     \
    uint64_t n = block->n, used = n < PLACES ? n : PLACES, was = 0, sum = 0, wanted = 0, at;                     \
    gex_AD_t ad = adding;                                                                                       \
    gex_OP_t late = known_late;                                                                                 \
    ptrdiff_t away = session.mapped - session.there;                                                            \
    double begin, took;                                                                                         \
    if (!session.leads) return 0;                                                                               \
    for (at = 0; at < PLACES; at++)                                                                             \
      (void)gex_RMA_PutBlockingVal(session.tm, session.places[at].rank, session.places[at].address, 0, 8, 0);   \
    begin = now();                                                                                              \
    WALK(n, operation; sum += was, after);                                                                      \
    took = now() - begin;                                                                                       \
    for (at = 0; at < used; at++) {                                                                             \
      uint64_t times = n / PLACES + (at < n % PLACES), found;                                                   \
      const struct place *place = &session.places[at];                                                          \
      found = gex_RMA_GetBlockingVal(session.tm, place->rank, place->address, 8, 0);                            \
      if (found != 3 * times)                                                                                   \
        session_fail("word %u is %lu, not %lu", (unsigned int)at, (unsigned long)found, (unsigned long)(3 * times)); \
      wanted += 3 * (times * (times - 1) / 2);                                                                  \
    }                                                                                                           \
    if (fetches && sum != wanted)                                                                               \
      session_fail("sums fetched %lu, not %lu", (unsigned long)sum, (unsigned long)wanted);                     \
    (void)ad, (void)late, (void)away;                                                                           \
    return took;                                                                                                \
  }
SUMS(fetch_add, 1, gex_Event_Wait(gex_AD_OpNB_U64(ad, &was, rank, address, GEX_OP_FADD, 3, 0, 0)), (void)0)
SUMS(fetch_add_late, 1, gex_Event_Wait(gex_AD_OpNB_U64(ad, &was, rank, address, late, 3, 0, 0)), (void)0)
SUMS(add_implicit, 0, (void)gex_AD_OpNBI_U64(ad, NULL, rank, address, GEX_OP_ADD, 3, 0, 0), gex_NBI_Wait(GEX_EC_RMW, 0))
SUMS(fetch_add_bare, 1, was = __atomic_fetch_add((uint64_t *)(void *)bare(rank, address), 3, __ATOMIC_RELAXED), (void)0)
SUMS(fetch_add_alone, 1,
     (void)rank; was = __atomic_fetch_add((uint64_t *)(void *)((char *)address + away), 3, __ATOMIC_RELAXED), (void)0)

/* What handlers count. In SEQ no other thread counts, and no locked instruction is paid for. */
#if defined(GASNET_SEQ)
#define COUNT(counter) __atomic_store_n(&(counter), __atomic_load_n(&(counter), __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED)
#else
#define COUNT(counter) (void)__atomic_fetch_add(&(counter), 1, __ATOMIC_RELEASE)
#endif
#define COUNTED(counter) __atomic_load_n(&(counter), __ATOMIC_ACQUIRE)
static uint64_t requests __attribute__((aligned(128)));
static uint64_t replies;

enum { PING = 140, PONG = 141, FLOOD = 142, ARRIVED = 143 };

static void ping(gex_Token_t token, gex_AM_Arg_t lane) {
  COUNT(requests);
  (void)gex_AM_ReplyShort1(token, PONG, 0, lane);
}
static void pong(gex_Token_t token, gex_AM_Arg_t lane) {
  (void)token, (void)lane;
  COUNT(replies);
}
static void flood(gex_Token_t token, gex_AM_Arg_t lane) {
  (void)token, (void)lane;
  COUNT(requests);
}

static gex_AM_Entry_t handlers[] = {
    {PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ping"},
    {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "pong"},
    {FLOOD, (gex_AM_Fn_t)flood, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "flood"},
    {ARRIVED, (gex_AM_Fn_t)pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "arrived"},
};

/* Who answers what: each request in turn, each with one wait for all, or one message for all of them. */
enum answer { EACH_IN_TURN, EACH, LAST };

/* The first rank sends, and nothing but the library polls in between; the other waits until it has handled all. */
static inline __attribute__((always_inline)) double messages(struct block *block, gex_AM_Index_t handler,
                                                             enum answer answer) {
  /* Requests handled and replies received when all blocks so far have ended. */
  static uint64_t handled, replied;
  gex_TM_t tm = session.tm;
  volatile gex_Rank_t known_late = session.partner;
  gex_Rank_t partner = known_late;
  uint64_t sent, n = block->n;
  double begin, took;
  if (!session.leads) {
    handled += n;
    GASNET_BLOCKUNTIL(COUNTED(requests) >= handled);
    if (answer == LAST) (void)gex_AM_RequestShort1(tm, partner, ARRIVED, 0, 0);
    return 0;
  }
  begin = now();
  block_begin(block);
  for (sent = 1; sent <= n; sent++) {
    (void)gex_AM_RequestShort1(tm, partner, handler, 0, 0);
    if (answer == EACH_IN_TURN) {
      GASNET_BLOCKUNTIL(COUNTED(replies) >= replied + sent);
      block_done(block);
    }
  }
  replied += answer == LAST ? 1 : n;
  GASNET_BLOCKUNTIL(COUNTED(replies) >= replied);
  took = now() - begin;
  return took;
}

static double round_trips(struct block *block) { return messages(block, PING, EACH_IN_TURN); }
static double one_way(struct block *block) { return messages(block, FLOOD, LAST); }
static double with_replies(struct block *block) { return messages(block, PING, EACH); }

static const struct plan PLANS[] = {
    {"put-latency", "value", 8, 0, put_value},
    {"put-latency", "address", 8, 0, put_address},
    {"put-latency", "event", 8, 0, put_event},
    {"put-latency", "implicit", 8, 0, put_implicit},
    {"put-latency", "bare", 8, 0, put_bare},
    {"get-latency", "value", 8, 0, get_value},
    {"get-latency", "address", 8, 0, get_address},
    {"get-latency", "event", 8, 0, get_event},
    {"get-latency", "implicit", 8, 0, get_implicit},
    {"get-latency", "bare", 8, 0, get_bare},
    {"atomic", "fetch-add", 8, 0, fetch_add},
    {"atomic", "fetch-add-late", 8, 0, fetch_add_late},
    {"atomic", "implicit", 8, 0, add_implicit},
    {"atomic", "bare", 8, 0, fetch_add_bare},
    {"atomic", "instruction", 8, 0, fetch_add_alone},
    {"am-latency", "short", 0, 1, round_trips},
    {"am-rate", "short", 0, 0, one_way},
    {"am-rate", "short-replies", 0, 0, with_replies},
};
#define PLAN_COUNT (sizeof PLANS / sizeof *PLANS)

/* Ends before there is a job: what is wrong with the command line is said once for each rank. */
static void usage(const char *wrong, const char *word_of_it) {
  fprintf(stderr, "gasperf-c: %s%s\n%s", wrong, word_of_it, HELP);
  exit(2);
}

/* The number after an option. */
static uint64_t number(const char *option, const char *text, uint64_t most) {
  char *end;
  unsigned long long found = text ? strtoull(text, &end, 10) : 0;
  if (!text || *text < '0' || *text > '9' || *end != '\0' || found < 1 || found > most)
    usage("no good number after ", option);
  return (uint64_t)found;
}

static void parse(int argc, char **argv) {
  int at;
  for (at = 1; at < argc; at++) {
    const char *word_here = argv[at], *next = at + 1 < argc ? argv[at + 1] : NULL;
    if (strcmp(word_here, "--json") == 0) {
      options.json = 1;
    } else if (strcmp(word_here, "--help") == 0) {
      fputs(HELP, stdout);
      exit(0);
    } else if (strcmp(word_here, "--iters") == 0) {
      options.iterations = number(word_here, next, 50000000);
      at++;
    } else if (strcmp(word_here, "--blocks") == 0) {
      options.blocks = (unsigned int)number(word_here, next, 200);
      at++;
    } else if (strcmp(word_here, "--variant") == 0 && next) {
      options.variant = next;
      at++;
    } else if (word_here[0] != '-' && !options.bench) {
      options.bench = word_here;
    } else {
      usage("not understood: ", word_here);
    }
  }
  if (!options.bench) usage("no bench", "");
  for (at = 0; at < (int)PLAN_COUNT; at++)
    if (strcmp(PLANS[at].bench, options.bench) == 0) return;
  usage("no such bench: ", options.bench);
}

int main(int argc, char **argv) {
  size_t at;
  parse(argc, argv);
  session_begin(&argc, &argv, handlers, sizeof handlers / sizeof *handlers);
  table[session.partner].mapped = session.mapped;
  table[session.partner].base = (uintptr_t)session.there;
  gex_AD_Create(&adding, session.tm, GEX_DT_U64, GEX_OP_FADD | GEX_OP_ADD, 0);
  for (at = 0; at < PLAN_COUNT; at++) measure(&PLANS[at]);
  if (session.leads && measured() == 0)
    session_fail("%s has no variant whose name contains \"%s\"", options.bench, options.variant);
  session_meet();
  gasnet_exit(0);
  return 0;
}
