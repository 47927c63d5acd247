/* Ticks against the clock. Only lower bounds and loose upper ones: a machine may be busy. */
#include <gasnet_tools.h>
#include <time.h>

#include "check.h"

static double clock_ns(void) {
  struct timespec t;
  CHECK(!clock_gettime(CLOCK_MONOTONIC, &t));
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *convert(void *result) {
  *(uint64_t *)result = gasnett_ticks_to_ns(UINT64_C(1) << 40);
  return NULL;
}

int main(void) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  uint64_t results[THREADS];
  gasnett_tick_t start, end, last;
  double before, inner, outer, ns;
  uint64_t day;
  int n;

  /* The first conversions come from several threads at once, and agree. */
  for (n = 0; n < THREADS; n++) CHECK(!pthread_create(&threads[n], NULL, convert, &results[n]));
  for (n = 0; n < THREADS; n++) CHECK(!pthread_join(threads[n], NULL));
  for (n = 1; n < THREADS; n++) CHECK(results[n] == results[0] && results[0] > 0);

  before = clock_ns();
  start = gasnett_ticks_now();
  inner = clock_ns();
  CHECK(gasnett_nsleep(60 * 1000 * 1000) == 0);
  inner = clock_ns() - inner;
  end = gasnett_ticks_now();
  outer = clock_ns() - before;
  ns = (double)gasnett_ticks_to_ns(end - start);
  CHECK(inner >= 60e6);
  /* The ticks were read between the two pairs of readings of the clock. */
  CHECK(ns > inner * 0.999 && ns < outer * 1.001);
  CHECK(gasnett_ticks_to_us(end - start) == gasnett_ticks_to_ns(end - start) / 1000);
  CHECK(gasnett_ticks_to_ns(0) == 0 && GASNETT_TICK_MIN < start && end < GASNETT_TICK_MAX);

  for (n = 0, last = gasnett_ticks_now(); n < 100000; n++) {
    const gasnett_tick_t now = gasnett_ticks_now();
    CHECK(now >= last);
    last = now;
  }
  CHECK(gasnett_tick_granularityus() > 0 && gasnett_tick_granularityus() < 1000);
  CHECK(gasnett_tick_overheadus() > 0 && gasnett_tick_overheadus() < 1000);
  day = gasnett_gettimeofday_us() / 1000000;
  CHECK(day >= (uint64_t)time(NULL) - 2 && day <= (uint64_t)time(NULL) + 2);
#ifdef GASNETT_USING_GETTIMEOFDAY
#error "the timer is not that poor"
#endif
  return 0;
}
