//! The functions of `gni_pub.h`: their declarations are here, each with the safe function that does it.
//!
//! # Invariants
//! - ugni_calls.1: the arguments are as the invariants of `raw` say, which is what [`Argument::take`] asks for: each caller in C promises
//!   that.
//! - ugni_calls.2: what the tables of names point to, and what the names of resources are, are constant texts.
//! - ugni_calls.3: a function that C calls has nothing to drop between two tries of what it does: codes and what C has passed are all that
//!   it holds, and it may be unwound.
mod channel;
mod collective;
mod datagram;
mod device;
mod domain;
mod endpoint;
mod entry;
mod errors;
mod memory;
mod msgq;
mod post;
mod queue;
mod resource;
mod smsg;

use std::ffi::{c_char, c_int, c_uint, c_void};

use gasworks_gni_sys::*;

use super::object::{Chan, Collective, Device, Domain, End, Errors, Messages, Queue};
use super::patience::PATIENCE;
use super::raw::{
    Argument, Bytes, Context, Control, Given, In, InOut, Known, Maybe, Out, Posted, Room, Text, Told, Wanted,
};
use super::settings;
use super::waiting::{self, AGAIN};
use crate::call::{self, MessageId};
use crate::witness::Calls;

/// Where a function stands among all.
const fn place_of(name: &str) -> usize {
    let mut at = 0;
    while !same(NAMES[at].as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Whether there is a function of this name.
pub(super) fn is_call(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Declares functions that return a code.
macro_rules! calls {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) = $act:path;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\nThe invariants of `raw`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: <$type as Argument>::Raw),*) -> gni_return_t {
            const AT: usize = place_of(stringify!($name));
            let mut again = false;
            loop {
                let code = waiting::steadily(|| {
                    let answer = (|| {
                        if !again {
                            call::begin(stringify!($name));
                        }
                        // SAFETY: ugni_calls.1: C has passed this argument, and promises what `raw` says, for each try.
                        $(let $argument = unsafe { <$type as Argument>::take($argument) }?;)*
                        if !again {
                            settings::due(stringify!($name))?;
                        }
                        $act($($argument),*)
                    })();
                    let code = answer.err().unwrap_or(GNI_RC_SUCCESS);
                    if code != AGAIN {
                        CALLS[AT].gave(code);
                        if again {
                            waiting::over();
                        }
                        if matches!(code, GNI_RC_NOT_DONE | GNI_RC_NO_MATCH) {
                            PATIENCE.in_vain();
                        }
                    }
                    code
                });
                if code != AGAIN {
                    return code;
                }
                again = true;
                // SAFETY: ugni_calls.3: only numbers and what C has passed are on this frame, which C has called, as waiting.2 asks for.
                unsafe { waiting::may_end() };
            }
        }
    )*

        const NAMES: &[&str] = &[$(stringify!($name)),*];

        /// What was asked of each.
        pub(super) static CALLS: [Calls; NAMES.len()] = [$(Calls::new(stringify!($name))),*];

        /// Compiles only if each has the type that `gni-sys` declares, which its own tests hold against the header.
        #[cfg(test)]
        fn calls_as_declared(table: &mut Ugni) -> &'static [&'static str] {
            $({
                // As C sees it, which knows of no unwinding.
                unsafe extern "C" fn seen($($argument: <$type as Argument>::Raw),*) -> gni_return_t {
                    // SAFETY: ugni_calls.1: the arguments are those that `seen` was given, whose caller promises the same.
                    unsafe { $name($($argument),*) }
                }
                table.$name = (seen as unsafe extern "C" fn($(<$type as Argument>::Raw),*) -> gni_return_t).into();
            })*
            &[$(stringify!($name)),*]
        }
    };
}

calls! {
    fn GNI_CdmCreate(instance: u32, ptag: u8, cookie: u32, modes: u32, domain: Out<gni_cdm_handle_t>) = domain::create;
    fn GNI_CdmDestroy(domain: Given<Domain>) = domain::destroy;
    fn GNI_CdmGetNicAddress(device: u32, address: Out<u32>, processor: Wanted<u32>) = device::address;
    fn GNI_CdmAttach(
        domain: Known<Domain>,
        device: u32,
        address: Wanted<u32>,
        nic: Out<gni_nic_handle_t>,
    ) = domain::attach;
    fn GNI_EpCreate(nic: Known<Device>, queue: Maybe<Queue>, end: Out<gni_ep_handle_t>) = endpoint::create;
    fn GNI_EpSetEventData(end: Known<End>, here: u32, there: u32) = endpoint::set_event_data;
    fn GNI_EpBind(end: Known<End>, address: u32, instance: u32) = endpoint::bind;
    fn GNI_EpUnbind(end: Known<End>) = endpoint::unbind;
    fn GNI_EpIdle(end: Known<End>) = endpoint::idle;
    fn GNI_EpDestroy(end: Given<End>) = endpoint::destroy;
    fn GNI_EpPostData(
        end: Known<End>,
        data: Bytes,
        length: u16,
        answer: Bytes,
        room: u16,
    ) = datagram::post;
    fn GNI_EpPostDataWId(
        end: Known<End>,
        data: Bytes,
        length: u16,
        answer: Bytes,
        room: u16,
        id: u64,
    ) = datagram::post_named;
    fn GNI_EpPostDataTest(
        end: Known<End>,
        state: Out<gni_post_state_t>,
        address: Wanted<u32>,
        instance: Wanted<u32>,
    ) = datagram::test;
    fn GNI_EpPostDataTestById(
        end: Known<End>,
        id: u64,
        state: Out<gni_post_state_t>,
        address: Wanted<u32>,
        instance: Wanted<u32>,
    ) = datagram::test_named;
    fn GNI_EpPostDataWait(
        end: Known<End>,
        timeout: u32,
        state: Out<gni_post_state_t>,
        address: Wanted<u32>,
        instance: Wanted<u32>,
    ) = datagram::wait;
    fn GNI_EpPostDataWaitById(
        end: Known<End>,
        id: u64,
        timeout: u32,
        state: Out<gni_post_state_t>,
        address: Wanted<u32>,
        instance: Wanted<u32>,
    ) = datagram::wait_named;
    fn GNI_EpPostDataCancel(end: Known<End>) = datagram::cancel;
    fn GNI_EpPostDataCancelById(end: Known<End>, id: u64) = datagram::cancel_named;
    fn GNI_PostDataProbe(nic: Known<Device>, address: Out<u32>, instance: Out<u32>) = datagram::probe;
    fn GNI_PostDataProbeById(nic: Known<Device>, id: Out<u64>) = datagram::probe_named;
    fn GNI_PostdataProbeWaitById(nic: Known<Device>, timeout: u32, id: Out<u64>) = datagram::wait_for_any;
    fn GNI_MemRegister(
        nic: Known<Device>,
        address: u64,
        length: u64,
        queue: Maybe<Queue>,
        flags: u32,
        virtual_descriptor: u32,
        handle: Out<gni_mem_handle_t>,
    ) = memory::register;
    fn GNI_MemRegisterSegments(
        nic: Known<Device>,
        segments: Room<gni_mem_segment_t>,
        count: u32,
        queue: Maybe<Queue>,
        flags: u32,
        virtual_descriptor: u32,
        handle: Out<gni_mem_handle_t>,
    ) = memory::register_segments;
    fn GNI_MemDeregister(nic: Known<Device>, handle: In<gni_mem_handle_t>) = memory::deregister;
    fn GNI_SetMddResources(nic: Known<Device>, count: u32) = memory::set_apart;
    fn GNI_RebuildMemHndl(
        handle: In<gni_mem_handle_t>,
        place: u32,
        rebuilt: Out<gni_mem_handle_t>,
    ) = memory::rebuild;
    fn GNI_MemQueryHndls(
        nic: Known<Device>,
        descriptor: c_int,
        handle: InOut<gni_mem_handle_t>,
        address: Wanted<u64>,
        length: Wanted<u64>,
    ) = memory::next;
    fn GNI_MemHndlQueryAttr(
        handle: In<gni_mem_handle_t>,
        attribute: u32,
        answer: Out<c_int>,
    ) = memory::has_attribute;
    fn GNI_CqCreate(
        nic: Known<Device>,
        entries: u32,
        delay: u32,
        modes: u32,
        handler: Option<gni_cq_handler_t>,
        context: Context,
        queue: Out<gni_cq_handle_t>,
    ) = queue::create;
    fn GNI_CqDestroy(queue: Given<Queue>) = queue::destroy;
    fn GNI_CqGetEvent(queue: Known<Queue>, event: Out<gni_cq_entry_t>) = queue::get;
    fn GNI_CqTestEvent(queue: Known<Queue>) = queue::test;
    fn GNI_CqWaitEvent(queue: Known<Queue>, timeout: u64, event: Out<gni_cq_entry_t>) = queue::wait;
    fn GNI_CqVectorWaitEvent(
        queues: Room<gni_cq_handle_t>,
        count: u32,
        timeout: u64,
        event: Out<gni_cq_entry_t>,
        which: Out<u32>,
    ) = queue::wait_for_any;
    fn GNI_CqVectorMonitor(
        queues: Room<gni_cq_handle_t>,
        count: u32,
        timeout: u64,
        which: Out<u32>,
    ) = queue::monitor;
    fn GNI_CqInterruptMask(queue: Known<Queue>) = queue::mask;
    fn GNI_CqInterruptUnmask(queue: Known<Queue>) = queue::unmask;
    fn GNI_CompChanCreate(nic: Known<Device>, channel: Out<gni_comp_chan_handle_t>) = channel::create;
    fn GNI_CompChanDestroy(channel: Given<Chan>) = channel::destroy;
    fn GNI_CompChanFd(channel: Known<Chan>, descriptor: Out<c_int>) = channel::descriptor;
    fn GNI_CompChanGetEvent(channel: Known<Chan>, queue: Out<gni_cq_handle_t>) = channel::next;
    fn GNI_CqAttachCompChan(queue: Known<Queue>, channel: Known<Chan>) = channel::attach;
    fn GNI_CqArmCompChan(queues: Room<gni_cq_handle_t>, count: u32) = channel::arm;
    fn GNI_CqErrorStr(event: u64, text: Text, length: u32) = entry::error_text;
    fn GNI_CqErrorRecoverable(event: u64, recoverable: Out<u32>) = entry::is_recoverable;
    fn GNI_PostFma(end: Known<End>, descriptor: Posted) = post::fma;
    fn GNI_PostRdma(end: Known<End>, descriptor: Posted) = post::rdma;
    fn GNI_PostCqWrite(end: Known<End>, descriptor: Posted) = post::cq_write;
    fn GNI_CtPostFma(end: Known<End>, descriptor: Posted) = post::fma_chain;
    fn GNI_CtPostCqWrite(end: Known<End>, descriptor: Posted) = post::cq_write_chain;
    fn GNI_SmsgBufferSizeNeeded(attributes: In<gni_smsg_attr_t>, size: Out<c_uint>) = smsg::size_needed;
    fn GNI_SmsgInit(
        end: Known<End>,
        here: In<gni_smsg_attr_t>,
        there: In<gni_smsg_attr_t>,
    ) = smsg::init;
    fn GNI_SmsgSetDeliveryMode(nic: Known<Device>, mode: u16) = smsg::set_delivery;
    fn GNI_SmsgSetMaxRetrans(nic: Known<Device>, most: u16) = smsg::set_retransmissions;
    fn GNI_SmsgSend(
        end: Known<End>,
        header: Bytes,
        header_length: u32,
        data: Bytes,
        data_length: u32,
        id: MessageId,
    ) = smsg::send;
    fn GNI_SmsgSendWTag(
        end: Known<End>,
        header: Bytes,
        header_length: u32,
        data: Bytes,
        data_length: u32,
        id: MessageId,
        tag: u8,
    ) = smsg::send_tagged;
    fn GNI_SmsgGetNext(end: Known<End>, message: Out<*mut c_void>) = smsg::next;
    fn GNI_SmsgGetNextWTag(end: Known<End>, message: Out<*mut c_void>, tag: InOut<u8>) = smsg::next_tagged;
    fn GNI_SmsgRelease(end: Known<End>) = smsg::release;
    fn GNI_MsgqInit(
        nic: Known<Device>,
        receive: Option<gni_msgq_rcv_cb_func>,
        context: Context,
        events: Maybe<Queue>,
        attributes: In<gni_msgq_attr_t>,
        messages: Out<gni_msgq_handle_t>,
    ) = msgq::init;
    fn GNI_MsgqRelease(messages: Given<Messages>) = msgq::release;
    fn GNI_MsgqIdle(messages: Known<Messages>) = msgq::idle;
    fn GNI_MsgqGetConnAttrs(
        messages: Known<Messages>,
        address: u32,
        attributes: Out<gni_msgq_ep_attr_t>,
        size: Out<u32>,
    ) = msgq::assign;
    fn GNI_MsgqConnect(messages: Known<Messages>, address: u32, attributes: Told) = msgq::connect;
    fn GNI_MsgqConnRelease(messages: Known<Messages>, address: u32) = msgq::disconnect;
    fn GNI_MsgqSend(
        messages: Known<Messages>,
        end: Known<End>,
        header: Bytes,
        header_length: u32,
        data: Bytes,
        data_length: u32,
        id: u32,
        tag: u8,
    ) = msgq::send;
    fn GNI_MsgqProgress(messages: Known<Messages>, timeout: u32) = msgq::progress;
    fn GNI_MsgqSize(attributes: In<gni_msgq_attr_t>, size: Out<u32>) = msgq::size;
    fn GNI_GetCompleted(
        queue: Known<Queue>,
        event: u64,
        descriptor: Out<*mut gni_post_descriptor_t>,
    ) = post::completed;
    fn GNI_GetNumLocalDevices(count: Out<c_int>) = device::count;
    fn GNI_GetLocalDeviceIds(length: c_int, devices: Room<c_int>) = device::list;
    fn GNI_GetVersion(version: Out<u32>) = device::version;
    fn GNI_GetVersionInformation(information: Out<gni_version_info_t>) = device::version_information;
    fn GNI_GetDeviceType(kind: Out<gni_nic_device_t>) = device::kind;
    fn GNI_SubscribeErrors(
        nic: Known<Device>,
        device: u32,
        mask: gni_error_mask_t,
        room: u32,
        errors: Out<gni_err_handle_t>,
    ) = errors::subscribe;
    fn GNI_ReleaseErrors(errors: Given<Errors>) = errors::release;
    fn GNI_GetErrorMask(errors: Known<Errors>, mask: Out<gni_error_mask_t>) = errors::mask;
    fn GNI_SetErrorMask(
        errors: Known<Errors>,
        mask: gni_error_mask_t,
        before: Wanted<gni_error_mask_t>,
    ) = errors::set_mask;
    fn GNI_GetErrorEvent(errors: Known<Errors>, event: Out<gni_error_event_t>) = errors::next;
    fn GNI_WaitErrorEvents(
        errors: Known<Errors>,
        events: Room<gni_error_event_t>,
        room: u32,
        timeout: u32,
        count: Out<u32>,
    ) = errors::wait;
    fn GNI_SetErrorPtag(errors: Known<Errors>, ptag: u8) = errors::set_tag;
    fn GNI_GetDevResInfo(
        device: u32,
        resource: gni_dev_res_t,
        amounts: Out<gni_dev_res_desc_t>,
    ) = resource::of_device;
    fn GNI_GetJobResInfo(
        device: u32,
        ptag: u8,
        resource: gni_job_res_t,
        amounts: Out<gni_job_res_desc_t>,
    ) = resource::of_job;
    fn GNI_SetJobResInfo(device: u32, ptag: u8, resource: gni_job_res_t, value: u64) = resource::set_of_job;
    fn GNI_SuspendJob(device: u32, job: u64, ptag: u8, cookie: u32, timeout: u32) = resource::suspend;
    fn GNI_ResumeJob(device: u32, job: u64, ptag: u8, cookie: u32) = resource::resume;
    fn GNI_ConfigureNTT(
        device: c_int,
        table: In<gni_ntt_descriptor_t>,
        base: Wanted<u32>,
    ) = resource::configure_translation;
    fn GNI_ConfigureJob(
        device: u32,
        job: u64,
        ptag: u8,
        cookie: u32,
        limits: In<gni_job_limits_t>,
    ) = resource::configure_job;
    fn GNI_ConfigureNTTandJob(
        device: c_int,
        job: u64,
        ptag: u8,
        cookie: u32,
        limits: In<gni_job_limits_t>,
        table: In<gni_ntt_descriptor_t>,
        base: Wanted<u32>,
    ) = resource::configure_both;
    fn GNI_GetNttGran(device: u32, granularity: Out<u32>) = resource::granularity;
    fn GNI_SetBIConfig(device: u32, bandwidth: u16, other: u16, modes: u16) = resource::set_injection;
    fn GNI_GetBIConfig(device: u32, configuration: Out<gni_bi_desc_t>) = resource::injection;
    fn GNI_BISyncWait(device: u32, timeout: u32) = resource::await_injection;
    fn GNI_GetNicStat(nic: Known<Device>, which: gni_statistic_t, value: Out<u32>) = resource::statistic;
    fn GNI_ResetNicStat(nic: Known<Device>, which: gni_statistic_t) = resource::forget_statistic;
    fn GNI_GetPtag(device: u32, cookie: u32, ptag: Out<u8>) = device::ptag;
    fn GNI_CeCreate(nic: Known<Device>, collective: Out<gni_ce_handle_t>) = collective::create;
    fn GNI_CeGetId(collective: Known<Collective>, number: Out<u32>) = collective::number;
    fn GNI_EpSetCeAttr(
        end: Known<End>,
        engine: u32,
        child: u32,
        kind: gni_ce_child_t,
    ) = collective::set_attributes;
    fn GNI_CeConfigure(
        collective: Known<Collective>,
        children: Room<gni_ep_handle_t>,
        count: u32,
        parent: Maybe<End>,
        queue: Maybe<Queue>,
        modes: u32,
    ) = collective::configure;
    fn GNI_CeCheckResult(control: Control, length: u32) = collective::check;
    fn GNI_CeDestroy(collective: Given<Collective>) = collective::destroy;
}

/// Declares functions that look into an event, or say something of a number.
macro_rules! questions {
    ($(fn $name:ident($type:ty) -> $answer:ty = $ask:path;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(of: $type) -> $answer {
            $ask(of)
        }
    )*

        /// As `calls_as_declared`.
        #[cfg(test)]
        fn questions_as_declared(table: &mut Ugni) -> &'static [&'static str] {
            $(table.$name = ($name as unsafe extern "C" fn($type) -> $answer).into();)*
            &[$(stringify!($name)),*]
        }
    };
}

questions! {
    fn gni_cq_get_data(gni_cq_entry_t) -> u64 = entry::data;
    fn gni_cq_get_source(gni_cq_entry_t) -> u64 = entry::source;
    fn gni_cq_get_status(gni_cq_entry_t) -> u64 = entry::status;
    fn gni_cq_overrun(gni_cq_entry_t) -> u64 = entry::overrun;
    fn gni_cq_rem_overrun(gni_cq_entry_t) -> u64 = entry::remote_overrun;
    fn gni_cq_get_inst_id(gni_cq_entry_t) -> u64 = entry::instance;
    fn gni_cq_get_rem_inst_id(gni_cq_entry_t) -> u64 = entry::remote_instance;
    fn gni_cq_get_tid(gni_cq_entry_t) -> u64 = entry::transaction;
    fn gni_cq_get_type(gni_cq_entry_t) -> u64 = entry::kind;
    fn gni_cq_get_msg_id(gni_cq_entry_t) -> u64 = entry::message;
    fn gni_cq_get_ce_id(gni_cq_entry_t) -> u64 = entry::engine;
    fn gni_cq_get_reductn_id(gni_cq_entry_t) -> u64 = entry::reduction;
    fn gni_cq_status_dla_overflow(gni_cq_entry_t) -> u32 = entry::is_dla_overflow;
    fn gni_cq_bte_enq_status(gni_cq_entry_t) -> u32 = entry::is_enqueue;
    fn gni_cq_get_info(gni_cq_entry_t) -> u64 = entry::none;
    fn gni_cq_get_block_id(gni_cq_entry_t) -> u64 = entry::none;
    fn gni_cq_get_unsuccessful_cnt(gni_cq_entry_t) -> u64 = entry::none;
    fn gni_cq_get_marker_id(gni_cq_entry_t) -> u64 = entry::none;
    fn gni_cq_get_failed_enqueue_cnt(gni_cq_entry_t) -> u64 = entry::none;
    fn gni_cq_get_trans_type(gni_cq_entry_t) -> u64 = entry::none;
    fn gni_dev_res_valid(gni_dev_res_t) -> u32 = resource::is_of_device;
    fn gni_dev_res_to_str(gni_dev_res_t) -> *const c_char = resource::device_text;
    fn gni_job_res_valid(gni_job_res_t) -> u32 = resource::is_of_job;
    fn gni_job_res_to_str(gni_job_res_t) -> *const c_char = resource::job_text;
}

/// Declares functions that change a part of an event; null is none.
macro_rules! changes {
    ($(fn $name:ident($($value:ident: $type:ty)?) = $change:path;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\nThe invariants of `raw`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(event: *mut gni_cq_entry_t $(, $value: $type)?) {
            // SAFETY: ugni_calls.1: `event` is null, which is refused, or valid for a read and a write of one event.
            if let Ok(InOut(word, changed)) = unsafe { InOut::take(event) } {
                changed.set($change(word $(, $value)?));
            }
        }
    )*

        /// As `calls_as_declared`.
        #[cfg(test)]
        fn changes_as_declared(table: &mut Ugni) -> &'static [&'static str] {
            $(table.$name = ($name as unsafe extern "C" fn(*mut gni_cq_entry_t $(, $type)?)).into();)*
            &[$(stringify!($name)),*]
        }
    };
}

changes! {
    fn gni_cq_set_inst_id(value: u64) = entry::set_instance;
    fn gni_cq_set_rem_inst_id(value: u64) = entry::set_remote_instance;
    fn gni_cq_set_tid(value: u64) = entry::set_transaction;
    fn gni_cq_set_msg_id(value: u64) = entry::set_message;
    fn gni_cq_set_type(value: u64) = entry::set_kind;
    fn gni_cq_clr_status() = entry::clear_status;
}

/// Declares functions that look into what a collective engine has delivered. Of null they say nothing.
macro_rules! results {
    ($(fn $name:ident = $ask:path;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.\n\n# Safety\nThe invariants of `raw`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(result: *mut gni_ce_result_t) -> u64 {
            // SAFETY: ugni_calls.1: `result` is null, which is refused, or valid for atomic reads.
            unsafe { Control::take(result) }.map_or(0, |Control(control)| $ask(control))
        }
    )*

        /// As `calls_as_declared`.
        #[cfg(test)]
        fn results_as_declared(table: &mut Ugni) -> &'static [&'static str] {
            $(table.$name = ($name as unsafe extern "C" fn(*mut gni_ce_result_t) -> u64).into();)*
            &[$(stringify!($name)),*]
        }
    };
}

results! {
    fn gni_ce_res_get_status = collective::status;
    fn gni_ce_res_status_ok = collective::is_ok;
    fn gni_ce_res_get_fpe = collective::exceptions;
    fn gni_ce_res_get_red_id = collective::name;
}

/// Names that C looks up by number.
#[repr(transparent)]
pub struct Names<const COUNT: usize>([*const c_char; COUNT]);

// SAFETY: ugni_calls.2: its pointers lead to constant texts, which any thread may read.
unsafe impl<const COUNT: usize> Sync for Names<COUNT> {}

/// `gni_err_str`: the name of each code.
#[unsafe(no_mangle)]
pub static gni_err_str: Names<{ GNI_RC_ERROR_NOMEM as usize + 1 }> = Names([
    c"GNI_RC_SUCCESS".as_ptr(),
    c"GNI_RC_NOT_DONE".as_ptr(),
    c"GNI_RC_INVALID_PARAM".as_ptr(),
    c"GNI_RC_ERROR_RESOURCE".as_ptr(),
    c"GNI_RC_TIMEOUT".as_ptr(),
    c"GNI_RC_PERMISSION_ERROR".as_ptr(),
    c"GNI_RC_DESCRIPTOR_ERROR".as_ptr(),
    c"GNI_RC_ALIGNMENT_ERROR".as_ptr(),
    c"GNI_RC_INVALID_STATE".as_ptr(),
    c"GNI_RC_NO_MATCH".as_ptr(),
    c"GNI_RC_SIZE_ERROR".as_ptr(),
    c"GNI_RC_TRANSACTION_ERROR".as_ptr(),
    c"GNI_RC_ILLEGAL_OP".as_ptr(),
    c"GNI_RC_ERROR_NOMEM".as_ptr(),
]);

/// `gni_statistic_str`: the name of each statistic.
#[unsafe(no_mangle)]
pub static gni_statistic_str: Names<{ GNI_NUM_STATS as usize }> = Names([
    c"GNI_STAT_SMSG_BUFF_CREDITS_STALL".as_ptr(),
    c"GNI_STAT_SMSG_DLA_STALL".as_ptr(),
    c"GNI_STAT_SMSG_MBOX_CREDITS_STALL".as_ptr(),
    c"GNI_STAT_SMSG_REQ_STALL".as_ptr(),
    c"GNI_STAT_SMSG_RETRANS_COUNT".as_ptr(),
    c"GNI_STAT_SMSG_RETRANS_DLA_COUNT".as_ptr(),
    c"GNI_STAT_SMSG_RETRANS_STALL".as_ptr(),
    c"GNI_STAT_DLA_ALLOC_STATUS_STALL".as_ptr(),
    c"GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT".as_ptr(),
    c"GNI_STAT_DLA_BLOCK_ORPHANED".as_ptr(),
    c"GNI_STAT_DLA_BLOCK_RETRANS_COUNT".as_ptr(),
    c"GNI_STAT_DLA_FREE_BLOCKS_STALL".as_ptr(),
    c"GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL".as_ptr(),
    c"GNI_STAT_DLA_HIGH_RETRANS_COUNT".as_ptr(),
    c"GNI_STAT_DLA_OVERFLOW_RESEND".as_ptr(),
    c"GNI_STAT_DLA_RETRANS_COUNT".as_ptr(),
    c"GNI_STAT_DLA_TOTAL_RETRANS_COUNT".as_ptr(),
    c"GNI_STAT_FLBTE_TXD_CORRUPT".as_ptr(),
    c"GNI_STAT_FLBTE_TXD_NONE".as_ptr(),
    c"GNI_STAT_FMA_LAUNCH_COUNT".as_ptr(),
    c"GNI_STAT_MR_MULTI_PAGESIZE".as_ptr(),
]);

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    /// How many constants have a name that begins so; each is found at its place.
    fn named<const COUNT: usize>(names: &Names<COUNT>, start: &str) -> usize {
        let of = CONSTANTS.iter().filter(|(name, _)| name.starts_with(start));
        of.map(|(name, value)| {
            // SAFETY: ugni_calls.2: the name of this number is a constant text, with a zero byte at its end.
            let text = unsafe { CStr::from_ptr(names.0[*value as usize]) };
            assert_eq!(text.to_str(), Ok(*name));
        })
        .count()
    }

    #[test]
    fn codes_and_statistics_have_their_names() {
        assert_eq!(named(&gni_err_str, "GNI_RC_"), gni_err_str.0.len());
        assert_eq!(named(&gni_statistic_str, "GNI_STAT_"), gni_statistic_str.0.len());
    }

    /// Each resource is called what its constant is called, and nothing else is a resource.
    #[test]
    fn resources_have_their_names() {
        let text = |text| {
            // SAFETY: ugni_calls.2: `text` came from `gni_dev_res_to_str` or `gni_job_res_to_str`, which give constant texts.
            unsafe { CStr::from_ptr(text) }.to_str().expect("ascii")
        };
        let (mut of_device, mut of_job) = (vec!["UNKNOWN"; 20], vec!["UNKNOWN"; 20]);
        for (name, value) in
            CONSTANTS.iter().filter(|(name, _)| !name.ends_with("_FIRST") && !name.ends_with("_LAST"))
        {
            for (all, start) in [(&mut of_device, "GNI_DEV_RES_"), (&mut of_job, "GNI_JOB_RES_")] {
                if let Some(name) = name.strip_prefix(start) {
                    all[*value as usize] = name;
                }
            }
        }
        for number in 0..20 {
            let (device, job) = (of_device[number as usize], of_job[number as usize]);
            assert_eq!(text(gni_dev_res_to_str(number)), device);
            assert_eq!(text(gni_job_res_to_str(number)), job);
            assert_eq!(gni_dev_res_valid(number) == 1, device != "UNKNOWN", "{number}");
            assert_eq!(gni_job_res_valid(number) == 1, job != "UNKNOWN", "{number}");
        }
    }

    /// That they compile is what is asked of them.
    const _: [fn(&mut Ugni) -> &'static [&'static str]; 4] =
        [calls_as_declared, questions_as_declared, changes_as_declared, results_as_declared];
}
