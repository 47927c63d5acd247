//! The functions of uGNI.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::table::functions;
use crate::types::*;

/// What the library is called, where nothing else is asked for.
pub const LIBRARY: &[&str] = &["libugni.so.0", "libugni.so"];

functions! {
    /// The functions of a uGNI library, by their names. Those that not every version has are optional.
    ///
    /// To call one is up to the specification of uGNI: handles and pointers are the library's or point to values that
    /// live as long as it says, and threads do not use one NIC at the same time.
    Ugni of "ugni", LIBRARY;
    needed {
        fn GNI_CdmCreate(
            inst_id: u32,
            ptag: u8,
            cookie: u32,
            modes: u32,
            cdm_hndl: *mut gni_cdm_handle_t,
        ) -> gni_return_t;
        fn GNI_CdmDestroy(cdm_hndl: gni_cdm_handle_t) -> gni_return_t;
        fn GNI_CdmGetNicAddress(device_id: u32, address: *mut u32, cpu_id: *mut u32) -> gni_return_t;
        fn GNI_CdmAttach(
            cdm_hndl: gni_cdm_handle_t,
            device_id: u32,
            local_addr: *mut u32,
            nic_hndl: *mut gni_nic_handle_t,
        ) -> gni_return_t;
        fn GNI_EpCreate(
            nic_hndl: gni_nic_handle_t,
            src_cq_hndl: gni_cq_handle_t,
            ep_hndl: *mut gni_ep_handle_t,
        ) -> gni_return_t;
        fn GNI_EpSetEventData(ep_hndl: gni_ep_handle_t, local_event: u32, remote_event: u32) -> gni_return_t;
        fn GNI_EpBind(ep_hndl: gni_ep_handle_t, remote_addr: u32, remote_id: u32) -> gni_return_t;
        fn GNI_EpUnbind(ep_hndl: gni_ep_handle_t) -> gni_return_t;
        fn GNI_EpDestroy(ep_hndl: gni_ep_handle_t) -> gni_return_t;
        fn GNI_MemRegister(
            nic_hndl: gni_nic_handle_t,
            address: u64,
            length: u64,
            dst_cq_hndl: gni_cq_handle_t,
            flags: u32,
            vmdh_index: u32,
            mem_hndl: *mut gni_mem_handle_t,
        ) -> gni_return_t;
        fn GNI_MemDeregister(nic_hndl: gni_nic_handle_t, mem_hndl: *mut gni_mem_handle_t) -> gni_return_t;
        fn GNI_CqCreate(
            nic_hndl: gni_nic_handle_t,
            entry_count: u32,
            delay_count: u32,
            mode: gni_cq_mode_t,
            handler: Option<gni_cq_handler_t>,
            context: *mut c_void,
            cq_hndl: *mut gni_cq_handle_t,
        ) -> gni_return_t;
        fn GNI_CqDestroy(cq_hndl: gni_cq_handle_t) -> gni_return_t;
        fn GNI_PostRdma(ep_hndl: gni_ep_handle_t, post_descr: *mut gni_post_descriptor_t) -> gni_return_t;
        fn GNI_PostFma(ep_hndl: gni_ep_handle_t, post_descr: *mut gni_post_descriptor_t) -> gni_return_t;
        fn GNI_PostCqWrite(ep_hndl: gni_ep_handle_t, post_descr: *mut gni_post_descriptor_t) -> gni_return_t;
        fn GNI_GetCompleted(
            cq_hndl: gni_cq_handle_t,
            event_data: gni_cq_entry_t,
            post_descr: *mut *mut gni_post_descriptor_t,
        ) -> gni_return_t;
        fn GNI_CqGetEvent(cq_hndl: gni_cq_handle_t, event_data: *mut gni_cq_entry_t) -> gni_return_t;
        fn GNI_CqTestEvent(cq_hndl: gni_cq_handle_t) -> gni_return_t;
        fn GNI_CqErrorStr(entry: gni_cq_entry_t, buffer: *mut c_void, len: u32) -> gni_return_t;
        fn GNI_CqErrorRecoverable(entry: gni_cq_entry_t, recoverable: *mut u32) -> gni_return_t;
        fn GNI_GetDeviceType(dev_type: *mut gni_nic_device_t) -> gni_return_t;
        fn gni_cq_get_data(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_overrun(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_inst_id(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_rem_inst_id(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_type(entry: gni_cq_entry_t) -> u64;
    }
    optional {
        fn GNI_SuspendJob(device_id: u32, job_id: u64, ptag: u8, cookie: u32, timeout: u32) -> gni_return_t;
        fn GNI_ResumeJob(device_id: u32, job_id: u64, ptag: u8, cookie: u32) -> gni_return_t;
        fn GNI_ConfigureNTT(
            device_id: c_int,
            ntt_desc: *mut gni_ntt_descriptor_t,
            ntt_base: *mut u32,
        ) -> gni_return_t;
        fn GNI_ConfigureJob(
            device_id: u32,
            job_id: u64,
            ptag: u8,
            cookie: u32,
            limits: *mut gni_job_limits_t,
        ) -> gni_return_t;
        fn GNI_ConfigureNTTandJob(
            device_id: c_int,
            job_id: u64,
            ptag: u8,
            cookie: u32,
            limits: *mut gni_job_limits_t,
            ntt_desc: *mut gni_ntt_descriptor_t,
            ntt_base: *mut u32,
        ) -> gni_return_t;
        fn GNI_EpIdle(ep_hndl: gni_ep_handle_t) -> gni_return_t;
        fn GNI_EpPostData(
            ep_hndl: gni_ep_handle_t,
            in_data: *mut c_void,
            data_len: u16,
            out_buf: *mut c_void,
            buf_size: u16,
        ) -> gni_return_t;
        fn GNI_EpPostDataWId(
            ep_hndl: gni_ep_handle_t,
            in_data: *mut c_void,
            data_len: u16,
            out_buf: *mut c_void,
            buf_size: u16,
            datagram_id: u64,
        ) -> gni_return_t;
        fn GNI_EpPostDataTest(
            ep_hndl: gni_ep_handle_t,
            post_state: *mut gni_post_state_t,
            remote_addr: *mut u32,
            remote_id: *mut u32,
        ) -> gni_return_t;
        fn GNI_EpPostDataTestById(
            ep_hndl: gni_ep_handle_t,
            datagram_id: u64,
            post_state: *mut gni_post_state_t,
            remote_addr: *mut u32,
            remote_id: *mut u32,
        ) -> gni_return_t;
        fn GNI_EpPostDataWait(
            ep_hndl: gni_ep_handle_t,
            timeout: u32,
            post_state: *mut gni_post_state_t,
            remote_addr: *mut u32,
            remote_id: *mut u32,
        ) -> gni_return_t;
        fn GNI_EpPostDataWaitById(
            ep_hndl: gni_ep_handle_t,
            datagram_id: u64,
            timeout: u32,
            post_state: *mut gni_post_state_t,
            remote_addr: *mut u32,
            remote_id: *mut u32,
        ) -> gni_return_t;
        fn GNI_PostDataProbe(
            nic_hndl: gni_nic_handle_t,
            remote_addr: *mut u32,
            remote_id: *mut u32,
        ) -> gni_return_t;
        fn GNI_PostDataProbeById(nic_hndl: gni_nic_handle_t, datagram_id: *mut u64) -> gni_return_t;
        fn GNI_PostdataProbeWaitById(
            nic_hndl: gni_nic_handle_t,
            timeout: u32,
            datagram_id: *mut u64,
        ) -> gni_return_t;
        fn GNI_EpPostDataCancel(ep_hndl: gni_ep_handle_t) -> gni_return_t;
        fn GNI_EpPostDataCancelById(ep_hndl: gni_ep_handle_t, datagram_id: u64) -> gni_return_t;
        fn GNI_MemRegisterSegments(
            nic_hndl: gni_nic_handle_t,
            mem_segments: *mut gni_mem_segment_t,
            segments_cnt: u32,
            dst_cq_hndl: gni_cq_handle_t,
            flags: u32,
            vmdh_index: u32,
            mem_hndl: *mut gni_mem_handle_t,
        ) -> gni_return_t;
        fn GNI_SetMddResources(nic_hndl: gni_nic_handle_t, num_entries: u32) -> gni_return_t;
        fn GNI_MemHndlQueryAttr(
            mem_hndl: *mut gni_mem_handle_t,
            attr: gni_mem_handle_attr_t,
            yesno: *mut c_int,
        ) -> gni_return_t;
        fn GNI_RebuildMemHndl(
            src_mem_hndl: *mut gni_mem_handle_t,
            vmdh_index: u32,
            dst_mem_hndl: *mut gni_mem_handle_t,
        ) -> gni_return_t;
        fn GNI_MemQueryHndls(
            nic_hndl: gni_nic_handle_t,
            fd: c_int,
            mem_hndl: *mut gni_mem_handle_t,
            address: *mut u64,
            length: *mut u64,
        ) -> gni_return_t;
        fn GNI_CtPostFma(ep_hndl: gni_ep_handle_t, post_descr: *mut gni_post_descriptor_t) -> gni_return_t;
        fn GNI_CtPostCqWrite(
            ep_hndl: gni_ep_handle_t,
            post_descr: *mut gni_post_descriptor_t,
        ) -> gni_return_t;
        fn GNI_CqWaitEvent(
            cq_hndl: gni_cq_handle_t,
            timeout: u64,
            event_data: *mut gni_cq_entry_t,
        ) -> gni_return_t;
        fn GNI_CqVectorWaitEvent(
            cq_hndls: *mut gni_cq_handle_t,
            num_cqs: u32,
            timeout: u64,
            event_data: *mut gni_cq_entry_t,
            which: *mut u32,
        ) -> gni_return_t;
        fn GNI_CqVectorMonitor(
            cq_hndls: *mut gni_cq_handle_t,
            num_cqs: u32,
            timeout: u64,
            which: *mut u32,
        ) -> gni_return_t;
        fn GNI_CqInterruptMask(cq_hndl: gni_cq_handle_t) -> gni_return_t;
        fn GNI_CqInterruptUnmask(cq_hndl: gni_cq_handle_t) -> gni_return_t;
        fn GNI_SmsgBufferSizeNeeded(smsg_attr: *mut gni_smsg_attr_t, size: *mut c_uint) -> gni_return_t;
        fn GNI_SmsgInit(
            ep_hndl: gni_ep_handle_t,
            local_smsg_attr: *mut gni_smsg_attr_t,
            remote_smsg_attr: *mut gni_smsg_attr_t,
        ) -> gni_return_t;
        fn GNI_SmsgSetDeliveryMode(nic_handle: gni_nic_handle_t, dlvr_mode: u16) -> gni_return_t;
        fn GNI_SmsgSend(
            ep_hndl: gni_ep_handle_t,
            header: *mut c_void,
            header_length: u32,
            data: *mut c_void,
            data_length: u32,
            msg_id: u32,
        ) -> gni_return_t;
        fn GNI_SmsgSendWTag(
            ep_hndl: gni_ep_handle_t,
            header: *mut c_void,
            header_length: u32,
            data: *mut c_void,
            data_length: u32,
            msg_id: u32,
            tag: u8,
        ) -> gni_return_t;
        fn GNI_SmsgGetNext(ep_hndl: gni_ep_handle_t, header: *mut *mut c_void) -> gni_return_t;
        fn GNI_SmsgGetNextWTag(
            ep_hndl: gni_ep_handle_t,
            header: *mut *mut c_void,
            tag: *mut u8,
        ) -> gni_return_t;
        fn GNI_SmsgRelease(ep_hndl: gni_ep_handle_t) -> gni_return_t;
        fn GNI_MsgqInit(
            nic_hndl: gni_nic_handle_t,
            rcv_cb: Option<gni_msgq_rcv_cb_func>,
            cb_data: *mut c_void,
            snd_cq: gni_cq_handle_t,
            attrs: *mut gni_msgq_attr_t,
            msgq_hndl: *mut gni_msgq_handle_t,
        ) -> gni_return_t;
        fn GNI_MsgqRelease(msgq_hndl: gni_msgq_handle_t) -> gni_return_t;
        fn GNI_MsgqIdle(msgq_hndl: gni_msgq_handle_t) -> gni_return_t;
        fn GNI_MsgqGetConnAttrs(
            msgq_hndl: gni_msgq_handle_t,
            pe_addr: u32,
            attrs: *mut gni_msgq_ep_attr_t,
            attrs_size: *mut u32,
        ) -> gni_return_t;
        fn GNI_MsgqConnect(
            msgq_hndl: gni_msgq_handle_t,
            pe_addr: u32,
            attrs: *mut gni_msgq_ep_attr_t,
        ) -> gni_return_t;
        fn GNI_MsgqConnRelease(msgq_hndl: gni_msgq_handle_t, pe_addr: u32) -> gni_return_t;
        fn GNI_MsgqSend(
            msgq_hndl: gni_msgq_handle_t,
            ep_hndl: gni_ep_handle_t,
            hdr: *mut c_void,
            hdr_len: u32,
            msg: *mut c_void,
            msg_len: u32,
            msg_id: u32,
            msg_tag: u8,
        ) -> gni_return_t;
        fn GNI_MsgqProgress(msgq_hndl: gni_msgq_handle_t, timeout: u32) -> gni_return_t;
        fn GNI_MsgqSize(attrs: *mut gni_msgq_attr_t, size: *mut u32) -> gni_return_t;
        fn GNI_SmsgSetMaxRetrans(nic_handle: gni_nic_handle_t, max_retrans: u16) -> gni_return_t;
        fn GNI_SubscribeErrors(
            nic_handle: gni_nic_handle_t,
            device_id: u32,
            mask: gni_error_mask_t,
            eeq_size: u32,
            err_handle: *mut gni_err_handle_t,
        ) -> gni_return_t;
        fn GNI_ReleaseErrors(err_handle: gni_err_handle_t) -> gni_return_t;
        fn GNI_GetErrorMask(err_handle: gni_err_handle_t, mask: *mut gni_error_mask_t) -> gni_return_t;
        fn GNI_SetErrorMask(
            err_handle: gni_err_handle_t,
            mask_in: gni_error_mask_t,
            mask_out: *mut gni_error_mask_t,
        ) -> gni_return_t;
        fn GNI_GetErrorEvent(err_handle: gni_err_handle_t, event: *mut gni_error_event_t) -> gni_return_t;
        fn GNI_WaitErrorEvents(
            err_handle: gni_err_handle_t,
            events: *mut gni_error_event_t,
            events_size: u32,
            timeout: u32,
            num_events: *mut u32,
        ) -> gni_return_t;
        fn GNI_SetErrorPtag(err_handle: gni_err_handle_t, ptag: u8) -> gni_return_t;
        fn GNI_GetNumLocalDevices(num_devices: *mut c_int) -> gni_return_t;
        fn GNI_GetLocalDeviceIds(len: c_int, device_ids: *mut c_int) -> gni_return_t;
        fn GNI_GetVersion(version: *mut u32) -> gni_return_t;
        fn GNI_GetVersionInformation(version_info: *mut gni_version_info_t) -> gni_return_t;
        fn GNI_GetDevResInfo(
            device_id: u32,
            res_type: gni_dev_res_t,
            res_desc: *mut gni_dev_res_desc_t,
        ) -> gni_return_t;
        fn GNI_GetJobResInfo(
            device_id: u32,
            ptag: u8,
            res_type: gni_job_res_t,
            res_desc: *mut gni_job_res_desc_t,
        ) -> gni_return_t;
        fn GNI_SetJobResInfo(
            device_id: u32,
            ptag: u8,
            res_type: gni_job_res_t,
            res_value: u64,
        ) -> gni_return_t;
        fn GNI_GetNttGran(device_id: u32, ntt_gran: *mut u32) -> gni_return_t;
        fn GNI_GetPtag(device_id: u32, cookie: u32, ptag: *mut u8) -> gni_return_t;
        fn GNI_CeCreate(nic_hndl: gni_nic_handle_t, ce_hndl: *mut gni_ce_handle_t) -> gni_return_t;
        fn GNI_CeGetId(ce_hndl: gni_ce_handle_t, ce_id: *mut u32) -> gni_return_t;
        fn GNI_EpSetCeAttr(
            ep_hndl: gni_ep_handle_t,
            ce_id: u32,
            child_id: u32,
            child_type: gni_ce_child_t,
        ) -> gni_return_t;
        fn GNI_CeConfigure(
            ce_hndl: gni_ce_handle_t,
            child_eps: *mut gni_ep_handle_t,
            num_child_eps: u32,
            parent_ep: gni_ep_handle_t,
            cq_hndl: gni_cq_handle_t,
            modes: u32,
        ) -> gni_return_t;
        fn GNI_CeCheckResult(result: *mut gni_ce_result_t, length: u32) -> gni_return_t;
        fn GNI_CeDestroy(ce_hndl: gni_ce_handle_t) -> gni_return_t;
        fn GNI_SetBIConfig(device_id: u32, bw: u16, aot_bw: u16, modes: u16) -> gni_return_t;
        fn GNI_GetBIConfig(device_id: u32, desc: *mut gni_bi_desc_t) -> gni_return_t;
        fn GNI_BISyncWait(device_id: u32, timeout: u32) -> gni_return_t;
        fn GNI_GetNicStat(nic_hndl: gni_nic_handle_t, stat: gni_statistic_t, value: *mut u32) -> gni_return_t;
        fn GNI_ResetNicStat(nic_hndl: gni_nic_handle_t, stat: gni_statistic_t) -> gni_return_t;
        fn GNI_CompChanCreate(
            nic_hndl: gni_nic_handle_t,
            chan_hndl: *mut gni_comp_chan_handle_t,
        ) -> gni_return_t;
        fn GNI_CompChanDestroy(chan_hndl: gni_comp_chan_handle_t) -> gni_return_t;
        fn GNI_CompChanFd(chan_hndl: gni_comp_chan_handle_t, comp_chan_fd: *mut c_int) -> gni_return_t;
        fn GNI_CompChanGetEvent(
            chan_hndl: gni_comp_chan_handle_t,
            cq_hndl: *mut gni_cq_handle_t,
        ) -> gni_return_t;
        fn GNI_CqAttachCompChan(cq_hndl: gni_cq_handle_t, chan_hndl: gni_comp_chan_handle_t) -> gni_return_t;
        fn GNI_CqArmCompChan(cq_hndls: *mut gni_cq_handle_t, num_cqs: u32) -> gni_return_t;
        fn gni_cq_get_source(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_status(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_info(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_rem_overrun(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_tid(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_msg_id(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_block_id(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_unsuccessful_cnt(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_marker_id(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_failed_enqueue_cnt(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_ce_id(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_reductn_id(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_get_trans_type(entry: gni_cq_entry_t) -> u64;
        fn gni_cq_set_inst_id(entry: *mut gni_cq_entry_t, value: u64);
        fn gni_cq_set_rem_inst_id(entry: *mut gni_cq_entry_t, value: u64);
        fn gni_cq_set_tid(entry: *mut gni_cq_entry_t, value: u64);
        fn gni_cq_set_msg_id(entry: *mut gni_cq_entry_t, value: u64);
        fn gni_cq_set_type(entry: *mut gni_cq_entry_t, value: u64);
        fn gni_cq_clr_status(entry: *mut gni_cq_entry_t);
        fn gni_cq_status_dla_overflow(entry: gni_cq_entry_t) -> c_uint;
        fn gni_cq_bte_enq_status(entry: gni_cq_entry_t) -> c_uint;
        fn gni_ce_res_get_status(result: *mut gni_ce_result_t) -> u64;
        fn gni_ce_res_status_ok(result: *mut gni_ce_result_t) -> u64;
        fn gni_ce_res_get_fpe(result: *mut gni_ce_result_t) -> u64;
        fn gni_ce_res_get_red_id(result: *mut gni_ce_result_t) -> u64;
        fn gni_dev_res_valid(resource: gni_dev_res_t) -> u32;
        fn gni_dev_res_to_str(resource: gni_dev_res_t) -> *const c_char;
        fn gni_job_res_valid(resource: gni_job_res_t) -> u32;
        fn gni_job_res_to_str(resource: gni_job_res_t) -> *const c_char;
    }
}
