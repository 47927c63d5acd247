/* GASNet-EX, as Gasworks does it: what a program includes. */
#ifndef _INCLUDED_GASNETEX_H
#define _INCLUDED_GASNETEX_H 1
#define GASNETEX_H_INCLUDED 1

#ifdef GASNET_TOOLS_H_ALONE
#error gasnetex.h (or gasnet.h) is included before gasnet_tools.h
#endif

/* Programs take for granted that these come with it, and with sys/param.h MIN and MAX. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/param.h>
#include <sys/types.h>
#ifndef GASNET_SEQ
#include <pthread.h>
#include <sched.h>
#endif

#include <gasnet_fwd.h>
#include <gasnet_core.h>

GASWORKS_BEGIN_C

/* Objects of another network or mode, or of another version of these headers, do not link: each refers to a name that only its library
   has. */
#define GASWORKS_LINKED_NAME_(network, mode, interface) gasworks_linked_##network##_##mode##_##interface
#define GASWORKS_LINKED_NAME(network, mode, interface) GASWORKS_LINKED_NAME_(network, mode, interface)
#define GASWORKS_LINKED GASWORKS_LINKED_NAME(GASNET_CONDUIT_NAME, GASWORKS_MODE, GASWORKS_INTERFACE)
extern const char GASWORKS_LINKED;
static const char *const gasworks_linked GASWORKS_USED = &GASWORKS_LINKED;
/* Nor do those of debug builds and others with each other: what their headers do inline is not the same. */
#ifdef GASNET_DEBUG
#define GASWORKS_LINKED_BUILD GASWORKS_LINKED_NAME(build, debug, GASWORKS_INTERFACE)
#else
#define GASWORKS_LINKED_BUILD GASWORKS_LINKED_NAME(build, optimised, GASWORKS_INTERFACE)
#endif
extern const char GASWORKS_LINKED_BUILD;
static const char *const gasworks_linked_build GASWORKS_USED = &GASWORKS_LINKED_BUILD;

#define GASNET_CONFIG_STRING                                                                                       \
  "RELEASE=2025.8.0,SPEC=0.19,CONDUIT=" GASNET_CONDUIT_NAME_STR "(" GASNET_CORE_VERSION_STR                        \
  "/" GASNET_EXTENDED_VERSION_STR "),THREADMODEL=" GASWORKS_MODE_STR ",SEGMENT=FAST,PTR=64bit," GASWORKS_DEBUG_STR \
  ",notrace,nostats,nodebugmalloc,nosrclines,timers_native,membars_native,atomics_native,atomic32_native"          \
  ",atomic64_native,pshm,gasworks"

/* What a linked program is, for launchers, which read it in the file. */
#define GASWORKS_IDENT(name, value) \
  static const char gasworks_ident_##name[] GASWORKS_USED = "$" #name ": " value " $";
GASWORKS_IDENT(GASNetConduitName, GASNET_CONDUIT_NAME_STR)
GASWORKS_IDENT(GASNetCoreLibraryName, GASNET_CORE_NAME_STR)
GASWORKS_IDENT(GASNetCoreLibraryVersion, GASNET_CORE_VERSION_STR)
GASWORKS_IDENT(GASNetExtendedLibraryName, GASNET_EXTENDED_NAME_STR)
GASWORKS_IDENT(GASNetExtendedLibraryVersion, GASNET_EXTENDED_VERSION_STR)
GASWORKS_IDENT(GASNetThreadModel, "GASNET_" GASWORKS_MODE_STR)
GASWORKS_IDENT(GASNetSegment, "GASNET_SEGMENT_FAST")
GASWORKS_IDENT(GASNetConfig, GASNET_CONFIG_STRING)
GASWORKS_IDENT(GASNetAPIVersion, "1")
GASWORKS_IDENT(GASNetEXAPIVersion, "0.19")
#define GASWORKS_SPAWNER(name) GASWORKS_IDENT(GASNet##name##Spawner, "1")
GASWORKS_SPAWNERS(GASWORKS_SPAWNER)

/* A job begins. */
extern int gasworks_client_init(gex_Client_t *client, gex_EP_t *ep, gex_TM_t *tm, const char *name, int *argc,
                                char ***argv, gex_Flags_t flags, const char *compiled_for);
GASWORKS_INLINE int gex_Client_Init(gex_Client_t *client, gex_EP_t *ep, gex_TM_t *tm, const char *name, int *argc,
                                    char ***argv, gex_Flags_t flags) {
  return gasworks_client_init(client, ep, tm, name, argc, argv, flags, GASNET_CONFIG_STRING);
}
extern int gex_Segment_Attach(gex_Segment_t *segment, gex_TM_t tm, uintptr_t size);
extern int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t *table, size_t count);
extern void gasnet_exit(int code) GASWORKS_NORETURN;

/* The objects of a job that has begun; before, they are none. */
struct gasworks_objects {
  struct gasworks_client *client;
  struct gasworks_ep *ep;
  struct gasworks_tm *tm;
};
extern struct gasworks_objects gasworks_objects;
GASWORKS_INLINE gex_Client_t gasworks_client0(void) { return gasworks_objects.client; }
GASWORKS_INLINE gex_EP_t gasworks_ep0(void) { return gasworks_objects.ep; }
GASWORKS_INLINE gex_TM_t gasworks_tm0(void) { return gasworks_objects.tm; }

/* In debug builds, whether a handle leads to what it should. */
#ifdef GASNET_DEBUG
extern void gasworks_check_object(const void *object, uint32_t kind, const char *call);
#define GASWORKS_CHECK(of, object) gasworks_check_object(object, GASWORKS_KIND_##of, __func__)
#else
#define GASWORKS_CHECK(of, object) ((void)0)
#endif

/* What was stored with objects, and what they are of. */
#define GASWORKS_MAKE_OBJECT(Name, of)                                                          \
  GASWORKS_INLINE void gex_##Name##_SetCData(gex_##Name##_t object, const void *cdata) {        \
    GASWORKS_CHECK(of, object);                                                                 \
    object->cdata = cdata;                                                                      \
  }                                                                                             \
  GASWORKS_INLINE void *gex_##Name##_QueryCData(gex_##Name##_t object) {                        \
    GASWORKS_CHECK(of, object);                                                                 \
    return (void *)object->cdata;                                                               \
  }                                                                                             \
  GASWORKS_INLINE gex_Flags_t gex_##Name##_QueryFlags(gex_##Name##_t object) {                  \
    GASWORKS_CHECK(of, object);                                                                 \
    return object->flags;                                                                       \
  }
GASWORKS_MAKE_OBJECT(Client, client)
GASWORKS_MAKE_OBJECT(Segment, segment)
GASWORKS_MAKE_OBJECT(TM, tm)
GASWORKS_MAKE_OBJECT(EP, ep)
GASWORKS_INLINE const char *gex_Client_QueryName(gex_Client_t client) {
  GASWORKS_CHECK(client, client);
  return client->name;
}
GASWORKS_INLINE gex_Client_t gex_Segment_QueryClient(gex_Segment_t segment) {
  GASWORKS_CHECK(segment, segment);
  return segment->client;
}
GASWORKS_INLINE void *gex_Segment_QueryAddr(gex_Segment_t segment) {
  GASWORKS_CHECK(segment, segment);
  return segment->address;
}
GASWORKS_INLINE uintptr_t gex_Segment_QuerySize(gex_Segment_t segment) {
  GASWORKS_CHECK(segment, segment);
  return segment->size;
}
GASWORKS_INLINE gex_Client_t gex_TM_QueryClient(gex_TM_t tm) {
  GASWORKS_CHECK(tm, tm);
  return tm->client;
}
GASWORKS_INLINE gex_EP_t gex_TM_QueryEP(gex_TM_t tm) {
  GASWORKS_CHECK(tm, tm);
  return tm->ep;
}
GASWORKS_INLINE gex_Rank_t gex_TM_QueryRank(gex_TM_t tm) {
  GASWORKS_CHECK(tm, tm);
  return tm->rank;
}
GASWORKS_INLINE gex_Rank_t gex_TM_QuerySize(gex_TM_t tm) {
  GASWORKS_CHECK(tm, tm);
  return tm->size;
}
GASWORKS_INLINE gex_Client_t gex_EP_QueryClient(gex_EP_t ep) {
  GASWORKS_CHECK(ep, ep);
  return ep->client;
}
GASWORKS_INLINE gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep) {
  GASWORKS_CHECK(ep, ep);
  return ep->segment;
}
GASWORKS_INLINE gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep) {
  GASWORKS_CHECK(ep, ep);
  return ep->index;
}

/* An endpoint here, and that of a number at each rank. Its object has the layout of a team and is made with the endpoint, so that nothing
   is looked up, and equal pairs are equal handles. */
#define GASWORKS_PAIRS 64
GASWORKS_INLINE gex_TM_t gex_TM_Pair(gex_EP_t ep, gex_EP_Index_t there) {
  GASWORKS_CHECK(ep, ep);
  return ep ? &ep->pairs[there < GASWORKS_PAIRS ? there : GASWORKS_PAIRS] : GEX_TM_INVALID;
}

/* Of teams, segments and endpoints beyond the first of each. */
extern int gex_Segment_Create(gex_Segment_t *segment, gex_Client_t client, gex_Addr_t address, uintptr_t size,
                              gex_MK_t kind, gex_Flags_t flags);
extern void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags);
extern int gex_EP_Create(gex_EP_t *ep, gex_Client_t client, gex_EP_Capabilities_t capabilities, gex_Flags_t flags);
extern int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags);
extern int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t count, gex_Flags_t flags);
extern gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owner, void **local,
                                              uintptr_t *size, gex_Flags_t flags);
extern int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owner, void **local, uintptr_t *size);
extern size_t gex_TM_Split(gex_TM_t *created, gex_TM_t parent, int color, int key, void *scratch, size_t scratch_size,
                           gex_Flags_t flags);
extern size_t gex_TM_Create(gex_TM_t *created, size_t count, gex_TM_t parent, gex_EP_Location_t *members,
                            size_t member_count, gex_Addr_t *scratch, size_t scratch_size, gex_Flags_t flags);
extern int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t *scratch, gex_Flags_t flags);
extern gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank);
extern gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t rank);
extern gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags);

/* The job. */
GASWORKS_INLINE gex_Rank_t gex_System_QueryJobRank(void) {
  return gasworks_objects.tm ? gasworks_objects.tm->rank : GEX_RANK_INVALID;
}
GASWORKS_INLINE gex_Rank_t gex_System_QueryJobSize(void) {
  return gasworks_objects.tm ? gasworks_objects.tm->size : GEX_RANK_INVALID;
}
extern int gex_System_GetVerboseErrors(void);
extern void gex_System_SetVerboseErrors(int verbose);
extern uint64_t gex_System_QueryMaxThreads(void);
/* A name from inside GASNet that some programs read. */
#if GASNET_SEQ
#define GASNETI_MAX_THREADS 1
#else
#define GASNETI_MAX_THREADS 256
#endif
extern int gex_System_QueryHiddenAMConcurrencyLevel(void);
extern int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count,
                                           const gex_ProgressThreadInfo_t **info, gex_Flags_t flags);
extern void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *me);
extern void gex_System_QueryHostInfo(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *me);
extern void gex_System_QueryMyPosition(gex_Rank_t *nbrhds, gex_Rank_t *my_nbrhd, gex_Rank_t *hosts,
                                       gex_Rank_t *my_host);
extern uintptr_t gasnet_getMaxLocalSegmentSize(void);
extern uintptr_t gasnet_getMaxGlobalSegmentSize(void);
extern char *gasnet_getenv(const char *name);
extern const char *gasnet_ErrorName(int code);
extern const char *gasnet_ErrorDesc(int code);

/* Active messages: limits, tokens, and payloads that are negotiated. */
#define gex_AM_MaxArgs() ((unsigned int)16)
extern size_t gex_AM_MaxRequestMedium(gex_TM_t tm, gex_Rank_t rank, const gex_Event_t *lc_opt, gex_Flags_t flags,
                                      unsigned int nargs);
extern size_t gex_AM_MaxReplyMedium(gex_TM_t tm, gex_Rank_t rank, const gex_Event_t *lc_opt, gex_Flags_t flags,
                                    unsigned int nargs);
extern size_t gex_AM_MaxRequestLong(gex_TM_t tm, gex_Rank_t rank, const gex_Event_t *lc_opt, gex_Flags_t flags,
                                    unsigned int nargs);
extern size_t gex_AM_MaxReplyLong(gex_TM_t tm, gex_Rank_t rank, const gex_Event_t *lc_opt, gex_Flags_t flags,
                                  unsigned int nargs);
/* They may be asked before there is a job. */
extern size_t gasworks_least_upper_bound(int is_long, const char *compiled);
GASWORKS_INLINE size_t gex_AM_LUBRequestMedium(void) { return gasworks_least_upper_bound(0, GASNET_CONFIG_STRING); }
GASWORKS_INLINE size_t gex_AM_LUBReplyMedium(void) { return gasworks_least_upper_bound(0, GASNET_CONFIG_STRING); }
GASWORKS_INLINE size_t gex_AM_LUBRequestLong(void) { return gasworks_least_upper_bound(1, GASNET_CONFIG_STRING); }
GASWORKS_INLINE size_t gex_AM_LUBReplyLong(void) { return gasworks_least_upper_bound(1, GASNET_CONFIG_STRING); }
extern size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags,
                                       unsigned int nargs);
extern size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags,
                                     unsigned int nargs);
extern gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask);
extern void *gex_AM_SrcDescAddr(gex_AM_SrcDesc_t source);
extern size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t source);
extern gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank, const void *buffer, size_t least,
                                                    size_t most, gex_Event_t *lc_opt, gex_Flags_t flags,
                                                    unsigned int nargs);
extern gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank, const void *buffer, size_t least,
                                                  size_t most, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags,
                                                  unsigned int nargs);
extern gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void *buffer, size_t least, size_t most,
                                                  gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs);
extern gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void *buffer, size_t least, size_t most,
                                                void *dest, gex_Event_t *lc_opt, gex_Flags_t flags,
                                                unsigned int nargs);
extern int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t source, gex_Flags_t flags);
extern int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t source, gex_Flags_t flags);
extern int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t source, gex_Flags_t flags);
extern int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t source, gex_Flags_t flags);

/* Progress. */
extern int gasworks_poll(void);
extern void gasworks_wait_begin(void);
extern void gasworks_wait_turn(void);
extern int gasnet_set_waitmode(int mode);
GASWORKS_INLINE int gasnet_AMPoll(void) { return gasworks_poll(); }
#if defined(__GNUC__)
#define GASWORKS_READ_FENCE() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#else
#define GASWORKS_READ_FENCE() (gasworks_poll())
#endif
#define GASNET_BLOCKUNTIL(cond)                \
  do {                                         \
    if (!(cond)) {                             \
      gasworks_wait_begin();                   \
      do {                                     \
        gasworks_wait_turn();                  \
      } while (!(cond));                       \
    }                                          \
    GASWORKS_READ_FENCE();                     \
  } while (0)

/* The barriers. */
extern void gasnet_barrier_notify(int id, int flags);
extern int gasnet_barrier_wait(int id, int flags);
extern int gasnet_barrier_try(int id, int flags);
extern int gasnet_barrier(int id, int flags);
extern int gasnet_barrier_result(int *id);
extern gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags);
extern void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags);

/* Variables that older clients know: the largest segment, set before the job begins; and what is called when there is one. */
extern uint64_t gasnet_max_segsize;
extern const char *gasnet_max_segsize_str;
extern void (*gasnet_client_attach_hook)(void *segment, uintptr_t size);

GASWORKS_END_C

#include <gasworks_am.h>
#include <gasworks_rma.h>
#include <gasworks_hsl.h>
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>
#include <gasnet_coll.h>
#include <gasnet_mk.h>
#ifdef GASNET_DEBUG
#include <gasworks_debug.h>
#endif

#endif
