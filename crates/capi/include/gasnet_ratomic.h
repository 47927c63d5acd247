/* Atomic operations on the memory of any rank. Included by gasnetex.h, which has their types and operations. */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H

#ifndef GASNETEX_H_INCLUDED
#error gasnet_ratomic.h is part of gasnetex.h: include that
#endif

/* A domain: the one team, type and set of operations by which words are reached atomically. */
typedef struct gasworks_ad *gex_AD_t;
#define GEX_AD_INVALID ((gex_AD_t)0)

GASWORKS_BEGIN_C

/* Declared only, so that a client of them compiles; the library does not have them, so it does not link. */

extern void gex_AD_Create(gex_AD_t *ad, gex_TM_t tm, gex_DT_t type, gex_OP_t ops, gex_Flags_t flags);
extern void gex_AD_Destroy(gex_AD_t ad);
extern void gex_AD_SetCData(gex_AD_t ad, const void *cdata);
extern void *gex_AD_QueryCData(gex_AD_t ad);
extern gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad);
extern gex_TM_t gex_AD_QueryTM(gex_AD_t ad);
extern gex_DT_t gex_AD_QueryDT(gex_AD_t ad);
extern gex_OP_t gex_AD_QueryOps(gex_AD_t ad);

extern gex_Event_t gex_AD_OpNB_I32(gex_AD_t ad, int32_t *result, gex_Rank_t rank, void *target, gex_OP_t op,
                                   int32_t operand1, int32_t operand2, gex_Flags_t flags);
extern int gex_AD_OpNBI_I32(gex_AD_t ad, int32_t *result, gex_Rank_t rank, void *target, gex_OP_t op, int32_t operand1,
                            int32_t operand2, gex_Flags_t flags);
extern gex_Event_t gex_AD_OpNB_U32(gex_AD_t ad, uint32_t *result, gex_Rank_t rank, void *target, gex_OP_t op,
                                   uint32_t operand1, uint32_t operand2, gex_Flags_t flags);
extern int gex_AD_OpNBI_U32(gex_AD_t ad, uint32_t *result, gex_Rank_t rank, void *target, gex_OP_t op,
                            uint32_t operand1, uint32_t operand2, gex_Flags_t flags);
extern gex_Event_t gex_AD_OpNB_I64(gex_AD_t ad, int64_t *result, gex_Rank_t rank, void *target, gex_OP_t op,
                                   int64_t operand1, int64_t operand2, gex_Flags_t flags);
extern int gex_AD_OpNBI_I64(gex_AD_t ad, int64_t *result, gex_Rank_t rank, void *target, gex_OP_t op, int64_t operand1,
                            int64_t operand2, gex_Flags_t flags);
extern gex_Event_t gex_AD_OpNB_U64(gex_AD_t ad, uint64_t *result, gex_Rank_t rank, void *target, gex_OP_t op,
                                   uint64_t operand1, uint64_t operand2, gex_Flags_t flags);
extern int gex_AD_OpNBI_U64(gex_AD_t ad, uint64_t *result, gex_Rank_t rank, void *target, gex_OP_t op,
                            uint64_t operand1, uint64_t operand2, gex_Flags_t flags);
extern gex_Event_t gex_AD_OpNB_FLT(gex_AD_t ad, float *result, gex_Rank_t rank, void *target, gex_OP_t op,
                                   float operand1, float operand2, gex_Flags_t flags);
extern int gex_AD_OpNBI_FLT(gex_AD_t ad, float *result, gex_Rank_t rank, void *target, gex_OP_t op, float operand1,
                            float operand2, gex_Flags_t flags);
extern gex_Event_t gex_AD_OpNB_DBL(gex_AD_t ad, double *result, gex_Rank_t rank, void *target, gex_OP_t op,
                                   double operand1, double operand2, gex_Flags_t flags);
extern int gex_AD_OpNBI_DBL(gex_AD_t ad, double *result, gex_Rank_t rank, void *target, gex_OP_t op, double operand1,
                            double operand2, gex_Flags_t flags);

GASWORKS_END_C

#endif
