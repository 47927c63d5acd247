/* Every name of remote atomics, used once: that this compiles says that all are declared, and of which type. */
#include <gasnetex.h>

gex_AD_t names_ad = GEX_AD_INVALID;

gex_DT_t names_ad_types[] = {GEX_DT_I32, GEX_DT_U32, GEX_DT_I64, GEX_DT_U64, GEX_DT_FLT, GEX_DT_DBL};
gex_OP_t names_ad_ops[] = {
    GEX_OP_AND,   GEX_OP_OR,    GEX_OP_XOR,   GEX_OP_ADD,   GEX_OP_SUB,   GEX_OP_MULT,  GEX_OP_MIN,
    GEX_OP_MAX,   GEX_OP_INC,   GEX_OP_DEC,   GEX_OP_SET,   GEX_OP_CAS,   GEX_OP_FAND,  GEX_OP_FOR,
    GEX_OP_FXOR,  GEX_OP_FADD,  GEX_OP_FSUB,  GEX_OP_FMULT, GEX_OP_FMIN,  GEX_OP_FMAX,  GEX_OP_FINC,
    GEX_OP_FDEC,  GEX_OP_SWAP,  GEX_OP_FCAS,  GEX_OP_GET,   GEX_OP_CSWAP,
};
gex_Flags_t names_ad_flags[] = {
    GEX_FLAG_AD_MY_RANK,       GEX_FLAG_AD_MY_NBRHD,       GEX_FLAG_AD_REL,          GEX_FLAG_AD_ACQ,
    GEX_FLAG_AD_FAVOR_MY_RANK, GEX_FLAG_AD_FAVOR_MY_NBRHD, GEX_FLAG_AD_FAVOR_REMOTE, GEX_FLAG_RANK_IS_JOBRANK,
};

/* The two maps are constant expressions, and undo each other. */
#define NAMES_PARTNERS(plain, fetching) \
  (GEX_OP_TO_FETCHING(plain) == (fetching) && GEX_OP_TO_NONFETCHING(fetching) == (plain))
char names_ad_add[NAMES_PARTNERS(GEX_OP_ADD, GEX_OP_FADD) ? 1 : -1];
char names_ad_set[NAMES_PARTNERS(GEX_OP_SET, GEX_OP_SWAP) ? 1 : -1];
char names_ad_cas[NAMES_PARTNERS(GEX_OP_CAS, GEX_OP_CSWAP) ? 1 : -1];

void (*names_ad_create)(gex_AD_t *, gex_TM_t, gex_DT_t, gex_OP_t, gex_Flags_t) = gex_AD_Create;
void (*names_ad_destroy)(gex_AD_t) = gex_AD_Destroy;
void (*names_ad_set_cdata)(gex_AD_t, const void *) = gex_AD_SetCData;
void *(*names_ad_query_cdata)(gex_AD_t) = gex_AD_QueryCData;
gex_Flags_t (*names_ad_query_flags)(gex_AD_t) = gex_AD_QueryFlags;
gex_TM_t (*names_ad_query_tm)(gex_AD_t) = gex_AD_QueryTM;
gex_DT_t (*names_ad_query_dt)(gex_AD_t) = gex_AD_QueryDT;
gex_OP_t (*names_ad_query_ops)(gex_AD_t) = gex_AD_QueryOps;

/* An operation, with an event and without, on one type. */
#define NAMES_OP(name, type, nb, nbi)                                                                  \
  gex_Event_t (*name##_nb)(gex_AD_t, type *, gex_Rank_t, void *, gex_OP_t, type, type, gex_Flags_t) = nb;         \
  int (*name##_nbi)(gex_AD_t, type *, gex_Rank_t, void *, gex_OP_t, type, type, gex_Flags_t) = nbi
NAMES_OP(names_ad_i32, int32_t, gex_AD_OpNB_I32, gex_AD_OpNBI_I32);
NAMES_OP(names_ad_u32, uint32_t, gex_AD_OpNB_U32, gex_AD_OpNBI_U32);
NAMES_OP(names_ad_i64, int64_t, gex_AD_OpNB_I64, gex_AD_OpNBI_I64);
NAMES_OP(names_ad_u64, uint64_t, gex_AD_OpNB_U64, gex_AD_OpNBI_U64);
NAMES_OP(names_ad_flt, float, gex_AD_OpNB_FLT, gex_AD_OpNBI_FLT);
NAMES_OP(names_ad_dbl, double, gex_AD_OpNB_DBL, gex_AD_OpNBI_DBL);
