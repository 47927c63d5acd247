/*
 * Where an application runs, as ALPS would say it, and Gasworks does.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef ALPS_LIBALPSUTIL_H
#define ALPS_LIBALPSUTIL_H

#include <alps/alps.h>
#include <netinet/in.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns 1, or -1: `apid` is not the number of this application, or `layout` is null. What is asked for by a pointer that is
 * not null is a list that the caller frees, or null where it is empty: the node of each PE; nodes that are controlled from
 * here (none); and of each program (there is one) its first PE, how many it has in all and on this node, and how many processors
 * one takes. It is collective when the first request of libalpslli.h is.
 */
int alps_get_placement_info(uint64_t apid, alpsAppLayout_t *layout, int **placementList, int **targetNids, int **targetPes,
                            int **targetLen, struct in_addr **targetIps, int **startPe, int **totalPes, int **nodePes,
                            int **peCpus);

#ifdef __cplusplus
}
#endif

#endif /* ALPS_LIBALPSUTIL_H */
