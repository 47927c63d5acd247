/* What compilers are told: attributes, hints and pragmas, each with a GASNETT_USE_... that a client may set to 0 or 1.
 * Included by gasnet_tools.h. */
#ifndef GASWORKS_TOOLS_COMPILER_H
#define GASWORKS_TOOLS_COMPILER_H 1

#if defined(__GNUC__) || defined(__clang__)
#define GASWORKS_TOOLS_IS_GNU 1
#else
#define GASWORKS_TOOLS_IS_GNU 0
#endif

#ifndef GASNETT_USE_BUILTIN_CONSTANT_P
#define GASNETT_USE_BUILTIN_CONSTANT_P GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_BUILTIN_EXPECT
#define GASNETT_USE_BUILTIN_EXPECT GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_BUILTIN_PREFETCH
#define GASNETT_USE_BUILTIN_PREFETCH GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_BUILTIN_UNREACHABLE
#define GASNETT_USE_BUILTIN_UNREACHABLE GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_CTYPE_WRAPPERS
#define GASNETT_USE_CTYPE_WRAPPERS 0
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE
#define GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_COLD
#define GASNETT_USE_GCC_ATTRIBUTE_COLD GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_CONST
#define GASNETT_USE_GCC_ATTRIBUTE_CONST GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED
#define GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH
#if defined(__has_attribute)
#if __has_attribute(__fallthrough__)
#define GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH 1
#endif
#endif
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH
#define GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH 0
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT
#define GASNETT_USE_GCC_ATTRIBUTE_FORMAT GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR
#define GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG
#define GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_HOT
#define GASNETT_USE_GCC_ATTRIBUTE_HOT GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_MALLOC
#define GASNETT_USE_GCC_ATTRIBUTE_MALLOC GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS
#define GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_NOINLINE
#define GASNETT_USE_GCC_ATTRIBUTE_NOINLINE GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_NORETURN
#define GASNETT_USE_GCC_ATTRIBUTE_NORETURN GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_PURE
#define GASNETT_USE_GCC_ATTRIBUTE_PURE GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_USED
#define GASNETT_USE_GCC_ATTRIBUTE_USED GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT
#define GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT GASWORKS_TOOLS_IS_GNU
#endif
#ifndef GASNETT_USE_PRAGMA_GCC_DIAGNOSTIC
#define GASNETT_USE_PRAGMA_GCC_DIAGNOSTIC GASWORKS_TOOLS_IS_GNU
#endif

/* ---- functions. The forms with a final P stand after a declaration, for compilers that want a pragma there. ---- */

#if GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE
#define GASNETT_INLINE(name) static __inline__ __attribute__((__always_inline__, __unused__))
#elif GASWORKS_TOOLS_IS_GNU
#define GASNETT_INLINE(name) static __inline__
#else
#define GASNETT_INLINE(name) static inline
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_NOINLINE
#define GASNETT_NEVER_INLINE(name, ...) __attribute__((__noinline__)) __VA_ARGS__
#else
#define GASNETT_NEVER_INLINE(name, ...) __VA_ARGS__
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_COLD
#define GASNETT_COLD __attribute__((__cold__))
#else
#define GASNETT_COLD
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_HOT
#define GASNETT_HOT __attribute__((__hot__))
#else
#define GASNETT_HOT
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_CONST
#define GASNETT_CONST __attribute__((__const__))
#else
#define GASNETT_CONST
#endif
#define GASNETT_CONSTP(name)
#if GASNETT_USE_GCC_ATTRIBUTE_PURE
#define GASNETT_PURE __attribute__((__pure__))
#else
#define GASNETT_PURE
#endif
#define GASNETT_PUREP(name)
#if GASNETT_USE_GCC_ATTRIBUTE_MALLOC
#define GASNETT_MALLOC __attribute__((__malloc__))
#else
#define GASNETT_MALLOC
#endif
#define GASNETT_MALLOCP(name)
#if GASNETT_USE_GCC_ATTRIBUTE_NORETURN
#define GASNETT_NORETURN __attribute__((__noreturn__))
#else
#define GASNETT_NORETURN
#endif
#define GASNETT_NORETURNP(name)
#if GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED
#define GASNETT_DEPRECATED __attribute__((__deprecated__))
#else
#define GASNETT_DEPRECATED
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT
#define GASNETT_WARN_UNUSED_RESULT __attribute__((__warn_unused_result__))
#else
#define GASNETT_WARN_UNUSED_RESULT
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_USED
#define GASNETT_USED __attribute__((__used__))
#else
#define GASNETT_USED
#endif
#if GASWORKS_TOOLS_IS_GNU
#define GASNETT_UNUSED __attribute__((__unused__))
#else
#define GASNETT_UNUSED
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS
#define GASNETT_MAYALIAS __attribute__((__may_alias__))
#else
#define GASNETT_MAYALIAS
#endif

/* The declaration comes last: it may hold commas. */
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT
#define GASNETT_FORMAT_PRINTF(name, format, first, ...) __attribute__((__format__(__printf__, format, first))) __VA_ARGS__
#else
#define GASNETT_FORMAT_PRINTF(name, format, first, ...) __VA_ARGS__
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR
#define GASNETT_FORMAT_PRINTF_FUNCPTR(name, format, first, ...)                                                        \
  __VA_ARGS__ __attribute__((__format__(__printf__, format, first)))
#else
#define GASNETT_FORMAT_PRINTF_FUNCPTR(name, format, first, ...) __VA_ARGS__
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG
#define GASNETT_FORMAT_PRINTF_FUNCPTR_ARG(name, format, first, ...)                                                    \
  __VA_ARGS__ __attribute__((__format__(__printf__, format, first)))
#else
#define GASNETT_FORMAT_PRINTF_FUNCPTR_ARG(name, format, first, ...) __VA_ARGS__
#endif

/* ---- statements and expressions ---- */

/* It ends its own statement, so that it may stand with a semicolon and without. */
#if GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH
#define GASNETT_FALLTHROUGH __attribute__((__fallthrough__));
#else
#define GASNETT_FALLTHROUGH
#endif
#if GASNETT_USE_BUILTIN_EXPECT
#define GASNETT_PREDICT_TRUE(condition) __builtin_expect(!!(condition), 1)
#define GASNETT_PREDICT_FALSE(condition) __builtin_expect(!!(condition), 0)
#else
#define GASNETT_PREDICT_TRUE(condition) (!!(condition))
#define GASNETT_PREDICT_FALSE(condition) (!!(condition))
#endif
#define if_pt(condition) if (GASNETT_PREDICT_TRUE(condition))
#define if_pf(condition) if (GASNETT_PREDICT_FALSE(condition))

#if GASNETT_USE_BUILTIN_CONSTANT_P
#define gasnett_constant_p(expression) __builtin_constant_p(expression)
#else
#define gasnett_constant_p(expression) 0
#endif
#if GASNETT_USE_BUILTIN_PREFETCH
#define GASNETT_PREFETCH_READ_HINT(address) __builtin_prefetch((const void *)(address), 0)
#define GASNETT_PREFETCH_WRITE_HINT(address) __builtin_prefetch((const void *)(address), 1)
#else
#define GASNETT_PREFETCH_READ_HINT(address) ((void)0)
#define GASNETT_PREFETCH_WRITE_HINT(address) ((void)0)
#endif

#if defined(__cplusplus)
#define GASNETT_EXTERNC extern "C"
#define GASNETT_BEGIN_EXTERNC extern "C" {
#define GASNETT_END_EXTERNC }
#else
#define GASNETT_EXTERNC extern
#define GASNETT_BEGIN_EXTERNC
#define GASNETT_END_EXTERNC
#endif

#if GASWORKS_TOOLS_IS_GNU
#define GASNETT_RESTRICT __restrict__
#elif !defined(__cplusplus)
#define GASNETT_RESTRICT restrict
#else
#define GASNETT_RESTRICT
#endif
#define GASNETT_CURRENT_FUNCTION __func__

#define GASNETT_UNUSED_ARGS1(a) ((void)(a))
#define GASNETT_UNUSED_ARGS2(a, b) ((void)(a), (void)(b))
#define GASNETT_UNUSED_ARGS3(a, b, c) ((void)(a), (void)(b), (void)(c))
#define GASNETT_UNUSED_ARGS4(a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#define GASNETT_UNUSED_ARGS5(a, b, c, d, e) (GASNETT_UNUSED_ARGS4(a, b, c, d), (void)(e))
#define GASNETT_UNUSED_ARGS6(a, b, c, d, e, f) (GASNETT_UNUSED_ARGS4(a, b, c, d), GASNETT_UNUSED_ARGS2(e, f))
#define GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g) (GASNETT_UNUSED_ARGS4(a, b, c, d), GASNETT_UNUSED_ARGS3(e, f, g))
#define GASNETT_UNUSED_ARGS8(a, b, c, d, e, f, g, h)                                                                   \
  (GASNETT_UNUSED_ARGS4(a, b, c, d), GASNETT_UNUSED_ARGS4(e, f, g, h))

/* A string that stays in the binary, for tools that look for `$Name: value $`. */
#define GASNETT_IDENT(name, text) static char const name[] GASNETT_USED = text

/* Characters above 127 are negative where char is signed, and the functions of ctype.h do not take those. C alone: in
 * C++ the names are members of std. */
#if GASNETT_USE_CTYPE_WRAPPERS && !defined(__cplusplus)
#include <ctype.h>
#undef isalpha
#undef isalnum
#undef isdigit
#undef isspace
#undef isupper
#undef islower
#undef isprint
#undef isxdigit
#undef toupper
#undef tolower
#define isalpha(c) ((isalpha)((unsigned char)(c)))
#define isalnum(c) ((isalnum)((unsigned char)(c)))
#define isdigit(c) ((isdigit)((unsigned char)(c)))
#define isspace(c) ((isspace)((unsigned char)(c)))
#define isupper(c) ((isupper)((unsigned char)(c)))
#define islower(c) ((islower)((unsigned char)(c)))
#define isprint(c) ((isprint)((unsigned char)(c)))
#define isxdigit(c) ((isxdigit)((unsigned char)(c)))
#define toupper(c) ((toupper)((unsigned char)(c)))
#define tolower(c) ((tolower)((unsigned char)(c)))
#endif

#endif
