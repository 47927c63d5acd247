/* The environment, messages, help with debugging, the process and the machine. Included by gasnet_tools.h. */
#ifndef GASWORKS_TOOLS_MISC_H
#define GASWORKS_TOOLS_MISC_H 1

typedef void (*gasnett_sighandlerfn_t)(int);

/* A client may define gasnett_backtrace_user; it is then tried before the others. The function gives 0 if it printed. */
typedef struct {
  const char *name;
  int (*fnp)(int fd);
  int threadsupport;
} gasnett_backtrace_type_t;

GASNETT_BEGIN_EXTERNC

/* ---- the environment. It is written while no other thread reads it, as everywhere in C. ---- */

extern char *gasnett_getenv(const char *name);
extern void gasnett_setenv(const char *name, const char *value);
extern void gasnett_unsetenv(const char *name);
extern char *gasnett_getenv_withdefault(const char *name, const char *value);
extern int gasnett_getenv_yesno_withdefault(const char *name, int value);
/* With a multiplier other than 0 it is an amount of memory, in that unit where the text names none. */
extern int64_t gasnett_getenv_int_withdefault(const char *name, int64_t value, uint64_t multiplier);
extern double gasnett_getenv_dbl_withdefault(const char *name, double value);
extern int64_t gasnett_parse_int(const char *text, uint64_t multiplier);
extern char *gasnett_format_number(int64_t value, char *buffer, size_t size, int is_memory);
extern int gasnett_verboseenv(void);
extern void gasnett_envstr_display(const char *name, const char *value, int is_default);
extern void gasnett_envint_display(const char *name, int64_t value, int is_default, int is_memory);
extern void gasnett_envdbl_display(const char *name, double value, int is_default);

/* ---- debugging ---- */

extern volatile int gasnet_frozen;
extern void gasnett_freezeForDebuggerNow(volatile int *flag, const char *name);
extern void gasnett_freezeForDebuggerErr(void);
extern gasnett_backtrace_type_t gasnett_backtrace_user;
extern void gasnett_backtrace_init(const char *program);
extern int gasnett_print_backtrace(int fd);
extern int (*gasnett_print_backtrace_ifenabled)(int fd);

/* ---- the process and the machine ---- */

extern const char *gasnett_gethostname(void);
/* A name from inside GASNet that some programs use. */
#define gasneti_gethostname gasnett_gethostname
extern const char *gasnett_exe_name(void);
extern int gasnett_cpu_count(void);
extern uint64_t gasnett_getPhysMemSz(int failure_is_fatal);
#define GASNETT_SET_AFFINITY_SUPPORT 1
extern int gasnett_set_affinity(int rank);
extern void gasnett_sched_yield(void);
extern void gasnett_flush_streams(void);
extern void gasnett_close_streams(void);
GASNETT_NORETURN extern void gasnett_killmyprocess(int code);
extern gasnett_sighandlerfn_t gasnett_reghandler(int signal, gasnett_sighandlerfn_t handler);
extern const char *gasnett_signame_fromval(int signal);
extern int gasnett_maximize_rlimits(void);
extern int gasnett_maximize_rlimit(int resource, const char *name);
extern void *gasnett_mmap(size_t size);

/* ---- bytes ---- */

extern uint64_t gasnett_checksum(const void *bytes, int count);
extern size_t gasnett_count0s(const void *bytes, size_t count);
extern size_t gasnett_count0s_copy(void *to, const void *from, size_t count);

/* ---- about the library ---- */

extern const char *gasworks_tools_performance_warning(int debug);
extern const char *gasnett_release_version_str(void);
extern uint64_t gasnett_release_version(void);
extern int gasworks_tools_diagnostics(int iterations, int threads, const char *sections);

GASNETT_END_EXTERNC

GASNETT_INLINE(gasnett_performance_warning_str) const char *gasnett_performance_warning_str(void) {
#if GASNET_DEBUG
  return gasworks_tools_performance_warning(1);
#else
  return gasworks_tools_performance_warning(0);
#endif
}

/* Tests the tools themselves, and gives how many of the tests failed. The sections are letters; null is all. The rest of
 * the arguments, a team and a segment, are for tests that communicate, which these do not. */
static __inline__ int gasnett_run_diagnostics(int iterations, int threads, const char *sections, ...);
static __inline__ int gasnett_run_diagnostics(int iterations, int threads, const char *sections, ...) {
#if !GASNETT_THREAD_SAFE
  threads = 1;
#endif
  return gasworks_tools_diagnostics(iterations, threads, sections);
}

/* The handlers that the diagnostics need: none. `table` is the address of a pointer to the client's type of entry. */
GASNETT_INLINE(gasnett_diagnostic_gethandlers) void gasnett_diagnostic_gethandlers(void *table, int *count) {
  void *const none = NULL;
  memcpy(table, &none, sizeof(none));
  *count = 0;
}

GASNETT_INLINE(gasnett_isLittleEndian) int gasnett_isLittleEndian(void) {
#if defined(PLATFORM_ARCH_LITTLE_ENDIAN)
  return 1;
#else
  return 0;
#endif
}

/* How many bytes of a word are zero: adding 0x7f to the low seven bits of a byte sets its top bit unless they are zero. */
GASNETT_INLINE(gasnett_count0s_uint64_t) int gasnett_count0s_uint64_t(uint64_t word) {
  const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
  return __builtin_popcountll(~(((word & low) + low) | word | low));
}

GASNETT_INLINE(gasnett_count0s_uint32_t) int gasnett_count0s_uint32_t(uint32_t word) {
  return gasnett_count0s_uint64_t(word) - 4;
}

GASNETT_INLINE(gasnett_count0s_uintptr_t) int gasnett_count0s_uintptr_t(uintptr_t word) {
  return gasnett_count0s_uint64_t(word) - (int)(sizeof(uint64_t) - sizeof(word));
}

/* ---- values of one to eight bytes in memory: the low bytes of a 64-bit one ---- */

GASNETT_INLINE(gasworks_tools_value_put) void gasworks_tools_value_put(void *to, uint64_t value, size_t bytes) {
#if defined(PLATFORM_ARCH_LITTLE_ENDIAN)
  memcpy(to, &value, bytes);
#else
  memcpy(to, (char *)&value + (sizeof(value) - bytes), bytes);
#endif
}

GASNETT_INLINE(gasworks_tools_value_get) uint64_t gasworks_tools_value_get(const void *from, size_t bytes) {
  uint64_t value = 0;
#if defined(PLATFORM_ARCH_LITTLE_ENDIAN)
  memcpy(&value, from, bytes);
#else
  memcpy((char *)&value + (sizeof(value) - bytes), from, bytes);
#endif
  return value;
}

#define GASNETT_VALUE_ASSIGN(to, value, bytes) gasworks_tools_value_put((to), (uint64_t)(value), (bytes))
#define GASNETT_VALUE_RETURN(from, bytes) return gasworks_tools_value_get((from), (bytes))
#define GASNETT_FAST_ALIGNED_MEMCPY(to, from, bytes) memcpy((to), (from), (bytes))
#define GASNETT_FAST_UNALIGNED_MEMCPY(to, from, bytes) memcpy((to), (from), (bytes))

#endif
