/* Atomic integers, memory barriers and the hint for loops that spin. Included by gasnet_tools.h.
 *
 * Every operation takes a set of GASNETT_ATOMIC_ flags, usually a constant. ACQ and REL are the orderings of the
 * operation itself; the *_PRE and *_POST ones are fences of their own before and after it. With none it is relaxed. */
#ifndef GASWORKS_TOOLS_ATOMIC_H
#define GASWORKS_TOOLS_ATOMIC_H 1

#if !GASWORKS_TOOLS_IS_GNU
#error "gasnet_tools.h needs a compiler with the __atomic builtins of GCC"
#endif

#define GASNETT_ATOMIC_NONE 0
#define GASNETT_ATOMIC_REL (1 << 0)
#define GASNETT_ATOMIC_ACQ (1 << 1)
#define GASNETT_ATOMIC_ACQ_IF_TRUE (1 << 2)
#define GASNETT_ATOMIC_ACQ_IF_FALSE (1 << 3)
#define GASNETT_ATOMIC_RMB_PRE (1 << 4)
#define GASNETT_ATOMIC_WMB_PRE (1 << 5)
#define GASNETT_ATOMIC_RMB_POST (1 << 6)
#define GASNETT_ATOMIC_WMB_POST (1 << 7)
#define GASNETT_ATOMIC_RMB_POST_IF_TRUE (1 << 8)
#define GASNETT_ATOMIC_RMB_POST_IF_FALSE (1 << 9)
#define GASNETT_ATOMIC_MB_PRE (GASNETT_ATOMIC_RMB_PRE | GASNETT_ATOMIC_WMB_PRE)
#define GASNETT_ATOMIC_MB_POST (GASNETT_ATOMIC_RMB_POST | GASNETT_ATOMIC_WMB_POST)

#define GASNETT_HAVE_ATOMIC_ADD_SUB 1
#define GASNETT_HAVE_ATOMIC_CAS 1
#define GASNETT_HAVE_STRONGATOMIC_ADD_SUB 1
#define GASNETT_HAVE_STRONGATOMIC_CAS 1
/* All of them are instructions of the processor, so that these stay undefined. */
#undef GASNETT_STRONGATOMIC_NOT_SIGNALSAFE
#undef GASNETT_STRONGATOMIC32_NOT_SIGNALSAFE
#undef GASNETT_STRONGATOMIC64_NOT_SIGNALSAFE
#undef GASNETT_USING_GENERIC_ATOMICOPS

typedef uint32_t gasnett_atomic_val_t;
typedef int32_t gasnett_atomic_sval_t;
#define GASNETT_ATOMIC_MAX ((gasnett_atomic_val_t)-1)
#define GASNETT_ATOMIC_SIGNED_MAX ((gasnett_atomic_sval_t)(GASNETT_ATOMIC_MAX >> 1))
#define GASNETT_ATOMIC_SIGNED_MIN (-GASNETT_ATOMIC_SIGNED_MAX - 1)
#define gasnett_atomic_signed(v) ((gasnett_atomic_sval_t)(v))

/* ---- barriers. A release fence orders writes before later writes, and an acquire fence reads before later reads;
 * only the full one orders a write before a later read. ---- */

#define gasnett_compiler_fence() __asm__ __volatile__("" : : : "memory")
#if defined(__SANITIZE_THREAD__)
#define GASWORKS_TOOLS_FOR_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GASWORKS_TOOLS_FOR_TSAN 1
#endif
#endif
#if defined(GASWORKS_TOOLS_FOR_TSAN)
/* The sanitizer does not model fences; what it understands is an operation on one place that all share. */
GASNETT_EXTERNC int gasworks_tools_fence_place;
#define GASWORKS_TOOLS_FENCE(order) ((void)__atomic_fetch_add(&gasworks_tools_fence_place, 0, __ATOMIC_SEQ_CST))
#else
#define GASWORKS_TOOLS_FENCE(order) __atomic_thread_fence(order)
#endif
#define gasnett_local_wmb() GASWORKS_TOOLS_FENCE(__ATOMIC_RELEASE)
#define gasnett_local_rmb() GASWORKS_TOOLS_FENCE(__ATOMIC_ACQUIRE)
#define gasnett_local_mb() GASWORKS_TOOLS_FENCE(__ATOMIC_SEQ_CST)
#if GASNETT_THREAD_SAFE
#define gasnett_weak_wmb() gasnett_local_wmb()
#define gasnett_weak_rmb() gasnett_local_rmb()
#define gasnett_weak_mb() gasnett_local_mb()
#else
#define gasnett_weak_wmb() ((void)0)
#define gasnett_weak_rmb() ((void)0)
#define gasnett_weak_mb() ((void)0)
#endif

#if defined(PLATFORM_ARCH_X86_64) || defined(PLATFORM_ARCH_X86)
#define gasnett_spinloop_hint() __asm__ __volatile__("pause" : : : "memory")
#elif defined(PLATFORM_ARCH_AARCH64)
#define gasnett_spinloop_hint() __asm__ __volatile__("yield" : : : "memory")
#elif defined(PLATFORM_ARCH_POWERPC)
#define gasnett_spinloop_hint() __asm__ __volatile__("or 27,27,27" : : : "memory")
#else
#define gasnett_spinloop_hint() gasnett_compiler_fence()
#endif

GASNETT_INLINE(gasworks_tools_fence) void gasworks_tools_fence(int reads, int writes) {
  if (reads && writes) {
    gasnett_local_mb();
  } else if (writes) {
    gasnett_local_wmb();
  } else if (reads) {
    gasnett_local_rmb();
  }
}

GASNETT_INLINE(gasworks_tools_fence_before) void gasworks_tools_fence_before(int flags) {
  gasworks_tools_fence(flags & GASNETT_ATOMIC_RMB_PRE, flags & GASNETT_ATOMIC_WMB_PRE);
}

GASNETT_INLINE(gasworks_tools_fence_after) void gasworks_tools_fence_after(int flags) {
  gasworks_tools_fence(flags & GASNETT_ATOMIC_RMB_POST, flags & GASNETT_ATOMIC_WMB_POST);
}

/* After an operation with a yes or a no: the read fence may depend on it. */
GASNETT_INLINE(gasworks_tools_fence_result) int gasworks_tools_fence_result(int result, int flags) {
  const int wanted = result ? GASNETT_ATOMIC_RMB_POST_IF_TRUE : GASNETT_ATOMIC_RMB_POST_IF_FALSE;
  gasworks_tools_fence(flags & (GASNETT_ATOMIC_RMB_POST | wanted), flags & GASNETT_ATOMIC_WMB_POST);
  return result;
}

#define GASWORKS_TOOLS_ANY_ACQ (GASNETT_ATOMIC_ACQ | GASNETT_ATOMIC_ACQ_IF_TRUE | GASNETT_ATOMIC_ACQ_IF_FALSE)

/* A builtin wants its ordering as a constant, also where nothing is optimised: hence a branch for each. An acquire that
 * depends on the result is always made, which is more than was asked. */
#define GASWORKS_TOOLS_BY_ORDER(result, flags, operation)                                                              \
  do {                                                                                                                 \
    if (((flags) & GASWORKS_TOOLS_ANY_ACQ) && ((flags) & GASNETT_ATOMIC_REL)) {                                        \
      result = operation(__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);                                                          \
    } else if ((flags) & GASWORKS_TOOLS_ANY_ACQ) {                                                                     \
      result = operation(__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);                                                          \
    } else if ((flags) & GASNETT_ATOMIC_REL) {                                                                         \
      result = operation(__ATOMIC_RELEASE, __ATOMIC_RELAXED);                                                          \
    } else {                                                                                                           \
      result = operation(__ATOMIC_RELAXED, __ATOMIC_RELAXED);                                                          \
    }                                                                                                                  \
  } while (0)

/* What every kind has beside the operations that differ. The type is a structure, so that no plain integer passes. */
#define GASWORKS_TOOLS_ATOMIC_COMMON(NAME, VALUE)                                                                      \
  GASNETT_INLINE(NAME##_increment) void NAME##_increment(NAME##_t *p, int flags) { (void)NAME##_add(p, 1, flags); }    \
  GASNETT_INLINE(NAME##_decrement) void NAME##_decrement(NAME##_t *p, int flags) { (void)NAME##_subtract(p, 1, flags); }

/* A read that releases and a write that acquires order a write before a later read: a full fence alone does that. */
#define GASWORKS_TOOLS_TRUE_ATOMIC(NAME, VALUE)                                                                        \
  typedef struct {                                                                                                     \
    VALUE gasworks_value __attribute__((__aligned__(sizeof(VALUE))));                                                  \
  } NAME##_t;                                                                                                          \
  GASNETT_INLINE(NAME##_read) VALUE NAME##_read(NAME##_t const *p, int flags) {                                        \
    VALUE v;                                                                                                           \
    gasworks_tools_fence_before(flags & GASNETT_ATOMIC_REL ? GASNETT_ATOMIC_MB_PRE : flags);                           \
    if (flags & GASNETT_ATOMIC_ACQ) {                                                                                  \
      v = __atomic_load_n(&p->gasworks_value, __ATOMIC_ACQUIRE);                                                       \
    } else {                                                                                                           \
      v = __atomic_load_n(&p->gasworks_value, __ATOMIC_RELAXED);                                                       \
    }                                                                                                                  \
    gasworks_tools_fence_after(flags);                                                                                 \
    return v;                                                                                                          \
  }                                                                                                                    \
  GASNETT_INLINE(NAME##_set) void NAME##_set(NAME##_t *p, VALUE v, int flags) {                                        \
    gasworks_tools_fence_before(flags);                                                                                \
    if (flags & GASNETT_ATOMIC_REL) {                                                                                  \
      __atomic_store_n(&p->gasworks_value, v, __ATOMIC_RELEASE);                                                       \
    } else {                                                                                                           \
      __atomic_store_n(&p->gasworks_value, v, __ATOMIC_RELAXED);                                                       \
    }                                                                                                                  \
    gasworks_tools_fence_after(flags & GASNETT_ATOMIC_ACQ ? GASNETT_ATOMIC_MB_POST : flags);                           \
  }                                                                                                                    \
  GASWORKS_TOOLS_TRUE_RMW(NAME, VALUE, NAME##_add, __atomic_add_fetch)                                                 \
  GASWORKS_TOOLS_TRUE_RMW(NAME, VALUE, NAME##_subtract, __atomic_sub_fetch)                                            \
  GASWORKS_TOOLS_TRUE_RMW(NAME, VALUE, NAME##_swap, __atomic_exchange_n)                                               \
  GASNETT_INLINE(NAME##_compare_and_swap)                                                                              \
  int NAME##_compare_and_swap(NAME##_t *p, VALUE was, VALUE v, int flags) {                                            \
    int done;                                                                                                          \
    gasworks_tools_fence_before(flags);                                                                                \
    GASWORKS_TOOLS_BY_ORDER(done, flags, GASWORKS_TOOLS_CAS_);                                                         \
    return gasworks_tools_fence_result(done, flags);                                                                   \
  }                                                                                                                    \
  GASNETT_INLINE(NAME##_decrement_and_test) int NAME##_decrement_and_test(NAME##_t *p, int flags) {                    \
    VALUE left;                                                                                                        \
    gasworks_tools_fence_before(flags);                                                                                \
    GASWORKS_TOOLS_BY_ORDER(left, flags, GASWORKS_TOOLS_DECREMENT_);                                                   \
    return gasworks_tools_fence_result(left == 0, flags);                                                              \
  }                                                                                                                    \
  GASWORKS_TOOLS_ATOMIC_COMMON(NAME, VALUE)

#define GASWORKS_TOOLS_CAS_(order, failed)                                                                             \
  __atomic_compare_exchange_n(&p->gasworks_value, &was, v, 0, order, failed) ? 1 : 0
#define GASWORKS_TOOLS_DECREMENT_(order, failed) __atomic_sub_fetch(&p->gasworks_value, 1, order)

#define GASWORKS_TOOLS_TRUE_RMW(NAME, VALUE, FUNCTION, BUILTIN)                                                        \
  GASNETT_INLINE(FUNCTION) VALUE FUNCTION(NAME##_t *p, VALUE v, int flags) {                                           \
    VALUE result;                                                                                                      \
    gasworks_tools_fence_before(flags);                                                                                \
    if ((flags & GASNETT_ATOMIC_ACQ) && (flags & GASNETT_ATOMIC_REL)) {                                                \
      result = BUILTIN(&p->gasworks_value, v, __ATOMIC_ACQ_REL);                                                       \
    } else if (flags & GASNETT_ATOMIC_ACQ) {                                                                           \
      result = BUILTIN(&p->gasworks_value, v, __ATOMIC_ACQUIRE);                                                       \
    } else if (flags & GASNETT_ATOMIC_REL) {                                                                           \
      result = BUILTIN(&p->gasworks_value, v, __ATOMIC_RELEASE);                                                       \
    } else {                                                                                                           \
      result = BUILTIN(&p->gasworks_value, v, __ATOMIC_RELAXED);                                                       \
    }                                                                                                                  \
    gasworks_tools_fence_after(flags);                                                                                 \
    return result;                                                                                                     \
  }

/* For a program with one thread: plain integers, and no fences. */
#define GASWORKS_TOOLS_PLAIN_ATOMIC(NAME, VALUE)                                                                       \
  typedef struct {                                                                                                     \
    VALUE gasworks_value __attribute__((__aligned__(sizeof(VALUE))));                                                  \
  } NAME##_t;                                                                                                          \
  GASNETT_INLINE(NAME##_read) VALUE NAME##_read(NAME##_t const *p, int flags) {                                        \
    (void)flags;                                                                                                       \
    return p->gasworks_value;                                                                                          \
  }                                                                                                                    \
  GASNETT_INLINE(NAME##_set) void NAME##_set(NAME##_t *p, VALUE v, int flags) {                                        \
    (void)flags;                                                                                                       \
    p->gasworks_value = v;                                                                                             \
  }                                                                                                                    \
  GASNETT_INLINE(NAME##_add) VALUE NAME##_add(NAME##_t *p, VALUE v, int flags) {                                       \
    (void)flags;                                                                                                       \
    return p->gasworks_value += v;                                                                                     \
  }                                                                                                                    \
  GASNETT_INLINE(NAME##_subtract) VALUE NAME##_subtract(NAME##_t *p, VALUE v, int flags) {                             \
    (void)flags;                                                                                                       \
    return p->gasworks_value -= v;                                                                                     \
  }                                                                                                                    \
  GASNETT_INLINE(NAME##_swap) VALUE NAME##_swap(NAME##_t *p, VALUE v, int flags) {                                     \
    const VALUE was = p->gasworks_value;                                                                               \
    (void)flags;                                                                                                       \
    p->gasworks_value = v;                                                                                             \
    return was;                                                                                                        \
  }                                                                                                                    \
  GASNETT_INLINE(NAME##_compare_and_swap)                                                                              \
  int NAME##_compare_and_swap(NAME##_t *p, VALUE was, VALUE v, int flags) {                                            \
    const int same = p->gasworks_value == was;                                                                         \
    (void)flags;                                                                                                       \
    if (same) p->gasworks_value = v;                                                                                   \
    return same;                                                                                                       \
  }                                                                                                                    \
  GASNETT_INLINE(NAME##_decrement_and_test) int NAME##_decrement_and_test(NAME##_t *p, int flags) {                    \
    (void)flags;                                                                                                       \
    return --p->gasworks_value == 0;                                                                                   \
  }                                                                                                                    \
  GASWORKS_TOOLS_ATOMIC_COMMON(NAME, VALUE)

GASWORKS_TOOLS_TRUE_ATOMIC(gasnett_strongatomic, gasnett_atomic_val_t)
GASWORKS_TOOLS_TRUE_ATOMIC(gasnett_strongatomic32, uint32_t)
GASWORKS_TOOLS_TRUE_ATOMIC(gasnett_strongatomic64, uint64_t)
#if GASNETT_THREAD_SAFE
GASWORKS_TOOLS_TRUE_ATOMIC(gasnett_atomic, gasnett_atomic_val_t)
GASWORKS_TOOLS_TRUE_ATOMIC(gasnett_atomic32, uint32_t)
GASWORKS_TOOLS_TRUE_ATOMIC(gasnett_atomic64, uint64_t)
#else
GASWORKS_TOOLS_PLAIN_ATOMIC(gasnett_atomic, gasnett_atomic_val_t)
GASWORKS_TOOLS_PLAIN_ATOMIC(gasnett_atomic32, uint32_t)
GASWORKS_TOOLS_PLAIN_ATOMIC(gasnett_atomic64, uint64_t)
#endif

#define gasnett_atomic_init(v) {(gasnett_atomic_val_t)(v)}
#define gasnett_atomic32_init(v) {(uint32_t)(v)}
#define gasnett_atomic64_init(v) {(uint64_t)(v)}
#define gasnett_strongatomic_init(v) {(gasnett_atomic_val_t)(v)}
#define gasnett_strongatomic32_init(v) {(uint32_t)(v)}
#define gasnett_strongatomic64_init(v) {(uint64_t)(v)}

#endif
