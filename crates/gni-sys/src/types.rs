//! The types of uGNI: handles, descriptors, and the numbers that C calls enumerations.
//!
//! # Invariants
//! - types.1: the structures consist of integers and raw pointers, and of arrays and unions of these: all bytes zero are a value.

use std::ffi::{c_char, c_int, c_void};

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident to $object:ident;)*) => {$(
        #[doc = concat!("What a [`", stringify!($handle), "`] leads to: the library alone looks into it.")]
        #[repr(C)]
        #[derive(Debug)]
        pub struct $object {
            _opaque: [u8; 0],
        }
        $(#[$doc])*
        pub type $handle = *mut $object;
    )*};
}

handles! {
    /// A communication domain.
    gni_cdm_handle_t to gni_cdm;
    /// A domain's attachment to a NIC.
    gni_nic_handle_t to gni_nic;
    /// An endpoint.
    gni_ep_handle_t to gni_ep;
    /// A completion queue.
    gni_cq_handle_t to gni_cq;
    /// A subscription to errors.
    gni_err_handle_t to gni_err;
    /// A shared message queue.
    gni_msgq_handle_t to gni_msgq;
    /// A channel of the collective engine.
    gni_ce_handle_t to gni_ce;
    /// A completion channel.
    gni_comp_chan_handle_t to gni_comp_chan;
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident: $number:ty;)*) => {$(
        $(#[$doc])*
        pub type $name = $number;
    )*};
}

numbers! {
    /// What a function returns (`GNI_RC_*`).
    gni_return_t: u32;
    /// An event: only the library's functions know its parts.
    gni_cq_entry_t: u64;
    /// Modes of a completion queue (`GNI_CQ_*`).
    gni_cq_mode_t: u32;
    /// Categories of errors (`GNI_ERRMASK_*`).
    gni_error_mask_t: u8;
    /// An attribute of a memory handle (`GNI_MEMHNDL_ATTR_*`).
    gni_mem_handle_attr_t: u32;
    /// A kind of mailbox (`GNI_SMSG_TYPE_*`).
    gni_smsg_type_t: u32;
    /// The state of a datagram (`GNI_POST_*`).
    gni_post_state_t: u32;
    /// The type of a post (`GNI_POST_*`).
    gni_post_type_t: u32;
    /// A command of the atomic unit (`GNI_FMA_ATOMIC*`).
    gni_fma_cmd_type_t: u32;
    /// A command of the collective engine (`GNI_FMA_CE_*`).
    gni_ce_cmd_type_t: u32;
    /// A kind of child of the collective engine (`GNI_CE_CHILD_*`).
    gni_ce_child_t: u32;
    /// A chip (`GNI_DEVICE_*`).
    gni_nic_device_t: u32;
    /// A resource of a device (`GNI_DEV_RES_*`).
    gni_dev_res_t: u32;
    /// A resource of a job (`GNI_JOB_RES_*`).
    gni_job_res_t: u32;
    /// A statistic of a NIC (`GNI_STAT_*`).
    gni_statistic_t: u32;
}

/// Called with each event that is taken from a queue, and what was given with the function.
pub type gni_cq_handler_t = unsafe extern "C" fn(*mut gni_cq_entry_t, *mut c_void);

/// Called with each message of a shared message queue: who sent it (instance and address), the message, its tag, and what
/// was given with the function; 0 ends the round.
pub type gni_msgq_rcv_cb_func = unsafe extern "C" fn(u32, u32, *mut c_void, u8, *mut c_void) -> c_int;

macro_rules! records {
    ($kind:tt: $($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub $kind $name {
            $(#[allow(missing_docs)] pub $field: $type,)*
        }

        impl $name {
            /// All bytes zero, as C programs begin with.
            pub const fn zeroed() -> Self {
                // SAFETY: types.1: this one consists of integers and raw pointers, too, so all bytes zero are a value of it.
                unsafe { std::mem::zeroed() }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::zeroed()
            }
        }
    )*};
}

records! {
    struct:
    /// Registered memory, as it is told to others.
    gni_mem_handle_t { qword1: u64, qword2: u64, }
    /// One end of a mailbox.
    gni_smsg_attr_t {
        msg_type: gni_smsg_type_t,
        msg_buffer: *mut c_void,
        buff_size: u32,
        mem_hndl: gni_mem_handle_t,
        mbox_offset: u32,
        mbox_maxcredit: u16,
        msg_maxsize: u32,
    }
    /// A piece of memory of a registration of several.
    gni_mem_segment_t { address: u64, length: u64, }
    /// What the collective engine delivers.
    gni_ce_result_t { control: u64, result1: u64, result2: u64, }
    /// A transaction. The first two and `cq_mode_complete`, `post_id` and `status` in part, are for the library's use.
    gni_post_descriptor_t {
        next_descr: *mut c_void,
        prev_descr: *mut c_void,
        post_id: u64,
        status: u64,
        cq_mode_complete: u16,
        r#type: gni_post_type_t,
        cq_mode: u16,
        dlvr_mode: u16,
        local_addr: u64,
        local_mem_hndl: gni_mem_handle_t,
        remote_addr: u64,
        remote_mem_hndl: gni_mem_handle_t,
        length: u64,
        rdma_mode: u16,
        src_cq_hndl: gni_cq_handle_t,
        sync_flag_value: u64,
        sync_flag_addr: u64,
        amo_cmd: gni_fma_cmd_type_t,
        first_operand: u64,
        second_operand: u64,
        cqwrite_value: u64,
        ce_cmd: gni_ce_cmd_type_t,
        ce_mode: u32,
        ce_red_id: u64,
    }
    /// A link of a chain of puts.
    gni_ct_put_post_descriptor_t {
        next_descr: *mut c_void,
        ep_hndl: gni_ep_handle_t,
        length: u64,
        remote_addr: u64,
        remote_mem_hndl: gni_mem_handle_t,
        local_addr: u64,
    }
    /// A link of a chain of gets.
    gni_ct_get_post_descriptor_t {
        next_descr: *mut c_void,
        ep_hndl: gni_ep_handle_t,
        length: u64,
        remote_addr: u64,
        remote_mem_hndl: gni_mem_handle_t,
        local_addr: u64,
        local_mem_hndl: gni_mem_handle_t,
    }
    /// A link of a chain of atomics.
    gni_ct_amo_post_descriptor_t {
        next_descr: *mut c_void,
        ep_hndl: gni_ep_handle_t,
        length: u64,
        remote_addr: u64,
        remote_mem_hndl: gni_mem_handle_t,
        local_addr: u64,
        local_mem_hndl: gni_mem_handle_t,
        amo_cmd: gni_fma_cmd_type_t,
        first_operand: u64,
        second_operand: u64,
    }
    /// A link of a chain of writes to queues.
    gni_ct_cqw_post_descriptor_t {
        next_descr: *mut c_void,
        ep_hndl: gni_ep_handle_t,
        remote_mem_hndl: gni_mem_handle_t,
        cqwrite_value: u64,
    }
    /// A link of any chain.
    gni_ct_uni_post_descriptor_t { u: gni_ct_uni_link, }
    /// A rule of the table that translates nodes.
    gni_ntt_entry_t { blck_addr: u32, rplc_addr: u32, rplc_size: u8, }
    /// The table that translates nodes.
    gni_ntt_descriptor_t { group_size: u32, granularity: u8, u: gni_ntt_table, flags: u8, }
    /// An error.
    gni_error_event_t {
        error_code: u16,
        error_category: u8,
        ptag: u8,
        serial_number: u32,
        timestamp: u64,
        info_mmrs: [u64; 4],
    }
    /// The part of a job's limits that is of Aries.
    gni_job_limits_aries { ce_limit: u8, iommu_limit: u8, res_byte2: u8, res_byte3: u8, }
    /// What a job may use.
    gni_job_limits_t {
        mdd_limit: i32,
        a: gni_job_limits_a,
        b: gni_job_limits_b,
        fma_limit: i32,
        bte_limit: i32,
        cq_limit: i32,
        ntt_ctrl: i32,
        ntt_base: i32,
        ntt_size: i32,
    }
    /// How much of a resource a device has.
    gni_dev_res_desc_t { available: u64, reserved: u64, held: u64, total: u64, }
    /// How much of a resource a job has.
    gni_job_res_desc_t { used: u64, limit: u64, }
    /// A shared message queue.
    gni_msgq_attr_t {
        max_msg_sz: u32,
        smsg_q_sz: u32,
        rcv_pool_sz: u32,
        num_msgq_eps: u32,
        nloc_insts: u32,
        modes: u8,
        rcv_cq_sz: u32,
    }
    /// An instance at the other end of a shared message queue.
    gni_msgq_rem_inst_t { id: u32, mdh: gni_mem_handle_t, mdh_off: u64, }
    /// One end of a shared message queue's connection.
    gni_msgq_ep_attr_t {
        pe_addr: u32,
        max_msg_sz: u32,
        smsg_q_sz: u32,
        num_insts: u32,
        insts: [gni_msgq_rem_inst_t; crate::GNI_MSGQ_NODE_INSTS_MAX],
    }
    /// The versions of the library and of the driver.
    gni_version_info_t {
        ugni_version: u32,
        ugni_svn_revision: u32,
        ugni_build_string: [c_char; crate::MAX_BUILD_STRING_LENGTH],
        kgni_version: u32,
        kgni_svn_revision: u32,
        kgni_build_string: [c_char; crate::MAX_BUILD_STRING_LENGTH],
    }
    /// Balanced injection.
    gni_bi_desc_t {
        current_bw: u16,
        current_aot_bw: u16,
        current_norbs: u16,
        flags: u16,
        sys_def_bw: u16,
        sys_def_aot_bw: u16,
        cle_seqnum: u16,
        hss_seqnum: u16,
    }
}

records! {
    union:
    /// The two forms of the table that translates nodes.
    gni_ntt_table { table: *mut u32, table_v2: *mut gni_ntt_entry_t, }
    /// A limit of Gemini, or those of Aries.
    gni_job_limits_a { mrt_limit: i32, m: gni_job_limits_aries, }
    /// A limit of Gemini, or one of Aries.
    gni_job_limits_b { gart_limit: i32, dla_limit: i32, }
    /// A link of any chain, by its kind.
    gni_ct_uni_link {
        put: gni_ct_put_post_descriptor_t,
        get: gni_ct_get_post_descriptor_t,
        amo: gni_ct_amo_post_descriptor_t,
        cqw: gni_ct_cqw_post_descriptor_t,
    }
}
