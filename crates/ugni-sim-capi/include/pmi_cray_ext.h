/*
 * Cray's extensions of PMI, as Gasworks plays them. What pmi.h says of PMI-1 holds for them too.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The genuine header was never public: the names and types are those that programs use.
 */
#ifndef PMI_CRAY_EXT_H
#define PMI_CRAY_EXT_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Collective: everybody's `len` bytes. They stand in an order that is the job's own, the same on all ranks and for both functions
 * as long as the job lasts, and never that of the ranks: who wants to know whose bytes are where gathers the ranks first. All give the
 * same length, or each the one that stands at its place in `all_lens`; else it is PMI_ERR_INVALID_LENGTH.
 */
int PMI_Allgather(void *in, void *out, int len);
int PMI_Allgatherv(void *in, int len, void *out, int *all_lens);
/* The same among the ranks of this node, in rising order. Collective over these. */
int PMI_Allgather_on_smp(void *in, void *out, int len);
/* Collective: everybody gets the bytes of rank 0. */
int PMI_Bcast(void *buf, int len);

/* The ranks of this node, in rising order. */
int PMI_Get_numpes_on_smp(int *num);
int PMI_Get_pes_on_smp(int *pes, int num);

/* The node of each rank, by the address of its NIC: an array of int by rank, which is the library's and stays; and of one. */
int PMI_Get_nidlist_ptr(void **nidlist);
int PMI_Get_nid(int rank, int *nid);

/* How many ranks run a program; there is one, number 0. */
int PMI_Get_app_size(int appnum, int *size);
/* The version of Cray's PMI that is played. At any time. */
int PMI_Get_version_info(int *major, int *minor, int *revision);

#ifdef __cplusplus
}
#endif

#endif /* PMI_CRAY_EXT_H */
