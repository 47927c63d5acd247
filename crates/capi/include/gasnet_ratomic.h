/* Atomic operations on the memory of any rank. Included by gasnetex.h, which has their types and operations. Where the processor does them on a
   segment that is mapped, an operation that the compiler knows is the processor's own, here and without a call. */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H

#ifndef GASNETEX_H_INCLUDED
#error gasnet_ratomic.h is part of gasnetex.h: include that
#endif

/* A domain: the one team, type and set of operations by which words are reached atomically. */
typedef struct gasworks_ad *gex_AD_t;
#define GEX_AD_INVALID ((gex_AD_t)0)

GASWORKS_BEGIN_C

extern void gex_AD_Create(gex_AD_t *ad, gex_TM_t tm, gex_DT_t type, gex_OP_t ops, gex_Flags_t flags);
extern void gex_AD_Destroy(gex_AD_t ad);
GASWORKS_MAKE_OBJECT(AD, ad)
GASWORKS_INLINE gex_TM_t gex_AD_QueryTM(gex_AD_t ad) {
  GASWORKS_CHECK(ad, ad);
  return ad->team;
}
GASWORKS_INLINE gex_DT_t gex_AD_QueryDT(gex_AD_t ad) {
  GASWORKS_CHECK(ad, ad);
  return ad->of;
}
GASWORKS_INLINE gex_OP_t gex_AD_QueryOps(gex_AD_t ad) {
  GASWORKS_CHECK(ad, ad);
  return ad->operations;
}

/* What is more than an operation of the processor's. Operands are bits. */
extern gex_Event_t gasworks_ad_nb(gex_AD_t ad, gex_DT_t of, void *result, gex_Rank_t rank, void *target, gex_OP_t op,
                                  uint64_t operand1, uint64_t operand2, gex_Flags_t flags);
extern int gasworks_ad_nbi(gex_AD_t ad, gex_DT_t of, void *result, gex_Rank_t rank, void *target, gex_OP_t op,
                           uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

#define GASWORKS_OP_BITWISE (GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR)
#define GASWORKS_OP_PLAIN ((GEX_OP_CAS << 1) - 1)
#define GASWORKS_OP_FETCHING (GEX_OP_TO_FETCHING(GASWORKS_OP_PLAIN) | GEX_OP_GET)
#define GASWORKS_OP_INTEGER (GASWORKS_OP_PLAIN | GASWORKS_OP_FETCHING)
#define GASWORKS_OP_FLOAT (GASWORKS_OP_INTEGER & ~(GASWORKS_OP_BITWISE | GEX_OP_TO_FETCHING(GASWORKS_OP_BITWISE)))

/* The bits of a value in a word's, and back. */
#define GASWORKS_MAKE_BITS(of, type, width)                           \
  GASWORKS_INLINE uint##width##_t gasworks_ad_bits_##of(type value) { \
    uint##width##_t bits;                                             \
    memcpy(&bits, &value, sizeof bits);                               \
    return bits;                                                      \
  }                                                                   \
  GASWORKS_INLINE type gasworks_ad_of_bits_##of(uint##width##_t bits) { \
    type value;                                                       \
    memcpy(&value, &bits, sizeof value);                              \
    return value;                                                     \
  }

#if defined(__GNUC__) && !defined(GASNET_DEBUG)
/* Words, whatever the program takes them for. */
typedef uint32_t gasworks_word32 __attribute__((may_alias));
typedef uint64_t gasworks_word64 __attribute__((may_alias));

/* Whether the processor does the domain's operations on a rank's words, and where this one is mapped here: as gasworks_open, by the domain's
   own rows. */
GASWORKS_INLINE int gasworks_ad_open(gex_AD_t ad, gex_DT_t of, const void *result, gex_Rank_t rank, const void *there,
                                     size_t len, gex_OP_t op, gex_Flags_t flags, unsigned char **here) {
  const char *rows;
  intptr_t pitch;
  if (!GASWORKS_LIKELY(ad)) return 0;
  rows = flags & GEX_FLAG_RANK_IS_JOBRANK ? ad->job_rows : ad->rows;
  pitch = flags & GEX_FLAG_RANK_IS_JOBRANK ? ad->job_pitch : ad->pitch;
#ifdef GASWORKS_CHECKED
  if (rank >= (flags & GEX_FLAG_RANK_IS_JOBRANK ? gasworks_tm0() : ad->team)->size) return 0;
  if (ad->of != of || !(ad->operations & op) || (uintptr_t)there % len) return 0;
  if (op & GASWORKS_OP_FETCHING && !result) return 0;
  if (flags & (GEX_FLAG_AD_MY_RANK | GEX_FLAG_AD_MY_NBRHD)) return 0;
#else
  (void)of, (void)result, (void)op;
#endif
  return gasworks_row_open((const struct gasworks_row *)(const void *)(rows + (intptr_t)rank * pitch), there, len,
                           here);
}

/* An instruction of the processor's. */
#define GASWORKS_AD_DOES(OP, does) \
  case GEX_OP_##OP:                \
  case GEX_OP_F##OP:               \
    was = does;                    \
    break;
/* What is none: tried until nothing comes between. */
#define GASWORKS_AD_TRIES(OP, becomes)                                                                         \
  case GEX_OP_##OP:                                                                                            \
  case GEX_OP_F##OP:                                                                                           \
    was = __atomic_load_n(word, __ATOMIC_RELAXED);                                                             \
    while (!__atomic_compare_exchange_n(word, &was, becomes, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue; \
    break;
#define GASWORKS_AD_TRIES_VALUE(OP, of, becomes) GASWORKS_AD_TRIES(OP, gasworks_ad_bits_##of(becomes))
#define GASWORKS_AD_VALUE(of) gasworks_ad_of_bits_##of(was)

#define GASWORKS_AD_BOTH(of)                                                                              \
  GASWORKS_AD_TRIES_VALUE(MIN, of, GASWORKS_AD_VALUE(of) < operand1 ? GASWORKS_AD_VALUE(of) : operand1)   \
  GASWORKS_AD_TRIES_VALUE(MAX, of, GASWORKS_AD_VALUE(of) > operand1 ? GASWORKS_AD_VALUE(of) : operand1)
#define GASWORKS_AD_INTEGER(of)                                            \
  GASWORKS_AD_DOES(AND, __atomic_fetch_and(word, first, __ATOMIC_RELAXED)) \
  GASWORKS_AD_DOES(OR, __atomic_fetch_or(word, first, __ATOMIC_RELAXED))   \
  GASWORKS_AD_DOES(XOR, __atomic_fetch_xor(word, first, __ATOMIC_RELAXED)) \
  GASWORKS_AD_DOES(ADD, __atomic_fetch_add(word, first, __ATOMIC_RELAXED)) \
  GASWORKS_AD_DOES(SUB, __atomic_fetch_sub(word, first, __ATOMIC_RELAXED)) \
  GASWORKS_AD_DOES(INC, __atomic_fetch_add(word, 1, __ATOMIC_RELAXED))     \
  GASWORKS_AD_DOES(DEC, __atomic_fetch_sub(word, 1, __ATOMIC_RELAXED))     \
  GASWORKS_AD_TRIES(MULT, was * first)                                     \
  GASWORKS_AD_BOTH(of)
#define GASWORKS_AD_FLOAT(of)                                            \
  GASWORKS_AD_TRIES_VALUE(ADD, of, GASWORKS_AD_VALUE(of) + operand1)     \
  GASWORKS_AD_TRIES_VALUE(SUB, of, GASWORKS_AD_VALUE(of) - operand1)     \
  GASWORKS_AD_TRIES_VALUE(INC, of, GASWORKS_AD_VALUE(of) + 1)            \
  GASWORKS_AD_TRIES_VALUE(DEC, of, GASWORKS_AD_VALUE(of) - 1)            \
  GASWORKS_AD_TRIES_VALUE(MULT, of, GASWORKS_AD_VALUE(of) * operand1)    \
  GASWORKS_AD_BOTH(of)

/* Does an operation here, if it can be done here, and says whether it has. Nothing is put into an order that no flag asks for. Where the compiler
   does not know which one it is, all of them stand in one function, and not wherever it is called. */
#define GASWORKS_MAKE_HERE(of, type, width, family)                                                                   \
  GASWORKS_INLINE int gasworks_ad_does_##of(gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op,    \
                                            type operand1, type operand2, gex_Flags_t flags) {                        \
    unsigned char *here = NULL;                                                                                       \
    gasworks_word##width *word;                                                                                       \
    uint##width##_t first = gasworks_ad_bits_##of(operand1), second = gasworks_ad_bits_##of(operand2), was = 0;       \
    if (op & (op - 1) || !(op & GASWORKS_OP_##family)) return 0;                                                      \
    if (!gasworks_ad_open(ad, GEX_DT_##of, result, rank, target, sizeof(type), op, flags, &here)) return 0;           \
    word = (gasworks_word##width *)(void *)here;                                                                      \
    if (flags & GEX_FLAG_AD_REL) __atomic_thread_fence(__ATOMIC_RELEASE);                                             \
    switch (op) {                                                                                                     \
      GASWORKS_AD_##family(of)                                                                                        \
      case GEX_OP_SET:                                                                                                \
        __atomic_store_n(word, first, __ATOMIC_RELAXED);                                                              \
        break;                                                                                                        \
      case GEX_OP_SWAP:                                                                                               \
        was = __atomic_exchange_n(word, first, __ATOMIC_RELAXED);                                                     \
        break;                                                                                                        \
      case GEX_OP_GET:                                                                                                \
        was = __atomic_load_n(word, __ATOMIC_RELAXED);                                                                \
        break;                                                                                                        \
      case GEX_OP_CAS:                                                                                                \
      case GEX_OP_FCAS:                                                                                               \
        was = first;                                                                                                  \
        (void)__atomic_compare_exchange_n(word, &was, second, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                 \
        break;                                                                                                        \
    }                                                                                                                 \
    if (flags & GEX_FLAG_AD_ACQ) __atomic_thread_fence(__ATOMIC_ACQUIRE);                                             \
    if (op & GASWORKS_OP_FETCHING) *result = gasworks_ad_of_bits_##of(was);                                           \
    return 1;                                                                                                         \
  }                                                                                                                   \
  static __attribute__((unused, noinline)) int gasworks_ad_any_##of(                                                  \
      gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op, type operand1, type operand2,            \
      gex_Flags_t flags) {                                                                                            \
    return gasworks_ad_does_##of(ad, result, rank, target, op, operand1, operand2, flags);                            \
  }                                                                                                                   \
  GASWORKS_INLINE int gasworks_ad_here_##of(gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op,    \
                                            type operand1, type operand2, gex_Flags_t flags) {                        \
    return __builtin_constant_p(op) ? gasworks_ad_does_##of(ad, result, rank, target, op, operand1, operand2, flags)  \
                                    : gasworks_ad_any_##of(ad, result, rank, target, op, operand1, operand2, flags);  \
  }
#else
/* The library does all of it. */
#define GASWORKS_MAKE_HERE(of, type, width, family)                                                                \
  GASWORKS_INLINE int gasworks_ad_here_##of(gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op, \
                                            type operand1, type operand2, gex_Flags_t flags) {                     \
    (void)ad, (void)result, (void)rank, (void)target, (void)op, (void)operand1, (void)operand2, (void)flags;       \
    return 0;                                                                                                      \
  }
#endif

#define GASWORKS_MAKE_AD(of, type, width, family)                                                                     \
  GASWORKS_MAKE_BITS(of, type, width)                                                                                 \
  GASWORKS_MAKE_HERE(of, type, width, family)                                                                         \
  GASWORKS_INLINE gex_Event_t gex_AD_OpNB_##of(gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op, \
                                               type operand1, type operand2, gex_Flags_t flags) {                     \
    if (GASWORKS_LIKELY(gasworks_ad_here_##of(ad, result, rank, target, op, operand1, operand2, flags)))              \
      return GEX_EVENT_INVALID;                                                                                       \
    return gasworks_ad_nb(ad, GEX_DT_##of, result, rank, target, op, gasworks_ad_bits_##of(operand1),                 \
                          gasworks_ad_bits_##of(operand2), flags);                                                    \
  }                                                                                                                   \
  GASWORKS_INLINE int gex_AD_OpNBI_##of(gex_AD_t ad, type *result, gex_Rank_t rank, void *target, gex_OP_t op,        \
                                        type operand1, type operand2, gex_Flags_t flags) {                            \
    if (GASWORKS_LIKELY(gasworks_ad_here_##of(ad, result, rank, target, op, operand1, operand2, flags))) return 0;    \
    return gasworks_ad_nbi(ad, GEX_DT_##of, result, rank, target, op, gasworks_ad_bits_##of(operand1),                \
                           gasworks_ad_bits_##of(operand2), flags);                                                   \
  }
GASWORKS_MAKE_AD(I32, int32_t, 32, INTEGER)
GASWORKS_MAKE_AD(U32, uint32_t, 32, INTEGER)
GASWORKS_MAKE_AD(I64, int64_t, 64, INTEGER)
GASWORKS_MAKE_AD(U64, uint64_t, 64, INTEGER)
GASWORKS_MAKE_AD(FLT, float, 32, FLOAT)
GASWORKS_MAKE_AD(DBL, double, 64, FLOAT)

GASWORKS_END_C

#endif
