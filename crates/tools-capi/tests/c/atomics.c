/* Each operation of each kind, its limits, and what threads see of each other. */
#include <gasnet_tools.h>

#include "check.h"

#define ALL_FLAGS (GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ | GASNETT_ATOMIC_MB_PRE | GASNETT_ATOMIC_MB_POST)

/* Flags that are constants, and flags that are not. */
static volatile int unknown_flags;

#define ONE_KIND(NAME, VALUE)                                                                                          \
  static NAME##_t NAME##_static = NAME##_init(5);                                                                      \
  static void NAME##_with(int flags) {                                                                                 \
    NAME##_t a = NAME##_init(7);                                                                                       \
    CHECK(sizeof(NAME##_t) == sizeof(VALUE) && (uintptr_t)&a % sizeof(VALUE) == 0);                                    \
    CHECK(NAME##_read(&a, flags) == 7);                                                                                \
    NAME##_set(&a, 10, flags);                                                                                         \
    NAME##_increment(&a, flags);                                                                                       \
    CHECK(NAME##_read(&a, flags) == 11);                                                                               \
    NAME##_decrement(&a, flags);                                                                                       \
    CHECK(NAME##_add(&a, 5, flags) == 15);                                                                             \
    CHECK(NAME##_subtract(&a, 13, flags) == 2);                                                                        \
    CHECK(!NAME##_decrement_and_test(&a, flags));                                                                      \
    CHECK(NAME##_decrement_and_test(&a, flags));                                                                       \
    CHECK(!NAME##_decrement_and_test(&a, flags));                                                                      \
    CHECK(NAME##_read(&a, flags) == (VALUE)-1);                                                                        \
    CHECK(NAME##_add(&a, 3, flags) == 2);                                                                              \
    CHECK(!NAME##_compare_and_swap(&a, 3, 4, flags) && NAME##_read(&a, flags) == 2);                                   \
    CHECK(NAME##_compare_and_swap(&a, 2, 4, flags) && NAME##_read(&a, flags) == 4);                                    \
    CHECK(NAME##_swap(&a, (VALUE)-2, flags) == 4 && NAME##_read(&a, flags) == (VALUE)-2);                              \
  }                                                                                                                    \
  static void NAME##_test(void) {                                                                                      \
    int n;                                                                                                             \
    const NAME##_t fixed = NAME##_init(3);                                                                             \
    CHECK(NAME##_read(&NAME##_static, 0) == 5 && NAME##_read(&fixed, 0) == 3);                                         \
    NAME##_with(0);                                                                                                    \
    NAME##_with(GASNETT_ATOMIC_REL);                                                                                   \
    NAME##_with(GASNETT_ATOMIC_ACQ);                                                                                   \
    NAME##_with(GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ_IF_TRUE);                                                      \
    NAME##_with(GASNETT_ATOMIC_RMB_POST_IF_TRUE | GASNETT_ATOMIC_RMB_POST_IF_FALSE | GASNETT_ATOMIC_ACQ_IF_FALSE);     \
    NAME##_with(GASNETT_ATOMIC_RMB_PRE | GASNETT_ATOMIC_WMB_POST);                                                     \
    NAME##_with(ALL_FLAGS);                                                                                            \
    for (n = 0; n < 1 << 10; n++) {                                                                                    \
      unknown_flags = n;                                                                                               \
      NAME##_with(unknown_flags);                                                                                      \
    }                                                                                                                  \
  }

ONE_KIND(gasnett_atomic, gasnett_atomic_val_t)
ONE_KIND(gasnett_atomic32, uint32_t)
ONE_KIND(gasnett_atomic64, uint64_t)
ONE_KIND(gasnett_strongatomic, gasnett_atomic_val_t)
ONE_KIND(gasnett_strongatomic32, uint32_t)
ONE_KIND(gasnett_strongatomic64, uint64_t)

static void limits(void) {
  gasnett_atomic_t a = gasnett_atomic_init(0);
  gasnett_strongatomic_t s = gasnett_strongatomic_init(UINT64_C(0x100000005));
  uint32_t *value = NULL;
  int32_t *signed_value = NULL;
  /* These are the very types. */
  gasnett_atomic_val_t *const same = value;
  gasnett_atomic_sval_t *const signed_same = signed_value;
  CHECK(!same && !signed_same);
  CHECK(gasnett_atomic_subtract(&a, 1, 0) == GASNETT_ATOMIC_MAX && GASNETT_ATOMIC_MAX == 0xFFFFFFFF);
  CHECK(gasnett_atomic_signed(gasnett_atomic_read(&a, 0)) == -1);
  CHECK(gasnett_strongatomic_read(&s, 0) == 5);
  CHECK(GASNETT_ATOMIC_SIGNED_MAX == INT32_MAX && GASNETT_ATOMIC_SIGNED_MIN == INT32_MIN);
  gasnett_atomic_set(&a, (gasnett_atomic_val_t)GASNETT_ATOMIC_SIGNED_MAX, 0);
  CHECK(gasnett_atomic_signed(gasnett_atomic_add(&a, 1, 0)) == GASNETT_ATOMIC_SIGNED_MIN);
  CHECK(gasnett_atomic_add(&a, (gasnett_atomic_val_t)GASNETT_ATOMIC_SIGNED_MIN, 0) == 0);
  CHECK(GASNETT_HAVE_ATOMIC_CAS && GASNETT_HAVE_ATOMIC_ADD_SUB);
  CHECK(GASNETT_HAVE_STRONGATOMIC_CAS && GASNETT_HAVE_STRONGATOMIC_ADD_SUB);
  /* The flags are distinct bits; a full barrier has both halves. */
  CHECK((GASNETT_ATOMIC_MB_PRE & GASNETT_ATOMIC_MB_POST) == 0 && GASNETT_ATOMIC_NONE == 0);
  CHECK((GASNETT_ATOMIC_MB_PRE & GASNETT_ATOMIC_RMB_PRE) && (GASNETT_ATOMIC_MB_PRE & GASNETT_ATOMIC_WMB_PRE));
  CHECK((GASNETT_ATOMIC_MB_POST & GASNETT_ATOMIC_RMB_POST) && (GASNETT_ATOMIC_MB_POST & GASNETT_ATOMIC_WMB_POST));
}

enum { THREADS = 4, ROUNDS = 50000, HANDS = 5000 };

/* Where threads wait for each other: so many have come, since the start. It makes them run at the same time. */
static gasnett_strongatomic32_t arrived = gasnett_strongatomic32_init(0);

static void meet(uint32_t threads) {
  const uint32_t place = gasnett_strongatomic32_add(&arrived, 1, GASNETT_ATOMIC_ACQ | GASNETT_ATOMIC_REL) - 1;
  const uint32_t all = (place / threads + 1) * threads;
  int spins = 0;
  while (gasnett_strongatomic32_read(&arrived, GASNETT_ATOMIC_ACQ) < all) {
    if (++spins % 1000 == 0) gasnett_sched_yield();
    gasnett_spinloop_hint();
  }
}

static gasnett_strongatomic64_t total = gasnett_strongatomic64_init(0);
static gasnett_strongatomic32_t swapped = gasnett_strongatomic32_init(0);

static void *count(void *unused) {
  int n;
  meet(THREADS);
  for (n = 0; n < ROUNDS; n++) {
    uint32_t was;
    gasnett_strongatomic64_increment(&total, GASNETT_ATOMIC_NONE);
    do {
      was = gasnett_strongatomic32_read(&swapped, GASNETT_ATOMIC_NONE);
    } while (!gasnett_strongatomic32_compare_and_swap(&swapped, was, was + 1, GASNETT_ATOMIC_NONE));
  }
  return unused;
}

/* What was written before a release is seen after the acquire of it. Plain memory: a race is one for a sanitizer too. */
static int payload;
static gasnett_strongatomic_t ready = gasnett_strongatomic_init(0);
static gasnett_strongatomic32_t taken = gasnett_strongatomic32_init(0);
static gasnett_strongatomic32_t last = gasnett_strongatomic32_init(0);

static void *hand_over(void *unused) {
  gasnett_atomic_val_t n;
  for (n = 1; n <= HANDS; n++) {
    payload = (int)n;
    gasnett_strongatomic_set(&ready, n, GASNETT_ATOMIC_REL);
    while (!gasnett_strongatomic32_compare_and_swap(&taken, 1, 0, GASNETT_ATOMIC_ACQ_IF_TRUE)) gasnett_spinloop_hint();
  }
  return unused;
}

static void *take(void *unused) {
  gasnett_atomic_val_t n;
  for (n = 1; n <= HANDS; n++) {
    while (gasnett_strongatomic_read(&ready, GASNETT_ATOMIC_ACQ) != n) gasnett_spinloop_hint();
    CHECK(payload == (int)n);
    payload = 0;
    (void)gasnett_strongatomic32_add(&taken, 1, GASNETT_ATOMIC_REL);
  }
  return unused;
}

/* The last of several to leave sees what the others wrote. */
static int places[THREADS];
static void *leave(void *place) {
  int n;
  *(int *)place = 1;
  if (gasnett_strongatomic32_decrement_and_test(&last, GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ_IF_TRUE)) {
    for (n = 0; n < THREADS; n++) CHECK(places[n] == 1);
  }
  return NULL;
}

/* Each writes its own, then looks at the other's: with full fences one of them sees the other. They come to it at times that
 * differ by a little less or more each round, because what is looked for happens within some tens of instructions. */
static gasnett_strongatomic32_t mine[2] = {gasnett_strongatomic32_init(0), gasnett_strongatomic32_init(0)};
static uint32_t saw[2];
static void *cross(void *self) {
  enum { DELAYS = 100, TIMES = DELAYS * DELAYS };
  const int me = self != NULL;
  int n, wait;
  for (n = 0; n < TIMES; n++) {
    gasnett_strongatomic32_set(&mine[me], 0, GASNETT_ATOMIC_NONE);
    meet(2);
    for (wait = (me ? n : n / DELAYS) % DELAYS; wait > 0; wait--) gasnett_compiler_fence();
    gasnett_strongatomic32_set(&mine[me], 1, GASNETT_ATOMIC_MB_POST);
    saw[me] = gasnett_strongatomic32_read(&mine[!me], GASNETT_ATOMIC_NONE);
    meet(2);
    CHECK(saw[0] || saw[1]);
    meet(2);
  }
  return NULL;
}

static void run(int threads, void *(*body)(void *), void *(*first)(void *), int spread) {
  pthread_t all[THREADS];
  int n;
  for (n = 0; n < threads; n++) {
    void *const argument = spread ? (void *)&places[n] : n ? (void *)&places[0] : NULL;
    CHECK(!pthread_create(&all[n], NULL, n == 0 ? first : body, argument));
  }
  for (n = 0; n < threads; n++) CHECK(!pthread_join(all[n], NULL));
}

static void threads(void) {
  run(THREADS, count, count, 0);
  CHECK(gasnett_strongatomic64_read(&total, 0) == (uint64_t)THREADS * ROUNDS);
  CHECK(gasnett_strongatomic32_read(&swapped, 0) == (uint32_t)THREADS * ROUNDS);
  run(2, take, hand_over, 0);
  gasnett_strongatomic32_set(&last, THREADS, 0);
  run(THREADS, leave, leave, 1);
  gasnett_strongatomic32_set(&arrived, 0, 0);
  run(2, cross, cross, 0);
  gasnett_strongatomic32_set(&arrived, 0, 0);
}

#if GASNETT_THREAD_SAFE
static gasnett_atomic_t weak_total = gasnett_atomic_init(0);
static void *count_weak(void *unused) {
  int n;
  meet(THREADS);
  for (n = 0; n < ROUNDS; n++) gasnett_atomic_increment(&weak_total, GASNETT_ATOMIC_NONE);
  return unused;
}
static void weak_threads(void) {
  run(THREADS, count_weak, count_weak, 0);
  CHECK(gasnett_atomic_read(&weak_total, 0) == (gasnett_atomic_val_t)THREADS * ROUNDS);
}
#else
static void weak_threads(void) {}
#endif

int main(void) {
  gasnett_atomic_test();
  gasnett_atomic32_test();
  gasnett_atomic64_test();
  gasnett_strongatomic_test();
  gasnett_strongatomic32_test();
  gasnett_strongatomic64_test();
  limits();
  threads();
  weak_threads();
  gasnett_local_wmb();
  gasnett_local_rmb();
  gasnett_local_mb();
  gasnett_weak_wmb();
  gasnett_weak_rmb();
  gasnett_weak_mb();
  gasnett_compiler_fence();
  return 0;
}
