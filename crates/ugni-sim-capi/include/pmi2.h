/*
 * PMI-2, as Gasworks plays it for software of Cray's machines. What pmi.h says of PMI-1 holds for it too.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef PMI2_H
#define PMI2_H

#ifdef __cplusplus
extern "C" {
#endif

#define PMI2_SUCCESS 0
#define PMI2_FAIL (-1)
#define PMI2_ERR_INIT 1
#define PMI2_ERR_NOMEM 2
#define PMI2_ERR_INVALID_ARG 3
#define PMI2_ERR_INVALID_KEY 4
#define PMI2_ERR_INVALID_KEY_LENGTH 5
#define PMI2_ERR_INVALID_VAL 6
#define PMI2_ERR_INVALID_VAL_LENGTH 7
#define PMI2_ERR_INVALID_LENGTH 8
#define PMI2_ERR_INVALID_NUM_ARGS 9
#define PMI2_ERR_INVALID_ARGS 10
#define PMI2_ERR_INVALID_NUM_PARSED 11
#define PMI2_ERR_INVALID_KEYVALP 12
#define PMI2_ERR_INVALID_SIZE 13
#define PMI2_ERR_OTHER 14

/* Bytes of a key, a value, and the value of an attribute, with the zero at their ends. */
#define PMI2_MAX_KEYLEN 64
#define PMI2_MAX_VALLEN 1024
#define PMI2_MAX_ATTRVALUE 1024

/* Stands for no rank, where one may be given as a hint. */
#define PMI2_ID_NULL (-1)

/* Hints that MPI makes, and connections of jobs: nothing here looks into them. */
struct MPID_Info;
typedef struct PMI2_Connect_comm PMI2_Connect_comm_t;

/* Collective. As PMI_Init. */
int PMI2_Init(int *spawned, int *size, int *rank, int *appnum);
int PMI2_Finalize(void);
/* Not 0 where a job is joined. */
int PMI2_Initialized(void);
/* Ends all ranks, or with `flag` 0 this process; its code is 1. */
int PMI2_Abort(int flag, const char msg[]);

int PMI2_Job_Spawn(int count, const char *cmds[], int argcs[], const char **argvs[], const int maxprocs[],
                   const int info_keyval_sizes[], const struct MPID_Info *info_keyval_vectors[], int preput_keyval_size,
                   const struct MPID_Info *preput_keyval_vector[], char job[], int job_size, int errors[]);
int PMI2_Job_GetId(char jobid[], int size);
int PMI2_Job_GetRank(int *rank);
int PMI2_Job_Connect(const char jobid[], PMI2_Connect_comm_t *connection);
int PMI2_Job_Disconnect(const char jobid[]);

/*
 * Keys and values, as in pmi.h. The fence is collective: what was put before is visible after, committed or not. `jobid` is the
 * name of the job, or null for it; `source` a rank or PMI2_ID_NULL. What does not fit is cut, and its length then given
 * as a negative number.
 */
int PMI2_KVS_Put(const char key[], const char value[]);
int PMI2_KVS_Fence(void);
int PMI2_KVS_Get(const char *jobid, int source, const char key[], char value[], int maxvalue, int *vallen);

/*
 * Attributes. Those of a node are what its ranks put, the last one if several do; whoever waits for one waits until it is put. Those of
 * the job are PMI_process_mapping and universeSize. An attribute that is not there is no error: `found` is 0. A list of numbers has
 * commas between them; what is none is PMI2_ERR_INVALID_VAL.
 */
int PMI2_Info_GetSize(int *size); /* how many ranks this node has */
int PMI2_Info_GetNodeAttr(const char name[], char value[], int valuelen, int *found, int waitfor);
int PMI2_Info_GetNodeAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found);
int PMI2_Info_PutNodeAttr(const char name[], const char value[]);
int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen, int *found);
int PMI2_Info_GetJobAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found);

int PMI2_Nameserv_publish(const char service[], const struct MPID_Info *info, const char port[]);
int PMI2_Nameserv_lookup(const char service[], const struct MPID_Info *info, char port[], int room);
int PMI2_Nameserv_unpublish(const char service[], const struct MPID_Info *info);

/* Collective: the values of the ranks before and after this one, in the circle of all. */
int PMIX_Ring(const char value[], int *rank, int *ranks, char left[], char right[], int maxvalue);

#ifdef __cplusplus
}
#endif

#endif /* PMI2_H */
