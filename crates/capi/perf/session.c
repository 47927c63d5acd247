/* The job of gasperf-c, and how its blocks are counted out, timed, and put together into a row. */
#include "session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(GASNET_PAR)
#define MODE "par"
#elif defined(GASNET_PARSYNC)
#define MODE "parsync"
#else
#define MODE "seq"
#endif

/* What takes about as long as a block should, in nanoseconds; the most operations of a block, and of one in which each
   is timed; the most blocks. */
#define BLOCK 2e6
#define MOST 50000000u
#define SINGLE 2000u
#define BLOCKS 200u
/* Round trips of a line before each block. */
#define PROBES 32u
/* Set in the control word when the number of operations is settled. */
#define SETTLED ((uint64_t)1 << 63)

/* The segment: what the first rank decides, a line that is passed on, and the places. */
enum { CONTROL = 0, LINE = 4096, FIRST_PLACE = 8192 };
#define SEGMENT ((uintptr_t)1 << 20)

struct session session;
static unsigned char *own;
static unsigned int printed;

void session_fail(const char *format, ...) {
  va_list arguments;
  fprintf(stderr, "gasperf-c: rank %u: ", (unsigned int)session.me);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  gasnet_exit(1);
}

double now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

unsigned int measured(void) { return printed; }

void session_meet(void) { gex_Event_Wait(gex_Coll_BarrierNB(session.tm, 0)); }

/* Places in the partner's segment, in an order that is known at run time only. An odd step visits all of a power of two
   before it comes back. */
static void set_places(void) {
  volatile gex_Rank_t rank = session.partner;
  unsigned char *volatile first = session.there + FIRST_PLACE;
  unsigned int at;
  for (at = 0; at < PLACES; at++) {
    session.places[at].rank = rank;
    session.places[at].address = first + at * 37 % PLACES * STRIDE;
  }
}

void session_begin(int *argc, char ***argv, gex_AM_Entry_t *handlers, size_t count) {
  gex_Client_t client;
  gex_Segment_t segment;
  void *owner, *local;
  uintptr_t size;
  (void)gex_Client_Init(&client, &session.ep, &session.tm, "gasperf-c", argc, argv, 0);
  session.me = gex_TM_QueryRank(session.tm);
  session.partner = session.me ^ 1;
  session.leads = session.me == 0;
  if (gex_TM_QuerySize(session.tm) != 2)
    session_fail("this is measured between two ranks and this job has %u: start it as `gasrun -n 2 gasperf-c BENCH`",
                 (unsigned int)gex_TM_QuerySize(session.tm));
  if (gex_Segment_Attach(&segment, session.tm, SEGMENT) != GASNET_OK) session_fail("no segment of a mebibyte");
  if (gex_EP_RegisterHandlers(session.ep, handlers, count) != GASNET_OK) session_fail("the handlers are refused");
  own = (unsigned char *)gex_Segment_QueryAddr(segment);
  if (gex_Segment_QueryBound(session.tm, session.partner, &owner, &local, &size) != 0 || !local)
    session_fail("the partner's segment is not mapped here");
  session.there = (unsigned char *)owner;
  session.mapped = (unsigned char *)local;
  set_places();
  session_meet();
}

/* Ticks of passing a line to the other rank, which passes it back: the mean of the second time, for the first may find
   that rank on its way from a barrier. */
static double pass(void) {
  static uint64_t passed;
  uint64_t *mine = (uint64_t *)(own + LINE), *theirs = (uint64_t *)(session.mapped + LINE), begin = 0;
  unsigned int turn, i;
  for (turn = 0; turn < 2; turn++) {
    begin = ticks();
    for (i = 0; i < PROBES; i++) {
      passed++;
      if (session.leads) __atomic_store_n(theirs, passed, __ATOMIC_RELEASE);
      while (__atomic_load_n(mine, __ATOMIC_ACQUIRE) != passed) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      if (!session.leads) __atomic_store_n(theirs, passed, __ATOMIC_RELEASE);
    }
  }
  return (double)(ticks() - begin) / (2.0 * PROBES);
}

static double nanoseconds_of_a_tick(void) {
  double begin = now(), took;
  uint64_t first = ticks();
  do took = now() - begin;
  while (took < 1e7);
  return took / (double)(ticks() - first);
}

/* Runs so many operations. */
static double run(const struct plan *plan, uint64_t n) {
  struct block block = {0, NULL, 0, 0};
  block.n = n;
  return plan->run(&block);
}

/* Warms up, and finds how many operations take as long as a block should. The first rank tells the other. */
static uint64_t settle(const struct plan *plan) {
  uint64_t n = options.iterations ? options.iterations : 1;
  for (;;) {
    uint64_t next;
    double took;
    session_meet();
    took = run(plan, n);
    if (session.leads) {
      /* Never many times more than has been tried: the first operations are slow. */
      double wanted = (double)n * BLOCK / (took < 1 ? 1 : took), most = 16.0 * (double)n;
      int settled;
      next = (uint64_t)(wanted < 1 ? 1 : wanted > most ? most : wanted);
      if (next > MOST) next = MOST;
      settled = options.iterations || took > BLOCK / 2 || next <= n;
      if (options.iterations) next = n;
      if (settled) next |= SETTLED;
      (void)gex_RMA_PutBlockingVal(session.tm, session.me, own + CONTROL, next, 8, 0);
      (void)gex_RMA_PutBlockingVal(session.tm, session.partner, session.there + CONTROL, next, 8, 0);
    }
    session_meet();
    next = gex_RMA_GetBlockingVal(session.tm, session.me, own + CONTROL, 8, 0);
    n = next & ~SETTLED;
    if (next & SETTLED) return n;
  }
}

static void list(const char *name, const double *figures, size_t count) {
  size_t i;
  printf(",\"%s\":[", name);
  for (i = 0; i < count; i++) printf(i ? ",%.6g" : "%.6g", figures[i]);
  putchar(']');
}

/* The figures of a row: the blocks that are left, what a line cost before each, and what stands for the tails. */
struct figures {
  double blocks[BLOCKS], lines[BLOCKS];
  size_t count, dropped;
  double p99, p999;
};

static void print(const struct plan *plan, const struct figures *found) {
  double order[BLOCKS], lines[BLOCKS], line, best, middle;
  memcpy(order, found->blocks, sizeof order);
  memcpy(lines, found->lines, sizeof lines);
  sort(order, found->count);
  sort(lines, found->count);
  best = quantile(order, found->count, 0);
  middle = quantile(order, found->count, 0.5);
  line = quantile(lines, found->count, 0.5);
  if (options.json) {
    printf("{\"bench\":\"%s\",\"variant\":\"%s\",\"transport\":\"c\",\"mode\":\"" MODE "\",\"ranks\":2,\"threads\":1",
           plan->bench, plan->variant);
    printf(",\"bytes\":%u,\"unit\":\"ns\",\"min\":%.6g,\"p50\":%.6g,\"p99\":%.6g,\"p999\":%.6g",
           (unsigned int)plan->bytes, best, middle, found->p99, found->p999);
    list("blocks", found->blocks, found->count);
    printf(",\"dropped\":%u,\"line\":%.6g", (unsigned int)found->dropped, line);
    list("lines", found->lines, found->count);
    printf(",\"best\":false,\"machine\":\"%s\"}\n", machine());
  } else {
    if (printed == 0)
      printf("%-15s %-20s %6s %11s %11s %11s %11s %5s\n", "bench", "variant", "bytes", "min", "p50", "p99", "p999",
             "line");
    printf("%-15s %-20s %6u %8.2f ns %8.2f ns %8.2f ns %8.2f ns %5.0f\n", plan->bench, plan->variant,
           (unsigned int)plan->bytes, best, middle, found->p99, found->p999, line);
  }
  printed++;
  (void)fflush(stdout);
}

void measure(const struct plan *plan) {
  /* Static, for it is large; one measurement follows another. */
  static struct figures found;
  static double times[BLOCKS], lines[BLOCKS], singles[BLOCKS * SINGLE];
  static uint64_t single[SINGLE];
  static int stolen[BLOCKS];
  static double tick;
  size_t kept[BLOCKS], count = 0, i;
  uint64_t n;
  unsigned int at;
  if (strcmp(plan->bench, options.bench) != 0 || !strstr(plan->variant, options.variant)) return;
  if (tick == 0) tick = nanoseconds_of_a_tick();
  n = settle(plan);
  for (at = 0; at < options.blocks; at++) {
    unsigned long before = session.leads ? machine_stolen() : 0;
    session_meet();
    lines[at] = pass() * tick;
    session_meet();
    times[at] = run(plan, n) / (double)n;
    stolen[at] = session.leads && machine_stolen() != before;
    if (plan->single) {
      struct block timed = {0, NULL, 0, 0};
      timed.n = n < SINGLE ? n : SINGLE;
      timed.single = session.leads ? single : NULL;
      session_meet();
      (void)plan->run(&timed);
      for (i = 0; i < timed.done; i++) singles[count++] = (double)single[i] * tick;
    }
  }
  session_meet();
  if (!session.leads) return;
  found.count = undisturbed(times, stolen, options.blocks, kept);
  found.dropped = options.blocks - found.count;
  for (i = 0; i < found.count; i++) {
    found.blocks[i] = times[kept[i]];
    found.lines[i] = lines[kept[i]];
  }
  if (!plan->single)
    for (count = 0; count < found.count; count++) singles[count] = found.blocks[count];
  sort(singles, count);
  found.p99 = quantile(singles, count, 0.99);
  found.p999 = quantile(singles, count, 0.999);
  print(plan, &found);
}
