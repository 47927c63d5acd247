//! The functions of a library, by the names that C knows.
//!
//! # Invariants
//! As in the crate.

/// The functions of the library of one mode, and the name by which its objects link.
#[macro_export]
macro_rules! face {
    ($mode:ty, $linked:ident) => {
        use std::ffi::{c_char, c_int, c_uint, c_void};
        use $crate::layout::*;
        use $crate::{am, atomic, barrier, check, codes, collective, endpoint, event, handlers, hsl, images, job, kind, legacy, negotiated, query, rma, scattered, spread, talk, teams};

        /// An object that refers to it was compiled for this library.
        #[unsafe(no_mangle)]
        pub static $linked: u8 = 1;

        #[expect(non_upper_case_globals, reason = "C's own")]
        #[unsafe(no_mangle)]
        /// The objects of the job, which the headers read.
        pub static mut gasworks_objects: Objects =
            Objects { client: std::ptr::null_mut(), ep: std::ptr::null_mut(), tm: std::ptr::null_mut() };

        #[expect(non_upper_case_globals, reason = "C's own")]
        #[unsafe(no_mangle)]
        /// What is called when the segment is there.
        pub static mut gasnet_client_attach_hook: Option<unsafe extern "C" fn(*mut c_void, usize)> = None;

        #[expect(non_upper_case_globals, reason = "C's own")]
        #[unsafe(no_mangle)]
        /// The largest segment, as older clients say it.
        pub static mut gasnet_max_segsize: u64 = 0;

        #[expect(non_upper_case_globals, reason = "C's own")]
        #[unsafe(no_mangle)]
        /// The same as `GASNET_MAX_SEGSIZE` has it.
        pub static mut gasnet_max_segsize_str: *const c_char = std::ptr::null();

        $crate::exports! {
            $mode;
            fn gasworks_client_init(client: *mut *mut Client, ep: *mut *mut Endpoint, tm: *mut *mut Team, name: *const c_char, _argc: *mut c_int, argv: *const *const *const c_char, flags: Flags, compiled: *const c_char) -> c_int {
                job::init::<$mode>(&raw mut gasworks_objects, job::Results { client, ep, tm }, (name, argv), flags, compiled, (gasnet_max_segsize, gasnet_max_segsize_str))
            }
            fn gex_Segment_Attach(segment: *mut *mut Segment, tm: *const Team, size: usize) -> c_int {
                job::attach::<$mode>(segment, tm, size, gasnet_client_attach_hook)
            }
            fn gasnet_exit(code: c_int) -> () { job::exit::<$mode>(code) }
            fn gex_EP_RegisterHandlers(ep: *mut Endpoint, table: *mut Entry, count: usize) -> c_int {
                handlers::register::<$mode>(ep, table, count)
            }
            fn gasworks_request_short(tm: *const Team, rank: u32, handler: u8, flags: Flags, args: *const i32, count: c_uint) -> c_int {
                am::request_short::<$mode>(tm, rank, handler, flags, args, count)
            }
            fn gasworks_request_medium(tm: *const Team, rank: u32, handler: u8, source: *const c_void, len: usize, local: Local, flags: Flags, args: *const i32, count: c_uint) -> c_int {
                am::request_medium::<$mode>(tm, rank, handler, source, len, local, flags, args, count)
            }
            fn gasworks_request_long(tm: *const Team, rank: u32, handler: u8, source: *const c_void, len: usize, dest: *const u8, local: Local, flags: Flags, args: *const i32, count: c_uint) -> c_int {
                am::request_long::<$mode>(tm, rank, handler, source, len, dest, local, flags, args, count)
            }
            fn gasworks_reply_short(token: *mut c_void, handler: u8, flags: Flags, args: *const i32, count: c_uint) -> c_int {
                am::reply_short::<$mode>(token, handler, flags, args, count)
            }
            fn gasworks_reply_medium(token: *mut c_void, handler: u8, source: *const c_void, len: usize, local: Local, flags: Flags, args: *const i32, count: c_uint) -> c_int {
                am::reply_medium::<$mode>(token, handler, source, len, local, flags, args, count)
            }
            fn gasworks_reply_long(token: *mut c_void, handler: u8, source: *const c_void, len: usize, dest: *const u8, local: Local, flags: Flags, args: *const i32, count: c_uint) -> c_int {
                am::reply_long::<$mode>(token, handler, source, len, dest, local, flags, args, count)
            }
            fn gex_Token_Info(token: *mut c_void, info: *mut TokenInfo, mask: c_uint) -> c_uint {
                am::token_info::<$mode>(token, info, mask)
            }
            fn gasworks_commit(source: *mut c_void, kind: c_uint, handler: u8, len: usize, dest: *const u8, flags: Flags, args: *const i32, count: c_uint) -> c_int {
                negotiated::commit::<$mode>(source, kind, handler, len, dest, flags, args, count)
            }
            fn gex_AM_PrepareRequestMedium(tm: *const Team, rank: u32, buffer: *const c_void, least: usize, most: usize, local: Local, flags: Flags, count: c_uint) -> *mut c_void {
                negotiated::prepare_request::<$mode>("gex_AM_PrepareRequestMedium", tm, rank, buffer, (least, most), None, local, (flags, count))
            }
            fn gex_AM_PrepareRequestLong(tm: *const Team, rank: u32, buffer: *const c_void, least: usize, most: usize, dest: *const u8, local: Local, flags: Flags, count: c_uint) -> *mut c_void {
                negotiated::prepare_request::<$mode>("gex_AM_PrepareRequestLong", tm, rank, buffer, (least, most), Some(dest), local, (flags, count))
            }
            fn gex_AM_PrepareReplyMedium(token: *mut c_void, buffer: *const c_void, least: usize, most: usize, local: Local, _flags: Flags, count: c_uint) -> *mut c_void {
                negotiated::prepare_reply::<$mode>("gex_AM_PrepareReplyMedium", token, buffer, (least, most), None, local, count)
            }
            fn gex_AM_PrepareReplyLong(token: *mut c_void, buffer: *const c_void, least: usize, most: usize, dest: *const u8, local: Local, _flags: Flags, count: c_uint) -> *mut c_void {
                negotiated::prepare_reply::<$mode>("gex_AM_PrepareReplyLong", token, buffer, (least, most), Some(dest), local, count)
            }
            fn gex_AM_SrcDescAddr(source: *mut c_void) -> *mut c_void { negotiated::address::<$mode>(source) }
            fn gex_AM_SrcDescSize(source: *mut c_void) -> usize { negotiated::size::<$mode>(source) }
            fn gex_AM_CancelRequestMedium(source: *mut c_void, _flags: Flags) -> c_int { negotiated::cancel::<$mode>("gex_AM_CancelRequestMedium", source) }
            fn gex_AM_CancelRequestLong(source: *mut c_void, _flags: Flags) -> c_int { negotiated::cancel::<$mode>("gex_AM_CancelRequestLong", source) }
            fn gex_AM_CancelReplyMedium(source: *mut c_void, _flags: Flags) -> c_int { negotiated::cancel::<$mode>("gex_AM_CancelReplyMedium", source) }
            fn gex_AM_CancelReplyLong(source: *mut c_void, _flags: Flags) -> c_int { negotiated::cancel::<$mode>("gex_AM_CancelReplyLong", source) }
            fn gex_AM_MaxRequestMedium(tm: *const Team, rank: u32, local: *const Event, _flags: Flags, count: c_uint) -> usize { query::max_for::<$mode>("gex_AM_MaxRequestMedium", false, (tm, rank), local, count) }
            fn gex_AM_MaxReplyMedium(tm: *const Team, rank: u32, local: *const Event, _flags: Flags, count: c_uint) -> usize { query::max_for::<$mode>("gex_AM_MaxReplyMedium", false, (tm, rank), local, count) }
            fn gex_AM_MaxRequestLong(tm: *const Team, rank: u32, local: *const Event, _flags: Flags, count: c_uint) -> usize { query::max_for::<$mode>("gex_AM_MaxRequestLong", true, (tm, rank), local, count) }
            fn gex_AM_MaxReplyLong(tm: *const Team, rank: u32, local: *const Event, _flags: Flags, count: c_uint) -> usize { query::max_for::<$mode>("gex_AM_MaxReplyLong", true, (tm, rank), local, count) }
            fn gasworks_least_upper_bound(is_long: c_int, compiled: *const c_char) -> usize { query::least_upper_bound(is_long != 0, compiled) }
            fn gex_Token_MaxReplyMedium(token: *mut c_void, _local: *const Event, _flags: Flags, _count: c_uint) -> usize { am::max_reply::<$mode>("gex_Token_MaxReplyMedium", false, token) }
            fn gex_Token_MaxReplyLong(token: *mut c_void, _local: *const Event, _flags: Flags, _count: c_uint) -> usize { am::max_reply::<$mode>("gex_Token_MaxReplyLong", true, token) }
            fn gasworks_put(tm: *const Team, rank: u32, dest: *mut c_void, source: *const c_void, len: usize, flags: Flags) -> c_int { rma::put::<$mode>(tm, rank, dest, source, len, flags) }
            fn gasworks_put_nb(tm: *const Team, rank: u32, dest: *mut c_void, source: *const c_void, len: usize, local: Local, flags: Flags) -> Event { rma::put_nb::<$mode>(tm, rank, dest, source, len, local, flags) }
            fn gasworks_put_nbi(tm: *const Team, rank: u32, dest: *mut c_void, source: *const c_void, len: usize, local: Local, flags: Flags) -> c_int { rma::put_nbi::<$mode>(tm, rank, dest, source, len, local, flags) }
            fn gasworks_get(tm: *const Team, dest: *mut c_void, rank: u32, source: *const c_void, len: usize, flags: Flags) -> c_int { rma::get::<$mode>(tm, dest, rank, source, len, flags) }
            fn gasworks_get_nb(tm: *const Team, dest: *mut c_void, rank: u32, source: *const c_void, len: usize, flags: Flags) -> Event { rma::get_nb::<$mode>(tm, dest, rank, source, len, flags) }
            fn gasworks_get_nbi(tm: *const Team, dest: *mut c_void, rank: u32, source: *const c_void, len: usize, flags: Flags) -> c_int { rma::get_nbi::<$mode>(tm, dest, rank, source, len, flags) }
            fn gex_AD_Create(ad: *mut *mut AtomicDomain, tm: *const Team, of: c_uint, operations: c_uint, flags: Flags) -> () { atomic::create::<$mode>(ad, tm, of, operations, flags) }
            fn gex_AD_Destroy(ad: *mut AtomicDomain) -> () { atomic::destroy::<$mode>(ad) }
            fn gasworks_ad_nb(domain: *const AtomicDomain, of: c_uint, result: *mut c_void, rank: u32, target: *const c_void, op: c_uint, first: u64, second: u64, flags: Flags) -> Event {
                atomic::nb::<$mode>(atomic::Asked { domain, of, result, rank, target, op, operands: [first, second], flags })
            }
            fn gasworks_ad_nbi(domain: *const AtomicDomain, of: c_uint, result: *mut c_void, rank: u32, target: *const c_void, op: c_uint, first: u64, second: u64, flags: Flags) -> c_int {
                atomic::nbi::<$mode>(atomic::Asked { domain, of, result, rank, target, op, operands: [first, second], flags })
            }
            fn gex_VIS_VectorPutNB(tm: *const Team, rank: u32, dst_count: usize, dst: *const Memvec, src_count: usize, src: *const Memvec, flags: Flags) -> Event { scattered::vector::<$mode>(scattered::Call::put("gex_VIS_VectorPutNB", scattered::Form::Nb), (tm, rank), (src_count, src), (dst_count, dst), flags) }
            fn gex_VIS_VectorPutNBI(tm: *const Team, rank: u32, dst_count: usize, dst: *const Memvec, src_count: usize, src: *const Memvec, flags: Flags) -> c_int { scattered::vector::<$mode>(scattered::Call::put("gex_VIS_VectorPutNBI", scattered::Form::Nbi), (tm, rank), (src_count, src), (dst_count, dst), flags) as c_int }
            fn gex_VIS_VectorPutBlocking(tm: *const Team, rank: u32, dst_count: usize, dst: *const Memvec, src_count: usize, src: *const Memvec, flags: Flags) -> c_int { scattered::vector::<$mode>(scattered::Call::put("gex_VIS_VectorPutBlocking", scattered::Form::Blocking), (tm, rank), (src_count, src), (dst_count, dst), flags) as c_int }
            fn gex_VIS_VectorGetNB(tm: *const Team, dst_count: usize, dst: *const Memvec, rank: u32, src_count: usize, src: *const Memvec, flags: Flags) -> Event { scattered::vector::<$mode>(scattered::Call::get("gex_VIS_VectorGetNB", scattered::Form::Nb), (tm, rank), (dst_count, dst), (src_count, src), flags) }
            fn gex_VIS_VectorGetNBI(tm: *const Team, dst_count: usize, dst: *const Memvec, rank: u32, src_count: usize, src: *const Memvec, flags: Flags) -> c_int { scattered::vector::<$mode>(scattered::Call::get("gex_VIS_VectorGetNBI", scattered::Form::Nbi), (tm, rank), (dst_count, dst), (src_count, src), flags) as c_int }
            fn gex_VIS_VectorGetBlocking(tm: *const Team, dst_count: usize, dst: *const Memvec, rank: u32, src_count: usize, src: *const Memvec, flags: Flags) -> c_int { scattered::vector::<$mode>(scattered::Call::get("gex_VIS_VectorGetBlocking", scattered::Form::Blocking), (tm, rank), (dst_count, dst), (src_count, src), flags) as c_int }
            fn gex_VIS_IndexedPutNB(tm: *const Team, rank: u32, dst_count: usize, dst: *const *mut c_void, dst_len: usize, src_count: usize, src: *const *mut c_void, src_len: usize, flags: Flags) -> Event { scattered::indexed::<$mode>(scattered::Call::put("gex_VIS_IndexedPutNB", scattered::Form::Nb), (tm, rank), (src_count, src, src_len), (dst_count, dst, dst_len), flags) }
            fn gex_VIS_IndexedPutNBI(tm: *const Team, rank: u32, dst_count: usize, dst: *const *mut c_void, dst_len: usize, src_count: usize, src: *const *mut c_void, src_len: usize, flags: Flags) -> c_int { scattered::indexed::<$mode>(scattered::Call::put("gex_VIS_IndexedPutNBI", scattered::Form::Nbi), (tm, rank), (src_count, src, src_len), (dst_count, dst, dst_len), flags) as c_int }
            fn gex_VIS_IndexedPutBlocking(tm: *const Team, rank: u32, dst_count: usize, dst: *const *mut c_void, dst_len: usize, src_count: usize, src: *const *mut c_void, src_len: usize, flags: Flags) -> c_int { scattered::indexed::<$mode>(scattered::Call::put("gex_VIS_IndexedPutBlocking", scattered::Form::Blocking), (tm, rank), (src_count, src, src_len), (dst_count, dst, dst_len), flags) as c_int }
            fn gex_VIS_IndexedGetNB(tm: *const Team, dst_count: usize, dst: *const *mut c_void, dst_len: usize, rank: u32, src_count: usize, src: *const *mut c_void, src_len: usize, flags: Flags) -> Event { scattered::indexed::<$mode>(scattered::Call::get("gex_VIS_IndexedGetNB", scattered::Form::Nb), (tm, rank), (dst_count, dst, dst_len), (src_count, src, src_len), flags) }
            fn gex_VIS_IndexedGetNBI(tm: *const Team, dst_count: usize, dst: *const *mut c_void, dst_len: usize, rank: u32, src_count: usize, src: *const *mut c_void, src_len: usize, flags: Flags) -> c_int { scattered::indexed::<$mode>(scattered::Call::get("gex_VIS_IndexedGetNBI", scattered::Form::Nbi), (tm, rank), (dst_count, dst, dst_len), (src_count, src, src_len), flags) as c_int }
            fn gex_VIS_IndexedGetBlocking(tm: *const Team, dst_count: usize, dst: *const *mut c_void, dst_len: usize, rank: u32, src_count: usize, src: *const *mut c_void, src_len: usize, flags: Flags) -> c_int { scattered::indexed::<$mode>(scattered::Call::get("gex_VIS_IndexedGetBlocking", scattered::Form::Blocking), (tm, rank), (dst_count, dst, dst_len), (src_count, src, src_len), flags) as c_int }
            fn gex_VIS_StridedPutNB(tm: *const Team, rank: u32, dst: *mut c_void, dst_strides: *const isize, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: Flags) -> Event { scattered::strided::<$mode>(scattered::Call::put("gex_VIS_StridedPutNB", scattered::Form::Nb), (tm, rank), (src, src_strides), (dst, dst_strides), (element, counts, levels), flags) }
            fn gex_VIS_StridedPutNBI(tm: *const Team, rank: u32, dst: *mut c_void, dst_strides: *const isize, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: Flags) -> c_int { scattered::strided::<$mode>(scattered::Call::put("gex_VIS_StridedPutNBI", scattered::Form::Nbi), (tm, rank), (src, src_strides), (dst, dst_strides), (element, counts, levels), flags) as c_int }
            fn gex_VIS_StridedPutBlocking(tm: *const Team, rank: u32, dst: *mut c_void, dst_strides: *const isize, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: Flags) -> c_int { scattered::strided::<$mode>(scattered::Call::put("gex_VIS_StridedPutBlocking", scattered::Form::Blocking), (tm, rank), (src, src_strides), (dst, dst_strides), (element, counts, levels), flags) as c_int }
            fn gex_VIS_StridedGetNB(tm: *const Team, dst: *mut c_void, dst_strides: *const isize, rank: u32, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: Flags) -> Event { scattered::strided::<$mode>(scattered::Call::get("gex_VIS_StridedGetNB", scattered::Form::Nb), (tm, rank), (dst, dst_strides), (src, src_strides), (element, counts, levels), flags) }
            fn gex_VIS_StridedGetNBI(tm: *const Team, dst: *mut c_void, dst_strides: *const isize, rank: u32, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: Flags) -> c_int { scattered::strided::<$mode>(scattered::Call::get("gex_VIS_StridedGetNBI", scattered::Form::Nbi), (tm, rank), (dst, dst_strides), (src, src_strides), (element, counts, levels), flags) as c_int }
            fn gex_VIS_StridedGetBlocking(tm: *const Team, dst: *mut c_void, dst_strides: *const isize, rank: u32, src: *mut c_void, src_strides: *const isize, element: usize, counts: *const usize, levels: usize, flags: Flags) -> c_int { scattered::strided::<$mode>(scattered::Call::get("gex_VIS_StridedGetBlocking", scattered::Form::Blocking), (tm, rank), (dst, dst_strides), (src, src_strides), (element, counts, levels), flags) as c_int }
            fn gex_VIS_SetPeerCompletionHandler(handler: u8, source: *const c_void, len: usize, _flags: Flags) -> () { scattered::arm::<$mode>(handler, source, len) }
            fn gasworks_event_test(event: Event) -> c_int { event::test::<$mode>(event) }
            fn gasworks_event_wait(event: Event) -> () { event::wait::<$mode>(event) }
            fn gasworks_event_test_array(events: *mut Event, count: usize, all: c_int) -> c_int { event::test_array::<$mode>(events, count, all) }
            fn gasworks_event_wait_array(events: *mut Event, count: usize, all: c_int) -> () { event::wait_array::<$mode>(events, count, all) }
            fn gex_Event_QueryLeaf(root: Event, mask: c_uint) -> Event { event::leaf::<$mode>(root, mask) }
            fn gasworks_nbi_test(mask: c_uint, flags: Flags) -> c_int { event::nbi_test::<$mode>(mask, flags) }
            fn gasworks_nbi_wait(mask: c_uint, flags: Flags) -> () { event::nbi_wait::<$mode>(mask, flags) }
            fn gex_NBI_BeginAccessRegion(flags: Flags) -> () { event::begin_region::<$mode>(flags) }
            fn gex_NBI_EndAccessRegion(flags: Flags) -> Event { event::end_region::<$mode>(flags) }
            fn gasworks_hsl_check(call: *const c_char, lock: *mut c_void) -> *mut c_void { hsl::check(call, lock) }
            fn gasworks_hsl_wrong(call: *const c_char, error: c_int, is_taken: c_int) -> c_int { hsl::wrong(call, error, is_taken) }
            fn gasworks_hsl_taken() -> () { hsl::taken() }
            fn gasworks_hsl_left() -> () { hsl::left() }
            fn gex_Coll_BarrierNB(tm: *const Team, _flags: Flags) -> Event { barrier::begin::<$mode>("gex_Coll_BarrierNB", tm) }
            fn gex_Coll_BarrierBlocking(tm: *const Team, _flags: Flags) -> () {
                event::wait::<$mode>(barrier::begin::<$mode>("gex_Coll_BarrierBlocking", tm))
            }
            fn gex_Coll_BroadcastNB(tm: *const Team, root: u32, dest: *mut c_void, source: *const c_void, len: usize, _flags: Flags) -> Event {
                collective::broadcast::<$mode>("gex_Coll_BroadcastNB", (tm, root), (dest, source), len, spread::meets(0))
            }
            fn gex_Coll_ReduceToOneNB(tm: *const Team, root: u32, dest: *mut c_void, source: *const c_void, of: c_uint, size: usize, count: usize, op: c_uint, user: Option<collective::ReduceFn>, data: *const c_void, _flags: Flags) -> Event {
                collective::reduce::<$mode>("gex_Coll_ReduceToOneNB", tm, Some(root), (dest, source), collective::Elements { of, size, count, op, user, data }, spread::meets(0))
            }
            fn gex_Coll_ReduceToAllNB(tm: *const Team, dest: *mut c_void, source: *const c_void, of: c_uint, size: usize, count: usize, op: c_uint, user: Option<collective::ReduceFn>, data: *const c_void, _flags: Flags) -> Event {
                collective::reduce::<$mode>("gex_Coll_ReduceToAllNB", tm, None, (dest, source), collective::Elements { of, size, count, op, user, data }, spread::meets(0))
            }
            fn gex_EP_PublishBoundSegment(tm: *const Team, endpoints: *const *const Endpoint, count: usize, _flags: Flags) -> c_int {
                endpoint::publish::<$mode>(tm, endpoints, count)
            }
            fn gex_EP_Create(place: *mut *mut Endpoint, client: *mut Client, capabilities: c_uint, flags: Flags) -> c_int {
                endpoint::create::<$mode>(place, client, capabilities, flags)
            }
            fn gex_EP_BindSegment(ep: *mut Endpoint, segment: *mut Segment, _flags: Flags) -> c_int { endpoint::bind::<$mode>(ep, segment) }
            fn gex_Segment_Create(place: *mut *mut Segment, client: *mut Client, address: *mut c_void, size: usize, kind: *const c_void, flags: Flags) -> c_int {
                endpoint::create_segment::<$mode>(place, client, address, size, kind, flags)
            }
            fn gex_MK_Create(_kind: *mut *const c_void, client: *mut Client, args: *const c_void, _flags: Flags) -> c_int { kind::create::<$mode>(client, args) }
            fn gex_MK_Destroy(kind: *const c_void, _flags: Flags) -> () { kind::destroy(kind) }
            fn gex_MK_SetCData(kind: *const c_void, data: *const c_void) -> () { kind::set_data::<$mode>(kind, data) }
            fn gex_MK_QueryCData(kind: *const c_void) -> *mut c_void { kind::data::<$mode>(kind) }
            fn gex_MK_QueryFlags(kind: *const c_void) -> Flags { kind::flags(kind) }
            fn gex_MK_QueryClient(kind: *const c_void) -> *mut Client { kind::client::<$mode>(kind) }
            fn gex_MK_QueryClass(kind: *const c_void) -> c_uint { kind::class(kind) }
            fn gex_Segment_Destroy(segment: *mut Segment, _flags: Flags) -> () { endpoint::destroy_segment::<$mode>(segment) }
            fn gex_TM_Split(place: *mut *mut Team, parent: *const Team, color: c_int, key: c_int, scratch: *mut c_void, len: usize, flags: Flags) -> usize {
                teams::split::<$mode>(place, parent, (color, key), (scratch, len), flags)
            }
            fn gex_TM_Create(place: *mut *mut Team, count: usize, parent: *const Team, members: *const Location, member_count: usize, scratch: *const *mut c_void, len: usize, flags: Flags) -> usize {
                teams::create::<$mode>(place, count, parent, teams::New { members, count: member_count, scratch, len }, flags)
            }
            fn gex_TM_Destroy(tm: *const Team, scratch: *mut Memvec, flags: Flags) -> c_int { teams::destroy::<$mode>(tm, scratch, flags) }
            fn gasnet_barrier_notify(id: c_int, flags: c_int) -> () { barrier::notify::<$mode>("gasnet_barrier_notify", None, id, flags) }
            fn gasnet_barrier_wait(id: c_int, flags: c_int) -> c_int { barrier::wait::<$mode>("gasnet_barrier_wait", None, id, flags) }
            fn gasnet_barrier_try(id: c_int, flags: c_int) -> c_int { barrier::attempt::<$mode>("gasnet_barrier_try", None, id, flags) }
            fn gasnet_barrier(id: c_int, flags: c_int) -> c_int {
                barrier::notify::<$mode>("gasnet_barrier_notify", None, id, flags);
                barrier::wait::<$mode>("gasnet_barrier_wait", None, id, flags)
            }
            fn gasnet_barrier_result(id: *mut c_int) -> c_int { barrier::result::<$mode>("gasnet_barrier_result", None, id) }
            fn gasnet_coll_barrier_notify(tm: *const Team, id: c_int, flags: c_int) -> () { barrier::notify::<$mode>("gasnet_coll_barrier_notify", Some(tm), id, flags) }
            fn gasnet_coll_barrier_wait(tm: *const Team, id: c_int, flags: c_int) -> c_int { barrier::wait::<$mode>("gasnet_coll_barrier_wait", Some(tm), id, flags) }
            fn gasnet_coll_barrier_try(tm: *const Team, id: c_int, flags: c_int) -> c_int { barrier::attempt::<$mode>("gasnet_coll_barrier_try", Some(tm), id, flags) }
            fn gasnet_coll_barrier(tm: *const Team, id: c_int, flags: c_int) -> c_int {
                barrier::notify::<$mode>("gasnet_coll_barrier_notify", Some(tm), id, flags);
                barrier::wait::<$mode>("gasnet_coll_barrier_wait", Some(tm), id, flags)
            }
            fn gasnet_coll_barrier_result(tm: *const Team, id: *mut c_int) -> c_int { barrier::result::<$mode>("gasnet_coll_barrier_result", Some(tm), id) }
            fn gasnet_coll_broadcast_nb(tm: *const Team, dst: *mut c_void, root: u32, src: *const c_void, len: usize, flags: c_int) -> Event { collective::broadcast::<$mode>("gasnet_coll_broadcast_nb", (tm, root), (dst, src), len, spread::meets(flags)) }
            fn gasnet_coll_broadcast(tm: *const Team, dst: *mut c_void, root: u32, src: *const c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(collective::broadcast::<$mode>("gasnet_coll_broadcast", (tm, root), (dst, src), len, spread::meets(flags))) }
            fn gasnet_coll_scatter_nb(tm: *const Team, dst: *mut c_void, root: u32, src: *const c_void, len: usize, flags: c_int) -> Event { spread::scatter::<$mode>("gasnet_coll_scatter_nb", (tm, root), (dst, src), (len, None), spread::meets(flags)) }
            fn gasnet_coll_scatter(tm: *const Team, dst: *mut c_void, root: u32, src: *const c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(spread::scatter::<$mode>("gasnet_coll_scatter", (tm, root), (dst, src), (len, None), spread::meets(flags))) }
            fn gasnet_coll_gather_nb(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, len: usize, flags: c_int) -> Event { spread::gather::<$mode>("gasnet_coll_gather_nb", (tm, root), (dst, src), (len, None), spread::meets(flags)) }
            fn gasnet_coll_gather(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(spread::gather::<$mode>("gasnet_coll_gather", (tm, root), (dst, src), (len, None), spread::meets(flags))) }
            fn gasnet_coll_gather_all_nb(tm: *const Team, dst: *mut c_void, src: *const c_void, len: usize, flags: c_int) -> Event { spread::all_gather::<$mode>("gasnet_coll_gather_all_nb", tm, (dst, src), len, spread::meets(flags)) }
            fn gasnet_coll_gather_all(tm: *const Team, dst: *mut c_void, src: *const c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(spread::all_gather::<$mode>("gasnet_coll_gather_all", tm, (dst, src), len, spread::meets(flags))) }
            fn gasnet_coll_exchange_nb(tm: *const Team, dst: *mut c_void, src: *const c_void, len: usize, flags: c_int) -> Event { spread::all_to_all::<$mode>("gasnet_coll_exchange_nb", tm, (dst, src), (len, None), spread::meets(flags)) }
            fn gasnet_coll_exchange(tm: *const Team, dst: *mut c_void, src: *const c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(spread::all_to_all::<$mode>("gasnet_coll_exchange", tm, (dst, src), (len, None), spread::meets(flags))) }
            fn gasnet_coll_init(images: *const u32, _my_image: u32, functions: *const ReduceFnEntry, count: usize, _flags: c_int) -> () { images::init::<$mode>(images, functions, count) }
            fn gasnet_coll_broadcastM_nb(tm: *const Team, list: *const *mut c_void, root: u32, src: *const c_void, len: usize, flags: c_int) -> Event { collective::broadcast::<$mode>("gasnet_coll_broadcastM_nb", (tm, root), (images::own_address::<$mode>("gasnet_coll_broadcastM_nb", tm, list, flags), src), len, spread::meets(flags)) }
            fn gasnet_coll_broadcastM(tm: *const Team, list: *const *mut c_void, root: u32, src: *const c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(collective::broadcast::<$mode>("gasnet_coll_broadcastM", (tm, root), (images::own_address::<$mode>("gasnet_coll_broadcastM", tm, list, flags), src), len, spread::meets(flags))) }
            fn gasnet_coll_scatterM_nb(tm: *const Team, list: *const *mut c_void, root: u32, src: *const c_void, len: usize, flags: c_int) -> Event { spread::scatter::<$mode>("gasnet_coll_scatterM_nb", (tm, root), (images::own_address::<$mode>("gasnet_coll_scatterM_nb", tm, list, flags), src), (len, None), spread::meets(flags)) }
            fn gasnet_coll_scatterM(tm: *const Team, list: *const *mut c_void, root: u32, src: *const c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(spread::scatter::<$mode>("gasnet_coll_scatterM", (tm, root), (images::own_address::<$mode>("gasnet_coll_scatterM", tm, list, flags), src), (len, None), spread::meets(flags))) }
            fn gasnet_coll_gatherM_nb(tm: *const Team, root: u32, dst: *mut c_void, list: *const *mut c_void, len: usize, flags: c_int) -> Event { spread::gather::<$mode>("gasnet_coll_gatherM_nb", (tm, root), (dst, images::own_address::<$mode>("gasnet_coll_gatherM_nb", tm, list, flags)), (len, None), spread::meets(flags)) }
            fn gasnet_coll_gatherM(tm: *const Team, root: u32, dst: *mut c_void, list: *const *mut c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(spread::gather::<$mode>("gasnet_coll_gatherM", (tm, root), (dst, images::own_address::<$mode>("gasnet_coll_gatherM", tm, list, flags)), (len, None), spread::meets(flags))) }
            fn gasnet_coll_gather_allM_nb(tm: *const Team, dsts: *const *mut c_void, srcs: *const *mut c_void, len: usize, flags: c_int) -> Event { spread::all_gather::<$mode>("gasnet_coll_gather_allM_nb", tm, (images::own_address::<$mode>("gasnet_coll_gather_allM_nb", tm, dsts, flags), images::own_address::<$mode>("gasnet_coll_gather_allM_nb", tm, srcs, flags)), len, spread::meets(flags)) }
            fn gasnet_coll_gather_allM(tm: *const Team, dsts: *const *mut c_void, srcs: *const *mut c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(spread::all_gather::<$mode>("gasnet_coll_gather_allM", tm, (images::own_address::<$mode>("gasnet_coll_gather_allM", tm, dsts, flags), images::own_address::<$mode>("gasnet_coll_gather_allM", tm, srcs, flags)), len, spread::meets(flags))) }
            fn gasnet_coll_exchangeM_nb(tm: *const Team, dsts: *const *mut c_void, srcs: *const *mut c_void, len: usize, flags: c_int) -> Event { spread::all_to_all::<$mode>("gasnet_coll_exchangeM_nb", tm, (images::own_address::<$mode>("gasnet_coll_exchangeM_nb", tm, dsts, flags), images::own_address::<$mode>("gasnet_coll_exchangeM_nb", tm, srcs, flags)), (len, None), spread::meets(flags)) }
            fn gasnet_coll_exchangeM(tm: *const Team, dsts: *const *mut c_void, srcs: *const *mut c_void, len: usize, flags: c_int) -> () { event::wait::<$mode>(spread::all_to_all::<$mode>("gasnet_coll_exchangeM", tm, (images::own_address::<$mode>("gasnet_coll_exchangeM", tm, dsts, flags), images::own_address::<$mode>("gasnet_coll_exchangeM", tm, srcs, flags)), (len, None), spread::meets(flags))) }
            fn gasnet_coll_reduce_nb(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, src_block: usize, src_offset: usize, size: usize, count: usize, function: c_int, arg: c_int, flags: c_int) -> Event { collective::reduce::<$mode>("gasnet_coll_reduce_nb", tm, Some(root), (dst, src), images::RegisteredElements { blocks: [src_block, src_offset, 0, 0], size, count, function, arg }, spread::meets(flags)) }
            fn gasnet_coll_reduce(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, src_block: usize, src_offset: usize, size: usize, count: usize, function: c_int, arg: c_int, flags: c_int) -> () { event::wait::<$mode>(collective::reduce::<$mode>("gasnet_coll_reduce", tm, Some(root), (dst, src), images::RegisteredElements { blocks: [src_block, src_offset, 0, 0], size, count, function, arg }, spread::meets(flags))) }
            fn gasnet_coll_reduceM_nb(tm: *const Team, root: u32, dst: *mut c_void, srcs: *const *mut c_void, src_block: usize, src_offset: usize, size: usize, count: usize, function: c_int, arg: c_int, flags: c_int) -> Event { collective::reduce::<$mode>("gasnet_coll_reduceM_nb", tm, Some(root), (dst, images::own_address::<$mode>("gasnet_coll_reduceM_nb", tm, srcs, flags)), images::RegisteredElements { blocks: [src_block, src_offset, 0, 0], size, count, function, arg }, spread::meets(flags)) }
            fn gasnet_coll_reduceM(tm: *const Team, root: u32, dst: *mut c_void, srcs: *const *mut c_void, src_block: usize, src_offset: usize, size: usize, count: usize, function: c_int, arg: c_int, flags: c_int) -> () { event::wait::<$mode>(collective::reduce::<$mode>("gasnet_coll_reduceM", tm, Some(root), (dst, images::own_address::<$mode>("gasnet_coll_reduceM", tm, srcs, flags)), images::RegisteredElements { blocks: [src_block, src_offset, 0, 0], size, count, function, arg }, spread::meets(flags))) }
            fn gasnet_coll_scan_nb(tm: *const Team, dst: *mut c_void, dst_block: usize, dst_offset: usize, src: *const c_void, src_block: usize, src_offset: usize, size: usize, count: usize, function: c_int, arg: c_int, flags: c_int) -> Event { spread::scan::<$mode>("gasnet_coll_scan_nb", tm, (dst, src), images::RegisteredElements { blocks: [src_block, src_offset, dst_block, dst_offset], size, count, function, arg }, (images::with_own("gasnet_coll_scan_nb", flags), spread::FirstResult::Untouched), spread::meets(flags)) }
            fn gasnet_coll_scan(tm: *const Team, dst: *mut c_void, dst_block: usize, dst_offset: usize, src: *const c_void, src_block: usize, src_offset: usize, size: usize, count: usize, function: c_int, arg: c_int, flags: c_int) -> () { event::wait::<$mode>(spread::scan::<$mode>("gasnet_coll_scan", tm, (dst, src), images::RegisteredElements { blocks: [src_block, src_offset, dst_block, dst_offset], size, count, function, arg }, (images::with_own("gasnet_coll_scan", flags), spread::FirstResult::Untouched), spread::meets(flags))) }
            fn gasnet_coll_scanM_nb(tm: *const Team, dsts: *const *mut c_void, dst_block: usize, dst_offset: usize, srcs: *const *mut c_void, src_block: usize, src_offset: usize, size: usize, count: usize, function: c_int, arg: c_int, flags: c_int) -> Event { spread::scan::<$mode>("gasnet_coll_scanM_nb", tm, (images::own_address::<$mode>("gasnet_coll_scanM_nb", tm, dsts, flags), images::own_address::<$mode>("gasnet_coll_scanM_nb", tm, srcs, flags)), images::RegisteredElements { blocks: [src_block, src_offset, dst_block, dst_offset], size, count, function, arg }, (images::with_own("gasnet_coll_scanM_nb", flags), spread::FirstResult::Untouched), spread::meets(flags)) }
            fn gasnet_coll_scanM(tm: *const Team, dsts: *const *mut c_void, dst_block: usize, dst_offset: usize, srcs: *const *mut c_void, src_block: usize, src_offset: usize, size: usize, count: usize, function: c_int, arg: c_int, flags: c_int) -> () { event::wait::<$mode>(spread::scan::<$mode>("gasnet_coll_scanM", tm, (images::own_address::<$mode>("gasnet_coll_scanM", tm, dsts, flags), images::own_address::<$mode>("gasnet_coll_scanM", tm, srcs, flags)), images::RegisteredElements { blocks: [src_block, src_offset, dst_block, dst_offset], size, count, function, arg }, (images::with_own("gasnet_coll_scanM", flags), spread::FirstResult::Untouched), spread::meets(flags))) }
            fn gasnet_coll_try_sync(handle: Event) -> c_int {
                query::poll::<$mode>();
                event::test::<$mode>(handle)
            }
            fn gasnet_coll_wait_sync(handle: Event) -> () { event::wait::<$mode>(handle) }
            fn gasnet_coll_try_sync_some(handles: *mut Event, count: usize) -> c_int {
                query::poll::<$mode>();
                event::test_array::<$mode>(handles, count, 0)
            }
            fn gasnet_coll_wait_sync_some(handles: *mut Event, count: usize) -> () { event::wait_array::<$mode>(handles, count, 0) }
            fn gasnet_coll_try_sync_all(handles: *mut Event, count: usize) -> c_int {
                query::poll::<$mode>();
                event::test_array::<$mode>(handles, count, 1)
            }
            fn gasnet_coll_wait_sync_all(handles: *mut Event, count: usize) -> () { event::wait_array::<$mode>(handles, count, 1) }
            fn gasnet_coll_get_num_tree_classes(_tm: *const Team, _op: c_int) -> c_int { 1 }
            fn gasnet_coll_set_tree_kind(_tm: *const Team, _tree: c_int, _fanout: c_int, _op: c_int) -> () {}
            fn gasnet_coll_set_dissem_limit(_tm: *const Team, _limit: usize, _op: c_int) -> () {}
            fn gasnet_coll_loadTuningState(_file: *const c_char, _tm: *const Team) -> () {}
            fn gasnet_coll_dumpTuningState(_file: *const c_char, _tm: *const Team) -> () {}
            fn gasnet_coll_dumpProfile(_file: *const c_char, _tm: *const Team) -> () {}
            fn gasworks_coll_gather_nb(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, len: usize, _flags: Flags) -> Event { spread::gather::<$mode>("gasworks_coll_gather_nb", (tm, root), (dst, src), (len, None), spread::meets(0)) }
            fn gasworks_coll_gather_each_nb(tm: *const Team, root: u32, dst: *mut c_void, each: *const usize, src: *const c_void, len: usize, _flags: Flags) -> Event { spread::gather::<$mode>("gasworks_coll_gather_each_nb", (tm, root), (dst, src), (len, Some(each)), spread::meets(0)) }
            fn gasworks_coll_scatter_nb(tm: *const Team, root: u32, dst: *mut c_void, src: *const c_void, len: usize, _flags: Flags) -> Event { spread::scatter::<$mode>("gasworks_coll_scatter_nb", (tm, root), (dst, src), (len, None), spread::meets(0)) }
            fn gasworks_coll_scatter_each_nb(tm: *const Team, root: u32, dst: *mut c_void, len: usize, src: *const c_void, each: *const usize, _flags: Flags) -> Event { spread::scatter::<$mode>("gasworks_coll_scatter_each_nb", (tm, root), (dst, src), (len, Some(each)), spread::meets(0)) }
            fn gasworks_coll_all_gather_nb(tm: *const Team, dst: *mut c_void, src: *const c_void, len: usize, _flags: Flags) -> Event { spread::all_gather::<$mode>("gasworks_coll_all_gather_nb", tm, (dst, src), len, spread::meets(0)) }
            fn gasworks_coll_all_to_all_nb(tm: *const Team, dst: *mut c_void, src: *const c_void, len: usize, _flags: Flags) -> Event { spread::all_to_all::<$mode>("gasworks_coll_all_to_all_nb", tm, (dst, src), (len, None), spread::meets(0)) }
            fn gasworks_coll_all_to_all_each_nb(tm: *const Team, dst: *mut c_void, from_each: *const usize, src: *const c_void, to_each: *const usize, _flags: Flags) -> Event { spread::all_to_all::<$mode>("gasworks_coll_all_to_all_each_nb", tm, (dst, src), (0, Some([to_each, from_each])), spread::meets(0)) }
            fn gasworks_coll_scan_nb(tm: *const Team, dst: *mut c_void, src: *const c_void, of: c_uint, size: usize, count: usize, op: c_uint, user: Option<collective::ReduceFn>, data: *const c_void, _flags: Flags) -> Event {
                spread::scan::<$mode>("gasworks_coll_scan_nb", tm, (dst, src), collective::Elements { of, size, count, op, user, data }, (true, spread::FirstResult::Own), spread::meets(0))
            }
            fn gasworks_coll_scan_before_nb(tm: *const Team, dst: *mut c_void, src: *const c_void, of: c_uint, size: usize, count: usize, op: c_uint, user: Option<collective::ReduceFn>, data: *const c_void, _flags: Flags) -> Event {
                spread::scan::<$mode>("gasworks_coll_scan_before_nb", tm, (dst, src), collective::Elements { of, size, count, op, user, data }, (false, spread::FirstResult::Own), spread::meets(0))
            }
            fn gasworks_at(file: *const c_char, line: c_int, name: *const c_char) -> () { $crate::place::begin(file, line, name) }
            fn gasworks_talks_at(file: *const c_char, line: c_int, name: *const c_char) -> () { talk::begin::<$mode>(file, line, name) }
            fn gasworks_left() -> () { $crate::place::end() }
            fn gasworks_check_object(handle: *const c_void, kind: u32, call: *const c_char) -> () { check::object(handle, kind, call) }
            fn gasworks_check_value(len: usize) -> () { check::value(len) }
            fn gasnetc_AMPoll() -> c_int { query::poll::<$mode>() }
            fn gasworks_poll() -> c_int { query::poll::<$mode>() }
            fn gasworks_wait_begin() -> () { query::wait_begin::<$mode>() }
            fn gasworks_wait_turn() -> () { query::wait_turn::<$mode>() }
            fn gasnet_set_waitmode(mode: c_int) -> c_int { query::set_wait_mode::<$mode>(mode) }
            fn gasnet_getMaxLocalSegmentSize() -> usize { query::max_segment::<$mode>(false) }
            fn gasnet_getMaxGlobalSegmentSize() -> usize { query::max_segment::<$mode>(true) }
            fn gex_EP_QueryBoundSegmentNB(tm: *const Team, rank: u32, owner: *mut *mut c_void, local: *mut *mut c_void, size: *mut usize, _flags: Flags) -> Event { query::query_bound::<$mode>(tm, rank, owner, local, size) }
            fn gex_Segment_QueryBound(tm: *const Team, rank: u32, owner: *mut *mut c_void, local: *mut *mut c_void, size: *mut usize) -> c_int { query::segment_query_bound::<$mode>(tm, rank, owner, local, size) }
            fn gex_TM_TranslateRankToJobrank(tm: *const Team, rank: u32) -> u32 { query::to_job_rank::<$mode>(tm, rank) }
            fn gex_TM_TranslateJobrankToRank(tm: *const Team, rank: u32) -> u32 { query::of_job_rank::<$mode>(tm, rank) }
            fn gex_TM_TranslateRankToEP(tm: *const Team, rank: u32, _flags: Flags) -> Location { query::to_endpoint::<$mode>(tm, rank) }
            fn gex_System_QueryNbrhdInfo(info: *mut *const RankInfo, count: *mut u32, me: *mut u32) -> () { query::neighbours::<$mode>(info, count, me, false) }
            fn gex_System_QueryHostInfo(info: *mut *const RankInfo, count: *mut u32, me: *mut u32) -> () { query::neighbours::<$mode>(info, count, me, true) }
            fn gex_System_QueryMyPosition(nbrhds: *mut u32, my_nbrhd: *mut u32, hosts: *mut u32, my_host: *mut u32) -> () { query::position::<$mode>([nbrhds, my_nbrhd, hosts, my_host]) }
            fn gasworks_legacy_attach(table: *mut legacy::LegacyEntry, count: c_int, size: usize) -> c_int {
                legacy::attach::<$mode>(table, count, size, gasnet_client_attach_hook)
            }
            fn gasworks_legacy_segment_info(places: *mut legacy::SegmentInfo, count: c_int) -> c_int { legacy::segments::<$mode>(places, count) }
            fn gasworks_legacy_node_info(places: *mut legacy::NodeInfo, count: c_int) -> c_int { legacy::nodes::<$mode>(places, count) }
            fn gasworks_legacy_memset_nb(rank: u32, dest: *const u8, value: c_int, len: usize) -> Event { legacy::set::<$mode>(rank, dest, value, len, false) }
            fn gasworks_legacy_memset_nbi(rank: u32, dest: *const u8, value: c_int, len: usize) -> () { legacy::set::<$mode>(rank, dest, value, len, true); }
            fn gasworks_legacy_valget_begin(rank: u32, source: *const u8, len: usize) -> *mut legacy::Fetched { legacy::fetch::<$mode>(rank, source, len) }
            fn gasworks_legacy_valget_end(handle: *mut legacy::Fetched) -> u64 { legacy::fetched::<$mode>(handle) }
            fn gex_System_GetVerboseErrors() -> c_int { codes::is_verbose() }
            fn gex_System_SetVerboseErrors(verbose: c_int) -> () { codes::set_verbose(verbose) }
            fn gex_System_QueryMaxThreads() -> u64 { query::max_threads::<$mode>() }
            fn gex_System_QueryHiddenAMConcurrencyLevel() -> c_int { query::hidden_threads::<$mode>() }
            fn gex_System_QueryProgressThreads(client: *const Client, count: *mut c_uint, info: *mut *const c_void, flags: Flags) -> c_int { query::progress_threads(client, count, info, flags) }
            fn gasnet_getenv(name: *const c_char) -> *mut c_char { query::get_env(name) }
            fn gasnet_ErrorName(code: c_int) -> *const c_char { codes::error_name(code) }
            fn gasnet_ErrorDesc(code: c_int) -> *const c_char { codes::error_text(code) }
        }
    };
}

/// Each as C calls it. What its caller promises is capi.1 to capi.5 of the crate, legacy.1 and place.1.
#[doc(hidden)]
#[macro_export]
macro_rules! exports {
    ($mode:ty; $(fn $name:ident($($arg:ident: $of:ty),*) -> $gives:ty $body:block)*) => {
        $(
            /// As `gasnetex.h` says.
            ///
            /// # Safety
            /// capi.1 to capi.5, legacy.1 and place.1 of `gasworks_capi`.
            #[allow(non_snake_case, unused_unsafe, clippy::too_many_arguments, reason = "C's own names")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $of),*) -> $gives {
                // SAFETY: capi.1 to capi.5, legacy.1, place.1: C promises them with each call. The `static mut` variables that some
                // calls read are C's, which sets them before.
                unsafe { $body }
            }
        )*
    };
}
