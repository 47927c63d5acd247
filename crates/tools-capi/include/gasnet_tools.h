/* Tools for authors of runtimes: atomics, timers, locks, settings, messages, help with debugging.
 *
 * It is included after gasnetex.h or gasnet.h, or alone. Alone, the client may have threads, and links with
 * libgasnet_tools-par.a; one that first defines GASNETT_THREAD_SINGLE to 1 has one, and links with libgasnet_tools-seq.a.
 * A client may define GASNETI_FORCE_PIC: the libraries are position independent in any case. */
#ifndef GASNET_TOOLS_H
#define GASNET_TOOLS_H 1
#define _INCLUDED_GASNET_TOOLS_H 1

/* Defined to nothing it counts as 1; then this is `- - 1`. */
#if defined(GASNETT_THREAD_SAFE) && -GASNETT_THREAD_SAFE - 1 == 1
#undef GASNETT_THREAD_SAFE
#define GASNETT_THREAD_SAFE 1
#endif
#if defined(GASNETEX_H_INCLUDED)
#if defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#define GASWORKS_TOOLS_LIBRARY_IS_PAR 1
#endif
#elif defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#error "a client of GASNet includes gasnetex.h or gasnet.h before gasnet_tools.h"
#else
#define GASNET_TOOLS_H_ALONE 1
#if defined(GASNETT_THREAD_SAFE) && !GASNETT_THREAD_SAFE
#error "GASNETT_THREAD_SAFE is defined to 1 or not at all"
#endif
#if defined(GASNETT_THREAD_SAFE) && defined(GASNETT_THREAD_SINGLE)
#error "GASNETT_THREAD_SAFE and GASNETT_THREAD_SINGLE exclude each other"
#elif !defined(GASNETT_THREAD_SINGLE)
#define GASWORKS_TOOLS_LIBRARY_IS_PAR 1
#endif
#endif
#if defined(GASWORKS_TOOLS_LIBRARY_IS_PAR) && !defined(GASNETT_THREAD_SAFE)
#define GASNETT_THREAD_SAFE 1
#endif

#if defined(GASNET_DEBUG) && defined(GASNET_NDEBUG)
#error "GASNET_DEBUG and GASNET_NDEBUG exclude each other"
#elif defined(GASNET_DEBUG) && (defined(NDEBUG) || defined(__OPTIMIZE__))
#error "GASNET_DEBUG is for builds without optimisation and without NDEBUG"
#elif !defined(GASNET_DEBUG) && !defined(GASNET_NDEBUG)
#define GASNET_NDEBUG 1
#endif

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gasnet_portable_platform.h"
#include "gasnet_tools_compiler.h"

/* What tests of clients take for granted. */
#ifndef HAVE_PTHREAD_H
#define HAVE_PTHREAD_H 1
#endif
#ifndef _STRINGIFY
#define _STRINGIFY(x) GASWORKS_PLATFORM_TEXT(x)
#endif
#ifndef _CONCAT
#define _CONCAT_HELPER(a, b) a##b
#define _CONCAT(a, b) _CONCAT_HELPER(a, b)
#endif
#ifndef GASNETI_TOOLS_CONDUIT
#define GASNETI_TOOLS_CONDUIT TOOLS
#endif
#undef GASNETI_ARCH_IBMPE

/* ---- an end with a message ---- */

GASNETT_BEGIN_EXTERNC
GASNETT_NORETURN extern void gasworks_tools_fatal_text(const char *where, const char *text);
extern char *gasworks_tools_location(const char *function, const char *file, int line);
GASNETT_END_EXTERNC

#define GASWORKS_TOOLS_FATAL_BYTES 4096

/* A variadic function cannot be one of the library's. `where` may be null. */
GASNETT_FORMAT_PRINTF(gasworks_tools_fatal, 2, 3,
GASNETT_NORETURN static __inline__ void gasworks_tools_fatal(const char *where, const char *format, ...));
static __inline__ void gasworks_tools_fatal(const char *where, const char *format, ...) {
  char text[GASWORKS_TOOLS_FATAL_BYTES];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  gasworks_tools_fatal_text(where, text);
}

/* The place in the source, as `function at file:line`; the text lasts. */
#define gasnett_current_loc gasworks_tools_location(GASNETT_CURRENT_FUNCTION, __FILE__, __LINE__)
#define gasnett_fatalerror(...) gasworks_tools_fatal(gasnett_current_loc, __VA_ARGS__)
#define gasnett_fatalerror_nopos(...) gasworks_tools_fatal(NULL, __VA_ARGS__)

#if GASNET_DEBUG
#define gasnett_assume(condition)                                                                                      \
  ((condition) ? (void)0 : gasworks_tools_fatal(gasnett_current_loc, "assumed, but not so: %s", #condition))
#define gasnett_unreachable() gasworks_tools_fatal(gasnett_current_loc, "%s", "what cannot be reached was reached")
#elif GASNETT_USE_BUILTIN_UNREACHABLE
#define gasnett_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#define gasnett_unreachable() __builtin_unreachable()
#else
#define gasnett_assume(condition) ((void)0)
#define gasnett_unreachable() ((void)0)
#endif

#include "gasnet_tools_atomic.h"
#include "gasnet_tools_format.h"
#include "gasnet_tools_lock.h"
#include "gasnet_tools_timer.h"

/* ---- versions, and what this is built as ---- */

#define GASNETT_RELEASE_VERSION_MAJOR 2025
#define GASNETT_RELEASE_VERSION_MINOR 8
#define GASNETT_RELEASE_VERSION_PATCH 0
#define GASNETT_SPEC_VERSION_MAJOR 1
#define GASNETT_SPEC_VERSION_MINOR 20

#define GASNETT_PLATFORM_COMPILER_FAMILYID PLATFORM_COMPILER_FAMILYID
#define GASNETT_PLATFORM_COMPILER_ID PLATFORM_COMPILER_ID
#define GASNETT_PLATFORM_COMPILER_IDSTR PLATFORM_COMPILER_IDSTR
#define GASNETT_PLATFORM_COMPILER_VERSION PLATFORM_COMPILER_VERSION
#if defined(PLATFORM_ARCH_X86_64)
#define GASNETT_SYSTEM_TUPLE "x86_64-unknown-linux-gnu"
#elif defined(PLATFORM_ARCH_AARCH64)
#define GASNETT_SYSTEM_TUPLE "aarch64-unknown-linux-gnu"
#elif defined(PLATFORM_ARCH_POWERPC) && defined(PLATFORM_ARCH_LITTLE_ENDIAN)
#define GASNETT_SYSTEM_TUPLE "powerpc64le-unknown-linux-gnu"
#else
#define GASNETT_SYSTEM_TUPLE _STRINGIFY(PLATFORM_ARCH_FAMILYNAME) "-" _STRINGIFY(PLATFORM_OS_FAMILYNAME)
#endif
#define GASNETT_CONFIGURE_ARGS ""

/* A processor may have bigger pages; these are the smallest, which the sizes of segments are multiples of. */
#if defined(PLATFORM_ARCH_POWERPC)
#define GASNETT_PAGESHIFT 16
#define GASNETT_CACHE_LINE_BYTES 128
#else
#define GASNETT_PAGESHIFT 12
#define GASNETT_CACHE_LINE_BYTES 64
#endif
#define GASNETT_PAGESIZE (1 << GASNETT_PAGESHIFT)

#if GASNETT_THREAD_SAFE
#define GASNETT_THREAD_MODEL "PAR"
#define GASNETT_MAX_THREADS 256
#else
#define GASNETT_THREAD_MODEL "SEQ"
#define GASNETT_MAX_THREADS 1
#endif
#if GASNET_DEBUG
#define GASNETT_DEBUG_CONFIG "debug"
#else
#define GASNETT_DEBUG_CONFIG "nodebug"
#endif
#if defined(PLATFORM_ARCH_64)
#define GASNETT_PTR_CONFIG "64bit"
#else
#define GASNETT_PTR_CONFIG "32bit"
#endif
#if GASNETT_THREAD_SAFE
#define GASNETT_ATOMIC_CONFIG "atomics_native"
#else
#define GASNETT_ATOMIC_CONFIG "atomics_none"
#endif
#define GASNETT_ATOMIC32_CONFIG "atomic32_native"
#define GASNETT_ATOMIC64_CONFIG "atomic64_native"
#define GASNETT_MEMBAR_CONFIG "membars_native"
#define GASNETT_CONFIG_STRING                                                                                          \
  "RELEASE=" _STRINGIFY(GASNETT_RELEASE_VERSION_MAJOR) "." _STRINGIFY(GASNETT_RELEASE_VERSION_MINOR)                   \
  "." _STRINGIFY(GASNETT_RELEASE_VERSION_PATCH) ",SPEC=" _STRINGIFY(GASNETT_SPEC_VERSION_MAJOR)                        \
  "." _STRINGIFY(GASNETT_SPEC_VERSION_MINOR) "," GASNETT_THREAD_MODEL "," GASNETT_DEBUG_CONFIG                         \
  "," GASNETT_PTR_CONFIG "," GASNETT_TIMER_CONFIG "," GASNETT_MEMBAR_CONFIG "," GASNETT_ATOMIC_CONFIG                  \
  "," GASNETT_ATOMIC32_CONFIG "," GASNETT_ATOMIC64_CONFIG
GASNETT_IDENT(gasworks_tools_ident_config, "$GASNetToolsConfig: " GASNETT_CONFIG_STRING " $");
GASNETT_IDENT(gasworks_tools_ident_threads, "$GASNetToolsThreadModel: " GASNETT_THREAD_MODEL " $");

/* An object names the library that it is compiled for; another library lacks the name, and the link fails. One that has set
   GASNETT_LITE_MODE uses nothing of a library, and goes into programs of any thread mode. */
#if GASNETT_LITE_MODE
GASNETT_INLINE(gasnett_linkconfig_idiotcheck) int gasnett_linkconfig_idiotcheck(void) { return 1; }
#else
#if defined(GASWORKS_TOOLS_LIBRARY_IS_PAR) && GASNET_DEBUG
#define GASNETT_LINKCONFIG_IDIOTCHECK gasnett_linkconfig_PAR_DEBUG
#elif defined(GASWORKS_TOOLS_LIBRARY_IS_PAR)
#define GASNETT_LINKCONFIG_IDIOTCHECK gasnett_linkconfig_PAR_NDEBUG
#elif GASNET_DEBUG
#define GASNETT_LINKCONFIG_IDIOTCHECK gasnett_linkconfig_SEQ_DEBUG
#else
#define GASNETT_LINKCONFIG_IDIOTCHECK gasnett_linkconfig_SEQ_NDEBUG
#endif
GASNETT_BEGIN_EXTERNC
extern const int GASNETT_LINKCONFIG_IDIOTCHECK;
GASNETT_END_EXTERNC
static const int *const gasworks_tools_linkconfig GASNETT_USED = &GASNETT_LINKCONFIG_IDIOTCHECK;
/* One where the library is the right one; with a wrong one there is no program to ask. */
GASNETT_INLINE(gasnett_linkconfig_idiotcheck) int gasnett_linkconfig_idiotcheck(void) {
  return *gasworks_tools_linkconfig;
}
#endif

/* ---- hooks of a tracing build, which this is none ---- */

/* What prints names a function: clients take its address. */
GASNETT_FORMAT_PRINTF(_gasnett_trace_printf_noop, 1, 2,
static __inline__ void _gasnett_trace_printf_noop(const char *format, ...));
static __inline__ void _gasnett_trace_printf_noop(const char *format, ...) { (void)format; }

#define GASNETT_TRACE_ENABLED 0
#define GASNETT_TRACE_PRINTF _gasnett_trace_printf_noop
#define GASNETT_TRACE_PRINTF_FORCE _gasnett_trace_printf_noop
#define GASNETT_TRACE_GETMASK() ""
#define GASNETT_TRACE_SETMASK(mask) ((void)0)
#define GASNETT_TRACE_GET_TRACELOCAL() (0)
#define GASNETT_TRACE_SET_TRACELOCAL(wanted) ((void)0)
#define GASNETT_TRACE_SETSOURCELINE(file, line) ((void)0)
#define GASNETT_TRACE_GETSOURCELINE(file, line) ((void)0)
#define GASNETT_TRACE_FREEZESOURCELINE() ((void)0)
#define GASNETT_TRACE_UNFREEZESOURCELINE() ((void)0)
#define GASNETT_STATS_INIT(...) (0)
#define GASNETT_STATS_PRINTF _gasnett_trace_printf_noop
#define GASNETT_STATS_PRINTF_FORCE _gasnett_trace_printf_noop
#define GASNETT_STATS_GETMASK() ""
#define GASNETT_STATS_SETMASK(mask) ((void)0)
#define GASNETT_STATS_DUMP(reset) ((void)0)

#include "gasnet_tools_misc.h"

#endif
