/* Put and get of scattered data: vectors, indexed blocks and strided arrays. Included by gasnetex.h. */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H

#ifndef GASNETEX_H_INCLUDED
#error gasnet_vis.h is part of gasnetex.h: include that
#endif

/* The most bytes that a peer completion handler takes. */
#define GEX_VIS_MAX_PEERCOMPLETION 127

GASWORKS_BEGIN_C

/* The lists of vectors and of addresses stay the library's until the operation is done. */
extern gex_Event_t gex_VIS_VectorGetNB(gex_TM_t tm, size_t dst_count, gex_Memvec_t const dst[], gex_Rank_t src_rank,
                                       size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);
extern gex_Event_t gex_VIS_VectorPutNB(gex_TM_t tm, gex_Rank_t dst_rank, size_t dst_count, gex_Memvec_t const dst[],
                                       size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);
extern int gex_VIS_VectorGetNBI(gex_TM_t tm, size_t dst_count, gex_Memvec_t const dst[], gex_Rank_t src_rank,
                                size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);
extern int gex_VIS_VectorPutNBI(gex_TM_t tm, gex_Rank_t dst_rank, size_t dst_count, gex_Memvec_t const dst[],
                                size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);
extern int gex_VIS_VectorGetBlocking(gex_TM_t tm, size_t dst_count, gex_Memvec_t const dst[], gex_Rank_t src_rank,
                                     size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);
extern int gex_VIS_VectorPutBlocking(gex_TM_t tm, gex_Rank_t dst_rank, size_t dst_count, gex_Memvec_t const dst[],
                                     size_t src_count, gex_Memvec_t const src[], gex_Flags_t flags);

extern gex_Event_t gex_VIS_IndexedGetNB(gex_TM_t tm, size_t dst_count, void *const dst[], size_t dst_len,
                                        gex_Rank_t src_rank, size_t src_count, void *const src[], size_t src_len,
                                        gex_Flags_t flags);
extern gex_Event_t gex_VIS_IndexedPutNB(gex_TM_t tm, gex_Rank_t dst_rank, size_t dst_count, void *const dst[],
                                        size_t dst_len, size_t src_count, void *const src[], size_t src_len,
                                        gex_Flags_t flags);
extern int gex_VIS_IndexedGetNBI(gex_TM_t tm, size_t dst_count, void *const dst[], size_t dst_len, gex_Rank_t src_rank,
                                 size_t src_count, void *const src[], size_t src_len, gex_Flags_t flags);
extern int gex_VIS_IndexedPutNBI(gex_TM_t tm, gex_Rank_t dst_rank, size_t dst_count, void *const dst[], size_t dst_len,
                                 size_t src_count, void *const src[], size_t src_len, gex_Flags_t flags);
extern int gex_VIS_IndexedGetBlocking(gex_TM_t tm, size_t dst_count, void *const dst[], size_t dst_len,
                                      gex_Rank_t src_rank, size_t src_count, void *const src[], size_t src_len,
                                      gex_Flags_t flags);
extern int gex_VIS_IndexedPutBlocking(gex_TM_t tm, gex_Rank_t dst_rank, size_t dst_count, void *const dst[],
                                      size_t dst_len, size_t src_count, void *const src[], size_t src_len,
                                      gex_Flags_t flags);

/* Strides and counts, one for each level, are the caller's again at return. */
extern gex_Event_t gex_VIS_StridedGetNB(gex_TM_t tm, void *dst, const ptrdiff_t dst_strides[], gex_Rank_t src_rank,
                                        void *src, const ptrdiff_t src_strides[], size_t element, const size_t count[],
                                        size_t levels, gex_Flags_t flags);
extern gex_Event_t gex_VIS_StridedPutNB(gex_TM_t tm, gex_Rank_t dst_rank, void *dst, const ptrdiff_t dst_strides[],
                                        void *src, const ptrdiff_t src_strides[], size_t element, const size_t count[],
                                        size_t levels, gex_Flags_t flags);
extern int gex_VIS_StridedGetNBI(gex_TM_t tm, void *dst, const ptrdiff_t dst_strides[], gex_Rank_t src_rank, void *src,
                                 const ptrdiff_t src_strides[], size_t element, const size_t count[], size_t levels,
                                 gex_Flags_t flags);
extern int gex_VIS_StridedPutNBI(gex_TM_t tm, gex_Rank_t dst_rank, void *dst, const ptrdiff_t dst_strides[], void *src,
                                 const ptrdiff_t src_strides[], size_t element, const size_t count[], size_t levels,
                                 gex_Flags_t flags);
extern int gex_VIS_StridedGetBlocking(gex_TM_t tm, void *dst, const ptrdiff_t dst_strides[], gex_Rank_t src_rank,
                                      void *src, const ptrdiff_t src_strides[], size_t element, const size_t count[],
                                      size_t levels, gex_Flags_t flags);
extern int gex_VIS_StridedPutBlocking(gex_TM_t tm, gex_Rank_t dst_rank, void *dst, const ptrdiff_t dst_strides[],
                                      void *src, const ptrdiff_t src_strides[], size_t element, const size_t count[],
                                      size_t levels, gex_Flags_t flags);

/* This thread's next put runs the handler at its target when all is there, with the bytes given here: as a reply, or a request to which there is
 * no reply. Such a put is done when its call returns. Index 0 takes that back. */
extern void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *src, size_t len, gex_Flags_t flags);

GASWORKS_END_C

#endif
