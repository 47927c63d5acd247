/* Ticks, which are cheap to read, and their length. Included by gasnet_tools.h. */
#ifndef GASWORKS_TOOLS_TIMER_H
#define GASWORKS_TOOLS_TIMER_H 1

typedef uint64_t gasnett_tick_t;
#define GASNETT_TICK_MIN ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX ((gasnett_tick_t)-1)
#undef GASNETT_USING_GETTIMEOFDAY

/* The library's gasworks_tools_ticks() is compiled by the same rule. */
#if defined(PLATFORM_ARCH_X86_64)
GASNETT_INLINE(gasnett_ticks_now) gasnett_tick_t gasnett_ticks_now(void) { return __builtin_ia32_rdtsc(); }
#define GASNETT_TIMER_CONFIG "timers_native"
#else
#define gasnett_ticks_now() gasworks_tools_ticks()
#define GASNETT_TIMER_CONFIG "timers_clock"
#endif

GASNETT_BEGIN_EXTERNC
extern gasnett_tick_t gasworks_tools_ticks(void);
extern uint64_t gasnett_ticks_to_ns(gasnett_tick_t ticks);
extern uint64_t gasnett_ticks_to_us(gasnett_tick_t ticks);
extern double gasnett_tick_granularityus(void);
extern double gasnett_tick_overheadus(void);
extern uint64_t gasnett_gettimeofday_us(void);
/* Sleeps that long or longer, whatever signals arrive. Gives 0. */
extern int gasnett_nsleep(uint64_t ns);
GASNETT_END_EXTERNC

#endif
