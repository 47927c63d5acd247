/* Every name of the collectives, used once: that this compiles says that all are declared, and of which type. */
#include <gasnetex.h>

gex_DT_t names_coll_type = GEX_DT_USER;
gex_OP_t names_coll_ops[] = {GEX_OP_USER, GEX_OP_USER_NC};

static void names_reduce(const void *operand, void *in_out, size_t count, const void *cdata) {
  (void)operand, (void)in_out, (void)count, (void)cdata;
}
gex_Coll_ReduceFn_t names_coll_reduce = names_reduce;

gex_Event_t (*names_coll_broadcast)(gex_TM_t, gex_Rank_t, void *, const void *, size_t,
                                    gex_Flags_t) = gex_Coll_BroadcastNB;
gex_Event_t (*names_coll_reduce_to_one)(gex_TM_t, gex_Rank_t, void *, const void *, gex_DT_t, size_t, size_t, gex_OP_t,
                                        gex_Coll_ReduceFn_t, void *, gex_Flags_t) = gex_Coll_ReduceToOneNB;
gex_Event_t (*names_coll_reduce_to_all)(gex_TM_t, void *, const void *, gex_DT_t, size_t, size_t, gex_OP_t,
                                        gex_Coll_ReduceFn_t, void *, gex_Flags_t) = gex_Coll_ReduceToAllNB;

/* GASNet-1's. */
int names_coll_flags[] = {
    GASNET_COLL_IN_NOSYNC,       GASNET_COLL_IN_MYSYNC,        GASNET_COLL_IN_ALLSYNC,
    GASNET_COLL_OUT_NOSYNC,      GASNET_COLL_OUT_MYSYNC,       GASNET_COLL_OUT_ALLSYNC,
    GASNET_COLL_SYNC_FLAG_MASK,  GASNET_COLL_SINGLE,           GASNET_COLL_LOCAL,
    GASNET_COLL_AMSAFE,          GASNET_COLL_DST_IN_SEGMENT,   GASNET_COLL_SRC_IN_SEGMENT,
    GASNET_COLL_NONCOMM,         GASNET_COLL_DISABLE_AUTOTUNE, GASNET_COLL_FIXED_THREADS_PER_NODE,
    GASNET_COLL_NO_IMAGES,
};
gasnet_coll_optype_t names_coll_tuned[] = {
    GASNET_COLL_BROADCAST_OP,  GASNET_COLL_SCATTER_OP,  GASNET_COLL_GATHER_OP,
    GASNET_COLL_GATHER_ALL_OP, GASNET_COLL_EXCHANGE_OP, GASNET_COLL_NUM_COLL_OPTYPES,
};
gasnet_coll_tuning_param_type_t names_coll_parameters[] = {
    GASNET_COLL_PIPE_SEG_SIZE,
    GASNET_COLL_DISSEM_RADIX,
    GASNET_COLL_TREE_TYPE,
    GASNET_COLL_NUM_PARAM_TYPES,
};

static void names_overlap(void *arg) { (void)arg; }
gasnet_coll_overlap_sample_work_t names_coll_overlap = names_overlap;

typedef void names_rooted_from(gasnet_team_handle_t, void *, gasnet_image_t, void *, size_t, int);
typedef gasnet_coll_handle_t names_rooted_from_nb(gasnet_team_handle_t, void *, gasnet_image_t, void *, size_t, int);
typedef void names_all(gasnet_team_handle_t, void *, void *, size_t, int);
typedef gasnet_coll_handle_t names_all_nb(gasnet_team_handle_t, void *, void *, size_t, int);
names_rooted_from *names_coll_0[] = {gasnet_coll_broadcast, gasnet_coll_scatter};
names_rooted_from_nb *names_coll_1[] = {gasnet_coll_broadcast_nb, gasnet_coll_scatter_nb};
void (*names_coll_2)(gasnet_team_handle_t, gasnet_image_t, void *, void *, size_t, int) = gasnet_coll_gather;
gasnet_coll_handle_t (*names_coll_3)(gasnet_team_handle_t, gasnet_image_t, void *, void *, size_t,
                                     int) = gasnet_coll_gather_nb;
names_all *names_coll_4[] = {gasnet_coll_gather_all, gasnet_coll_exchange};
names_all_nb *names_coll_5[] = {gasnet_coll_gather_all_nb, gasnet_coll_exchange_nb};
int (*names_coll_6)(gasnet_coll_handle_t) = gasnet_coll_try_sync;
void (*names_coll_7)(gasnet_coll_handle_t) = gasnet_coll_wait_sync;
int (*names_coll_8[])(gasnet_coll_handle_t *, size_t) = {gasnet_coll_try_sync_some, gasnet_coll_try_sync_all};
void (*names_coll_9[])(gasnet_coll_handle_t *, size_t) = {gasnet_coll_wait_sync_some, gasnet_coll_wait_sync_all};
int (*names_coll_10[])(gasnet_team_handle_t, int, int) = {gasnet_coll_barrier, gasnet_coll_barrier_wait,
                                                          gasnet_coll_barrier_try};
void (*names_coll_11)(gasnet_team_handle_t, int, int) = gasnet_coll_barrier_notify;
int (*names_coll_12)(gasnet_team_handle_t, int *) = gasnet_coll_barrier_result;
size_t (*names_coll_13)(gasnet_team_handle_t, gasnet_coll_optype_t) = gasnet_coll_get_num_tree_classes;
void (*names_coll_14)(gasnet_team_handle_t, int, int, gasnet_coll_optype_t) = gasnet_coll_set_tree_kind;
void (*names_coll_15)(gasnet_team_handle_t, size_t) = gasnet_coll_set_dissem_limit;
void (*names_coll_16[])(char *, gasnet_team_handle_t) = {gasnet_coll_loadTuningState, gasnet_coll_dumpTuningState,
                                                         gasnet_coll_dumpProfile};

gasnet_coll_handle_t names_coll_handle = GASNET_COLL_INVALID_HANDLE;
gasnet_team_handle_t names_coll_team(void);
gasnet_team_handle_t names_coll_team(void) { return GASNET_TEAM_ALL; }
