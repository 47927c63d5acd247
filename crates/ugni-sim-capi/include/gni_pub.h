/*
 * uGNI, the interface to Cray's Gemini and Aries networks, at revision 0x5d, as Gasworks' software NIC offers it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Names, types, values and layouts are those of the genuine interface, so that a program that was written for it
 * compiles and links with this one.
 */
#ifndef GNI_PUB_H
#define GNI_PUB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif


/* The version of the interface that is declared here, and from which version on some things are there. */
#define GNI_MAJOR_REV 0
#define GNI_MINOR_REV 0x5d
#define GNI_CODE_REV 0x102
#define GNI_VERSION 0x5d0102
#define GNI_VERSION_FMA_SHARING 0x5b0000
#define GNI_VERSION_FMA_CHAIN_TRANSACTIONS 0x5d0000
/* The parts of a version. */
#define GNI_GET_MAJOR(version) (((version) >> 24) & 0xff)
#define GNI_GET_MINOR(version) (((version) >> 16) & 0xff)
#define GNI_GET_REV(version) ((version) & 0xffff)

/* The protection tag that asks the driver to find the one of a cookie. */
#define GNI_FIND_ALLOC_PTAG 255

/* How often a short message is sent again at most. */
#define FMA_SMSG_MAX_RETRANS_DEFAULT 10

/* Bytes of a build string. */
#define MAX_BUILD_STRING_LENGTH 80

/* The parts of a cookie. */
#define GNI_COOKIE_PKEY_MASK 0xffff
#define GNI_COOKIE_PKEY_SHIFT 0x10
#define GNI_COOKIE_CBPS_MDD_MASK 7
#define GNI_COOKIE_CBPS_MDD_SHIFT 3

/* Short messages. */
#define GNI_SMSG_ANY_TAG 255
#define GNI_SMSG_MAX_SIZE 65535

/* Modes of a communication domain (GNI_CdmCreate). */
#define GNI_CDM_MODE_FORK_NOCOPY 1
#define GNI_CDM_MODE_FORK_FULLCOPY 2
#define GNI_CDM_MODE_FORK_PARTCOPY 4
#define GNI_CDM_MODE_ERR_NO_KILL 8
#define GNI_CDM_MODE_ERR_ALL_KILL 0x10
#define GNI_CDM_MODE_FAST_DATAGRAM_POLL 0x20
#define GNI_CDM_MODE_BTE_SINGLE_CHANNEL 0x40
#define GNI_CDM_MODE_USE_PCI_IOMMU 0x80
#define GNI_CDM_MODE_MDD_DEDICATED 0x100
#define GNI_CDM_MODE_MDD_SHARED 0x200
#define GNI_CDM_MODE_DUAL_EVENTS 0x1000
#define GNI_CDM_MODE_DLA_ENABLE_FORWARDING 0x4000
#define GNI_CDM_MODE_DLA_DISABLE_FORWARDING 0x8000
#define GNI_CDM_MODE_FMA_DEDICATED 0x10000
#define GNI_CDM_MODE_FMA_SHARED 0x20000
#define GNI_CDM_MODE_CACHED_AMO_ENABLED 0x40000
#define GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT 0x80000
#define GNI_CDM_MODE_FLBTE_DISABLE 0x100000
#define GNI_CDM_MODE_FMA_SMALL_WINDOW 0x200000
#define GNI_CDM_MODE_MASK 0xfffffff
#define GNI_CDM_MODE_PRIV_RESERVED_1 0x10000000
#define GNI_CDM_MODE_PRIV_RESERVED_2 0x20000000
#define GNI_CDM_MODE_PRIV_RESERVED_3 0x40000000
#define GNI_CDM_MODE_PRIV_RESERVED_4 0x80000000
#define GNI_CDM_MODE_PRIV_MASK 0xf0000000

/* Flags of a registration (GNI_MemRegister). */
#define GNI_MEM_READWRITE 0
#define GNI_MEM_READ_ONLY 1
#define GNI_MEM_USE_VMDH 2
#define GNI_MEM_USE_GART 4
#define GNI_MEM_PHYS_CONT 8
#define GNI_MEM_PHYS_SEGMENTS 0x10
#define GNI_MEM_STRICT_PI_ORDERING 0x20
#define GNI_MEM_PI_FLUSH 0x40
#define GNI_MEM_MDD_CLONE 0x80
#define GNI_MEM_RELAXED_PI_ORDERING 0x100
#define GNI_MEM_RESERVE_REGION 0x200
#define GNI_MEM_UPDATE_REGION 0x400
#define GNI_MEM_MDD_SHARED 0x800
#define GNI_MEM_MDD_DEDICATED 0x1000
#define GNI_MEM_PRIV_RESERVED_1 0x100000
#define GNI_MEM_PRIV_RESERVED_2 0x200000
#define GNI_MEM_PRIV_RESERVED_3 0x400000
#define GNI_MEM_PRIV_RESERVED_4 0x800000
#define GNI_MEM_PRIV_MASK 0xf00000
#define GNI_MEM_CUDA 0x1000000

/* Modes of a completion queue (GNI_CqCreate). */
#define GNI_CQ_NOBLOCK 0
#define GNI_CQ_BLOCKING 1
#define GNI_CQ_EMULATED 2
#define GNI_CQ_EMULATED_INVALID 3
#define GNI_CQ_PHYS_PAGES 4
#define GNI_CQ_UNMANAGED 8
#define GNI_CQ_NOAUTOFILL 0x10

/* Types of an event (gni_cq_get_type). */
#define GNI_CQ_EVENT_TYPE_POST 0
#define GNI_CQ_EVENT_TYPE_SMSG 1
#define GNI_CQ_EVENT_TYPE_DMAPP 2
#define GNI_CQ_EVENT_TYPE_MSGQ 3

/* Bytes of the flag that a get with flag brings along. */
#define GNI_FMA_FLAGGED_RESPONSE_SIZE 4

/* Exceptions and modes of the collective engine. */
#define GNI_CE_FPE_OP_INVAL 1
#define GNI_CE_FPE_OFLOW 2
#define GNI_CE_FPE_UFLOW 4
#define GNI_CE_FPE_PRECISION 8
#define GNI_CE_MODE_ROUND_UP 1
#define GNI_CE_MODE_ROUND_DOWN 2
#define GNI_CE_MODE_ROUND_NEAR 4
#define GNI_CE_MODE_ROUND_ZERO 8
#define GNI_CE_MODE_CQE_ONCOMP 0x10
#define GNI_CE_MODE_CQE_ONERR 0x40
#define GNI_CE_MODE_RC_NMIN_HASH 0x80
#define GNI_CE_MODE_RC_MIN_HASH 0x100
#define GNI_CE_MODE_RC_MNON_HASH 0x200
#define GNI_CE_MODE_RC_ADAPT 0x400
#define GNI_CE_MAX_CHILDREN 0x20

/* Which events a post asks for (cq_mode). */
#define GNI_CQMODE_SILENT 0
#define GNI_CQMODE_LOCAL_EVENT 1
#define GNI_CQMODE_GLOBAL_EVENT 2
#define GNI_CQMODE_REMOTE_EVENT 4
#define GNI_CQMODE_DUAL_EVENTS 3

/* Routing (dlvr_mode). */
#define GNI_DLVMODE_PERFORMANCE 0
#define GNI_DLVMODE_NO_ADAPT 1
#define GNI_DLVMODE_NO_HASH 2
#define GNI_DLVMODE_NO_RADAPT 4
#define GNI_DLVMODE_IN_ORDER 3
#define GNI_DLVMODE_MNON_HASH 3
#define GNI_DLVMODE_NMIN_HASH 8
#define GNI_DLVMODE_MIN_HASH 0x10
#define GNI_DLVMODE_ADAPTIVE0 0
#define GNI_DLVMODE_ADAPTIVE1 0x20
#define GNI_DLVMODE_ADAPTIVE2 0x40
#define GNI_DLVMODE_ADAPTIVE3 0x80
#define GNI_DLVMODE_ORDERED_TAIL 0x100

/* Categories of errors (GNI_SubscribeErrors). */
#define GNI_ERRMASK_CORRECTABLE_MEMORY 1
#define GNI_ERRMASK_CRITICAL 2
#define GNI_ERRMASK_TRANSACTION 4
#define GNI_ERRMASK_ADDRESS_TRANSLATION 8
#define GNI_ERRMASK_TRANSIENT 0x10
#define GNI_ERRMASK_INFORMATIONAL 0x20
#define GNI_ERRMASK_DIAG_ONLY 0x40
#define GNI_ERRMASK_UNKNOWN_TRANSACTION 0x80

/* Modes of a BTE transfer (rdma_mode). */
#define GNI_RDMAMODE_PHYS_ADDR 1
#define GNI_RDMAMODE_FENCE 2
#define GNI_RDMAMODE_GETWC_DIS 4

/* Modes of an operation of the collective engine (ce_mode). */
#define GNI_CEMODE_TWO_OP 1
#define GNI_CEMODE_FPE_OP_INVAL 2
#define GNI_CEMODE_FPE_OFLOW 4
#define GNI_CEMODE_FPE_UFLOW 8
#define GNI_CEMODE_FPE_PRECISION 0x10

/* The longest datagram, in bytes. */
#define GNI_DATAGRAM_MAXSIZE 128

/* Limits of a job that mean none, and its control bits. */
#define GNI_JOB_INVALID_LIMIT (-1)
#define GNI_JOB_CTRL_NTT_CLEANUP 1
#define GNI_JOB_CTRL_CE0_MASK 1
#define GNI_JOB_CTRL_CE1_MASK 2
#define GNI_JOB_CTRL_CE2_MASK 4
#define GNI_JOB_CTRL_CE3_MASK 8
#define GNI_JOB_CTRL_ALL_CE_MASK 15

/* Shared message queues. */
#define GNI_MSGQ_MSG_SZ_MAX 128
#define GNI_MSGQ_NODE_INSTS_MAX 128
#define GNI_MSGQ_MODE_BLOCKING 1

/* Balanced injection. */
#define GNI_BI_FLAG_APPLY_NOW 1
#define GNI_BI_FLAG_APPLY_AFTER_THROTTLE 2
#define GNI_BI_FLAG_USE_DEFAULT_SETTINGS 4
#define GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES 8
#define GNI_BI_INJECT_BW_MIN 0
#define GNI_BI_INJECT_BW_MAX 100
#define GNI_BI_INJECT_BW_ORB_MIN 0
#define GNI_BI_INJECT_BW_ORB_MAX 992

/* Protection tags and keys that are spoken for. */
#define GNI_PTAG_LND 1
#define GNI_PTAG_OFED 2
#define GNI_PTAG_USER_START 3
#define GNI_PTAG_LND_KNC 128
#define GNI_PTAG_USER_END 253
#define GNI_PTAG_HSNBOOT 254
#define GNI_PTAG_MAX 254
#define GNI_PTAG_LB 255
#define GNI_PKEY_INVALID 0
#define GNI_PKEY_LND 1
#define GNI_PKEY_OFED 2
#define GNI_PKEY_USER_START 128
#define GNI_PKEY_USER_END 65407
#define GNI_PKEY_HSNBOOT 65408
#define GNI_PKEY_MAX 65534
#define GNI_PKEY_LB 65535


/* Attributes of a memory handle (GNI_MemHndlQueryAttr). */
typedef enum gni_mem_handle_attr {
    GNI_MEMHNDL_ATTR_READONLY = 1,
    GNI_MEMHNDL_ATTR_VMDH = 2,
    GNI_MEMHNDL_ATTR_MRT = 3,
    GNI_MEMHNDL_ATTR_GART = 4,
    GNI_MEMHNDL_ATTR_IOMMU = 5,
    GNI_MEMHNDL_ATTR_PCI_IOMMU = 6,
    GNI_MEMHNDL_ATTR_CLONE = 7,
} gni_mem_handle_attr_t;

/* Kinds of mailbox. */
typedef enum gni_smsg_type {
    GNI_SMSG_TYPE_INVALID = 0,
    GNI_SMSG_TYPE_MBOX = 1,
    GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT = 2,
} gni_smsg_type_t;

/* What a function returns. */
typedef enum gni_return {
    GNI_RC_SUCCESS = 0,
    GNI_RC_NOT_DONE = 1,
    GNI_RC_INVALID_PARAM = 2,
    GNI_RC_ERROR_RESOURCE = 3,
    GNI_RC_TIMEOUT = 4,
    GNI_RC_PERMISSION_ERROR = 5,
    GNI_RC_DESCRIPTOR_ERROR = 6,
    GNI_RC_ALIGNMENT_ERROR = 7,
    GNI_RC_INVALID_STATE = 8,
    GNI_RC_NO_MATCH = 9,
    GNI_RC_SIZE_ERROR = 10,
    GNI_RC_TRANSACTION_ERROR = 11,
    GNI_RC_ILLEGAL_OP = 12,
    GNI_RC_ERROR_NOMEM = 13,
} gni_return_t;

/* States of a datagram. */
typedef enum gni_post_state {
    GNI_POST_PENDING = 0,
    GNI_POST_COMPLETED = 1,
    GNI_POST_ERROR = 2,
    GNI_POST_TIMEOUT = 3,
    GNI_POST_TERMINATED = 4,
    GNI_POST_REMOTE_DATA = 5,
} gni_post_state_t;

/* Types of a post. */
typedef enum gni_post_type {
    GNI_POST_RDMA_PUT = 1,
    GNI_POST_RDMA_GET = 2,
    GNI_POST_FMA_PUT = 3,
    GNI_POST_FMA_PUT_W_SYNCFLAG = 4,
    GNI_POST_FMA_GET = 5,
    GNI_POST_AMO = 6,
    GNI_POST_CQWRITE = 7,
    GNI_POST_CE = 8,
    GNI_POST_FMA_GET_W_FLAG = 9,
    GNI_POST_AMO_W_FLAG = 10,
} gni_post_type_t;

/* Commands of the atomic unit. ATOMIC2: Aries alone. _S: 32 bits. _C: of cached memory. F: brings the old value. */
typedef enum gni_fma_cmd_type {
    GNI_FMA_ATOMIC_FADD = 8,
    GNI_FMA_ATOMIC_FADD_C = 0x18,
    GNI_FMA_ATOMIC_FAND = 9,
    GNI_FMA_ATOMIC_FAND_C = 0x19,
    GNI_FMA_ATOMIC_FOR = 0xa,
    GNI_FMA_ATOMIC_FOR_C = 0x1a,
    GNI_FMA_ATOMIC_FXOR = 0xb,
    GNI_FMA_ATOMIC_FXOR_C = 0x1b,
    GNI_FMA_ATOMIC_FAX = 0xc,
    GNI_FMA_ATOMIC_FAX_C = 0x1c,
    GNI_FMA_ATOMIC_CSWAP = 0xd,
    GNI_FMA_ATOMIC_CSWAP_C = 0x1d,
    GNI_FMA_ATOMIC2_FAND_S = 0x240,
    GNI_FMA_ATOMIC2_FAND = 0x41,
    GNI_FMA_ATOMIC2_FAND_SC = 0x260,
    GNI_FMA_ATOMIC2_FAND_C = 0x61,
    GNI_FMA_ATOMIC2_FOR_S = 0x242,
    GNI_FMA_ATOMIC2_FOR = 0x43,
    GNI_FMA_ATOMIC2_FOR_SC = 0x262,
    GNI_FMA_ATOMIC2_FOR_C = 0x63,
    GNI_FMA_ATOMIC2_FXOR_S = 0x244,
    GNI_FMA_ATOMIC2_FXOR = 0x45,
    GNI_FMA_ATOMIC2_FXOR_SC = 0x264,
    GNI_FMA_ATOMIC2_FXOR_C = 0x65,
    GNI_FMA_ATOMIC2_FSWAP_S = 0x246,
    GNI_FMA_ATOMIC2_FSWAP = 0x47,
    GNI_FMA_ATOMIC2_FSWAP_SC = 0x266,
    GNI_FMA_ATOMIC2_FSWAP_C = 0x67,
    GNI_FMA_ATOMIC2_FAX_S = 0x248,
    GNI_FMA_ATOMIC2_FAX = 0x49,
    GNI_FMA_ATOMIC2_FAX_SC = 0x268,
    GNI_FMA_ATOMIC2_FAX_C = 0x69,
    GNI_FMA_ATOMIC2_FCSWAP_S = 0x24a,
    GNI_FMA_ATOMIC2_FCSWAP = 0x4b,
    GNI_FMA_ATOMIC2_FCSWAP_SC = 0x26a,
    GNI_FMA_ATOMIC2_FCSWAP_C = 0x6b,
    GNI_FMA_ATOMIC2_FIMIN_S = 0x250,
    GNI_FMA_ATOMIC2_FIMIN = 0x51,
    GNI_FMA_ATOMIC2_FIMIN_SC = 0x270,
    GNI_FMA_ATOMIC2_FIMIN_C = 0x71,
    GNI_FMA_ATOMIC2_FIMAX_S = 0x252,
    GNI_FMA_ATOMIC2_FIMAX = 0x53,
    GNI_FMA_ATOMIC2_FIMAX_SC = 0x272,
    GNI_FMA_ATOMIC2_FIMAX_C = 0x73,
    GNI_FMA_ATOMIC2_FIADD_S = 0x254,
    GNI_FMA_ATOMIC2_FIADD = 0x55,
    GNI_FMA_ATOMIC2_FIADD_SC = 0x274,
    GNI_FMA_ATOMIC2_FIADD_C = 0x75,
    GNI_FMA_ATOMIC2_FFPMIN_S = 0x258,
    GNI_FMA_ATOMIC2_FFPMIN = 0x59,
    GNI_FMA_ATOMIC2_FFPMIN_SC = 0x278,
    GNI_FMA_ATOMIC2_FFPMIN_C = 0x79,
    GNI_FMA_ATOMIC2_FFPMAX_S = 0x25a,
    GNI_FMA_ATOMIC2_FFPMAX = 0x5b,
    GNI_FMA_ATOMIC2_FFPMAX_SC = 0x27a,
    GNI_FMA_ATOMIC2_FFPMAX_C = 0x7b,
    GNI_FMA_ATOMIC2_FFPADD_S = 0x25c,
    GNI_FMA_ATOMIC2_FFPADD = 0x5d,
    GNI_FMA_ATOMIC2_FFPADD_SC = 0x27c,
    GNI_FMA_ATOMIC2_FFPADD_C = 0x7d,
    GNI_FMA_ATOMIC_ADD = 0x108,
    GNI_FMA_ATOMIC_ADD_C = 0x118,
    GNI_FMA_ATOMIC_AND = 0x109,
    GNI_FMA_ATOMIC_AND_C = 0x119,
    GNI_FMA_ATOMIC_OR = 0x10a,
    GNI_FMA_ATOMIC_OR_C = 0x11a,
    GNI_FMA_ATOMIC_XOR = 0x10b,
    GNI_FMA_ATOMIC_XOR_C = 0x11b,
    GNI_FMA_ATOMIC_AX = 0x10c,
    GNI_FMA_ATOMIC_AX_C = 0x11c,
    GNI_FMA_ATOMIC2_AND_S = 0x340,
    GNI_FMA_ATOMIC2_AND = 0x141,
    GNI_FMA_ATOMIC2_AND_SC = 0x360,
    GNI_FMA_ATOMIC2_AND_C = 0x161,
    GNI_FMA_ATOMIC2_OR_S = 0x342,
    GNI_FMA_ATOMIC2_OR = 0x143,
    GNI_FMA_ATOMIC2_OR_SC = 0x362,
    GNI_FMA_ATOMIC2_OR_C = 0x163,
    GNI_FMA_ATOMIC2_XOR_S = 0x344,
    GNI_FMA_ATOMIC2_XOR = 0x145,
    GNI_FMA_ATOMIC2_XOR_SC = 0x364,
    GNI_FMA_ATOMIC2_XOR_C = 0x165,
    GNI_FMA_ATOMIC2_SWAP_S = 0x346,
    GNI_FMA_ATOMIC2_SWAP = 0x147,
    GNI_FMA_ATOMIC2_SWAP_SC = 0x366,
    GNI_FMA_ATOMIC2_SWAP_C = 0x167,
    GNI_FMA_ATOMIC2_AX_S = 0x348,
    GNI_FMA_ATOMIC2_AX = 0x149,
    GNI_FMA_ATOMIC2_AX_SC = 0x368,
    GNI_FMA_ATOMIC2_AX_C = 0x169,
    GNI_FMA_ATOMIC2_CSWAP_S = 0x34a,
    GNI_FMA_ATOMIC2_CSWAP = 0x14b,
    GNI_FMA_ATOMIC2_CSWAP_SC = 0x36a,
    GNI_FMA_ATOMIC2_CSWAP_C = 0x16b,
    GNI_FMA_ATOMIC2_IMIN_S = 0x350,
    GNI_FMA_ATOMIC2_IMIN = 0x151,
    GNI_FMA_ATOMIC2_IMIN_SC = 0x370,
    GNI_FMA_ATOMIC2_IMIN_C = 0x171,
    GNI_FMA_ATOMIC2_IMAX_S = 0x352,
    GNI_FMA_ATOMIC2_IMAX = 0x153,
    GNI_FMA_ATOMIC2_IMAX_SC = 0x372,
    GNI_FMA_ATOMIC2_IMAX_C = 0x173,
    GNI_FMA_ATOMIC2_IADD_S = 0x354,
    GNI_FMA_ATOMIC2_IADD = 0x155,
    GNI_FMA_ATOMIC2_IADD_SC = 0x374,
    GNI_FMA_ATOMIC2_IADD_C = 0x175,
    GNI_FMA_ATOMIC2_FPMIN_S = 0x358,
    GNI_FMA_ATOMIC2_FPMIN = 0x159,
    GNI_FMA_ATOMIC2_FPMIN_SC = 0x378,
    GNI_FMA_ATOMIC2_FPMIN_C = 0x179,
    GNI_FMA_ATOMIC2_FPMAX_S = 0x35a,
    GNI_FMA_ATOMIC2_FPMAX = 0x15b,
    GNI_FMA_ATOMIC2_FPMAX_SC = 0x37a,
    GNI_FMA_ATOMIC2_FPMAX_C = 0x17b,
    GNI_FMA_ATOMIC2_FPADD_S = 0x35c,
    GNI_FMA_ATOMIC2_FPADD = 0x15d,
    GNI_FMA_ATOMIC2_FPADD_SC = 0x37c,
    GNI_FMA_ATOMIC2_FPADD_C = 0x17d,
} gni_fma_cmd_type_t;

/* Commands of the collective engine. _S: 32 bits. */
typedef enum gni_ce_cmd_type {
    GNI_FMA_CE_AND_S = 0,
    GNI_FMA_CE_AND = 1,
    GNI_FMA_CE_OR_S = 2,
    GNI_FMA_CE_OR = 3,
    GNI_FMA_CE_XOR_S = 4,
    GNI_FMA_CE_XOR = 5,
    GNI_FMA_CE_IMIN_LIDX_S = 0x10,
    GNI_FMA_CE_IMIN_LIDX = 0x11,
    GNI_FMA_CE_IMAX_LIDX_S = 0x12,
    GNI_FMA_CE_IMAX_LIDX = 0x13,
    GNI_FMA_CE_IADD_S = 0x14,
    GNI_FMA_CE_IADD = 0x15,
    GNI_FMA_CE_FPMIN_LIDX_S = 0x18,
    GNI_FMA_CE_FPMIN_LIDX = 0x19,
    GNI_FMA_CE_FPMAX_LIDX_S = 0x1a,
    GNI_FMA_CE_FPMAX_LIDX = 0x1b,
    GNI_FMA_CE_FPADD_S = 0x1c,
    GNI_FMA_CE_FPADD = 0x1d,
    GNI_FMA_CE_IMIN_GIDX_S = 0x30,
    GNI_FMA_CE_IMIN_GIDX = 0x31,
    GNI_FMA_CE_IMAX_GIDX_S = 0x32,
    GNI_FMA_CE_IMAX_GIDX = 0x33,
    GNI_FMA_CE_FPMIN_GIDX_S = 0x38,
    GNI_FMA_CE_FPMIN_GIDX = 0x39,
    GNI_FMA_CE_FPMAX_GIDX_S = 0x3a,
    GNI_FMA_CE_FPMAX_GIDX = 0x3b,
} gni_ce_cmd_type_t;

/* Kinds of children of the collective engine. */
typedef enum gni_ce_child {
    GNI_CE_CHILD_UNUSED = 0,
    GNI_CE_CHILD_VCE = 1,
    GNI_CE_CHILD_PE = 2,
} gni_ce_child_t;

/* Chips. */
typedef enum gni_nic_device {
    GNI_DEVICE_GEMINI = 0,
    GNI_DEVICE_ARIES = 1,
    GNI_DEVICE_PISCES = 2,
    GNI_DEVICE_LAST = 3,
} gni_nic_device_t;

/* Resources of a device. */
typedef enum gni_dev_res {
    GNI_DEV_RES_FIRST = 0,
    GNI_DEV_RES_MDD = 1,
    GNI_DEV_RES_MRT = 2,
    GNI_DEV_RES_CQ = 3,
    GNI_DEV_RES_FMA = 4,
    GNI_DEV_RES_CE = 5,
    GNI_DEV_RES_DLA = 6,
    GNI_DEV_RES_TCR = 7,
    GNI_DEV_RES_DVA = 8,
    GNI_DEV_RES_LAST = 9,
} gni_dev_res_t;

/* Resources of a job. */
typedef enum gni_job_res {
    GNI_JOB_RES_FIRST = 0,
    GNI_JOB_RES_MDD = 1,
    GNI_JOB_RES_MRT = 2,
    GNI_JOB_RES_IOMMU = 3,
    GNI_JOB_RES_GART = 4,
    GNI_JOB_RES_CQ = 5,
    GNI_JOB_RES_FMA = 6,
    GNI_JOB_RES_RDMA = 7,
    GNI_JOB_RES_CE = 8,
    GNI_JOB_RES_DLA = 9,
    GNI_JOB_RES_SFMA = 10,
    GNI_JOB_RES_DIRECT = 11,
    GNI_JOB_RES_PCI_IOMMU = 12,
    GNI_JOB_RES_NONVMDH = 13,
    GNI_JOB_RES_LAST = 14,
} gni_job_res_t;

/* Statistics of a NIC. */
typedef enum gni_statistic {
    GNI_STAT_SMSG_BUFF_CREDITS_STALL = 0,
    GNI_STAT_SMSG_DLA_STALL = 1,
    GNI_STAT_SMSG_MBOX_CREDITS_STALL = 2,
    GNI_STAT_SMSG_REQ_STALL = 3,
    GNI_STAT_SMSG_RETRANS_COUNT = 4,
    GNI_STAT_SMSG_RETRANS_DLA_COUNT = 5,
    GNI_STAT_SMSG_RETRANS_STALL = 6,
    GNI_STAT_DLA_ALLOC_STATUS_STALL = 7,
    GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT = 8,
    GNI_STAT_DLA_BLOCK_ORPHANED = 9,
    GNI_STAT_DLA_BLOCK_RETRANS_COUNT = 10,
    GNI_STAT_DLA_FREE_BLOCKS_STALL = 11,
    GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL = 12,
    GNI_STAT_DLA_HIGH_RETRANS_COUNT = 13,
    GNI_STAT_DLA_OVERFLOW_RESEND = 14,
    GNI_STAT_DLA_RETRANS_COUNT = 15,
    GNI_STAT_DLA_TOTAL_RETRANS_COUNT = 16,
    GNI_STAT_FLBTE_TXD_CORRUPT = 17,
    GNI_STAT_FLBTE_TXD_NONE = 18,
    GNI_STAT_FMA_LAUNCH_COUNT = 19,
    GNI_STAT_MR_MULTI_PAGESIZE = 20,
    GNI_NUM_STATS = 21,
} gni_statistic_t;

/* Handles: the library alone looks into what they lead to. */
typedef struct gni_cdm *gni_cdm_handle_t;
typedef struct gni_nic *gni_nic_handle_t;
typedef struct gni_ep *gni_ep_handle_t;
typedef struct gni_cq *gni_cq_handle_t;
typedef struct gni_err *gni_err_handle_t;
typedef struct gni_msgq *gni_msgq_handle_t;
typedef struct gni_ce *gni_ce_handle_t;
typedef struct gni_comp_chan *gni_comp_chan_handle_t;

/* An event: only the functions below know its parts. */
typedef uint64_t gni_cq_entry_t;
/* Modes of a completion queue (GNI_CQ_*). */
typedef uint32_t gni_cq_mode_t;
/* Categories of errors (GNI_ERRMASK_*). */
typedef uint8_t gni_error_mask_t;

/* Registered memory, as it is told to others. */
typedef struct gni_mem_handle {
    uint64_t qword1;
    uint64_t qword2;
} gni_mem_handle_t;

/* One end of a mailbox. */
typedef struct gni_smsg_attr {
    gni_smsg_type_t msg_type;
    void *msg_buffer;
    uint32_t buff_size;
    gni_mem_handle_t mem_hndl;
    uint32_t mbox_offset;
    uint16_t mbox_maxcredit;
    uint32_t msg_maxsize;
} gni_smsg_attr_t;

/* A piece of memory of a registration of several. */
typedef struct gni_mem_segment {
    uint64_t address;
    uint64_t length;
} gni_mem_segment_t;

/* What the collective engine delivers. */
typedef struct gni_ce_result {
    uint64_t control;
    uint64_t result1;
    uint64_t result2;
} gni_ce_result_t;

/* A transaction. The first two and cq_mode_complete, post_id and status in part, are for the library's use. */
typedef struct gni_post_descriptor {
    void *next_descr;
    void *prev_descr;
    uint64_t post_id;
    uint64_t status;
    uint16_t cq_mode_complete;
    gni_post_type_t type;
    uint16_t cq_mode;
    uint16_t dlvr_mode;
    uint64_t local_addr;
    gni_mem_handle_t local_mem_hndl;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t length;
    uint16_t rdma_mode;
    gni_cq_handle_t src_cq_hndl;
    uint64_t sync_flag_value;
    uint64_t sync_flag_addr;
    gni_fma_cmd_type_t amo_cmd;
    uint64_t first_operand;
    uint64_t second_operand;
    uint64_t cqwrite_value;
    gni_ce_cmd_type_t ce_cmd;
    uint32_t ce_mode;
    uint64_t ce_red_id;
} gni_post_descriptor_t;

/* A link of a chain of puts. */
typedef struct gni_ct_put_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    uint64_t length;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t local_addr;
} gni_ct_put_post_descriptor_t;

/* A link of a chain of gets. */
typedef struct gni_ct_get_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    uint64_t length;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t local_addr;
    gni_mem_handle_t local_mem_hndl;
} gni_ct_get_post_descriptor_t;

/* A link of a chain of atomics. */
typedef struct gni_ct_amo_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    uint64_t length;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t local_addr;
    gni_mem_handle_t local_mem_hndl;
    gni_fma_cmd_type_t amo_cmd;
    uint64_t first_operand;
    uint64_t second_operand;
} gni_ct_amo_post_descriptor_t;

/* A link of a chain of writes to queues. */
typedef struct gni_ct_cqw_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t cqwrite_value;
} gni_ct_cqw_post_descriptor_t;

/* A link of any chain. */
typedef struct gni_ct_uni_post_descriptor {
    union {
        gni_ct_put_post_descriptor_t put;
        gni_ct_get_post_descriptor_t get;
        gni_ct_amo_post_descriptor_t amo;
        gni_ct_cqw_post_descriptor_t cqw;
    } u;
} gni_ct_uni_post_descriptor_t;

/* A rule of the table that translates nodes. */
typedef struct gni_ntt_entry {
    uint32_t blck_addr;
    uint32_t rplc_addr;
    uint8_t rplc_size;
} gni_ntt_entry_t;

/* The table that translates nodes. */
typedef struct gni_ntt_descriptor {
    uint32_t group_size;
    uint8_t granularity;
    union {
        uint32_t *table;
        gni_ntt_entry_t *table_v2;
    } u;
    uint8_t flags;
} gni_ntt_descriptor_t;

/* An error. */
typedef struct gni_error_event {
    uint16_t error_code;
    uint8_t error_category;
    uint8_t ptag;
    uint32_t serial_number;
    uint64_t timestamp;
    uint64_t info_mmrs[4];
} gni_error_event_t;

/* What a job may use. */
typedef struct gni_job_limits {
    int32_t mdd_limit;
    union {
        int32_t mrt_limit;
        struct {
            uint8_t ce_limit;
            uint8_t iommu_limit;
            uint8_t res_byte2;
            uint8_t res_byte3;
        } m;
    } a;
    union {
        int32_t gart_limit;
        int32_t dla_limit;
    } b;
    int32_t fma_limit;
    int32_t bte_limit;
    int32_t cq_limit;
    int32_t ntt_ctrl;
    int32_t ntt_base;
    int32_t ntt_size;
} gni_job_limits_t;

/* How much of a resource a device has. */
typedef struct gni_dev_res_desc {
    uint64_t available;
    uint64_t reserved;
    uint64_t held;
    uint64_t total;
} gni_dev_res_desc_t;

/* How much of a resource a job has. */
typedef struct gni_job_res_desc {
    uint64_t used;
    uint64_t limit;
} gni_job_res_desc_t;

/* A shared message queue. */
typedef struct gni_msgq_attr {
    uint32_t max_msg_sz;
    uint32_t smsg_q_sz;
    uint32_t rcv_pool_sz;
    uint32_t num_msgq_eps;
    uint32_t nloc_insts;
    uint8_t modes;
    uint32_t rcv_cq_sz;
} gni_msgq_attr_t;

/* An instance at the other end of a shared message queue. */
typedef struct gni_msgq_rem_inst {
    uint32_t id;
    gni_mem_handle_t mdh;
    uint64_t mdh_off;
} gni_msgq_rem_inst_t;

/* One end of a shared message queue's connection. */
typedef struct gni_msgq_ep_attr {
    uint32_t pe_addr;
    uint32_t max_msg_sz;
    uint32_t smsg_q_sz;
    uint32_t num_insts;
    gni_msgq_rem_inst_t insts[GNI_MSGQ_NODE_INSTS_MAX];
} gni_msgq_ep_attr_t;

/* The versions of the library and of the driver. */
typedef struct gni_version_info {
    uint32_t ugni_version;
    uint32_t ugni_svn_revision;
    char ugni_build_string[MAX_BUILD_STRING_LENGTH];
    uint32_t kgni_version;
    uint32_t kgni_svn_revision;
    char kgni_build_string[MAX_BUILD_STRING_LENGTH];
} gni_version_info_t;

/* Balanced injection. */
typedef struct gni_bi_desc {
    uint16_t current_bw;
    uint16_t current_aot_bw;
    uint16_t current_norbs;
    uint16_t flags;
    uint16_t sys_def_bw;
    uint16_t sys_def_aot_bw;
    uint16_t cle_seqnum;
    uint16_t hss_seqnum;
} gni_bi_desc_t;

/* Called with each event that is taken from a queue. */
typedef void gni_cq_event_handler(gni_cq_entry_t *event, void *context);
/* Called with each message of a shared message queue; 0 ends the round. */
typedef int gni_msgq_rcv_cb_func(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data);

/* The names of codes and of statistics. */
extern const char *gni_err_str[];
extern const char *gni_statistic_str[];


/* Communication domains and jobs. */
gni_return_t GNI_CdmCreate(uint32_t inst_id, uint8_t ptag, uint32_t cookie, uint32_t modes, gni_cdm_handle_t
    *cdm_hndl);
gni_return_t GNI_CdmDestroy(gni_cdm_handle_t cdm_hndl);
gni_return_t GNI_CdmGetNicAddress(uint32_t device_id, uint32_t *address, uint32_t *cpu_id);
gni_return_t GNI_CdmAttach(gni_cdm_handle_t cdm_hndl, uint32_t device_id, uint32_t *local_addr, gni_nic_handle_t
    *nic_hndl);
gni_return_t GNI_SuspendJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie, uint32_t timeout);
gni_return_t GNI_ResumeJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie);
gni_return_t GNI_ConfigureNTT(int device_id, gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base);
gni_return_t GNI_ConfigureJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie, gni_job_limits_t
    *limits);
gni_return_t GNI_ConfigureNTTandJob(int device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie, gni_job_limits_t
    *limits, gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base);

/* Endpoints and datagrams. */
gni_return_t GNI_EpCreate(gni_nic_handle_t nic_hndl, gni_cq_handle_t src_cq_hndl, gni_ep_handle_t *ep_hndl);
gni_return_t GNI_EpSetEventData(gni_ep_handle_t ep_hndl, uint32_t local_event, uint32_t remote_event);
gni_return_t GNI_EpBind(gni_ep_handle_t ep_hndl, uint32_t remote_addr, uint32_t remote_id);
gni_return_t GNI_EpUnbind(gni_ep_handle_t ep_hndl);
gni_return_t GNI_EpIdle(gni_ep_handle_t ep_hndl);
gni_return_t GNI_EpDestroy(gni_ep_handle_t ep_hndl);
gni_return_t GNI_EpPostData(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len, void *out_buf, uint16_t
    buf_size);
gni_return_t GNI_EpPostDataWId(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len, void *out_buf, uint16_t
    buf_size, uint64_t datagram_id);
gni_return_t GNI_EpPostDataTest(gni_ep_handle_t ep_hndl, gni_post_state_t *post_state, uint32_t *remote_addr,
    uint32_t *remote_id);
gni_return_t GNI_EpPostDataTestById(gni_ep_handle_t ep_hndl, uint64_t datagram_id, gni_post_state_t *post_state,
    uint32_t *remote_addr, uint32_t *remote_id);
gni_return_t GNI_EpPostDataWait(gni_ep_handle_t ep_hndl, uint32_t timeout, gni_post_state_t *post_state, uint32_t
    *remote_addr, uint32_t *remote_id);
gni_return_t GNI_EpPostDataWaitById(gni_ep_handle_t ep_hndl, uint64_t datagram_id, uint32_t timeout,
    gni_post_state_t *post_state, uint32_t *remote_addr, uint32_t *remote_id);
gni_return_t GNI_PostDataProbe(gni_nic_handle_t nic_hndl, uint32_t *remote_addr, uint32_t *remote_id);
gni_return_t GNI_PostDataProbeById(gni_nic_handle_t nic_hndl, uint64_t *datagram_id);
gni_return_t GNI_PostdataProbeWaitById(gni_nic_handle_t nic_hndl, uint32_t timeout, uint64_t *datagram_id);
gni_return_t GNI_EpPostDataCancel(gni_ep_handle_t ep_hndl);
gni_return_t GNI_EpPostDataCancelById(gni_ep_handle_t ep_hndl, uint64_t datagram_id);

/* Registered memory. */
gni_return_t GNI_MemRegister(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length, gni_cq_handle_t
    dst_cq_hndl, uint32_t flags, uint32_t vmdh_index, gni_mem_handle_t *mem_hndl);
gni_return_t GNI_MemRegisterSegments(gni_nic_handle_t nic_hndl, gni_mem_segment_t *mem_segments, uint32_t
    segments_cnt, gni_cq_handle_t dst_cq_hndl, uint32_t flags, uint32_t vmdh_index, gni_mem_handle_t *mem_hndl);
gni_return_t GNI_SetMddResources(gni_nic_handle_t nic_hndl, uint32_t num_entries);
gni_return_t GNI_MemDeregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t *mem_hndl);
gni_return_t GNI_MemHndlQueryAttr(gni_mem_handle_t *mem_hndl, gni_mem_handle_attr_t attr, int *yesno);
gni_return_t GNI_RebuildMemHndl(gni_mem_handle_t *src_mem_hndl, uint32_t vmdh_index, gni_mem_handle_t *dst_mem_hndl);
gni_return_t GNI_MemQueryHndls(gni_nic_handle_t nic_hndl, int fd, gni_mem_handle_t *mem_hndl, uint64_t *address,
    uint64_t *length);

/* Completion queues and transactions. */
gni_return_t GNI_CqCreate(gni_nic_handle_t nic_hndl, uint32_t entry_count, uint32_t delay_count, gni_cq_mode_t mode,
    gni_cq_event_handler *handler, void *context, gni_cq_handle_t *cq_hndl);
gni_return_t GNI_CqDestroy(gni_cq_handle_t cq_hndl);
gni_return_t GNI_PostRdma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);
gni_return_t GNI_PostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);
gni_return_t GNI_CtPostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);
gni_return_t GNI_PostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);
gni_return_t GNI_CtPostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);
gni_return_t GNI_GetCompleted(gni_cq_handle_t cq_hndl, gni_cq_entry_t event_data, gni_post_descriptor_t **post_descr);
gni_return_t GNI_CqGetEvent(gni_cq_handle_t cq_hndl, gni_cq_entry_t *event_data);
gni_return_t GNI_CqWaitEvent(gni_cq_handle_t cq_hndl, uint64_t timeout, gni_cq_entry_t *event_data);
gni_return_t GNI_CqVectorWaitEvent(gni_cq_handle_t *cq_hndls, uint32_t num_cqs, uint64_t timeout, gni_cq_entry_t
    *event_data, uint32_t *which);
gni_return_t GNI_CqVectorMonitor(gni_cq_handle_t *cq_hndls, uint32_t num_cqs, uint64_t timeout, uint32_t *which);
gni_return_t GNI_CqInterruptMask(gni_cq_handle_t cq_hndl);
gni_return_t GNI_CqInterruptUnmask(gni_cq_handle_t cq_hndl);
gni_return_t GNI_CqTestEvent(gni_cq_handle_t cq_hndl);
gni_return_t GNI_CqErrorStr(gni_cq_entry_t entry, void *buffer, uint32_t len);
gni_return_t GNI_CqErrorRecoverable(gni_cq_entry_t entry, uint32_t *recoverable);

/* Short messages and shared message queues. */
gni_return_t GNI_SmsgBufferSizeNeeded(gni_smsg_attr_t *smsg_attr, unsigned int *size);
gni_return_t GNI_SmsgInit(gni_ep_handle_t ep_hndl, gni_smsg_attr_t *local_smsg_attr, gni_smsg_attr_t
    *remote_smsg_attr);
gni_return_t GNI_SmsgSetDeliveryMode(gni_nic_handle_t nic_handle, uint16_t dlvr_mode);
gni_return_t GNI_SmsgSend(gni_ep_handle_t ep_hndl, void *header, uint32_t header_length, void *data, uint32_t
    data_length, uint32_t msg_id);
gni_return_t GNI_SmsgSendWTag(gni_ep_handle_t ep_hndl, void *header, uint32_t header_length, void *data, uint32_t
    data_length, uint32_t msg_id, uint8_t tag);
gni_return_t GNI_SmsgGetNext(gni_ep_handle_t ep_hndl, void **header);
gni_return_t GNI_SmsgGetNextWTag(gni_ep_handle_t ep_hndl, void **header, uint8_t *tag);
gni_return_t GNI_SmsgRelease(gni_ep_handle_t ep_hndl);
gni_return_t GNI_MsgqInit(gni_nic_handle_t nic_hndl, gni_msgq_rcv_cb_func *rcv_cb, void *cb_data, gni_cq_handle_t
    snd_cq, gni_msgq_attr_t *attrs, gni_msgq_handle_t *msgq_hndl);
gni_return_t GNI_MsgqRelease(gni_msgq_handle_t msgq_hndl);
gni_return_t GNI_MsgqIdle(gni_msgq_handle_t msgq_hndl);
gni_return_t GNI_MsgqGetConnAttrs(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t *attrs, uint32_t
    *attrs_size);
gni_return_t GNI_MsgqConnect(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t *attrs);
gni_return_t GNI_MsgqConnRelease(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr);
gni_return_t GNI_MsgqSend(gni_msgq_handle_t msgq_hndl, gni_ep_handle_t ep_hndl, void *hdr, uint32_t hdr_len, void
    *msg, uint32_t msg_len, uint32_t msg_id, uint8_t msg_tag);
gni_return_t GNI_MsgqProgress(gni_msgq_handle_t msgq_hndl, uint32_t timeout);
gni_return_t GNI_MsgqSize(gni_msgq_attr_t *attrs, uint32_t *size);
gni_return_t GNI_SmsgSetMaxRetrans(gni_nic_handle_t nic_handle, uint16_t max_retrans);

/* Errors. */
gni_return_t GNI_SubscribeErrors(gni_nic_handle_t nic_handle, uint32_t device_id, gni_error_mask_t mask, uint32_t
    eeq_size, gni_err_handle_t *err_handle);
gni_return_t GNI_ReleaseErrors(gni_err_handle_t err_handle);
gni_return_t GNI_GetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t *mask);
gni_return_t GNI_SetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t mask_in, gni_error_mask_t *mask_out);
gni_return_t GNI_GetErrorEvent(gni_err_handle_t err_handle, gni_error_event_t *event);
gni_return_t GNI_WaitErrorEvents(gni_err_handle_t err_handle, gni_error_event_t *events, uint32_t events_size,
    uint32_t timeout, uint32_t *num_events);
gni_return_t GNI_SetErrorPtag(gni_err_handle_t err_handle, uint8_t ptag);

/* The device and the job. */
gni_return_t GNI_GetNumLocalDevices(int *num_devices);
gni_return_t GNI_GetLocalDeviceIds(int len, int *device_ids);
gni_return_t GNI_GetVersion(uint32_t *version);
gni_return_t GNI_GetVersionInformation(gni_version_info_t *version_info);
gni_return_t GNI_GetDeviceType(gni_nic_device_t *dev_type);
gni_return_t GNI_GetDevResInfo(uint32_t device_id, gni_dev_res_t res_type, gni_dev_res_desc_t *res_desc);
gni_return_t GNI_GetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type, gni_job_res_desc_t
    *res_desc);
gni_return_t GNI_SetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type, uint64_t res_value);
gni_return_t GNI_GetNttGran(uint32_t device_id, uint32_t *ntt_gran);
gni_return_t GNI_GetPtag(uint32_t device_id, uint32_t cookie, uint8_t *ptag);

/* The collective engine, injection, statistics. */
gni_return_t GNI_CeCreate(gni_nic_handle_t nic_hndl, gni_ce_handle_t *ce_hndl);
gni_return_t GNI_CeGetId(gni_ce_handle_t ce_hndl, uint32_t *ce_id);
gni_return_t GNI_EpSetCeAttr(gni_ep_handle_t ep_hndl, uint32_t ce_id, uint32_t child_id, gni_ce_child_t child_type);
gni_return_t GNI_CeConfigure(gni_ce_handle_t ce_hndl, gni_ep_handle_t *child_eps, uint32_t num_child_eps,
    gni_ep_handle_t parent_ep, gni_cq_handle_t cq_hndl, uint32_t modes);
gni_return_t GNI_CeCheckResult(gni_ce_result_t *result, uint32_t length);
gni_return_t GNI_CeDestroy(gni_ce_handle_t ce_hndl);
gni_return_t GNI_SetBIConfig(uint32_t device_id, uint16_t bw, uint16_t aot_bw, uint16_t modes);
gni_return_t GNI_GetBIConfig(uint32_t device_id, gni_bi_desc_t *desc);
gni_return_t GNI_BISyncWait(uint32_t device_id, uint32_t timeout);
gni_return_t GNI_GetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat, uint32_t *value);
gni_return_t GNI_ResetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat);

/* Completion channels. */
gni_return_t GNI_CompChanCreate(gni_nic_handle_t nic_hndl, gni_comp_chan_handle_t *chan_hndl);
gni_return_t GNI_CompChanDestroy(gni_comp_chan_handle_t chan_hndl);
gni_return_t GNI_CompChanFd(gni_comp_chan_handle_t chan_hndl, int *comp_chan_fd);
gni_return_t GNI_CompChanGetEvent(gni_comp_chan_handle_t chan_hndl, gni_cq_handle_t *cq_hndl);
gni_return_t GNI_CqAttachCompChan(gni_cq_handle_t cq_hndl, gni_comp_chan_handle_t chan_hndl);
gni_return_t GNI_CqArmCompChan(gni_cq_handle_t *cq_hndls, uint32_t num_cqs);

/* The parts of events. */
uint64_t gni_cq_get_data(gni_cq_entry_t entry);
uint64_t gni_cq_get_source(gni_cq_entry_t entry);
uint64_t gni_cq_get_status(gni_cq_entry_t entry);
uint64_t gni_cq_get_info(gni_cq_entry_t entry);
uint64_t gni_cq_overrun(gni_cq_entry_t entry);
uint64_t gni_cq_rem_overrun(gni_cq_entry_t entry);
uint64_t gni_cq_get_inst_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_rem_inst_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_tid(gni_cq_entry_t entry);
uint64_t gni_cq_get_msg_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_type(gni_cq_entry_t entry);
uint64_t gni_cq_get_block_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_unsuccessful_cnt(gni_cq_entry_t entry);
uint64_t gni_cq_get_marker_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_failed_enqueue_cnt(gni_cq_entry_t entry);
uint64_t gni_cq_get_ce_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_reductn_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_trans_type(gni_cq_entry_t entry);
void gni_cq_set_inst_id(gni_cq_entry_t *entry, uint64_t value);
void gni_cq_set_rem_inst_id(gni_cq_entry_t *entry, uint64_t value);
void gni_cq_set_tid(gni_cq_entry_t *entry, uint64_t value);
void gni_cq_set_msg_id(gni_cq_entry_t *entry, uint64_t value);
void gni_cq_set_type(gni_cq_entry_t *entry, uint64_t value);
void gni_cq_clr_status(gni_cq_entry_t *entry);
unsigned int gni_cq_status_dla_overflow(gni_cq_entry_t entry);
unsigned int gni_cq_bte_enq_status(gni_cq_entry_t entry);

/* The parts of what the collective engine delivers. */
uint64_t gni_ce_res_get_status(gni_ce_result_t *result);
uint64_t gni_ce_res_status_ok(gni_ce_result_t *result);
uint64_t gni_ce_res_get_fpe(gni_ce_result_t *result);
uint64_t gni_ce_res_get_red_id(gni_ce_result_t *result);

/* Resources. */
uint32_t gni_dev_res_valid(gni_dev_res_t resource);
const char *gni_dev_res_to_str(gni_dev_res_t resource);
uint32_t gni_job_res_valid(gni_job_res_t resource);
const char *gni_job_res_to_str(gni_job_res_t resource);

/* The same by the names that programs use. */
#define GNI_CQ_GET_DATA(entry) gni_cq_get_data(entry)
#define GNI_CQ_GET_SOURCE(entry) gni_cq_get_source(entry)
#define GNI_CQ_GET_STATUS(entry) gni_cq_get_status(entry)
#define GNI_CQ_GET_INFO(entry) gni_cq_get_info(entry)
#define GNI_CQ_OVERRUN(entry) gni_cq_overrun(entry)
#define GNI_CQ_REM_OVERRUN(entry) gni_cq_rem_overrun(entry)
#define GNI_CQ_GET_INST_ID(entry) gni_cq_get_inst_id(entry)
#define GNI_CQ_GET_REM_INST_ID(entry) gni_cq_get_rem_inst_id(entry)
#define GNI_CQ_GET_TID(entry) gni_cq_get_tid(entry)
#define GNI_CQ_GET_MSG_ID(entry) gni_cq_get_msg_id(entry)
#define GNI_CQ_GET_TYPE(entry) gni_cq_get_type(entry)
#define GNI_CQ_GET_BLOCK_ID(entry) gni_cq_get_block_id(entry)
#define GNI_CQ_GET_UNSUCCESSFUL_CNT(entry) gni_cq_get_unsuccessful_cnt(entry)
#define GNI_CQ_GET_MARKER_ID(entry) gni_cq_get_marker_id(entry)
#define GNI_CQ_GET_FAILED_ENQUEUE_CNT(entry) gni_cq_get_failed_enqueue_cnt(entry)
#define GNI_CQ_GET_CE_ID(entry) gni_cq_get_ce_id(entry)
#define GNI_CQ_GET_REDUCTN_ID(entry) gni_cq_get_reductn_id(entry)
#define GNI_CQ_GET_TRANS_TYPE(entry) gni_cq_get_trans_type(entry)
#define GNI_CQ_SET_INST_ID(entry, value) gni_cq_set_inst_id(entry, value)
#define GNI_CQ_SET_REM_INST_ID(entry, value) gni_cq_set_rem_inst_id(entry, value)
#define GNI_CQ_SET_TID(entry, value) gni_cq_set_tid(entry, value)
#define GNI_CQ_SET_MSG_ID(entry, value) gni_cq_set_msg_id(entry, value)
#define GNI_CQ_SET_TYPE(entry, value) gni_cq_set_type(entry, value)
#define GNI_CQ_CLR_STATUS(entry) gni_cq_clr_status(entry)
#define GNI_CQ_STATUS_DLA_OVERFLOW(entry) gni_cq_status_dla_overflow(entry)
#define GNI_CQ_BTE_ENQ_STATUS(entry) gni_cq_bte_enq_status(entry)
#define GNI_CQ_STATUS_OK(entry) (gni_cq_get_status(entry) == 0)

#ifdef __cplusplus
}
#endif

#endif /* GNI_PUB_H */
