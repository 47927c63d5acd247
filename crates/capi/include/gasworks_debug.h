/*
 * Debug builds: each call of the interface that can fail says where it stands before it begins, and that it has ended. A macro is not
 * expanded again inside itself, so the function is called then, and its name without arguments is still the function's.
 *
 * The library's own headers call functions, too, and those calls are not the program's: while GASWORKS_OWN_CALLS is defined the macros say
 * nothing. To change that, this file is included once more.
 */
#undef GASWORKS_CALLS_AS
#undef GASWORKS_TALKS_AS
#undef GASWORKS_CALLS_VOID_AS
#undef GASWORKS_TALKS_VOID_AS
#undef GASWORKS_ENDS
#ifdef GASWORKS_OWN_CALLS
#define GASWORKS_CALLS_AS(of, says, name, args) name args
#define GASWORKS_TALKS_AS(of, says, name, args) name args
#define GASWORKS_CALLS_VOID_AS(says, name, args) name args
#define GASWORKS_TALKS_VOID_AS(says, name, args) name args
#define GASWORKS_ENDS(name, args) name args
#else
#define GASWORKS_CALLS_AS(of, says, name, args) (gasworks_at(__FILE__, __LINE__, says), gasworks_left_##of(name args))
#define GASWORKS_TALKS_AS(of, says, name, args) (gasworks_talks_at(__FILE__, __LINE__, says), gasworks_left_##of(name args))
#define GASWORKS_CALLS_VOID_AS(says, name, args) (gasworks_at(__FILE__, __LINE__, says), name args, gasworks_left())
#define GASWORKS_TALKS_VOID_AS(says, name, args) (gasworks_talks_at(__FILE__, __LINE__, says), name args, gasworks_left())
#define GASWORKS_ENDS(name, args) (gasworks_at(__FILE__, __LINE__, #name), name args)
#endif

#ifndef GASWORKS_DEBUG_H
#define GASWORKS_DEBUG_H

/*
 * A call that communicates is refused in a handler, with a handler-safe lock held, and between a prepare and its end. One that is for events is
 * none if there are none of them: the library looks at that.
 */
#define GASWORKS_CALLS(of, name, args) GASWORKS_CALLS_AS(of, #name, name, args)
#define GASWORKS_TALKS(of, name, args) GASWORKS_TALKS_AS(of, #name, name, args)
#define GASWORKS_CALLS_VOID(name, args) GASWORKS_CALLS_VOID_AS(#name, name, args)
#define GASWORKS_TALKS_VOID(name, args) GASWORKS_TALKS_VOID_AS(#name, name, args)

GASWORKS_BEGIN_C

extern void gasworks_at(const char *file, int line, const char *name);
extern void gasworks_talks_at(const char *file, int line, const char *name);
extern void gasworks_left(void);

/* A call has ended that gives something of a type. */
#define GASWORKS_MAKE_LEFT(of, type)                     \
  GASWORKS_INLINE type gasworks_left_##of(type result) { \
    gasworks_left();                                     \
    return result;                                       \
  }
GASWORKS_MAKE_LEFT(int, int)
GASWORKS_MAKE_LEFT(event, gex_Event_t)
GASWORKS_MAKE_LEFT(size, size_t)
GASWORKS_MAKE_LEFT(rank, gex_Rank_t) /* also flags, types of data, operations */
GASWORKS_MAKE_LEFT(index, gex_EP_Index_t)
GASWORKS_MAKE_LEFT(value, gex_RMA_Value_t)
GASWORKS_MAKE_LEFT(source, gex_AM_SrcDesc_t)
GASWORKS_MAKE_LEFT(mask, gex_TI_t)
GASWORKS_MAKE_LEFT(location, gex_EP_Location_t)
GASWORKS_MAKE_LEFT(client, gex_Client_t)
GASWORKS_MAKE_LEFT(ep, gex_EP_t)
GASWORKS_MAKE_LEFT(tm, gex_TM_t)
GASWORKS_MAKE_LEFT(segment, gex_Segment_t)
GASWORKS_MAKE_LEFT(mk_class, gex_MK_Class_t)
GASWORKS_MAKE_LEFT(coll, gasnet_coll_handle_t)
GASWORKS_MAKE_LEFT(pointer, void *)
GASWORKS_MAKE_LEFT(text, const char *)
GASWORKS_MAKE_LEFT(string, char *)

GASWORKS_END_C

/* The job, its objects, progress and barriers. */
#define gasnet_exit(...) GASWORKS_ENDS(gasnet_exit, (__VA_ARGS__))
#define gex_Client_Init(...) GASWORKS_CALLS(int, gex_Client_Init, (__VA_ARGS__))
#define gex_Segment_Attach(...) GASWORKS_TALKS(int, gex_Segment_Attach, (__VA_ARGS__))
#define gex_EP_RegisterHandlers(...) GASWORKS_CALLS(int, gex_EP_RegisterHandlers, (__VA_ARGS__))
#define gex_Client_QueryName(...) GASWORKS_CALLS(text, gex_Client_QueryName, (__VA_ARGS__))
#define gex_Segment_QueryClient(...) GASWORKS_CALLS(client, gex_Segment_QueryClient, (__VA_ARGS__))
#define gex_Segment_QueryAddr(...) GASWORKS_CALLS(pointer, gex_Segment_QueryAddr, (__VA_ARGS__))
#define gex_Segment_QuerySize(...) GASWORKS_CALLS(size, gex_Segment_QuerySize, (__VA_ARGS__))
#define gex_TM_QueryClient(...) GASWORKS_CALLS(client, gex_TM_QueryClient, (__VA_ARGS__))
#define gex_TM_QueryEP(...) GASWORKS_CALLS(ep, gex_TM_QueryEP, (__VA_ARGS__))
#define gex_TM_QueryRank(...) GASWORKS_CALLS(rank, gex_TM_QueryRank, (__VA_ARGS__))
#define gex_TM_QuerySize(...) GASWORKS_CALLS(rank, gex_TM_QuerySize, (__VA_ARGS__))
#define gex_EP_QueryClient(...) GASWORKS_CALLS(client, gex_EP_QueryClient, (__VA_ARGS__))
#define gex_EP_QuerySegment(...) GASWORKS_CALLS(segment, gex_EP_QuerySegment, (__VA_ARGS__))
#define gex_EP_QueryIndex(...) GASWORKS_CALLS(index, gex_EP_QueryIndex, (__VA_ARGS__))
#define gex_TM_Pair(...) GASWORKS_CALLS(tm, gex_TM_Pair, (__VA_ARGS__))
#define gex_Segment_Create(...) GASWORKS_CALLS(int, gex_Segment_Create, (__VA_ARGS__))
#define gex_Segment_Destroy(...) GASWORKS_CALLS_VOID(gex_Segment_Destroy, (__VA_ARGS__))
#define gex_EP_Create(...) GASWORKS_CALLS(int, gex_EP_Create, (__VA_ARGS__))
#define gex_EP_BindSegment(...) GASWORKS_CALLS(int, gex_EP_BindSegment, (__VA_ARGS__))
#define gex_EP_PublishBoundSegment(...) GASWORKS_TALKS(int, gex_EP_PublishBoundSegment, (__VA_ARGS__))
#define gex_EP_QueryBoundSegmentNB(...) GASWORKS_CALLS(event, gex_EP_QueryBoundSegmentNB, (__VA_ARGS__))
#define gex_Segment_QueryBound(...) GASWORKS_CALLS(int, gex_Segment_QueryBound, (__VA_ARGS__))
#define gex_TM_Split(...) GASWORKS_TALKS(size, gex_TM_Split, (__VA_ARGS__))
#define gex_TM_Create(...) GASWORKS_TALKS(size, gex_TM_Create, (__VA_ARGS__))
#define gex_TM_Destroy(...) GASWORKS_TALKS(int, gex_TM_Destroy, (__VA_ARGS__))
#define gex_TM_TranslateRankToJobrank(...) GASWORKS_CALLS(rank, gex_TM_TranslateRankToJobrank, (__VA_ARGS__))
#define gex_TM_TranslateJobrankToRank(...) GASWORKS_CALLS(rank, gex_TM_TranslateJobrankToRank, (__VA_ARGS__))
#define gex_TM_TranslateRankToEP(...) GASWORKS_CALLS(location, gex_TM_TranslateRankToEP, (__VA_ARGS__))
#define gex_System_QueryNbrhdInfo(...) GASWORKS_CALLS_VOID(gex_System_QueryNbrhdInfo, (__VA_ARGS__))
#define gex_System_QueryHostInfo(...) GASWORKS_CALLS_VOID(gex_System_QueryHostInfo, (__VA_ARGS__))
#define gex_System_QueryMyPosition(...) GASWORKS_CALLS_VOID(gex_System_QueryMyPosition, (__VA_ARGS__))
#define gasnet_getMaxLocalSegmentSize(...) GASWORKS_CALLS(size, gasnet_getMaxLocalSegmentSize, (__VA_ARGS__))
#define gasnet_getMaxGlobalSegmentSize(...) GASWORKS_CALLS(size, gasnet_getMaxGlobalSegmentSize, (__VA_ARGS__))
#define gasnet_getenv(...) GASWORKS_CALLS(string, gasnet_getenv, (__VA_ARGS__))
#define gex_AM_MaxRequestMedium(...) GASWORKS_CALLS(size, gex_AM_MaxRequestMedium, (__VA_ARGS__))
#define gex_AM_MaxReplyMedium(...) GASWORKS_CALLS(size, gex_AM_MaxReplyMedium, (__VA_ARGS__))
#define gex_AM_MaxRequestLong(...) GASWORKS_CALLS(size, gex_AM_MaxRequestLong, (__VA_ARGS__))
#define gex_AM_MaxReplyLong(...) GASWORKS_CALLS(size, gex_AM_MaxReplyLong, (__VA_ARGS__))
#define gex_AM_LUBRequestMedium(...) GASWORKS_CALLS(size, gex_AM_LUBRequestMedium, (__VA_ARGS__))
#define gex_AM_LUBReplyMedium(...) GASWORKS_CALLS(size, gex_AM_LUBReplyMedium, (__VA_ARGS__))
#define gex_AM_LUBRequestLong(...) GASWORKS_CALLS(size, gex_AM_LUBRequestLong, (__VA_ARGS__))
#define gex_AM_LUBReplyLong(...) GASWORKS_CALLS(size, gex_AM_LUBReplyLong, (__VA_ARGS__))
#define gex_Token_MaxReplyMedium(...) GASWORKS_CALLS(size, gex_Token_MaxReplyMedium, (__VA_ARGS__))
#define gex_Token_MaxReplyLong(...) GASWORKS_CALLS(size, gex_Token_MaxReplyLong, (__VA_ARGS__))
#define gex_Token_Info(...) GASWORKS_CALLS(mask, gex_Token_Info, (__VA_ARGS__))
#define gex_AM_SrcDescAddr(...) GASWORKS_CALLS(pointer, gex_AM_SrcDescAddr, (__VA_ARGS__))
#define gex_AM_SrcDescSize(...) GASWORKS_CALLS(size, gex_AM_SrcDescSize, (__VA_ARGS__))
#define gex_AM_PrepareRequestMedium(...) GASWORKS_TALKS(source, gex_AM_PrepareRequestMedium, (__VA_ARGS__))
#define gex_AM_PrepareRequestLong(...) GASWORKS_TALKS(source, gex_AM_PrepareRequestLong, (__VA_ARGS__))
#define gex_AM_PrepareReplyMedium(...) GASWORKS_CALLS(source, gex_AM_PrepareReplyMedium, (__VA_ARGS__))
#define gex_AM_PrepareReplyLong(...) GASWORKS_CALLS(source, gex_AM_PrepareReplyLong, (__VA_ARGS__))
#define gex_AM_CancelRequestMedium(...) GASWORKS_CALLS(int, gex_AM_CancelRequestMedium, (__VA_ARGS__))
#define gex_AM_CancelRequestLong(...) GASWORKS_CALLS(int, gex_AM_CancelRequestLong, (__VA_ARGS__))
#define gex_AM_CancelReplyMedium(...) GASWORKS_CALLS(int, gex_AM_CancelReplyMedium, (__VA_ARGS__))
#define gex_AM_CancelReplyLong(...) GASWORKS_CALLS(int, gex_AM_CancelReplyLong, (__VA_ARGS__))
#define gasnet_set_waitmode(...) GASWORKS_CALLS(int, gasnet_set_waitmode, (__VA_ARGS__))
#define gasnet_AMPoll(...) GASWORKS_TALKS(int, gasnet_AMPoll, (__VA_ARGS__))
#define gasnet_barrier_notify(...) GASWORKS_TALKS_VOID(gasnet_barrier_notify, (__VA_ARGS__))
#define gasnet_barrier_wait(...) GASWORKS_TALKS(int, gasnet_barrier_wait, (__VA_ARGS__))
#define gasnet_barrier_try(...) GASWORKS_TALKS(int, gasnet_barrier_try, (__VA_ARGS__))
#define gasnet_barrier(...) GASWORKS_TALKS(int, gasnet_barrier, (__VA_ARGS__))
#define gasnet_barrier_result(...) GASWORKS_CALLS(int, gasnet_barrier_result, (__VA_ARGS__))
#define gex_Coll_BarrierNB(...) GASWORKS_TALKS(event, gex_Coll_BarrierNB, (__VA_ARGS__))
#define gex_Coll_BarrierBlocking(...) GASWORKS_TALKS_VOID(gex_Coll_BarrierBlocking, (__VA_ARGS__))
#define gex_Client_SetCData(...) GASWORKS_CALLS_VOID(gex_Client_SetCData, (__VA_ARGS__))
#define gex_Client_QueryCData(...) GASWORKS_CALLS(pointer, gex_Client_QueryCData, (__VA_ARGS__))
#define gex_Client_QueryFlags(...) GASWORKS_CALLS(rank, gex_Client_QueryFlags, (__VA_ARGS__))
#define gex_Segment_SetCData(...) GASWORKS_CALLS_VOID(gex_Segment_SetCData, (__VA_ARGS__))
#define gex_Segment_QueryCData(...) GASWORKS_CALLS(pointer, gex_Segment_QueryCData, (__VA_ARGS__))
#define gex_Segment_QueryFlags(...) GASWORKS_CALLS(rank, gex_Segment_QueryFlags, (__VA_ARGS__))
#define gex_TM_SetCData(...) GASWORKS_CALLS_VOID(gex_TM_SetCData, (__VA_ARGS__))
#define gex_TM_QueryCData(...) GASWORKS_CALLS(pointer, gex_TM_QueryCData, (__VA_ARGS__))
#define gex_TM_QueryFlags(...) GASWORKS_CALLS(rank, gex_TM_QueryFlags, (__VA_ARGS__))
#define gex_EP_SetCData(...) GASWORKS_CALLS_VOID(gex_EP_SetCData, (__VA_ARGS__))
#define gex_EP_QueryCData(...) GASWORKS_CALLS(pointer, gex_EP_QueryCData, (__VA_ARGS__))
#define gex_EP_QueryFlags(...) GASWORKS_CALLS(rank, gex_EP_QueryFlags, (__VA_ARGS__))

/* Put, get and events. */
#define gex_Event_QueryLeaf(...) GASWORKS_CALLS(event, gex_Event_QueryLeaf, (__VA_ARGS__))
#define gex_NBI_BeginAccessRegion(...) GASWORKS_TALKS_VOID(gex_NBI_BeginAccessRegion, (__VA_ARGS__))
#define gex_NBI_EndAccessRegion(...) GASWORKS_TALKS(event, gex_NBI_EndAccessRegion, (__VA_ARGS__))
#define gex_RMA_PutBlocking(...) GASWORKS_TALKS(int, gex_RMA_PutBlocking, (__VA_ARGS__))
#define gex_RMA_PutNB(...) GASWORKS_TALKS(event, gex_RMA_PutNB, (__VA_ARGS__))
#define gex_RMA_PutNBI(...) GASWORKS_TALKS(int, gex_RMA_PutNBI, (__VA_ARGS__))
#define gex_RMA_GetBlocking(...) GASWORKS_TALKS(int, gex_RMA_GetBlocking, (__VA_ARGS__))
#define gex_RMA_GetNB(...) GASWORKS_TALKS(event, gex_RMA_GetNB, (__VA_ARGS__))
#define gex_RMA_GetNBI(...) GASWORKS_TALKS(int, gex_RMA_GetNBI, (__VA_ARGS__))
#define gex_RMA_PutBlockingVal(...) GASWORKS_TALKS(int, gex_RMA_PutBlockingVal, (__VA_ARGS__))
#define gex_RMA_PutNBVal(...) GASWORKS_TALKS(event, gex_RMA_PutNBVal, (__VA_ARGS__))
#define gex_RMA_PutNBIVal(...) GASWORKS_TALKS(int, gex_RMA_PutNBIVal, (__VA_ARGS__))
#define gex_RMA_GetBlockingVal(...) GASWORKS_TALKS(value, gex_RMA_GetBlockingVal, (__VA_ARGS__))
#define gex_Event_Test(...) GASWORKS_CALLS(int, gex_Event_Test, (__VA_ARGS__))
#define gex_Event_Wait(...) GASWORKS_CALLS_VOID(gex_Event_Wait, (__VA_ARGS__))
#define gex_Event_TestSome(...) GASWORKS_CALLS(int, gex_Event_TestSome, (__VA_ARGS__))
#define gex_Event_TestAll(...) GASWORKS_CALLS(int, gex_Event_TestAll, (__VA_ARGS__))
#define gex_Event_WaitSome(...) GASWORKS_CALLS_VOID(gex_Event_WaitSome, (__VA_ARGS__))
#define gex_Event_WaitAll(...) GASWORKS_CALLS_VOID(gex_Event_WaitAll, (__VA_ARGS__))
#define gex_NBI_Test(...) GASWORKS_TALKS(int, gex_NBI_Test, (__VA_ARGS__))

/* Atomic operations. */
#define gex_AD_Create(...) GASWORKS_TALKS_VOID(gex_AD_Create, (__VA_ARGS__))
#define gex_AD_Destroy(...) GASWORKS_TALKS_VOID(gex_AD_Destroy, (__VA_ARGS__))
#define gex_AD_SetCData(...) GASWORKS_CALLS_VOID(gex_AD_SetCData, (__VA_ARGS__))
#define gex_AD_QueryCData(...) GASWORKS_CALLS(pointer, gex_AD_QueryCData, (__VA_ARGS__))
#define gex_AD_QueryFlags(...) GASWORKS_CALLS(rank, gex_AD_QueryFlags, (__VA_ARGS__))
#define gex_AD_QueryTM(...) GASWORKS_CALLS(tm, gex_AD_QueryTM, (__VA_ARGS__))
#define gex_AD_QueryDT(...) GASWORKS_CALLS(rank, gex_AD_QueryDT, (__VA_ARGS__))
#define gex_AD_QueryOps(...) GASWORKS_CALLS(rank, gex_AD_QueryOps, (__VA_ARGS__))
#define gex_AD_OpNB_I32(...) GASWORKS_TALKS(event, gex_AD_OpNB_I32, (__VA_ARGS__))
#define gex_AD_OpNBI_I32(...) GASWORKS_TALKS(int, gex_AD_OpNBI_I32, (__VA_ARGS__))
#define gex_AD_OpNB_U32(...) GASWORKS_TALKS(event, gex_AD_OpNB_U32, (__VA_ARGS__))
#define gex_AD_OpNBI_U32(...) GASWORKS_TALKS(int, gex_AD_OpNBI_U32, (__VA_ARGS__))
#define gex_AD_OpNB_I64(...) GASWORKS_TALKS(event, gex_AD_OpNB_I64, (__VA_ARGS__))
#define gex_AD_OpNBI_I64(...) GASWORKS_TALKS(int, gex_AD_OpNBI_I64, (__VA_ARGS__))
#define gex_AD_OpNB_U64(...) GASWORKS_TALKS(event, gex_AD_OpNB_U64, (__VA_ARGS__))
#define gex_AD_OpNBI_U64(...) GASWORKS_TALKS(int, gex_AD_OpNBI_U64, (__VA_ARGS__))
#define gex_AD_OpNB_FLT(...) GASWORKS_TALKS(event, gex_AD_OpNB_FLT, (__VA_ARGS__))
#define gex_AD_OpNBI_FLT(...) GASWORKS_TALKS(int, gex_AD_OpNBI_FLT, (__VA_ARGS__))
#define gex_AD_OpNB_DBL(...) GASWORKS_TALKS(event, gex_AD_OpNB_DBL, (__VA_ARGS__))
#define gex_AD_OpNBI_DBL(...) GASWORKS_TALKS(int, gex_AD_OpNBI_DBL, (__VA_ARGS__))

/* Scattered data. */
#define gex_VIS_VectorGetNB(...) GASWORKS_TALKS(event, gex_VIS_VectorGetNB, (__VA_ARGS__))
#define gex_VIS_VectorPutNB(...) GASWORKS_TALKS(event, gex_VIS_VectorPutNB, (__VA_ARGS__))
#define gex_VIS_VectorGetNBI(...) GASWORKS_TALKS(int, gex_VIS_VectorGetNBI, (__VA_ARGS__))
#define gex_VIS_VectorPutNBI(...) GASWORKS_TALKS(int, gex_VIS_VectorPutNBI, (__VA_ARGS__))
#define gex_VIS_VectorGetBlocking(...) GASWORKS_TALKS(int, gex_VIS_VectorGetBlocking, (__VA_ARGS__))
#define gex_VIS_VectorPutBlocking(...) GASWORKS_TALKS(int, gex_VIS_VectorPutBlocking, (__VA_ARGS__))
#define gex_VIS_IndexedGetNB(...) GASWORKS_TALKS(event, gex_VIS_IndexedGetNB, (__VA_ARGS__))
#define gex_VIS_IndexedPutNB(...) GASWORKS_TALKS(event, gex_VIS_IndexedPutNB, (__VA_ARGS__))
#define gex_VIS_IndexedGetNBI(...) GASWORKS_TALKS(int, gex_VIS_IndexedGetNBI, (__VA_ARGS__))
#define gex_VIS_IndexedPutNBI(...) GASWORKS_TALKS(int, gex_VIS_IndexedPutNBI, (__VA_ARGS__))
#define gex_VIS_IndexedGetBlocking(...) GASWORKS_TALKS(int, gex_VIS_IndexedGetBlocking, (__VA_ARGS__))
#define gex_VIS_IndexedPutBlocking(...) GASWORKS_TALKS(int, gex_VIS_IndexedPutBlocking, (__VA_ARGS__))
#define gex_VIS_StridedGetNB(...) GASWORKS_TALKS(event, gex_VIS_StridedGetNB, (__VA_ARGS__))
#define gex_VIS_StridedPutNB(...) GASWORKS_TALKS(event, gex_VIS_StridedPutNB, (__VA_ARGS__))
#define gex_VIS_StridedGetNBI(...) GASWORKS_TALKS(int, gex_VIS_StridedGetNBI, (__VA_ARGS__))
#define gex_VIS_StridedPutNBI(...) GASWORKS_TALKS(int, gex_VIS_StridedPutNBI, (__VA_ARGS__))
#define gex_VIS_StridedGetBlocking(...) GASWORKS_TALKS(int, gex_VIS_StridedGetBlocking, (__VA_ARGS__))
#define gex_VIS_StridedPutBlocking(...) GASWORKS_TALKS(int, gex_VIS_StridedPutBlocking, (__VA_ARGS__))
#define gex_VIS_SetPeerCompletionHandler(...) GASWORKS_CALLS_VOID(gex_VIS_SetPeerCompletionHandler, (__VA_ARGS__))

/* Collectives. */
#define gex_Coll_BroadcastNB(...) GASWORKS_TALKS(event, gex_Coll_BroadcastNB, (__VA_ARGS__))
#define gex_Coll_ReduceToOneNB(...) GASWORKS_TALKS(event, gex_Coll_ReduceToOneNB, (__VA_ARGS__))
#define gex_Coll_ReduceToAllNB(...) GASWORKS_TALKS(event, gex_Coll_ReduceToAllNB, (__VA_ARGS__))
#define gasworks_coll_gather_nb(...) GASWORKS_TALKS(event, gasworks_coll_gather_nb, (__VA_ARGS__))
#define gasworks_coll_gather_each_nb(...) GASWORKS_TALKS(event, gasworks_coll_gather_each_nb, (__VA_ARGS__))
#define gasworks_coll_scatter_nb(...) GASWORKS_TALKS(event, gasworks_coll_scatter_nb, (__VA_ARGS__))
#define gasworks_coll_scatter_each_nb(...) GASWORKS_TALKS(event, gasworks_coll_scatter_each_nb, (__VA_ARGS__))
#define gasworks_coll_all_gather_nb(...) GASWORKS_TALKS(event, gasworks_coll_all_gather_nb, (__VA_ARGS__))
#define gasworks_coll_all_to_all_nb(...) GASWORKS_TALKS(event, gasworks_coll_all_to_all_nb, (__VA_ARGS__))
#define gasworks_coll_all_to_all_each_nb(...) GASWORKS_TALKS(event, gasworks_coll_all_to_all_each_nb, (__VA_ARGS__))
#define gasworks_coll_scan_nb(...) GASWORKS_TALKS(event, gasworks_coll_scan_nb, (__VA_ARGS__))
#define gasworks_coll_scan_before_nb(...) GASWORKS_TALKS(event, gasworks_coll_scan_before_nb, (__VA_ARGS__))
#define gasnet_coll_broadcast(...) GASWORKS_TALKS_VOID(gasnet_coll_broadcast, (__VA_ARGS__))
#define gasnet_coll_broadcast_nb(...) GASWORKS_TALKS(coll, gasnet_coll_broadcast_nb, (__VA_ARGS__))
#define gasnet_coll_scatter(...) GASWORKS_TALKS_VOID(gasnet_coll_scatter, (__VA_ARGS__))
#define gasnet_coll_scatter_nb(...) GASWORKS_TALKS(coll, gasnet_coll_scatter_nb, (__VA_ARGS__))
#define gasnet_coll_gather(...) GASWORKS_TALKS_VOID(gasnet_coll_gather, (__VA_ARGS__))
#define gasnet_coll_gather_nb(...) GASWORKS_TALKS(coll, gasnet_coll_gather_nb, (__VA_ARGS__))
#define gasnet_coll_gather_all(...) GASWORKS_TALKS_VOID(gasnet_coll_gather_all, (__VA_ARGS__))
#define gasnet_coll_gather_all_nb(...) GASWORKS_TALKS(coll, gasnet_coll_gather_all_nb, (__VA_ARGS__))
#define gasnet_coll_exchange(...) GASWORKS_TALKS_VOID(gasnet_coll_exchange, (__VA_ARGS__))
#define gasnet_coll_exchange_nb(...) GASWORKS_TALKS(coll, gasnet_coll_exchange_nb, (__VA_ARGS__))
#define gasnet_coll_try_sync(...) GASWORKS_TALKS(int, gasnet_coll_try_sync, (__VA_ARGS__))
#define gasnet_coll_wait_sync(...) GASWORKS_TALKS_VOID(gasnet_coll_wait_sync, (__VA_ARGS__))
#define gasnet_coll_try_sync_some(...) GASWORKS_TALKS(int, gasnet_coll_try_sync_some, (__VA_ARGS__))
#define gasnet_coll_wait_sync_some(...) GASWORKS_TALKS_VOID(gasnet_coll_wait_sync_some, (__VA_ARGS__))
#define gasnet_coll_try_sync_all(...) GASWORKS_TALKS(int, gasnet_coll_try_sync_all, (__VA_ARGS__))
#define gasnet_coll_wait_sync_all(...) GASWORKS_TALKS_VOID(gasnet_coll_wait_sync_all, (__VA_ARGS__))
#define gasnet_coll_barrier(...) GASWORKS_TALKS(int, gasnet_coll_barrier, (__VA_ARGS__))
#define gasnet_coll_barrier_notify(...) GASWORKS_TALKS_VOID(gasnet_coll_barrier_notify, (__VA_ARGS__))
#define gasnet_coll_barrier_wait(...) GASWORKS_TALKS(int, gasnet_coll_barrier_wait, (__VA_ARGS__))
#define gasnet_coll_barrier_try(...) GASWORKS_TALKS(int, gasnet_coll_barrier_try, (__VA_ARGS__))
#define gasnet_coll_barrier_result(...) GASWORKS_TALKS(int, gasnet_coll_barrier_result, (__VA_ARGS__))
#define gasnet_coll_get_num_tree_classes(...) GASWORKS_CALLS(size, gasnet_coll_get_num_tree_classes, (__VA_ARGS__))
#define gasnet_coll_set_tree_kind(...) GASWORKS_CALLS_VOID(gasnet_coll_set_tree_kind, (__VA_ARGS__))
#define gasnet_coll_set_dissem_limit(...) GASWORKS_CALLS_VOID(gasnet_coll_set_dissem_limit, (__VA_ARGS__))
#define gasnet_coll_loadTuningState(...) GASWORKS_CALLS_VOID(gasnet_coll_loadTuningState, (__VA_ARGS__))
#define gasnet_coll_dumpTuningState(...) GASWORKS_CALLS_VOID(gasnet_coll_dumpTuningState, (__VA_ARGS__))
#define gasnet_coll_dumpProfile(...) GASWORKS_CALLS_VOID(gasnet_coll_dumpProfile, (__VA_ARGS__))

/* Kinds of memory. */
#define gex_MK_Create(...) GASWORKS_CALLS(int, gex_MK_Create, (__VA_ARGS__))
#define gex_MK_Destroy(...) GASWORKS_CALLS_VOID(gex_MK_Destroy, (__VA_ARGS__))
#define gex_MK_SetCData(...) GASWORKS_CALLS_VOID(gex_MK_SetCData, (__VA_ARGS__))
#define gex_MK_QueryCData(...) GASWORKS_CALLS(pointer, gex_MK_QueryCData, (__VA_ARGS__))
#define gex_MK_QueryFlags(...) GASWORKS_CALLS(rank, gex_MK_QueryFlags, (__VA_ARGS__))
#define gex_MK_QueryClient(...) GASWORKS_CALLS(client, gex_MK_QueryClient, (__VA_ARGS__))
#define gex_MK_QueryClass(...) GASWORKS_CALLS(mk_class, gex_MK_QueryClass, (__VA_ARGS__))

/* What is inside names that are macros already. */
#define gasworks_wait_begin(...) GASWORKS_TALKS_VOID_AS("GASNET_BLOCKUNTIL", gasworks_wait_begin, (__VA_ARGS__))
#define gasworks_wait_turn(...) GASWORKS_TALKS_VOID_AS("GASNET_BLOCKUNTIL", gasworks_wait_turn, (__VA_ARGS__))
#define gasworks_nbi_wait(...) GASWORKS_TALKS_VOID_AS("gex_NBI_Wait", gasworks_nbi_wait, (__VA_ARGS__))
#define gasworks_hsl_init(...) GASWORKS_CALLS_VOID_AS("gex_HSL_Init", gasworks_hsl_init, (__VA_ARGS__))
#define gasworks_hsl_destroy(...) GASWORKS_CALLS_VOID_AS("gex_HSL_Destroy", gasworks_hsl_destroy, (__VA_ARGS__))
#define gasworks_hsl_lock(...) GASWORKS_CALLS_VOID_AS("gex_HSL_Lock", gasworks_hsl_lock, (__VA_ARGS__))
#define gasworks_hsl_unlock(...) GASWORKS_CALLS_VOID_AS("gex_HSL_Unlock", gasworks_hsl_unlock, (__VA_ARGS__))
#define gasworks_hsl_trylock(...) GASWORKS_CALLS_AS(int, "gex_HSL_Trylock", gasworks_hsl_trylock, (__VA_ARGS__))

#include <gasworks_debug_am.h>

#endif

/* GASNet-1's, once gasnet.h has made them. */
#if defined(GASWORKS_LEGACY_MADE) && !defined(GASWORKS_DEBUG_LEGACY_H)
#define GASWORKS_DEBUG_LEGACY_H

GASWORKS_BEGIN_C
GASWORKS_MAKE_LEFT(valget, gasnet_valget_handle_t)
GASWORKS_END_C

#define gasnet_init(...) GASWORKS_CALLS(int, gasnet_init, (__VA_ARGS__))
#define gasnet_attach(...) GASWORKS_TALKS(int, gasnet_attach, (__VA_ARGS__))
#define gasnet_QueryGexObjects(...) GASWORKS_CALLS_VOID(gasnet_QueryGexObjects, (__VA_ARGS__))
#define gasnet_getSegmentInfo(...) GASWORKS_CALLS(int, gasnet_getSegmentInfo, (__VA_ARGS__))
#define gasnet_getNodeInfo(...) GASWORKS_CALLS(int, gasnet_getNodeInfo, (__VA_ARGS__))
#define gasnet_AMMaxMedium(...) GASWORKS_CALLS(size, gasnet_AMMaxMedium, (__VA_ARGS__))
#define gasnet_AMMaxLongRequest(...) GASWORKS_CALLS(size, gasnet_AMMaxLongRequest, (__VA_ARGS__))
#define gasnet_AMMaxLongReply(...) GASWORKS_CALLS(size, gasnet_AMMaxLongReply, (__VA_ARGS__))
#define gasnet_AMGetMsgSource(...) GASWORKS_CALLS(int, gasnet_AMGetMsgSource, (__VA_ARGS__))
#define gasnet_put(...) GASWORKS_TALKS_VOID(gasnet_put, (__VA_ARGS__))
#define gasnet_put_bulk(...) GASWORKS_TALKS_VOID(gasnet_put_bulk, (__VA_ARGS__))
#define gasnet_get(...) GASWORKS_TALKS_VOID(gasnet_get, (__VA_ARGS__))
#define gasnet_get_bulk(...) GASWORKS_TALKS_VOID(gasnet_get_bulk, (__VA_ARGS__))
#define gasnet_memset(...) GASWORKS_TALKS_VOID(gasnet_memset, (__VA_ARGS__))
#define gasnet_put_val(...) GASWORKS_TALKS_VOID(gasnet_put_val, (__VA_ARGS__))
#define gasnet_get_val(...) GASWORKS_TALKS(value, gasnet_get_val, (__VA_ARGS__))
#define gasnet_put_nb(...) GASWORKS_TALKS(event, gasnet_put_nb, (__VA_ARGS__))
#define gasnet_put_nb_bulk(...) GASWORKS_TALKS(event, gasnet_put_nb_bulk, (__VA_ARGS__))
#define gasnet_get_nb(...) GASWORKS_TALKS(event, gasnet_get_nb, (__VA_ARGS__))
#define gasnet_get_nb_bulk(...) GASWORKS_TALKS(event, gasnet_get_nb_bulk, (__VA_ARGS__))
#define gasnet_memset_nb(...) GASWORKS_TALKS(event, gasnet_memset_nb, (__VA_ARGS__))
#define gasnet_put_nb_val(...) GASWORKS_TALKS(event, gasnet_put_nb_val, (__VA_ARGS__))
#define gasnet_get_nb_val(...) GASWORKS_TALKS(valget, gasnet_get_nb_val, (__VA_ARGS__))
#define gasnet_wait_syncnb_valget(...) GASWORKS_TALKS(value, gasnet_wait_syncnb_valget, (__VA_ARGS__))
#define gasnet_put_nbi(...) GASWORKS_TALKS_VOID(gasnet_put_nbi, (__VA_ARGS__))
#define gasnet_put_nbi_bulk(...) GASWORKS_TALKS_VOID(gasnet_put_nbi_bulk, (__VA_ARGS__))
#define gasnet_get_nbi(...) GASWORKS_TALKS_VOID(gasnet_get_nbi, (__VA_ARGS__))
#define gasnet_get_nbi_bulk(...) GASWORKS_TALKS_VOID(gasnet_get_nbi_bulk, (__VA_ARGS__))
#define gasnet_memset_nbi(...) GASWORKS_TALKS_VOID(gasnet_memset_nbi, (__VA_ARGS__))
#define gasnet_put_nbi_val(...) GASWORKS_TALKS_VOID(gasnet_put_nbi_val, (__VA_ARGS__))
#define gasnet_begin_nbi_accessregion(...) GASWORKS_TALKS_VOID(gasnet_begin_nbi_accessregion, (__VA_ARGS__))
#define gasnet_end_nbi_accessregion(...) GASWORKS_TALKS(event, gasnet_end_nbi_accessregion, (__VA_ARGS__))
#define gasnet_wait_syncnb(...) GASWORKS_CALLS_VOID(gasnet_wait_syncnb, (__VA_ARGS__))
#define gasnet_try_syncnb_nopoll(...) GASWORKS_CALLS(int, gasnet_try_syncnb_nopoll, (__VA_ARGS__))
#define gasnet_try_syncnb(...) GASWORKS_CALLS(int, gasnet_try_syncnb, (__VA_ARGS__))
#define gasnet_wait_syncnb_some(...) GASWORKS_CALLS_VOID(gasnet_wait_syncnb_some, (__VA_ARGS__))
#define gasnet_try_syncnb_some_nopoll(...) GASWORKS_CALLS(int, gasnet_try_syncnb_some_nopoll, (__VA_ARGS__))
#define gasnet_try_syncnb_some(...) GASWORKS_CALLS(int, gasnet_try_syncnb_some, (__VA_ARGS__))
#define gasnet_wait_syncnb_all(...) GASWORKS_CALLS_VOID(gasnet_wait_syncnb_all, (__VA_ARGS__))
#define gasnet_try_syncnb_all_nopoll(...) GASWORKS_CALLS(int, gasnet_try_syncnb_all_nopoll, (__VA_ARGS__))
#define gasnet_try_syncnb_all(...) GASWORKS_CALLS(int, gasnet_try_syncnb_all, (__VA_ARGS__))
#define gasnet_wait_syncnbi_all(...) GASWORKS_TALKS_VOID(gasnet_wait_syncnbi_all, (__VA_ARGS__))
#define gasnet_try_syncnbi_all(...) GASWORKS_TALKS(int, gasnet_try_syncnbi_all, (__VA_ARGS__))
#define gasnet_wait_syncnbi_gets(...) GASWORKS_TALKS_VOID(gasnet_wait_syncnbi_gets, (__VA_ARGS__))
#define gasnet_try_syncnbi_gets(...) GASWORKS_TALKS(int, gasnet_try_syncnbi_gets, (__VA_ARGS__))
#define gasnet_wait_syncnbi_puts(...) GASWORKS_TALKS_VOID(gasnet_wait_syncnbi_puts, (__VA_ARGS__))
#define gasnet_try_syncnbi_puts(...) GASWORKS_TALKS(int, gasnet_try_syncnbi_puts, (__VA_ARGS__))
#define gasnet_putv_bulk(...) GASWORKS_TALKS_VOID(gasnet_putv_bulk, (__VA_ARGS__))
#define gasnet_getv_bulk(...) GASWORKS_TALKS_VOID(gasnet_getv_bulk, (__VA_ARGS__))
#define gasnet_putv_nb_bulk(...) GASWORKS_TALKS(event, gasnet_putv_nb_bulk, (__VA_ARGS__))
#define gasnet_getv_nb_bulk(...) GASWORKS_TALKS(event, gasnet_getv_nb_bulk, (__VA_ARGS__))
#define gasnet_putv_nbi_bulk(...) GASWORKS_TALKS_VOID(gasnet_putv_nbi_bulk, (__VA_ARGS__))
#define gasnet_getv_nbi_bulk(...) GASWORKS_TALKS_VOID(gasnet_getv_nbi_bulk, (__VA_ARGS__))
#define gasnet_puti_bulk(...) GASWORKS_TALKS_VOID(gasnet_puti_bulk, (__VA_ARGS__))
#define gasnet_geti_bulk(...) GASWORKS_TALKS_VOID(gasnet_geti_bulk, (__VA_ARGS__))
#define gasnet_puti_nb_bulk(...) GASWORKS_TALKS(event, gasnet_puti_nb_bulk, (__VA_ARGS__))
#define gasnet_geti_nb_bulk(...) GASWORKS_TALKS(event, gasnet_geti_nb_bulk, (__VA_ARGS__))
#define gasnet_puti_nbi_bulk(...) GASWORKS_TALKS_VOID(gasnet_puti_nbi_bulk, (__VA_ARGS__))
#define gasnet_geti_nbi_bulk(...) GASWORKS_TALKS_VOID(gasnet_geti_nbi_bulk, (__VA_ARGS__))
#define gasnet_puts_bulk(...) GASWORKS_TALKS_VOID(gasnet_puts_bulk, (__VA_ARGS__))
#define gasnet_gets_bulk(...) GASWORKS_TALKS_VOID(gasnet_gets_bulk, (__VA_ARGS__))
#define gasnet_puts_nb_bulk(...) GASWORKS_TALKS(event, gasnet_puts_nb_bulk, (__VA_ARGS__))
#define gasnet_gets_nb_bulk(...) GASWORKS_TALKS(event, gasnet_gets_nb_bulk, (__VA_ARGS__))
#define gasnet_puts_nbi_bulk(...) GASWORKS_TALKS_VOID(gasnet_puts_nbi_bulk, (__VA_ARGS__))
#define gasnet_gets_nbi_bulk(...) GASWORKS_TALKS_VOID(gasnet_gets_nbi_bulk, (__VA_ARGS__))

#include <gasworks_debug_am_legacy.h>

#endif
