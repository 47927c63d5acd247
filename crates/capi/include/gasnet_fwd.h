/* Types and constants that need nothing else, and what is asked of whoever includes any of this. */
#ifndef GASNET_FWD_H
#define GASNET_FWD_H

#include <stddef.h>
#include <stdint.h>

#include <gasnet_config.h>
#include <gasworks_layout.h>

#if defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) != 1
#error A client of GASNet says how its threads communicate: one of -DGASNET_SEQ, -DGASNET_PARSYNC and -DGASNET_PAR
#endif
#if defined(GASNET_DEBUG) && defined(NDEBUG)
#error GASNET_DEBUG and NDEBUG contradict each other
#endif
#if defined(GASNET_DEBUG) && defined(__OPTIMIZE__)
#error GASNET_DEBUG is for builds without optimisation
#endif

/* Whichever way the mode was said, its macro is 1. */
#ifdef GASNET_SEQ
#undef GASNET_SEQ
#define GASNET_SEQ 1
#define GASWORKS_MODE seq
#define GASWORKS_MODE_STR "SEQ"
#elif defined(GASNET_PARSYNC)
#undef GASNET_PARSYNC
#define GASNET_PARSYNC 1
#define GASWORKS_MODE parsync
#define GASWORKS_MODE_STR "PARSYNC"
#else
#undef GASNET_PAR
#define GASNET_PAR 1
#define GASWORKS_MODE par
#define GASWORKS_MODE_STR "PAR"
#endif

#ifdef GASNET_DEBUG
#undef GASNET_DEBUG
#define GASNET_DEBUG 1
#define GASWORKS_DEBUG_STR "debug"
#else
#undef GASNET_NDEBUG
#define GASNET_NDEBUG 1
#define GASWORKS_DEBUG_STR "nodebug"
#endif

#ifdef __cplusplus
#define GASWORKS_BEGIN_C extern "C" {
#define GASWORKS_END_C }
#else
#define GASWORKS_BEGIN_C
#define GASWORKS_END_C
#endif

#if defined(__GNUC__)
#define GASWORKS_INLINE static inline __attribute__((unused, always_inline))
#define GASWORKS_LIKELY(cond) __builtin_expect(!!(cond), 1)
#define GASWORKS_USED __attribute__((used))
#define GASWORKS_NORETURN __attribute__((noreturn))
#else
#define GASWORKS_INLINE static inline
#define GASWORKS_LIKELY(cond) (cond)
#define GASWORKS_USED
#define GASWORKS_NORETURN
#endif

#define GASWORKS_CAT_(a, b) a##b
#define GASWORKS_CAT(a, b) GASWORKS_CAT_(a, b)

/* Ranks, and who is addressed. */
typedef uint32_t gex_Rank_t;
#define GEX_RANK_INVALID (~(gex_Rank_t)0)
typedef uint16_t gex_EP_Index_t;
typedef struct {
  gex_Rank_t gex_rank;
  gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;
typedef void *gex_Addr_t;
typedef uint32_t gex_Flags_t;

/* Handles. */
typedef struct gasworks_client *gex_Client_t;
typedef struct gasworks_ep *gex_EP_t;
typedef struct gasworks_tm *gex_TM_t;
typedef struct gasworks_segment *gex_Segment_t;
typedef struct gasworks_mk *gex_MK_t;
#define GEX_CLIENT_INVALID ((gex_Client_t)0)
#define GEX_EP_INVALID ((gex_EP_t)0)
#define GEX_TM_INVALID ((gex_TM_t)0)
#define GEX_SEGMENT_INVALID ((gex_Segment_t)0)
#define GEX_MK_INVALID ((gex_MK_t)0)
#define GEX_MK_HOST ((gex_MK_t)1)

/* Events. */
typedef struct gasworks_event *gex_Event_t;
#define GEX_EVENT_INVALID ((gex_Event_t)0)
#define GEX_EVENT_NO_OP ((gex_Event_t)1)
#define GEX_EVENT_NOW ((gex_Event_t *)1)
#define GEX_EVENT_DEFER ((gex_Event_t *)2)
#define GEX_EVENT_GROUP ((gex_Event_t *)3)
typedef unsigned int gex_EC_t;
#define GEX_EC_ALL (~(gex_EC_t)0)
#define GEX_EC_GET (1U << 2)
#define GEX_EC_PUT ((1U << 0) | (1U << 1))
#define GEX_EC_AM (1U << 1)
#define GEX_EC_LC (1U << 1)
#define GEX_EC_RMW (1U << 3)

/* Types of data, and operations on them. */
typedef uint32_t gex_DT_t;
#define GEX_DT_I32 (1U << 0)
#define GEX_DT_U32 (1U << 1)
#define GEX_DT_I64 (1U << 2)
#define GEX_DT_U64 (1U << 3)
#define GEX_DT_FLT (1U << 4)
#define GEX_DT_DBL (1U << 5)
#define GEX_DT_USER (1U << 6)
typedef uint32_t gex_OP_t;
#define GEX_OP_AND (1U << 0)
#define GEX_OP_OR (1U << 1)
#define GEX_OP_XOR (1U << 2)
#define GEX_OP_ADD (1U << 3)
#define GEX_OP_SUB (1U << 4)
#define GEX_OP_MULT (1U << 5)
#define GEX_OP_MIN (1U << 6)
#define GEX_OP_MAX (1U << 7)
#define GEX_OP_INC (1U << 8)
#define GEX_OP_DEC (1U << 9)
#define GEX_OP_SET (1U << 10)
#define GEX_OP_CAS (1U << 11)
#define GEX_OP_FAND (1U << 15)
#define GEX_OP_FOR (1U << 16)
#define GEX_OP_FXOR (1U << 17)
#define GEX_OP_FADD (1U << 18)
#define GEX_OP_FSUB (1U << 19)
#define GEX_OP_FMULT (1U << 20)
#define GEX_OP_FMIN (1U << 21)
#define GEX_OP_FMAX (1U << 22)
#define GEX_OP_FINC (1U << 23)
#define GEX_OP_FDEC (1U << 24)
#define GEX_OP_SWAP (1U << 25)
#define GEX_OP_FCAS (1U << 26)
#define GEX_OP_GET (1U << 27)
#define GEX_OP_USER (1U << 30)
#define GEX_OP_USER_NC (1U << 31)
#define GEX_OP_CSWAP GEX_OP_FCAS
#define GEX_OP_TO_FETCHING(op) ((gex_OP_t)(op) << 15)
#define GEX_OP_TO_NONFETCHING(op) ((gex_OP_t)(op) >> 15)

/* Flags: a bit may mean one thing in one call and another in the next. */
#define GASWORKS_FLAG(bit) (1U << (bit))
#define GEX_FLAG_IMMEDIATE GASWORKS_FLAG(0)
#define GEX_FLAG_SELF_SEG_UNKNOWN GASWORKS_FLAG(3)
#define GEX_FLAG_SELF_SEG_SOME GASWORKS_FLAG(4)
#define GEX_FLAG_SELF_SEG_BOUND GASWORKS_FLAG(5)
#define GEX_FLAG_SELF_SEG_OFFSET GASWORKS_FLAG(6)
#define GEX_FLAG_PEER_SEG_UNKNOWN GASWORKS_FLAG(7)
#define GEX_FLAG_PEER_SEG_SOME GASWORKS_FLAG(8)
#define GEX_FLAG_PEER_SEG_BOUND GASWORKS_FLAG(9)
#define GEX_FLAG_PEER_SEG_OFFSET GASWORKS_FLAG(10)
#define GEX_FLAG_PEER_NEVER_NBRHD GASWORKS_FLAG(14)
#define GEX_FLAG_PEER_NEVER_SELF GASWORKS_FLAG(15)
#define GEX_FLAG_AM_PREPARE_LEAST_CLIENT GASWORKS_FLAG(11)
#define GEX_FLAG_AM_PREPARE_LEAST_ALLOC GASWORKS_FLAG(12)
#define GEX_FLAG_AD_MY_RANK GASWORKS_FLAG(11)
#define GEX_FLAG_AD_MY_NBRHD GASWORKS_FLAG(12)
#define GEX_FLAG_AD_REL GASWORKS_FLAG(1)
#define GEX_FLAG_AD_ACQ GASWORKS_FLAG(2)
#define GEX_FLAG_AD_FAVOR_MY_RANK GASWORKS_FLAG(0)
#define GEX_FLAG_AD_FAVOR_MY_NBRHD GASWORKS_FLAG(1)
#define GEX_FLAG_AD_FAVOR_REMOTE GASWORKS_FLAG(2)
#define GEX_FLAG_RANK_IS_JOBRANK GASWORKS_FLAG(13)
#define GEX_FLAG_AM_SHORT GASWORKS_FLAG(0)
#define GEX_FLAG_AM_MEDIUM GASWORKS_FLAG(1)
#define GEX_FLAG_AM_LONG GASWORKS_FLAG(2)
#define GEX_FLAG_AM_MEDLONG (GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_LONG)
#define GEX_FLAG_AM_REQUEST GASWORKS_FLAG(3)
#define GEX_FLAG_AM_REPLY GASWORKS_FLAG(4)
#define GEX_FLAG_AM_REQREP (GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_REPLY)
#define GEX_FLAG_ENABLE_LEAF_LC GASWORKS_FLAG(11)
#define GEX_FLAG_USES_GASNET1 GASWORKS_FLAG(0)
#define GEX_FLAG_DEFER_THREADS GASWORKS_FLAG(1)
#define GEX_FLAG_TM_SCRATCH_SIZE_MIN GASWORKS_FLAG(0)
#define GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED GASWORKS_FLAG(1)
#define GEX_FLAG_TM_GLOBAL_SCRATCH GASWORKS_FLAG(2)
#define GEX_FLAG_TM_LOCAL_SCRATCH GASWORKS_FLAG(3)
#define GEX_FLAG_TM_SYMMETRIC_SCRATCH GASWORKS_FLAG(4)
#define GEX_FLAG_TM_NO_SCRATCH GASWORKS_FLAG(5)
#define GEX_FLAG_SCRATCH_SEG_OFFSET GASWORKS_FLAG(6)
#define GEX_FLAG_GLOBALLY_QUIESCED GASWORKS_FLAG(13)
#define GEX_FLAG_HINT_ACCEL_AD GASWORKS_FLAG(0)
#define GEX_FLAG_HINT_ACCEL_COLL GASWORKS_FLAG(1)
#define GEX_FLAG_HINT_ACCEL_ALL (0x3U)

typedef uint32_t gex_EP_Capabilities_t;
#define GEX_EP_CAPABILITY_RMA (1U << 0)
#define GEX_EP_CAPABILITY_AM (1U << 1)
#define GEX_EP_CAPABILITY_VIS (1U << 2)
#define GEX_EP_CAPABILITY_COLL (1U << 3)
#define GEX_EP_CAPABILITY_AD (1U << 4)
#define GEX_EP_CAPABILITY_ALL (0x1fU)

/* Active messages. */
typedef struct gasworks_token *gex_Token_t;
typedef uint8_t gex_AM_Index_t;
typedef int32_t gex_AM_Arg_t;
#define GEX_AM_INDEX_BASE 128
#if defined(__cplusplus)
typedef void (*gex_AM_Fn_t)();
#else
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef void (*gex_AM_Fn_t)();
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#endif
typedef struct {
  gex_AM_Index_t gex_index;
  gex_AM_Fn_t gex_fnptr;
  gex_Flags_t gex_flags;
  unsigned int gex_nargs;
  const void *gex_cdata;
  const char *gex_name;
} gex_AM_Entry_t;
typedef struct gasworks_source *gex_AM_SrcDesc_t;
#define GEX_AM_SRCDESC_NO_OP ((gex_AM_SrcDesc_t)0)
#define GASNET_SUPPORTS_AM_CANCEL 20240418L
#define GASNET_SUPPORTS_AM_COMMIT_V2 20240906L

typedef unsigned int gex_TI_t;
#define GEX_TI_SRCRANK (1U << 0)
#define GEX_TI_ENTRY (1U << 1)
#define GEX_TI_IS_REQ (1U << 2)
#define GEX_TI_IS_LONG (1U << 3)
#define GEX_TI_EP (1U << 4)
#define GEX_TI_ALL (0x1fU)
#define GASNET_SUPPORTS_TI_SRCRANK 1
#define GASNET_SUPPORTS_TI_ENTRY 1
#define GASNET_SUPPORTS_TI_IS_REQ 1
#define GASNET_SUPPORTS_TI_IS_LONG 1
#define GASNET_SUPPORTS_TI_EP 1
typedef struct {
  gex_Rank_t gex_srcrank;
  gex_EP_t gex_ep;
  const gex_AM_Entry_t *gex_entry;
  int gex_is_req;
  int gex_is_long;
} gex_Token_Info_t;

/* Put and get. */
typedef uint64_t gex_RMA_Value_t;
#define SIZEOF_GEX_RMA_VALUE_T 8
typedef struct {
  void *gex_addr;
  size_t gex_len;
} gex_Memvec_t;

/* Where ranks are, and threads of the library. */
typedef struct {
  gex_Rank_t gex_jobrank;
} gasworks_rank_info;
typedef const gasworks_rank_info gex_RankInfo_t;
typedef struct {
  const char *gex_device_list;
  unsigned int gex_thread_roles;
  void *(*gex_progress_fn)(void *);
  void *gex_progress_arg;
} gex_ProgressThreadInfo_t;
#define GEX_THREAD_ROLE_RCV 1
#define GEX_THREAD_ROLE_SND 2

/* Codes, ways of waiting, and the older barrier. */
#define GASNET_OK 0
#define GASNET_ERR_NOT_INIT 10001
#define GASNET_ERR_RESOURCE 10002
#define GASNET_ERR_BAD_ARG 10003
#define GASNET_ERR_NOT_READY 10004
#define GASNET_ERR_BARRIER_MISMATCH 10005
#define GASNET_WAIT_SPIN 0
#define GASNET_WAIT_BLOCK 1
#define GASNET_WAIT_SPINBLOCK 2
#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH 2
#define GASNET_BARRIERFLAG_UNNAMED 9

/* Of GASNet-1 what clients of GASNet-EX use, too. Programs fill the structures in by position. */
typedef gex_Rank_t gasnet_node_t;
typedef gex_AM_Index_t gasnet_handler_t;
typedef struct {
  gasnet_handler_t index;
  gex_AM_Fn_t fnptr;
} gasnet_handlerentry_t;
typedef struct {
  void *addr;
  uintptr_t size;
} gasnet_seginfo_t;
typedef struct {
  gasnet_node_t host;
  gasnet_node_t supernode;
  uintptr_t offset; /* what to add to an address there, to have it here */
} gasnet_nodeinfo_t;

/* Hints that a thread finds itself quickly; it does so without. */
typedef void *gasnet_threadinfo_t;
#define GASNET_BEGIN_FUNCTION() ((void)0)
#define GASNET_GET_THREADINFO() ((gasnet_threadinfo_t)0)
#define GASNET_POST_THREADINFO(info) ((void)(info))

/* Sizes in formats, and 64 bits as two arguments of a message. */
#ifndef PRIuSZ
#define PRIuSZ "zu"
#endif
#define GASNETI_HIWORD(x) ((uint32_t)((uint64_t)(x) >> 32))
#define GASNETI_LOWORD(x) ((uint32_t)(uint64_t)(x))
#define GASNETI_MAKEWORD(hi, lo) (((uint64_t)(uint32_t)(hi) << 32) | (uint32_t)(lo))

#endif
