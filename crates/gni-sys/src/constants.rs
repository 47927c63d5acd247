//! The constants of uGNI, by what they belong to.

use crate::types::*;

macro_rules! constants {
    ($($doc:literal $type:ident { $($name:ident = $value:expr,)* })*) => {
        $($(#[doc = $doc] pub const $name: $type = $value;)*)*

        /// All constants, by name.
        pub const CONSTANTS: &[(&str, i64)] = &[$($((stringify!($name), $name as i64),)*)*];
    };
}

constants! {
    "The version of the interface that is declared here (revision 0x5d), and from which version on some things are there."
    u32 {
        GNI_MAJOR_REV = 0,
        GNI_MINOR_REV = 0x5d,
        GNI_CODE_REV = 0x102,
        GNI_VERSION = 0x5d0102,
        GNI_VERSION_FMA_SHARING = 0x5b0000,
        GNI_VERSION_FMA_CHAIN_TRANSACTIONS = 0x5d0000,
    }
    "The protection tag that asks the driver to find the one of a cookie."
    u8 {
        GNI_FIND_ALLOC_PTAG = 255,
    }
    "How often a short message is sent again at most."
    u16 {
        FMA_SMSG_MAX_RETRANS_DEFAULT = 10,
    }
    "Bytes of a build string."
    usize {
        MAX_BUILD_STRING_LENGTH = 80,
    }
    "The parts of a cookie."
    u32 {
        GNI_COOKIE_PKEY_MASK = 0xffff,
        GNI_COOKIE_PKEY_SHIFT = 0x10,
        GNI_COOKIE_CBPS_MDD_MASK = 7,
        GNI_COOKIE_CBPS_MDD_SHIFT = 3,
    }
    "Short messages."
    u8 {
        GNI_SMSG_ANY_TAG = 255,
    }
    "Short messages."
    u32 {
        GNI_SMSG_MAX_SIZE = 65535,
    }
    "Modes of a communication domain (`GNI_CdmCreate`)."
    u32 {
        GNI_CDM_MODE_FORK_NOCOPY = 1,
        GNI_CDM_MODE_FORK_FULLCOPY = 2,
        GNI_CDM_MODE_FORK_PARTCOPY = 4,
        GNI_CDM_MODE_ERR_NO_KILL = 8,
        GNI_CDM_MODE_ERR_ALL_KILL = 0x10,
        GNI_CDM_MODE_FAST_DATAGRAM_POLL = 0x20,
        GNI_CDM_MODE_BTE_SINGLE_CHANNEL = 0x40,
        GNI_CDM_MODE_USE_PCI_IOMMU = 0x80,
        GNI_CDM_MODE_MDD_DEDICATED = 0x100,
        GNI_CDM_MODE_MDD_SHARED = 0x200,
        GNI_CDM_MODE_DUAL_EVENTS = 0x1000,
        GNI_CDM_MODE_DLA_ENABLE_FORWARDING = 0x4000,
        GNI_CDM_MODE_DLA_DISABLE_FORWARDING = 0x8000,
        GNI_CDM_MODE_FMA_DEDICATED = 0x10000,
        GNI_CDM_MODE_FMA_SHARED = 0x20000,
        GNI_CDM_MODE_CACHED_AMO_ENABLED = 0x40000,
        GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT = 0x80000,
        GNI_CDM_MODE_FLBTE_DISABLE = 0x100000,
        GNI_CDM_MODE_FMA_SMALL_WINDOW = 0x200000,
        GNI_CDM_MODE_MASK = 0xfffffff,
        GNI_CDM_MODE_PRIV_RESERVED_1 = 0x10000000,
        GNI_CDM_MODE_PRIV_RESERVED_2 = 0x20000000,
        GNI_CDM_MODE_PRIV_RESERVED_3 = 0x40000000,
        GNI_CDM_MODE_PRIV_RESERVED_4 = 0x80000000,
        GNI_CDM_MODE_PRIV_MASK = 0xf0000000,
    }
    "Flags of a registration (`GNI_MemRegister`)."
    u32 {
        GNI_MEM_READWRITE = 0,
        GNI_MEM_READ_ONLY = 1,
        GNI_MEM_USE_VMDH = 2,
        GNI_MEM_USE_GART = 4,
        GNI_MEM_PHYS_CONT = 8,
        GNI_MEM_PHYS_SEGMENTS = 0x10,
        GNI_MEM_STRICT_PI_ORDERING = 0x20,
        GNI_MEM_PI_FLUSH = 0x40,
        GNI_MEM_MDD_CLONE = 0x80,
        GNI_MEM_RELAXED_PI_ORDERING = 0x100,
        GNI_MEM_RESERVE_REGION = 0x200,
        GNI_MEM_UPDATE_REGION = 0x400,
        GNI_MEM_MDD_SHARED = 0x800,
        GNI_MEM_MDD_DEDICATED = 0x1000,
        GNI_MEM_PRIV_RESERVED_1 = 0x100000,
        GNI_MEM_PRIV_RESERVED_2 = 0x200000,
        GNI_MEM_PRIV_RESERVED_3 = 0x400000,
        GNI_MEM_PRIV_RESERVED_4 = 0x800000,
        GNI_MEM_PRIV_MASK = 0xf00000,
        GNI_MEM_CUDA = 0x1000000,
    }
    "Modes of a completion queue (`GNI_CqCreate`)."
    gni_cq_mode_t {
        GNI_CQ_NOBLOCK = 0,
        GNI_CQ_BLOCKING = 1,
        GNI_CQ_EMULATED = 2,
        GNI_CQ_EMULATED_INVALID = 3,
        GNI_CQ_PHYS_PAGES = 4,
        GNI_CQ_UNMANAGED = 8,
        GNI_CQ_NOAUTOFILL = 0x10,
    }
    "Types of an event (`gni_cq_get_type`)."
    u64 {
        GNI_CQ_EVENT_TYPE_POST = 0,
        GNI_CQ_EVENT_TYPE_SMSG = 1,
        GNI_CQ_EVENT_TYPE_DMAPP = 2,
        GNI_CQ_EVENT_TYPE_MSGQ = 3,
    }
    "Bytes of the flag that a get with flag brings along."
    u64 {
        GNI_FMA_FLAGGED_RESPONSE_SIZE = 4,
    }
    "Exceptions and modes of the collective engine."
    u32 {
        GNI_CE_FPE_OP_INVAL = 1,
        GNI_CE_FPE_OFLOW = 2,
        GNI_CE_FPE_UFLOW = 4,
        GNI_CE_FPE_PRECISION = 8,
        GNI_CE_MODE_ROUND_UP = 1,
        GNI_CE_MODE_ROUND_DOWN = 2,
        GNI_CE_MODE_ROUND_NEAR = 4,
        GNI_CE_MODE_ROUND_ZERO = 8,
        GNI_CE_MODE_CQE_ONCOMP = 0x10,
        GNI_CE_MODE_CQE_ONERR = 0x40,
        GNI_CE_MODE_RC_NMIN_HASH = 0x80,
        GNI_CE_MODE_RC_MIN_HASH = 0x100,
        GNI_CE_MODE_RC_MNON_HASH = 0x200,
        GNI_CE_MODE_RC_ADAPT = 0x400,
        GNI_CE_MAX_CHILDREN = 0x20,
    }
    "Which events a post asks for (`cq_mode`)."
    u16 {
        GNI_CQMODE_SILENT = 0,
        GNI_CQMODE_LOCAL_EVENT = 1,
        GNI_CQMODE_GLOBAL_EVENT = 2,
        GNI_CQMODE_REMOTE_EVENT = 4,
        GNI_CQMODE_DUAL_EVENTS = 3,
    }
    "Routing (`dlvr_mode`)."
    u16 {
        GNI_DLVMODE_PERFORMANCE = 0,
        GNI_DLVMODE_NO_ADAPT = 1,
        GNI_DLVMODE_NO_HASH = 2,
        GNI_DLVMODE_NO_RADAPT = 4,
        GNI_DLVMODE_IN_ORDER = 3,
        GNI_DLVMODE_MNON_HASH = 3,
        GNI_DLVMODE_NMIN_HASH = 8,
        GNI_DLVMODE_MIN_HASH = 0x10,
        GNI_DLVMODE_ADAPTIVE0 = 0,
        GNI_DLVMODE_ADAPTIVE1 = 0x20,
        GNI_DLVMODE_ADAPTIVE2 = 0x40,
        GNI_DLVMODE_ADAPTIVE3 = 0x80,
        GNI_DLVMODE_ORDERED_TAIL = 0x100,
    }
    "Categories of errors (`GNI_SubscribeErrors`)."
    gni_error_mask_t {
        GNI_ERRMASK_CORRECTABLE_MEMORY = 1,
        GNI_ERRMASK_CRITICAL = 2,
        GNI_ERRMASK_TRANSACTION = 4,
        GNI_ERRMASK_ADDRESS_TRANSLATION = 8,
        GNI_ERRMASK_TRANSIENT = 0x10,
        GNI_ERRMASK_INFORMATIONAL = 0x20,
        GNI_ERRMASK_DIAG_ONLY = 0x40,
        GNI_ERRMASK_UNKNOWN_TRANSACTION = 0x80,
    }
    "Modes of a BTE transfer (`rdma_mode`)."
    u16 {
        GNI_RDMAMODE_PHYS_ADDR = 1,
        GNI_RDMAMODE_FENCE = 2,
        GNI_RDMAMODE_GETWC_DIS = 4,
    }
    "Modes of an operation of the collective engine (`ce_mode`)."
    u32 {
        GNI_CEMODE_TWO_OP = 1,
        GNI_CEMODE_FPE_OP_INVAL = 2,
        GNI_CEMODE_FPE_OFLOW = 4,
        GNI_CEMODE_FPE_UFLOW = 8,
        GNI_CEMODE_FPE_PRECISION = 0x10,
    }
    "The longest datagram, in bytes."
    u32 {
        GNI_DATAGRAM_MAXSIZE = 128,
    }
    "Limits of a job that mean none, and its control bits."
    i32 {
        GNI_JOB_INVALID_LIMIT = -1,
        GNI_JOB_CTRL_NTT_CLEANUP = 1,
        GNI_JOB_CTRL_CE0_MASK = 1,
        GNI_JOB_CTRL_CE1_MASK = 2,
        GNI_JOB_CTRL_CE2_MASK = 4,
        GNI_JOB_CTRL_CE3_MASK = 8,
        GNI_JOB_CTRL_ALL_CE_MASK = 15,
    }
    "Shared message queues."
    u32 {
        GNI_MSGQ_MSG_SZ_MAX = 128,
    }
    "Shared message queues."
    usize {
        GNI_MSGQ_NODE_INSTS_MAX = 128,
    }
    "Shared message queues."
    u8 {
        GNI_MSGQ_MODE_BLOCKING = 1,
    }
    "Balanced injection."
    u16 {
        GNI_BI_FLAG_APPLY_NOW = 1,
        GNI_BI_FLAG_APPLY_AFTER_THROTTLE = 2,
        GNI_BI_FLAG_USE_DEFAULT_SETTINGS = 4,
        GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES = 8,
        GNI_BI_INJECT_BW_MIN = 0,
        GNI_BI_INJECT_BW_MAX = 100,
        GNI_BI_INJECT_BW_ORB_MIN = 0,
        GNI_BI_INJECT_BW_ORB_MAX = 992,
    }
    "Protection tags and keys that are spoken for."
    u32 {
        GNI_PTAG_LND = 1,
        GNI_PTAG_OFED = 2,
        GNI_PTAG_USER_START = 3,
        GNI_PTAG_LND_KNC = 128,
        GNI_PTAG_USER_END = 253,
        GNI_PTAG_HSNBOOT = 254,
        GNI_PTAG_MAX = 254,
        GNI_PTAG_LB = 255,
        GNI_PKEY_INVALID = 0,
        GNI_PKEY_LND = 1,
        GNI_PKEY_OFED = 2,
        GNI_PKEY_USER_START = 128,
        GNI_PKEY_USER_END = 65407,
        GNI_PKEY_HSNBOOT = 65408,
        GNI_PKEY_MAX = 65534,
        GNI_PKEY_LB = 65535,
    }
    "Attributes of a memory handle (`GNI_MemHndlQueryAttr`)."
    gni_mem_handle_attr_t {
        GNI_MEMHNDL_ATTR_READONLY = 1,
        GNI_MEMHNDL_ATTR_VMDH = 2,
        GNI_MEMHNDL_ATTR_MRT = 3,
        GNI_MEMHNDL_ATTR_GART = 4,
        GNI_MEMHNDL_ATTR_IOMMU = 5,
        GNI_MEMHNDL_ATTR_PCI_IOMMU = 6,
        GNI_MEMHNDL_ATTR_CLONE = 7,
    }
    "Kinds of mailbox."
    gni_smsg_type_t {
        GNI_SMSG_TYPE_INVALID = 0,
        GNI_SMSG_TYPE_MBOX = 1,
        GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT = 2,
    }
    "What a function returns."
    gni_return_t {
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
    }
    "States of a datagram."
    gni_post_state_t {
        GNI_POST_PENDING = 0,
        GNI_POST_COMPLETED = 1,
        GNI_POST_ERROR = 2,
        GNI_POST_TIMEOUT = 3,
        GNI_POST_TERMINATED = 4,
        GNI_POST_REMOTE_DATA = 5,
    }
    "Types of a post."
    gni_post_type_t {
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
    }
    "Commands of the atomic unit. `ATOMIC2`: Aries alone. `_S`: 32 bits. `_C`: of cached memory. `F` in front: brings the old value."
    gni_fma_cmd_type_t {
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
    }
    "Commands of the collective engine. `_S`: 32 bits."
    gni_ce_cmd_type_t {
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
    }
    "Kinds of children of the collective engine."
    gni_ce_child_t {
        GNI_CE_CHILD_UNUSED = 0,
        GNI_CE_CHILD_VCE = 1,
        GNI_CE_CHILD_PE = 2,
    }
    "Chips."
    gni_nic_device_t {
        GNI_DEVICE_GEMINI = 0,
        GNI_DEVICE_ARIES = 1,
        GNI_DEVICE_PISCES = 2,
        GNI_DEVICE_LAST = 3,
    }
    "Resources of a device."
    gni_dev_res_t {
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
    }
    "Resources of a job."
    gni_job_res_t {
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
    }
    "Statistics of a NIC."
    gni_statistic_t {
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
    }
}
