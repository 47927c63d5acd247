/*
 * ALPS, the launcher of Cray's machines, as far as programs ask it for something, and as Gasworks plays it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The genuine headers were never public. The names are those that programs use; order, sizes and values are ours.
 */
#ifndef ALPS_H
#define ALPS_H

#include <stddef.h>
#include <stdint.h>

/* What a rank needs to use a NIC: its number and address, and the protection tag and the cookie of the job. */
typedef struct alpsAppGni {
    int32_t device_id;
    uint32_t local_addr;
    uint32_t cookie;
    uint8_t ptag;
    uint8_t reserved[3];
} alpsAppGni_t;

/* The answer to ALPS_APP_LLI_ALPS_REQ_GNI: so many alpsAppGni_t, one here. */
typedef struct alpsAppLLIGni {
    uint32_t count;
    uint32_t reserved;
    union {
        alpsAppGni_t gni[1];
        char buf[sizeof(alpsAppGni_t)];
    } u;
} alpsAppLLIGni_t;

/* Where the processes of an application run, its PEs: this node's first one, how many it has, how many there are, ... */
typedef struct alpsAppLayout {
    int firstPe;
    int numPesHere;
    int numTotalPes;
    int peDepth;    /* processors of each */
    int numCmds;    /* programs: 1 */
    int numTargets; /* nodes that are controlled from here: 0 */
    int controlNid; /* the node of the first PE */
} alpsAppLayout_t;

#endif /* ALPS_H */
