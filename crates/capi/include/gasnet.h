/* GASNet-1, over GASNet-EX: nodes are the ranks of the first team, and handles are events. */
#ifndef _INCLUDED_GASNET_H
#define _INCLUDED_GASNET_H 1

#include <gasnetex.h>
#include <gasnet_tools.h>
#ifdef GASNET_DEBUG
#define GASWORKS_OWN_CALLS
#include <gasworks_debug.h>
#endif

typedef gex_Token_t gasnet_token_t;
typedef gex_AM_Arg_t gasnet_handlerarg_t;
typedef gex_RMA_Value_t gasnet_register_value_t;
#define SIZEOF_GASNET_REGISTER_VALUE_T 8
typedef gex_Event_t gasnet_handle_t;
#define GASNET_INVALID_HANDLE GEX_EVENT_INVALID
typedef struct gasworks_legacy_valget *gasnet_valget_handle_t;

typedef struct {
  void *addr;
  size_t len;
} gasnet_memvec_t;

typedef gex_HSL_t gasnet_hsl_t;
#define GASNET_HSL_INITIALIZER GEX_HSL_INITIALIZER
#define gasnet_hsl_init(lock) gex_HSL_Init(lock)
#define gasnet_hsl_destroy(lock) gex_HSL_Destroy(lock)
#define gasnet_hsl_lock(lock) gex_HSL_Lock(lock)
#define gasnet_hsl_unlock(lock) gex_HSL_Unlock(lock)
#define gasnet_hsl_trylock(lock) gex_HSL_Trylock(lock)

GASWORKS_BEGIN_C

/* What only GASNet-1 asks of the library. */
extern int gasworks_legacy_attach(gasnet_handlerentry_t *table, int count, uintptr_t segment_size);
extern int gasworks_legacy_segment_info(gasnet_seginfo_t *info, int count);
extern int gasworks_legacy_node_info(gasnet_nodeinfo_t *info, int count);
extern gasnet_handle_t gasworks_legacy_memset_nb(gasnet_node_t node, void *dest, int value, size_t len);
extern void gasworks_legacy_memset_nbi(gasnet_node_t node, void *dest, int value, size_t len);
extern gasnet_valget_handle_t gasworks_legacy_valget_begin(gasnet_node_t node, void *source, size_t len);
extern gasnet_register_value_t gasworks_legacy_valget_end(gasnet_valget_handle_t handle);

/* The job. */
GASWORKS_INLINE int gasnet_init(int *argc, char ***argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  return gex_Client_Init(&client, &ep, &tm, "LEGACY", argc, argv, GEX_FLAG_USES_GASNET1);
}
/* Nothing is kept free below a segment: the heap grows elsewhere. */
GASWORKS_INLINE int gasnet_attach(gasnet_handlerentry_t *table, int count, uintptr_t segment_size,
                                  uintptr_t min_heap_offset) {
  (void)min_heap_offset;
  return gasworks_legacy_attach(table, count, segment_size);
}
/* The objects behind GASNet-1, for a program that uses both. */
GASWORKS_INLINE void gasnet_QueryGexObjects(gex_Client_t *client, gex_EP_t *ep, gex_TM_t *tm, gex_Segment_t *segment) {
  if (client) *client = gasworks_client0();
  if (ep) *ep = gasworks_ep0();
  if (tm) *tm = gasworks_tm0();
  if (segment) *segment = gex_EP_QuerySegment(gasworks_ep0());
}
GASWORKS_INLINE gasnet_node_t gasnet_mynode(void) { return gex_System_QueryJobRank(); }
GASWORKS_INLINE gasnet_node_t gasnet_nodes(void) { return gex_System_QueryJobSize(); }
/* A name from inside GASNet that some programs read. */
#define gasneti_mynode (gasnet_mynode())
GASWORKS_INLINE int gasnet_getSegmentInfo(gasnet_seginfo_t *info, int count) {
  return gasworks_legacy_segment_info(info, count);
}
GASWORKS_INLINE int gasnet_getNodeInfo(gasnet_nodeinfo_t *info, int count) {
  return gasworks_legacy_node_info(info, count);
}
/* No handler interrupts a program. */
GASWORKS_INLINE void gasnet_hold_interrupts(void) {}
GASWORKS_INLINE void gasnet_resume_interrupts(void) {}

/* Active messages: limits that hold towards every node, and senders. */
GASWORKS_INLINE size_t gasnet_AMMaxArgs(void) { return gex_AM_MaxArgs(); }
GASWORKS_INLINE size_t gasnet_AMMaxMedium(void) {
  size_t request = gex_AM_LUBRequestMedium();
  size_t reply = gex_AM_LUBReplyMedium();
  return request < reply ? request : reply;
}
GASWORKS_INLINE size_t gasnet_AMMaxLongRequest(void) { return gex_AM_LUBRequestLong(); }
GASWORKS_INLINE size_t gasnet_AMMaxLongReply(void) { return gex_AM_LUBReplyLong(); }
GASWORKS_INLINE int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *node) {
  gex_Token_Info_t info;
  (void)gex_Token_Info(token, &info, GEX_TI_SRCRANK);
  *node = info.gex_srcrank;
  return GASNET_OK;
}

/* gasnet_AMRequestShort0 to gasnet_AMRequestShort16, and the other kinds. LongAsync leaves its source as Long does. */
#define GASWORKS_LEGACY_MAKE_AM(n)                                                                                    \
  GASWORKS_INLINE int gasnet_AMRequestShort##n(gasnet_node_t node, gasnet_handler_t handler GASWORKS_PARAMETERS_##n) { \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                              \
    return gasworks_request_short(gasworks_tm0(), node, handler, 0, args, n);                                         \
  }                                                                                                                   \
  GASWORKS_INLINE int gasnet_AMRequestMedium##n(gasnet_node_t node, gasnet_handler_t handler, const void *source,     \
                                                size_t len GASWORKS_PARAMETERS_##n) {                                 \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                              \
    return gasworks_request_medium(gasworks_tm0(), node, handler, source, len, GEX_EVENT_NOW, 0, args, n);            \
  }                                                                                                                   \
  GASWORKS_INLINE int gasnet_AMRequestLong##n(gasnet_node_t node, gasnet_handler_t handler, const void *source,       \
                                              size_t len, void *dest GASWORKS_PARAMETERS_##n) {                       \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                              \
    return gasworks_request_long(gasworks_tm0(), node, handler, source, len, dest, GEX_EVENT_NOW, 0, args, n);        \
  }                                                                                                                   \
  GASWORKS_INLINE int gasnet_AMRequestLongAsync##n(gasnet_node_t node, gasnet_handler_t handler, const void *source,  \
                                                   size_t len, void *dest GASWORKS_PARAMETERS_##n) {                  \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                              \
    return gasworks_request_long(gasworks_tm0(), node, handler, source, len, dest, GEX_EVENT_NOW, 0, args, n);        \
  }                                                                                                                   \
  GASWORKS_INLINE int gasnet_AMReplyShort##n(gasnet_token_t token, gasnet_handler_t handler GASWORKS_PARAMETERS_##n) { \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                              \
    return gasworks_reply_short(token, handler, 0, args, n);                                                          \
  }                                                                                                                   \
  GASWORKS_INLINE int gasnet_AMReplyMedium##n(gasnet_token_t token, gasnet_handler_t handler, const void *source,     \
                                              size_t len GASWORKS_PARAMETERS_##n) {                                   \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                              \
    return gasworks_reply_medium(token, handler, source, len, GEX_EVENT_NOW, 0, args, n);                             \
  }                                                                                                                   \
  GASWORKS_INLINE int gasnet_AMReplyLong##n(gasnet_token_t token, gasnet_handler_t handler, const void *source,       \
                                            size_t len, void *dest GASWORKS_PARAMETERS_##n) {                         \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                              \
    return gasworks_reply_long(token, handler, source, len, dest, GEX_EVENT_NOW, 0, args, n);                         \
  }
GASWORKS_EACH_COUNT(GASWORKS_LEGACY_MAKE_AM)

/* The forms that count. */
#define GASWORKS_COUNT_2(...) GASWORKS_COUNT_3(0, __VA_ARGS__)
#define gasnet_AMRequestShort(...) GASWORKS_COUNTED(gasnet_AMRequestShort, GASWORKS_COUNT_2(__VA_ARGS__), __VA_ARGS__)
#define gasnet_AMRequestMedium(...) GASWORKS_COUNTED(gasnet_AMRequestMedium, GASWORKS_COUNT_4(__VA_ARGS__), __VA_ARGS__)
#define gasnet_AMRequestLong(...) GASWORKS_COUNTED(gasnet_AMRequestLong, GASWORKS_COUNT_5(__VA_ARGS__), __VA_ARGS__)
#define gasnet_AMRequestLongAsync(...) \
  GASWORKS_COUNTED(gasnet_AMRequestLongAsync, GASWORKS_COUNT_5(__VA_ARGS__), __VA_ARGS__)
#define gasnet_AMReplyShort(...) GASWORKS_COUNTED(gasnet_AMReplyShort, GASWORKS_COUNT_2(__VA_ARGS__), __VA_ARGS__)
#define gasnet_AMReplyMedium(...) GASWORKS_COUNTED(gasnet_AMReplyMedium, GASWORKS_COUNT_4(__VA_ARGS__), __VA_ARGS__)
#define gasnet_AMReplyLong(...) GASWORKS_COUNTED(gasnet_AMReplyLong, GASWORKS_COUNT_5(__VA_ARGS__), __VA_ARGS__)

/* Put and get, done at return. Nothing is aligned in either form, so here _bulk changes nothing. */
GASWORKS_INLINE void gasnet_put(gasnet_node_t node, void *dest, const void *source, size_t len) {
  (void)gex_RMA_PutBlocking(gasworks_tm0(), node, dest, source, len, 0);
}
GASWORKS_INLINE void gasnet_put_bulk(gasnet_node_t node, void *dest, const void *source, size_t len) {
  (void)gex_RMA_PutBlocking(gasworks_tm0(), node, dest, source, len, 0);
}
GASWORKS_INLINE void gasnet_get(void *dest, gasnet_node_t node, void *source, size_t len) {
  (void)gex_RMA_GetBlocking(gasworks_tm0(), dest, node, source, len, 0);
}
GASWORKS_INLINE void gasnet_get_bulk(void *dest, gasnet_node_t node, void *source, size_t len) {
  (void)gex_RMA_GetBlocking(gasworks_tm0(), dest, node, source, len, 0);
}
GASWORKS_INLINE void gasnet_memset(gasnet_node_t node, void *dest, int value, size_t len) {
  gex_Event_Wait(gasworks_legacy_memset_nb(node, dest, value, len));
}
GASWORKS_INLINE void gasnet_put_val(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t len) {
  (void)gex_RMA_PutBlockingVal(gasworks_tm0(), node, dest, value, len, 0);
}
GASWORKS_INLINE gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void *source, size_t len) {
  return gex_RMA_GetBlockingVal(gasworks_tm0(), node, source, len, 0);
}

/* With a handle. The source of a put is free at return, and that of a _bulk put when the handle is done. */
GASWORKS_INLINE gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void *dest, const void *source, size_t len) {
  return gex_RMA_PutNB(gasworks_tm0(), node, dest, source, len, GEX_EVENT_NOW, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t node, void *dest, const void *source, size_t len) {
  return gex_RMA_PutNB(gasworks_tm0(), node, dest, source, len, GEX_EVENT_DEFER, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_get_nb(void *dest, gasnet_node_t node, void *source, size_t len) {
  return gex_RMA_GetNB(gasworks_tm0(), dest, node, source, len, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_get_nb_bulk(void *dest, gasnet_node_t node, void *source, size_t len) {
  return gex_RMA_GetNB(gasworks_tm0(), dest, node, source, len, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void *dest, int value, size_t len) {
  return gasworks_legacy_memset_nb(node, dest, value, len);
}
GASWORKS_INLINE gasnet_handle_t gasnet_put_nb_val(gasnet_node_t node, void *dest, gasnet_register_value_t value,
                                                  size_t len) {
  return gex_RMA_PutNBVal(gasworks_tm0(), node, dest, value, len, 0);
}
GASWORKS_INLINE gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void *source, size_t len) {
  return gasworks_legacy_valget_begin(node, source, len);
}
GASWORKS_INLINE gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle) {
  return gasworks_legacy_valget_end(handle);
}

/* Without a handle. */
GASWORKS_INLINE void gasnet_put_nbi(gasnet_node_t node, void *dest, const void *source, size_t len) {
  (void)gex_RMA_PutNBI(gasworks_tm0(), node, dest, source, len, GEX_EVENT_NOW, 0);
}
GASWORKS_INLINE void gasnet_put_nbi_bulk(gasnet_node_t node, void *dest, const void *source, size_t len) {
  (void)gex_RMA_PutNBI(gasworks_tm0(), node, dest, source, len, GEX_EVENT_DEFER, 0);
}
GASWORKS_INLINE void gasnet_get_nbi(void *dest, gasnet_node_t node, void *source, size_t len) {
  (void)gex_RMA_GetNBI(gasworks_tm0(), dest, node, source, len, 0);
}
GASWORKS_INLINE void gasnet_get_nbi_bulk(void *dest, gasnet_node_t node, void *source, size_t len) {
  (void)gex_RMA_GetNBI(gasworks_tm0(), dest, node, source, len, 0);
}
GASWORKS_INLINE void gasnet_memset_nbi(gasnet_node_t node, void *dest, int value, size_t len) {
  gasworks_legacy_memset_nbi(node, dest, value, len);
}
GASWORKS_INLINE void gasnet_put_nbi_val(gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t len) {
  (void)gex_RMA_PutNBIVal(gasworks_tm0(), node, dest, value, len, 0);
}
GASWORKS_INLINE void gasnet_begin_nbi_accessregion(void) { gex_NBI_BeginAccessRegion(0); }
GASWORKS_INLINE gasnet_handle_t gasnet_end_nbi_accessregion(void) { return gex_NBI_EndAccessRegion(0); }

/* Whether handles are done: a try polls first, for an event's test does not, and one of _nopoll leaves that out. */
GASWORKS_INLINE void gasnet_wait_syncnb(gasnet_handle_t handle) { gex_Event_Wait(handle); }
GASWORKS_INLINE int gasnet_try_syncnb_nopoll(gasnet_handle_t handle) { return gex_Event_Test(handle); }
GASWORKS_INLINE int gasnet_try_syncnb(gasnet_handle_t handle) {
  (void)gasnet_AMPoll();
  return gex_Event_Test(handle);
}
GASWORKS_INLINE void gasnet_wait_syncnb_some(gasnet_handle_t *handles, size_t count) {
  gex_Event_WaitSome(handles, count, 0);
}
GASWORKS_INLINE int gasnet_try_syncnb_some_nopoll(gasnet_handle_t *handles, size_t count) {
  return gex_Event_TestSome(handles, count, 0);
}
GASWORKS_INLINE int gasnet_try_syncnb_some(gasnet_handle_t *handles, size_t count) {
  (void)gasnet_AMPoll();
  return gex_Event_TestSome(handles, count, 0);
}
GASWORKS_INLINE void gasnet_wait_syncnb_all(gasnet_handle_t *handles, size_t count) {
  gex_Event_WaitAll(handles, count, 0);
}
GASWORKS_INLINE int gasnet_try_syncnb_all_nopoll(gasnet_handle_t *handles, size_t count) {
  return gex_Event_TestAll(handles, count, 0);
}
GASWORKS_INLINE int gasnet_try_syncnb_all(gasnet_handle_t *handles, size_t count) {
  (void)gasnet_AMPoll();
  return gex_Event_TestAll(handles, count, 0);
}
GASWORKS_INLINE void gasnet_wait_syncnbi_all(void) { gex_NBI_Wait(GEX_EC_ALL, 0); }
GASWORKS_INLINE int gasnet_try_syncnbi_all(void) {
  (void)gasnet_AMPoll();
  return gex_NBI_Test(GEX_EC_ALL, 0);
}
GASWORKS_INLINE void gasnet_wait_syncnbi_gets(void) { gex_NBI_Wait(GEX_EC_GET, 0); }
GASWORKS_INLINE int gasnet_try_syncnbi_gets(void) {
  (void)gasnet_AMPoll();
  return gex_NBI_Test(GEX_EC_GET, 0);
}
GASWORKS_INLINE void gasnet_wait_syncnbi_puts(void) { gex_NBI_Wait(GEX_EC_PUT, 0); }
GASWORKS_INLINE int gasnet_try_syncnbi_puts(void) {
  (void)gasnet_AMPoll();
  return gex_NBI_Test(GEX_EC_PUT, 0);
}

/* Scattered data. With a handle or without one, lists and bytes are the library's until all is done. */

/* Vectors. */
GASWORKS_INLINE void gasnet_putv_bulk(gasnet_node_t node, size_t dst_count, gasnet_memvec_t const dst[],
                                      size_t src_count, gasnet_memvec_t const src[]) {
  (void)gex_VIS_VectorPutBlocking(gasworks_tm0(), node, dst_count, (gex_Memvec_t const *)dst, src_count,
                                  (gex_Memvec_t const *)src, 0);
}
GASWORKS_INLINE void gasnet_getv_bulk(size_t dst_count, gasnet_memvec_t const dst[], gasnet_node_t node,
                                      size_t src_count, gasnet_memvec_t const src[]) {
  (void)gex_VIS_VectorGetBlocking(gasworks_tm0(), dst_count, (gex_Memvec_t const *)dst, node, src_count,
                                  (gex_Memvec_t const *)src, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_putv_nb_bulk(gasnet_node_t node, size_t dst_count, gasnet_memvec_t const dst[],
                                                    size_t src_count, gasnet_memvec_t const src[]) {
  return gex_VIS_VectorPutNB(gasworks_tm0(), node, dst_count, (gex_Memvec_t const *)dst, src_count,
                             (gex_Memvec_t const *)src, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_getv_nb_bulk(size_t dst_count, gasnet_memvec_t const dst[], gasnet_node_t node,
                                                    size_t src_count, gasnet_memvec_t const src[]) {
  return gex_VIS_VectorGetNB(gasworks_tm0(), dst_count, (gex_Memvec_t const *)dst, node, src_count,
                             (gex_Memvec_t const *)src, 0);
}
GASWORKS_INLINE void gasnet_putv_nbi_bulk(gasnet_node_t node, size_t dst_count, gasnet_memvec_t const dst[],
                                          size_t src_count, gasnet_memvec_t const src[]) {
  (void)gex_VIS_VectorPutNBI(gasworks_tm0(), node, dst_count, (gex_Memvec_t const *)dst, src_count,
                             (gex_Memvec_t const *)src, 0);
}
GASWORKS_INLINE void gasnet_getv_nbi_bulk(size_t dst_count, gasnet_memvec_t const dst[], gasnet_node_t node,
                                          size_t src_count, gasnet_memvec_t const src[]) {
  (void)gex_VIS_VectorGetNBI(gasworks_tm0(), dst_count, (gex_Memvec_t const *)dst, node, src_count,
                             (gex_Memvec_t const *)src, 0);
}

/* Blocks of one length at indexed addresses. */
GASWORKS_INLINE void gasnet_puti_bulk(gasnet_node_t node, size_t dst_count, void *const dst[], size_t dst_len,
                                      size_t src_count, void *const src[], size_t src_len) {
  (void)gex_VIS_IndexedPutBlocking(gasworks_tm0(), node, dst_count, dst, dst_len, src_count, src, src_len, 0);
}
GASWORKS_INLINE void gasnet_geti_bulk(size_t dst_count, void *const dst[], size_t dst_len, gasnet_node_t node,
                                      size_t src_count, void *const src[], size_t src_len) {
  (void)gex_VIS_IndexedGetBlocking(gasworks_tm0(), dst_count, dst, dst_len, node, src_count, src, src_len, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_puti_nb_bulk(gasnet_node_t node, size_t dst_count, void *const dst[],
                                                    size_t dst_len, size_t src_count, void *const src[],
                                                    size_t src_len) {
  return gex_VIS_IndexedPutNB(gasworks_tm0(), node, dst_count, dst, dst_len, src_count, src, src_len, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_geti_nb_bulk(size_t dst_count, void *const dst[], size_t dst_len,
                                                    gasnet_node_t node, size_t src_count, void *const src[],
                                                    size_t src_len) {
  return gex_VIS_IndexedGetNB(gasworks_tm0(), dst_count, dst, dst_len, node, src_count, src, src_len, 0);
}
GASWORKS_INLINE void gasnet_puti_nbi_bulk(gasnet_node_t node, size_t dst_count, void *const dst[], size_t dst_len,
                                          size_t src_count, void *const src[], size_t src_len) {
  (void)gex_VIS_IndexedPutNBI(gasworks_tm0(), node, dst_count, dst, dst_len, src_count, src, src_len, 0);
}
GASWORKS_INLINE void gasnet_geti_nbi_bulk(size_t dst_count, void *const dst[], size_t dst_len, gasnet_node_t node,
                                          size_t src_count, void *const src[], size_t src_len) {
  (void)gex_VIS_IndexedGetNBI(gasworks_tm0(), dst_count, dst, dst_len, node, src_count, src, src_len, 0);
}

/* Strided arrays: one count more than levels, and the first is of bytes. */
GASWORKS_INLINE void gasnet_puts_bulk(gasnet_node_t node, void *dst, const size_t dst_strides[], void *src,
                                      const size_t src_strides[], const size_t count[], size_t levels) {
  (void)gex_VIS_StridedPutBlocking(gasworks_tm0(), node, dst, (const ptrdiff_t *)dst_strides, src,
                                   (const ptrdiff_t *)src_strides, count[0], count + 1, levels, 0);
}
GASWORKS_INLINE void gasnet_gets_bulk(void *dst, const size_t dst_strides[], gasnet_node_t node, void *src,
                                      const size_t src_strides[], const size_t count[], size_t levels) {
  (void)gex_VIS_StridedGetBlocking(gasworks_tm0(), dst, (const ptrdiff_t *)dst_strides, node, src,
                                   (const ptrdiff_t *)src_strides, count[0], count + 1, levels, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_puts_nb_bulk(gasnet_node_t node, void *dst, const size_t dst_strides[],
                                                    void *src, const size_t src_strides[], const size_t count[],
                                                    size_t levels) {
  return gex_VIS_StridedPutNB(gasworks_tm0(), node, dst, (const ptrdiff_t *)dst_strides, src,
                              (const ptrdiff_t *)src_strides, count[0], count + 1, levels, 0);
}
GASWORKS_INLINE gasnet_handle_t gasnet_gets_nb_bulk(void *dst, const size_t dst_strides[], gasnet_node_t node,
                                                    void *src, const size_t src_strides[], const size_t count[],
                                                    size_t levels) {
  return gex_VIS_StridedGetNB(gasworks_tm0(), dst, (const ptrdiff_t *)dst_strides, node, src,
                              (const ptrdiff_t *)src_strides, count[0], count + 1, levels, 0);
}
GASWORKS_INLINE void gasnet_puts_nbi_bulk(gasnet_node_t node, void *dst, const size_t dst_strides[], void *src,
                                          const size_t src_strides[], const size_t count[], size_t levels) {
  (void)gex_VIS_StridedPutNBI(gasworks_tm0(), node, dst, (const ptrdiff_t *)dst_strides, src,
                              (const ptrdiff_t *)src_strides, count[0], count + 1, levels, 0);
}
GASWORKS_INLINE void gasnet_gets_nbi_bulk(void *dst, const size_t dst_strides[], gasnet_node_t node, void *src,
                                          const size_t src_strides[], const size_t count[], size_t levels) {
  (void)gex_VIS_StridedGetNBI(gasworks_tm0(), dst, (const ptrdiff_t *)dst_strides, node, src,
                              (const ptrdiff_t *)src_strides, count[0], count + 1, levels, 0);
}

GASWORKS_END_C

#ifdef GASNET_DEBUG
#undef GASWORKS_OWN_CALLS
#define GASWORKS_LEGACY_MADE
#include <gasworks_debug.h>
#endif

#endif
