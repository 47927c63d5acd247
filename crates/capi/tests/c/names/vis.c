/* Every name of scattered put and get, used once: that this compiles says that all are declared, and of which type. */
#include <gasnetex.h>

typedef gex_Event_t names_vector_get_nb(gex_TM_t, size_t, gex_Memvec_t const[], gex_Rank_t, size_t,
                                        gex_Memvec_t const[], gex_Flags_t);
typedef gex_Event_t names_vector_put_nb(gex_TM_t, gex_Rank_t, size_t, gex_Memvec_t const[], size_t,
                                        gex_Memvec_t const[], gex_Flags_t);
typedef int names_vector_get(gex_TM_t, size_t, gex_Memvec_t const[], gex_Rank_t, size_t, gex_Memvec_t const[],
                             gex_Flags_t);
typedef int names_vector_put(gex_TM_t, gex_Rank_t, size_t, gex_Memvec_t const[], size_t, gex_Memvec_t const[],
                             gex_Flags_t);
typedef gex_Event_t names_indexed_get_nb(gex_TM_t, size_t, void *const[], size_t, gex_Rank_t, size_t, void *const[],
                                         size_t, gex_Flags_t);
typedef gex_Event_t names_indexed_put_nb(gex_TM_t, gex_Rank_t, size_t, void *const[], size_t, size_t, void *const[],
                                         size_t, gex_Flags_t);
typedef int names_indexed_get(gex_TM_t, size_t, void *const[], size_t, gex_Rank_t, size_t, void *const[], size_t,
                              gex_Flags_t);
typedef int names_indexed_put(gex_TM_t, gex_Rank_t, size_t, void *const[], size_t, size_t, void *const[], size_t,
                              gex_Flags_t);
typedef gex_Event_t names_strided_get_nb(gex_TM_t, void *, const ptrdiff_t[], gex_Rank_t, void *, const ptrdiff_t[],
                                         size_t, const size_t[], size_t, gex_Flags_t);
typedef gex_Event_t names_strided_put_nb(gex_TM_t, gex_Rank_t, void *, const ptrdiff_t[], void *, const ptrdiff_t[],
                                         size_t, const size_t[], size_t, gex_Flags_t);
typedef int names_strided_get(gex_TM_t, void *, const ptrdiff_t[], gex_Rank_t, void *, const ptrdiff_t[], size_t,
                              const size_t[], size_t, gex_Flags_t);
typedef int names_strided_put(gex_TM_t, gex_Rank_t, void *, const ptrdiff_t[], void *, const ptrdiff_t[], size_t,
                              const size_t[], size_t, gex_Flags_t);

names_vector_get_nb *names_vis_0 = gex_VIS_VectorGetNB;
names_vector_put_nb *names_vis_1 = gex_VIS_VectorPutNB;
names_vector_get *names_vis_2[] = {gex_VIS_VectorGetNBI, gex_VIS_VectorGetBlocking};
names_vector_put *names_vis_3[] = {gex_VIS_VectorPutNBI, gex_VIS_VectorPutBlocking};
names_indexed_get_nb *names_vis_4 = gex_VIS_IndexedGetNB;
names_indexed_put_nb *names_vis_5 = gex_VIS_IndexedPutNB;
names_indexed_get *names_vis_6[] = {gex_VIS_IndexedGetNBI, gex_VIS_IndexedGetBlocking};
names_indexed_put *names_vis_7[] = {gex_VIS_IndexedPutNBI, gex_VIS_IndexedPutBlocking};
names_strided_get_nb *names_vis_8 = gex_VIS_StridedGetNB;
names_strided_put_nb *names_vis_9 = gex_VIS_StridedPutNB;
names_strided_get *names_vis_10[] = {gex_VIS_StridedGetNBI, gex_VIS_StridedGetBlocking};
names_strided_put *names_vis_11[] = {gex_VIS_StridedPutNBI, gex_VIS_StridedPutBlocking};
void (*names_vis_12)(gex_AM_Index_t, const void *, size_t, gex_Flags_t) = gex_VIS_SetPeerCompletionHandler;

gex_Flags_t names_vis_flags = GEX_FLAG_ENABLE_LEAF_LC;
char names_vis_completion[GEX_VIS_MAX_PEERCOMPLETION >= 127 ? 1 : -1];
gex_Memvec_t names_vis_vector = {names_vis_completion, sizeof names_vis_completion};
