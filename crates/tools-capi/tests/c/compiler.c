/* What compilers are told and what they tell: attributes, hints, macros of the platform, versions, hooks. */
#include <gasnet_tools.h>

#include "check.h"

#if PLATFORM_COMPILER_GNU + PLATFORM_COMPILER_CLANG + PLATFORM_COMPILER_INTEL + PLATFORM_COMPILER_NVHPC != 1
#error "one family of compilers"
#endif
#if defined(__clang__) != defined(PLATFORM_COMPILER_CLANG)
#error "the family is clang's"
#endif
#if defined(__cplusplus) != defined(PLATFORM_COMPILER_CXX) || defined(__cplusplus) == defined(PLATFORM_COMPILER_C)
#error "the language"
#endif
#if PLATFORM_OS_LINUX + PLATFORM_OS_DARWIN + PLATFORM_OS_UNKNOWN != 1
#error "one system"
#endif
#if PLATFORM_ARCH_X86_64 + PLATFORM_ARCH_AARCH64 + PLATFORM_ARCH_POWERPC + PLATFORM_ARCH_RISCV != 1
#error "one processor"
#endif
#if PLATFORM_ARCH_32 + PLATFORM_ARCH_64 != 1 || PLATFORM_ARCH_BIG_ENDIAN + PLATFORM_ARCH_LITTLE_ENDIAN != 1
#error "one size and one order"
#endif
#if PLATFORM_COMPILER_GNU && (!PLATFORM_COMPILER_VERSION_GE(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__) || \
                              PLATFORM_COMPILER_VERSION_GT(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__) || \
                              PLATFORM_COMPILER_VERSION_LT(__GNUC__, 0, 0) || \
                              !PLATFORM_COMPILER_VERSION_LE(__GNUC__ + 1, 0, 0) || \
                              !PLATFORM_COMPILER_VERSION_GT(__GNUC__ - 1, 99, 99))
#error "the version compares as versions do"
#endif
#if GASNETT_RELEASE_VERSION_MAJOR != 2025 || GASNETT_RELEASE_VERSION_MINOR != 8 || GASNETT_RELEASE_VERSION_PATCH != 0
#error "the release"
#endif
#if GASNETT_SPEC_VERSION_MAJOR != 1 || GASNETT_SPEC_VERSION_MINOR < 20
#error "the specification"
#endif

GASNETT_IDENT(ident_of_this_test, "$TestOfTools: value $");

GASNETT_INLINE(twice) int twice(int x) { return 2 * x; }
GASNETT_NEVER_INLINE(sum, static int sum(int a, int b)) { return a + b; }
GASNETT_FORMAT_PRINTF(say, 2, 3, static int say(char *buffer, const char *format, ...)) {
  int n;
  va_list all;
  va_start(all, format);
  n = vsnprintf(buffer, 64, format, all);
  va_end(all);
  return n;
}
GASNETT_FORMAT_PRINTF_FUNCPTR(say_pointer, 2, 3, static int (*say_pointer)(char *buffer, const char *format, ...));
GASNETT_FORMAT_PRINTF(count_words, 1, 2, extern int count_words(const char *format, ...));
GASNETT_COLD static int cold(void) { return 1; }
GASNETT_HOT static int hot(void) { return 2; }
GASNETT_CONST static int square(int x) { return x * x; }
GASNETT_CONSTP(square)
GASNETT_PURE static size_t length(const char *s) { return strlen(s); }
GASNETT_PUREP(length)
GASNETT_MALLOC static void *make(size_t n) { return calloc(1, n); }
GASNETT_MALLOCP(make)
GASNETT_WARN_UNUSED_RESULT static int must_use(void) { return 3; }
GASNETT_USED static int kept = 4;
static GASNETT_UNUSED int nobody_calls(int x GASNETT_UNUSED) { return 0; }
GASNETT_DEPRECATED extern int old(void);
GASNETT_NORETURN static void leave(int code) { exit(code); }
GASNETT_NORETURNP(leave)
GASNETT_EXTERNC int with_c_name(int x);
GASNETT_BEGIN_EXTERNC
int with_c_name(int x) { return x + 1; }
GASNETT_END_EXTERNC

static int falls(int n) {
  int sum_of = 0;
  switch (n) {
  case 1:
    sum_of += 1;
    GASNETT_FALLTHROUGH
  case 2:
    sum_of += 2;
    GASNETT_FALLTHROUGH;
  case 3:
    sum_of += 3;
    break;
  default:
    gasnett_unreachable();
  }
  return sum_of;
}

static int unused(int a, int b, int c, int d, int e, int f, int g, int h) {
  GASNETT_UNUSED_ARGS1(a);
  GASNETT_UNUSED_ARGS2(a, b);
  GASNETT_UNUSED_ARGS3(a, b, c);
  GASNETT_UNUSED_ARGS4(a, b, c, d);
  GASNETT_UNUSED_ARGS5(a, b, c, d, e);
  GASNETT_UNUSED_ARGS6(a, b, c, d, e, f);
  GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g);
  GASNETT_UNUSED_ARGS8(a, b, c, d, e, f, g, h);
  return 8;
}

static uint64_t value_of(const void *from, size_t bytes) { GASNETT_VALUE_RETURN(from, bytes); }

static void copies(int *GASNETT_RESTRICT to, const int *GASNETT_RESTRICT from) {
  GASNETT_FAST_ALIGNED_MEMCPY(to, from, sizeof(int));
  GASNETT_FAST_UNALIGNED_MEMCPY((char *)(to + 1) + 1, from, sizeof(int));
}

static void hooks(void) {
  void (*const prints)(const char *format, ...) = GASNETT_TRACE_PRINTF;
  int inits = 1;
  CHECK(prints == _gasnett_trace_printf_noop && prints == GASNETT_TRACE_PRINTF_FORCE);
  CHECK(prints == GASNETT_STATS_PRINTF && prints == GASNETT_STATS_PRINTF_FORCE);
  prints("%s", "text");
  GASNETT_TRACE_PRINTF("text");
  GASNETT_TRACE_PRINTF("%d %s", 1, "text");
  GASNETT_TRACE_PRINTF_FORCE("%d", 1);
  GASNETT_TRACE_SETMASK("a");
  GASNETT_TRACE_SET_TRACELOCAL(1);
  GASNETT_TRACE_SETSOURCELINE("a", 1);
  GASNETT_TRACE_GETSOURCELINE(NULL, NULL);
  GASNETT_TRACE_FREEZESOURCELINE();
  GASNETT_TRACE_UNFREEZESOURCELINE();
  inits = GASNETT_STATS_INIT(NULL);
  CHECK(inits == 0);
  GASNETT_STATS_PRINTF("text");
  GASNETT_STATS_PRINTF("%d", 1);
  GASNETT_STATS_PRINTF_FORCE("%d", 1);
  GASNETT_STATS_SETMASK("a");
  GASNETT_STATS_DUMP(0);
  CHECK_TEXT(GASNETT_TRACE_GETMASK(), "");
  CHECK_TEXT(GASNETT_STATS_GETMASK(), "");
  CHECK(!GASNETT_TRACE_GET_TRACELOCAL());
  CHECK(GASNETT_TRACE_ENABLED == 0);
}

static void texts(void) {
  char expected[256];
  char *const loc = gasnett_current_loc;
  (void)snprintf(expected, sizeof(expected), "%s at %s:%d", GASNETT_CURRENT_FUNCTION, __FILE__, __LINE__ - 1);
  CHECK_TEXT(loc, expected);
  CHECK(strstr(GASNETT_PLATFORM_COMPILER_IDSTR, "COMPILER_FAMILY:" _STRINGIFY(PLATFORM_COMPILER_FAMILYNAME)));
  CHECK(GASNETT_PLATFORM_COMPILER_FAMILYID == PLATFORM_COMPILER_FAMILYID);
  CHECK(GASNETT_PLATFORM_COMPILER_ID > 0 && GASNETT_PLATFORM_COMPILER_VERSION > 0);
  CHECK(strstr(GASNETT_CONFIG_STRING, GASNETT_THREAD_MODEL) && strstr(GASNETT_CONFIG_STRING, GASNETT_DEBUG_CONFIG));
  CHECK(strstr(GASNETT_CONFIG_STRING, GASNETT_PTR_CONFIG) && strstr(GASNETT_CONFIG_STRING, GASNETT_TIMER_CONFIG));
  CHECK(strstr(GASNETT_CONFIG_STRING, GASNETT_ATOMIC_CONFIG) && strstr(GASNETT_CONFIG_STRING, GASNETT_MEMBAR_CONFIG));
  CHECK(strstr(GASNETT_CONFIG_STRING, GASNETT_ATOMIC32_CONFIG) && strstr(GASNETT_CONFIG_STRING, GASNETT_ATOMIC64_CONFIG));
  CHECK(strlen(GASNETT_SYSTEM_TUPLE) > 0 && strlen(GASNETT_CONFIGURE_ARGS) < 1000);
  CHECK_TEXT(_STRINGIFY(_CONCAT(GASNETI_TOOLS_, CONDUIT)), _STRINGIFY(GASNETI_TOOLS_CONDUIT));
  CHECK(GASNETT_PAGESIZE == 1 << GASNETT_PAGESHIFT && GASNETT_CACHE_LINE_BYTES >= 32 && GASNETT_MAX_THREADS >= 1);
  CHECK(gasnett_linkconfig_idiotcheck() == 1 && HAVE_PTHREAD_H == 1);
}

int main(void) {
  char buffer[64];
  int from = 7, to[3] = {0, 0, 0};
  uint64_t value = 0;
  void *memory;
  if_pf(from == 8) leave(1);
  if_pt(from == 7) to[0]++;
  CHECK(to[0] == 1 && GASNETT_PREDICT_TRUE(from) == 1);
  CHECK(GASNETT_PREDICT_FALSE(from) == 1 && GASNETT_PREDICT_FALSE(!from) == 0);
  CHECK(gasnett_constant_p(5));
  gasnett_assume(from == 7);
  CHECK(twice(2) == 4 && sum(1, 2) == 3 && cold() + hot() == 3 && square(3) == 9 && length("abc") == 3);
  say_pointer = say;
  CHECK(say_pointer(buffer, "%d", 42) == 2 && !strcmp(buffer, "42"));
  memory = make(3);
  CHECK(memory && must_use() == 3 && kept == 4 && with_c_name(1) == 2);
  GASNETT_PREFETCH_READ_HINT(memory);
  GASNETT_PREFETCH_WRITE_HINT(memory);
  free(memory);
  CHECK(falls(1) == 6 && falls(2) == 5 && falls(3) == 3 && unused(1, 2, 3, 4, 5, 6, 7, 8) == 8);
  copies(to, &from);
  CHECK(to[0] == 7 && !memcmp((char *)(to + 1) + 1, &from, sizeof(from)));
  GASNETT_VALUE_ASSIGN(&value, UINT64_C(0x1122334455667788), 8);
  CHECK(value == UINT64_C(0x1122334455667788) && value_of(&value, 8) == value);
  memset(buffer, 9, sizeof(buffer));
  GASNETT_VALUE_ASSIGN(buffer, 0x010203, 2);
  CHECK(value_of(buffer, 2) == 0x0203 && buffer[2] == 9 && value_of(buffer, 1) <= 3);
  hooks();
  texts();
  return 0;
}
