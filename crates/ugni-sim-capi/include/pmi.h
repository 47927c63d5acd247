/*
 * PMI-1, by which the processes of a job find each other, as Gasworks plays it for software of Cray's machines.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A function returns PMI_SUCCESS or one of the other codes. Before PMI_Init or PMI2_Init, and after as many finalizes, it is
 * PMI_ERR_INIT; for a null pointer PMI_ERR_INVALID_ARG, for a negative length and where there is not room enough
 * PMI_ERR_INVALID_LENGTH, for what no launcher is asked for (to publish names, to spawn) PMI_FAIL. Why it is PMI_FAIL otherwise is
 * written to stderr. Both versions of PMI are one: what one begins the other sees.
 *
 * Functions that are collective must be called by all ranks in the same order. One thread may use PMI at a time, but PMI_Abort
 * may be called at any time.
 */
#ifndef PMI_H
#define PMI_H

#ifdef __cplusplus
extern "C" {
#endif

#define PMI_SUCCESS 0
#define PMI_FAIL (-1)
#define PMI_ERR_INIT 1
#define PMI_ERR_NOMEM 2
#define PMI_ERR_INVALID_ARG 3
#define PMI_ERR_INVALID_KEY 4
#define PMI_ERR_INVALID_KEY_LENGTH 5
#define PMI_ERR_INVALID_VAL 6
#define PMI_ERR_INVALID_VAL_LENGTH 7
#define PMI_ERR_INVALID_LENGTH 8
#define PMI_ERR_INVALID_NUM_ARGS 9
#define PMI_ERR_INVALID_ARGS 10
#define PMI_ERR_INVALID_NUM_PARSED 11
#define PMI_ERR_INVALID_KEYVALP 12
#define PMI_ERR_INVALID_SIZE 13

typedef int PMI_BOOL;
#define PMI_FALSE 0
#define PMI_TRUE 1

/* A key with its value. */
typedef struct PMI_keyval_t {
    const char *key;
    char *val;
} PMI_keyval_t;

/*
 * Collective. It joins the job, or counts that it was joined once more; as many finalizes leave it. A rank that ends without them
 * ends its job. It sets ALPS_APP_PE, and PMI_GNI_DEV_ID, PMI_GNI_LOC_ADDR, PMI_GNI_PTAG and PMI_GNI_COOKIE as ALPS would, unless
 * these are set: so no other thread may use the environment meanwhile.
 */
int PMI_Init(int *spawned);
int PMI_Initialized(PMI_BOOL *initialized);
int PMI_Finalize(void);

int PMI_Get_size(int *size);
int PMI_Get_rank(int *rank);
int PMI_Get_universe_size(int *size);
int PMI_Get_appnum(int *appnum);

int PMI_Publish_name(const char service[], const char port[]);
int PMI_Unpublish_name(const char service[]);
int PMI_Lookup_name(const char service[], char port[]);

/* Collective: it returns when all have called it, and what they have committed before is visible. */
int PMI_Barrier(void);
/* Ends all ranks, or the process if it is in no job. */
int PMI_Abort(int exit_code, const char msg[]);

/*
 * Keys and values: the job has one space of them, by its name. Lengths count the zero at the end. A key that is not there, and
 * that of a value which was not committed before the last barrier, is PMI_FAIL.
 *
 * Launchers disagree about a key that is put twice. Here one that this rank has put, or that anybody had at the last barrier, is
 * PMI_ERR_INVALID_KEY; of what several ranks put between the same two barriers the lowest rank's value stays.
 */
int PMI_KVS_Get_my_name(char kvsname[], int length);
int PMI_KVS_Get_name_length_max(int *length);
int PMI_KVS_Get_key_length_max(int *length);
int PMI_KVS_Get_value_length_max(int *length);
int PMI_KVS_Put(const char kvsname[], const char key[], const char value[]);
int PMI_KVS_Commit(const char kvsname[]);
int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length);

int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[], const int maxprocs[],
                       const int info_keyval_sizes[], const PMI_keyval_t *info_keyval_vectors[], int preput_keyval_size,
                       const PMI_keyval_t preput_keyval_vector[], int errors[]);

/* What old programs ask for: the name of the job, and the ranks of this host in rising order. */
int PMI_Get_id(char id[], int length);
int PMI_Get_id_length_max(int *length);
int PMI_Get_kvs_domain_id(char id[], int length);
int PMI_Get_clique_size(int *size);
int PMI_Get_clique_ranks(int ranks[], int length);

#ifdef __cplusplus
}
#endif

/* Clients of Cray's PMI call its extensions with no other header than this one. */
#include <pmi_cray_ext.h>

#endif /* PMI_H */
