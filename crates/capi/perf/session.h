/* What the benches of gasperf-c have in common: blocks of operations that both ranks begin together, until there are
   enough of them, and the row that comes of it. The manner is that of `gasperf`: see its session.rs. */
#ifndef GASPERF_SESSION_H
#define GASPERF_SESSION_H

#include <gasnetex.h>

/* The places of the loop of small operations, 64 bytes apart, as the other gasperf has them. */
#define PLACES 256u
#define STRIDE 64u

/* Where bytes go to or come from; both are known at run time only. */
struct place {
  gex_Rank_t rank;
  void *address;
};

/* The job, as every bench needs it. The first of its two ranks measures, the other is its partner. */
struct session {
  gex_TM_t tm;
  gex_EP_t ep;
  gex_Rank_t me;
  gex_Rank_t partner;
  int leads;
  /* The partner's segment: its address there, and here. */
  unsigned char *there, *mapped;
  struct place places[PLACES];
};
extern struct session session;

/* What the command line asks for. */
struct options {
  const char *bench;
  const char *variant;
  uint64_t iterations; /* 0: as many as take two milliseconds */
  unsigned int blocks;
  int json;
};
extern struct options options;

/* Operations to do, and the time of each single one if it is wanted. */
struct block {
  uint64_t n;
  uint64_t *single;
  uint64_t done;
  uint64_t last;
};

/* What is measured. `run` does a block and says how many nanoseconds it took; the partner's word does not count. */
struct plan {
  const char *bench;
  const char *variant;
  uint64_t bytes;
  int single; /* whether operations are long enough to be timed one by one */
  double (*run)(struct block *block);
};

/* Begins the job. */
void session_begin(int *argc, char ***argv, gex_AM_Entry_t *handlers, size_t count);
/* Waits for the other rank. */
void session_meet(void);
/* Ends the job, after it has said why. */
void session_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Measures, if the command line asks for this bench and variant, and prints the row. Both ranks do it together. */
void measure(const struct plan *plan);
/* How many rows there were. */
unsigned int measured(void);

/* Nanoseconds of the system's clock. */
double now(void);
/* The processor's counter. */
static inline uint64_t ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return (uint64_t)now();
#endif
}

/* Around single operations. */
static inline void block_begin(struct block *block) {
  if (block->single) block->last = ticks();
}
static inline void block_done(struct block *block) {
  if (block->single) {
    uint64_t at = ticks();
    block->single[block->done++] = at - block->last;
    block->last = at;
  }
}

/* Figures: the share q of them lies below this one, of figures in order. */
double quantile(const double *sorted, size_t count, double q);
void sort(double *figures, size_t count);
/* Keeps the numbers of the blocks in which the machine was not elsewhere, and says how many. */
size_t undisturbed(const double *blocks, const int *stolen, size_t count, size_t *kept);

/* The machine: its name, and the time that its host gave to others meanwhile. */
const char *machine(void);
unsigned long machine_stolen(void);

#endif
