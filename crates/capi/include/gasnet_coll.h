/* Collectives over a team: EX's, ours, and the older ones of GASNet-1. Included by gasnetex.h, which has the team's barrier. */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H

#ifndef GASNETEX_H_INCLUDED
#error gasnet_coll.h is part of gasnetex.h: include that
#endif

GASWORKS_BEGIN_C

/* Combines count elements into the second buffer. It runs on any thread, and several times at once. */
typedef void (*gex_Coll_ReduceFn_t)(const void *operand, void *in_out, size_t count, const void *cdata);

/* Both buffers may be anywhere, and are one or apart; they are the library's until the event is done. */

extern gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t len,
                                        gex_Flags_t flags);
extern gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, gex_DT_t type,
                                          size_t type_size, size_t count, gex_OP_t op, gex_Coll_ReduceFn_t user_op,
                                          void *user_cdata, gex_Flags_t flags);
extern gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t type, size_t type_size,
                                          size_t count, gex_OP_t op, gex_Coll_ReduceFn_t user_op, void *user_cdata,
                                          gex_Flags_t flags);

/* Collectives that EX does not have. As above each member calls them in the same order, with as many bytes; lengths of each member are looked at
   during the call alone, and of the rooted ones at the root. */

/* The bytes of all members come to the root, one's behind the other's. */
extern gex_Event_t gasworks_coll_gather_nb(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t len,
                                           gex_Flags_t flags);
extern gex_Event_t gasworks_coll_gather_each_nb(gex_TM_t tm, gex_Rank_t root, void *dst, const size_t each[],
                                                const void *src, size_t len, gex_Flags_t flags);
/* Each member gets its part of what the root has. */
extern gex_Event_t gasworks_coll_scatter_nb(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src, size_t len,
                                            gex_Flags_t flags);
extern gex_Event_t gasworks_coll_scatter_each_nb(gex_TM_t tm, gex_Rank_t root, void *dst, size_t len, const void *src,
                                                 const size_t each[], gex_Flags_t flags);
/* The bytes of all members come to all. */
extern gex_Event_t gasworks_coll_all_gather_nb(gex_TM_t tm, void *dst, const void *src, size_t len, gex_Flags_t flags);
/* Each member gets a block of each. */
extern gex_Event_t gasworks_coll_all_to_all_nb(gex_TM_t tm, void *dst, const void *src, size_t len, gex_Flags_t flags);
extern gex_Event_t gasworks_coll_all_to_all_each_nb(gex_TM_t tm, void *dst, const size_t from_each[], const void *src,
                                                    const size_t to_each[], gex_Flags_t flags);
/* What the members up to this one have is combined, or the members before it; then the first's stays as it is. */
extern gex_Event_t gasworks_coll_scan_nb(gex_TM_t tm, void *dst, const void *src, gex_DT_t type, size_t type_size,
                                         size_t count, gex_OP_t op, gex_Coll_ReduceFn_t user_op, void *user_cdata,
                                         gex_Flags_t flags);
extern gex_Event_t gasworks_coll_scan_before_nb(gex_TM_t tm, void *dst, const void *src, gex_DT_t type,
                                                size_t type_size, size_t count, gex_OP_t op,
                                                gex_Coll_ReduceFn_t user_op, void *user_cdata, gex_Flags_t flags);

/* The collectives of GASNet-1. An image is a rank, and a team of theirs is a team. */
typedef gex_Rank_t gasnet_image_t;
typedef gex_TM_t gasnet_team_handle_t;
#define GASNET_TEAM_ALL (gasworks_tm0())

typedef gex_Event_t gasnet_coll_handle_t;
#define GASNET_COLL_INVALID_HANDLE GEX_EVENT_INVALID

/* How far the ranks agree when data is first read, and when it was last written: one of each three. */
#define GASNET_COLL_IN_NOSYNC (1 << 0)
#define GASNET_COLL_IN_MYSYNC (1 << 1)
#define GASNET_COLL_IN_ALLSYNC (1 << 2)
#define GASNET_COLL_OUT_NOSYNC (1 << 3)
#define GASNET_COLL_OUT_MYSYNC (1 << 4)
#define GASNET_COLL_OUT_ALLSYNC (1 << 5)
#define GASNET_COLL_SYNC_FLAG_MASK 0x3f
/* Whether each rank knows all addresses or its own: one of the two. */
#define GASNET_COLL_SINGLE (1 << 6)
#define GASNET_COLL_LOCAL (1 << 7)
/* What more the caller promises or asks. */
#define GASNET_COLL_AMSAFE (1 << 8)
#define GASNET_COLL_DST_IN_SEGMENT (1 << 9)
#define GASNET_COLL_SRC_IN_SEGMENT (1 << 10)
#define GASNET_COLL_NONCOMM (1 << 11)
#define GASNET_COLL_DISABLE_AUTOTUNE (1 << 12)
#define GASNET_COLL_FIXED_THREADS_PER_NODE (1 << 13)
#define GASNET_COLL_NO_IMAGES (1 << 14)
/* Whether a scan has a rank's own elements in its result: one of the two. */
#define GASNET_COLL_INCLUSIVE_SCAN (1 << 15)
#define GASNET_COLL_EXCLUSIVE_SCAN (1 << 16)
#define GASNET_COLL_AGGREGATE (1 << 17)

/* What is tuned, and by what: nothing is, here. */
typedef enum {
  GASNET_COLL_BROADCAST_OP = 0,
  GASNET_COLL_BROADCASTM_OP,
  GASNET_COLL_SCATTER_OP,
  GASNET_COLL_SCATTERM_OP,
  GASNET_COLL_GATHER_OP,
  GASNET_COLL_GATHERM_OP,
  GASNET_COLL_GATHER_ALL_OP,
  GASNET_COLL_GATHER_ALLM_OP,
  GASNET_COLL_EXCHANGE_OP,
  GASNET_COLL_EXCHANGEM_OP,
  GASNET_COLL_REDUCE_OP,
  GASNET_COLL_REDUCEM_OP,
  GASNET_COLL_NUM_COLL_OPTYPES
} gasnet_coll_optype_t;
typedef enum {
  GASNET_COLL_PIPE_SEG_SIZE = 0,
  GASNET_COLL_DISSEM_RADIX,
  GASNET_COLL_TREE_TYPE,
  GASNET_COLL_NUM_PARAM_TYPES
} gasnet_coll_tuning_param_type_t;
/* Work to overlap with a collective while it is tuned. */
typedef void (*gasnet_coll_overlap_sample_work_t)(void *arg);

/* A function's place in the table that gasnet_coll_init was given. */
typedef gex_AM_Arg_t gasnet_coll_fn_handle_t;
/* A function of the program's that combines elements of elem_size bytes. It is called for one result, of one operand to the left and one to the
   right, apart from both, on any thread. */
typedef void (*gasnet_coll_reduce_fn_t)(void *results, size_t result_count, const void *left_operands, size_t left_count,
                                        const void *right_operands, size_t elem_size, int flags, int arg);
typedef struct {
  gasnet_coll_reduce_fn_t fnptr;
  unsigned int flags; /* GASNET_COLL_NONCOMM: it is called in the order of the images */
} gasnet_coll_fn_entry_t;

/* Gives the library the functions of reductions and scans, whose handles are their places in the table; each rank has one image. */
extern void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image, gasnet_coll_fn_entry_t functions[],
                             size_t count, int flags);

GASWORKS_INLINE gex_Rank_t gasnet_coll_team_size(gasnet_team_handle_t team) { return gex_TM_QuerySize(team); }
GASWORKS_INLINE gex_Rank_t gasnet_coll_team_rank2node(gasnet_team_handle_t team, int rank) {
  return gex_TM_TranslateRankToJobrank(team, (gex_Rank_t)rank);
}
GASWORKS_INLINE gex_Rank_t gasnet_coll_team_node2rank(gasnet_team_handle_t team, gex_Rank_t node) {
  return gex_TM_TranslateJobrankToRank(team, node);
}

extern void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t src_image, void *src, size_t len,
                                  int flags);
extern gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t src_image,
                                                     void *src, size_t len, int flags);
extern void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t src_image, void *src, size_t len,
                                int flags);
extern gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst, gasnet_image_t src_image,
                                                   void *src, size_t len, int flags);
extern void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dst_image, void *dst, void *src, size_t len,
                               int flags);
extern gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t dst_image, void *dst,
                                                  void *src, size_t len, int flags);
extern void gasnet_coll_gather_all(gasnet_team_handle_t team, void *dst, void *src, size_t len, int flags);
extern gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void *dst, void *src, size_t len,
                                                      int flags);
extern void gasnet_coll_exchange(gasnet_team_handle_t team, void *dst, void *src, size_t len, int flags);
extern gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void *dst, void *src, size_t len,
                                                    int flags);

/* With a list of the addresses of all images, or with GASNET_COLL_LOCAL of this rank's, which is one. */
extern void gasnet_coll_broadcastM(gasnet_team_handle_t team, void *const dst_list[], gasnet_image_t src_image,
                                   void *src, size_t len, int flags);
extern gasnet_coll_handle_t gasnet_coll_broadcastM_nb(gasnet_team_handle_t team, void *const dst_list[],
                                                      gasnet_image_t src_image, void *src, size_t len, int flags);
extern void gasnet_coll_scatterM(gasnet_team_handle_t team, void *const dst_list[], gasnet_image_t src_image, void *src,
                                 size_t len, int flags);
extern gasnet_coll_handle_t gasnet_coll_scatterM_nb(gasnet_team_handle_t team, void *const dst_list[],
                                                    gasnet_image_t src_image, void *src, size_t len, int flags);
extern void gasnet_coll_gatherM(gasnet_team_handle_t team, gasnet_image_t dst_image, void *dst, void *const src_list[],
                                size_t len, int flags);
extern gasnet_coll_handle_t gasnet_coll_gatherM_nb(gasnet_team_handle_t team, gasnet_image_t dst_image, void *dst,
                                                   void *const src_list[], size_t len, int flags);
extern void gasnet_coll_gather_allM(gasnet_team_handle_t team, void *const dst_list[], void *const src_list[],
                                    size_t len, int flags);
extern gasnet_coll_handle_t gasnet_coll_gather_allM_nb(gasnet_team_handle_t team, void *const dst_list[],
                                                       void *const src_list[], size_t len, int flags);
extern void gasnet_coll_exchangeM(gasnet_team_handle_t team, void *const dst_list[], void *const src_list[], size_t len,
                                  int flags);
extern gasnet_coll_handle_t gasnet_coll_exchangeM_nb(gasnet_team_handle_t team, void *const dst_list[],
                                                     void *const src_list[], size_t len, int flags);
/* Element by element; how elements lie in blocks is not told: src_block, src_offset and those of dst are 0. */
extern void gasnet_coll_reduce(gasnet_team_handle_t team, gasnet_image_t dst_image, void *dst, void *src,
                               size_t src_block, size_t src_offset, size_t elem_size, size_t elem_count,
                               gasnet_coll_fn_handle_t func, int func_arg, int flags);
extern gasnet_coll_handle_t gasnet_coll_reduce_nb(gasnet_team_handle_t team, gasnet_image_t dst_image, void *dst,
                                                  void *src, size_t src_block, size_t src_offset, size_t elem_size,
                                                  size_t elem_count, gasnet_coll_fn_handle_t func, int func_arg,
                                                  int flags);
extern void gasnet_coll_reduceM(gasnet_team_handle_t team, gasnet_image_t dst_image, void *dst, void *const src_list[],
                                size_t src_block, size_t src_offset, size_t elem_size, size_t elem_count,
                                gasnet_coll_fn_handle_t func, int func_arg, int flags);
extern gasnet_coll_handle_t gasnet_coll_reduceM_nb(gasnet_team_handle_t team, gasnet_image_t dst_image, void *dst,
                                                   void *const src_list[], size_t src_block, size_t src_offset,
                                                   size_t elem_size, size_t elem_count, gasnet_coll_fn_handle_t func,
                                                   int func_arg, int flags);
extern void gasnet_coll_scan(gasnet_team_handle_t team, void *dst, size_t dst_block, size_t dst_offset, void *src,
                             size_t src_block, size_t src_offset, size_t elem_size, size_t elem_count,
                             gasnet_coll_fn_handle_t func, int func_arg, int flags);
extern gasnet_coll_handle_t gasnet_coll_scan_nb(gasnet_team_handle_t team, void *dst, size_t dst_block,
                                                size_t dst_offset, void *src, size_t src_block, size_t src_offset,
                                                size_t elem_size, size_t elem_count, gasnet_coll_fn_handle_t func,
                                                int func_arg, int flags);
extern void gasnet_coll_scanM(gasnet_team_handle_t team, void *const dst_list[], size_t dst_block, size_t dst_offset,
                              void *const src_list[], size_t src_block, size_t src_offset, size_t elem_size,
                              size_t elem_count, gasnet_coll_fn_handle_t func, int func_arg, int flags);
extern gasnet_coll_handle_t gasnet_coll_scanM_nb(gasnet_team_handle_t team, void *const dst_list[], size_t dst_block,
                                                 size_t dst_offset, void *const src_list[], size_t src_block,
                                                 size_t src_offset, size_t elem_size, size_t elem_count,
                                                 gasnet_coll_fn_handle_t func, int func_arg, int flags);
extern int gasnet_coll_try_sync(gasnet_coll_handle_t handle);
extern void gasnet_coll_wait_sync(gasnet_coll_handle_t handle);
extern int gasnet_coll_try_sync_some(gasnet_coll_handle_t *handles, size_t count);
extern void gasnet_coll_wait_sync_some(gasnet_coll_handle_t *handles, size_t count);
extern int gasnet_coll_try_sync_all(gasnet_coll_handle_t *handles, size_t count);
extern void gasnet_coll_wait_sync_all(gasnet_coll_handle_t *handles, size_t count);

extern int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags);
extern void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags);
extern int gasnet_coll_barrier_result(gasnet_team_handle_t team, int *id);

extern int gasnet_coll_get_num_tree_classes(gasnet_team_handle_t team, gasnet_coll_optype_t op);
extern void gasnet_coll_set_tree_kind(gasnet_team_handle_t team, int tree_type, int fanout, gasnet_coll_optype_t op);
extern void gasnet_coll_set_dissem_limit(gasnet_team_handle_t team, size_t limit, gasnet_coll_optype_t op);
extern void gasnet_coll_loadTuningState(char *filename, gasnet_team_handle_t team);
extern void gasnet_coll_dumpTuningState(char *filename, gasnet_team_handle_t team);
extern void gasnet_coll_dumpProfile(char *filename, gasnet_team_handle_t team);

GASWORKS_END_C

#endif
