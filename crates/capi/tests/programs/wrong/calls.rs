//! The table of wrong calls: ways of `ends.c`, each with what a debug build says of it, and what an optimised build does.

/// What an optimised build does with a wrong call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimised {
    /// It says the same.
    Same,
    /// It says this.
    Says(&'static str),
    /// The call returns a code, or does what it was told; no other rank is the worse for it.
    GoesOn,
    /// The job ends with this code.
    Code(i32),
    /// Undefined: the process reads or writes where nothing is. It is not tried.
    Untried,
}
use Optimised::{Code, GoesOn, Same, Says, Untried};

/// A wrong call: the way of `ends.c`, what a debug build says, and what an optimised build does.
pub type Wrong = (&'static str, &'static str, Optimised);

/// All wrong calls, in groups.
pub const GROUPS: [(&str, &[Wrong]); 16] = [
    ("start", START),
    ("objects", OBJECTS),
    ("handlers", HANDLERS),
    ("replies", REPLIES),
    ("requests", REQUESTS),
    ("prepare", PREPARE),
    ("prepared", PREPARED),
    ("transfers", TRANSFERS),
    ("events", EVENTS),
    ("locks", LOCKS),
    ("barriers", BARRIERS),
    ("collectives", COLLECTIVES),
    ("teams", TEAMS),
    ("endpoints", ENDPOINTS),
    ("atomics", ATOMICS),
    ("scattered", SCATTERED),
];

/// Before the job and its segment are there.
const START: &[Wrong] = &[
    ("before-init", "gasnet_AMPoll: there is no job", Same),
    ("exit-before-init", "gasnet_exit: there is no job", Code(9)),
    (
        "put-before-init",
        "gasnet_put: gex_RMA_PutBlocking: there is no job",
        Says("gex_RMA_PutBlocking: there is no job"),
    ),
    ("init-no-place", "gex_Client_Init: there is no place for the client", Untried),
    ("init-twice", "gex_Client_Init: the job has begun", Same),
    ("attach-twice", "gex_Segment_Attach: there is a segment", GoesOn),
    ("attach-odd-size", "gex_Segment_Attach: 100 bytes: wanted a multiple of 4096", GoesOn),
    ("attach-no-team", "is not the team of all ranks", Same),
];

/// Of handler tables, objects and settings.
const OBJECTS: &[Wrong] = &[
    (
        "register-twice",
        "gex_EP_RegisterHandlers: entry 1: handler \"end\": index 210 is taken by \"act\"",
        GoesOn,
    ),
    ("register-again", "gex_EP_RegisterHandlers: entry 0: handler \"end\": index 200 is taken", GoesOn),
    ("register-low", "gex_EP_RegisterHandlers: entry 0: handler \"act\": index 127 is the library's", GoesOn),
    ("register-nothing", "gex_EP_RegisterHandlers: entry 0: it has no function", GoesOn),
    ("register-too-many", "gex_EP_RegisterHandlers: entry 0: \"act\" takes 17 arguments", GoesOn),
    ("register-no-table", "gex_EP_RegisterHandlers: there is no endpoint", GoesOn),
    ("register-no-endpoint", "gex_EP_RegisterHandlers: there is no endpoint", GoesOn),
    ("no-client", "gex_Client_QueryName: the client is null", Untried),
    ("team-as-segment", "is no segment, but a team", GoesOn),
    ("something-as-team", "is no team", GoesOn),
    ("odd-endpoint", "is no endpoint", Untried),
    ("pair-of-nothing", "gex_TM_Pair: the endpoint is null", GoesOn),
    ("pair-too-high", "gex_RMA_PutBlocking: a pair with endpoint 5: that of rank 0 was not published", Same),
    ("no-way-of-waiting", "gasnet_set_waitmode: 7 is no way of waiting", GoesOn),
    ("no-name", "gasnet_getenv: the name is null", Same),
    ("info-nowhere", "gasnet_getSegmentInfo: 3 places at 0x0", GoesOn),
];

/// In a handler, besides replies.
const HANDLERS: &[Wrong] = &[
    ("handler-replies-twice", "gex_AM_ReplyShort: a second reply to one request", Same),
    (
        "handler-polls",
        "gasnet_AMPoll: not allowed while a handler runs",
        Says("gasnet_AMPoll: poll: not allowed while a handler runs"),
    ),
    (
        "handler-sends",
        "gex_AM_RequestShort0: not allowed while a handler runs",
        Says("gex_AM_RequestShort: active message request: not allowed while"),
    ),
    ("handler-puts", "gex_RMA_PutBlocking: not allowed while a handler runs", GoesOn),
    ("handler-gets", "gex_RMA_GetNBI: not allowed while a handler runs", GoesOn),
    (
        "handler-waits",
        "gex_Event_Wait: not allowed while a handler runs",
        Says("gex_Event_Wait: poll: not allowed while a handler runs"),
    ),
    (
        "handler-waits-for-handle",
        "gasnet_wait_syncnb: gex_Event_Wait: not allowed while a handler runs",
        Says("gex_Event_Wait: poll: not allowed while a handler runs"),
    ),
    ("handler-tests", "gex_Event_Test: not allowed while a handler runs", GoesOn),
    ("handler-tests-all", "gex_Event_TestAll: not allowed while a handler runs", GoesOn),
    ("handler-waits-for-all", "gex_NBI_Wait: not allowed while a handler runs", GoesOn),
    ("handler-begins-barrier", "gex_Coll_BarrierNB: not allowed while a handler runs", Same),
    (
        "handler-blocks",
        "GASNET_BLOCKUNTIL: not allowed while a handler runs",
        Says("GASNET_BLOCKUNTIL: poll: not allowed while a handler runs"),
    ),
    (
        "handler-prepares-request",
        "gex_AM_PrepareRequestMedium: not allowed while a handler runs",
        Says("gex_AM_PrepareRequestMedium: prepare an active message request: not"),
    ),
];

/// Of replies and tokens.
const REPLIES: &[Wrong] = &[
    ("handler-replies-by-group", "gex_AM_ReplyMedium: GEX_EVENT_GROUP is none of a reply's options", Same),
    (
        "handler-replies-deferred",
        "gex_AM_ReplyLong: GEX_EVENT_DEFER is none of an active message's options",
        Same,
    ),
    ("handler-replies-to-nobody", "gex_AM_ReplyShort: the token is null", Same),
    ("handler-replies-to-another", "is not the token of a handler that runs on this thread", Same),
    ("handler-asks-nowhere", "gex_Token_Info: there is no place for it", Same),
    ("handler-replies-outside", "gex_AM_ReplyLong: long message: bytes", Same),
    (
        "handler-prepares-by-group",
        "gex_AM_PrepareReplyMedium: GEX_EVENT_GROUP is none of a reply's options",
        Same,
    ),
    (
        "handler-leaves-prepared",
        "handler 203 has ended with a reply prepared",
        Says("between a prepare and its commit"),
    ),
    ("handler-keeps-lock", "handler 203 has ended with a handler-safe lock held", GoesOn),
    (
        "handler-replies-locked",
        "gex_AM_ReplyShort: active message reply: not allowed while this thread holds",
        Same,
    ),
    ("reply-to-reply", "gex_AM_ReplyShort: a reply to a reply", Same),
    ("prepare-reply-to-reply", "gex_AM_PrepareReplyMedium: a reply to a reply", Same),
    ("token-kept", "is not the token of a handler that runs on this thread", Same),
];

/// Of requests.
const REQUESTS: &[Wrong] = &[
    ("no-such-handler", "no handler is registered at index 210", Same),
    ("wrong-count", "a short request with 1 arguments for handler 203 (\"act\")", GoesOn),
    ("wrong-count-here", "a short request with 1 arguments for handler 203 (\"act\")", GoesOn),
    (
        "too-long",
        "gex_AM_RequestMedium: medium message to rank 0: a payload of 1073741824 bytes, at most 65536 are allowed",
        Same,
    ),
    ("nothing-to-send", "gex_AM_RequestMedium: 4 bytes at no address", Same),
    ("long-outside", "are outside the segment of rank 1, which has 4096 bytes (the place is 0x", Same),
    (
        "request-deferred",
        "gex_AM_RequestMedium: GEX_EVENT_DEFER is none of an active message's options",
        Same,
    ),
    ("long-deferred", "gex_AM_RequestLong: GEX_EVENT_DEFER is none of an active message's options", Same),
    ("request-no-option", "gex_AM_RequestMedium: lc_opt is null", Same),
    ("request-odd-option", "gex_AM_RequestMedium: lc_opt is 0x", Same),
    ("request-to-nobody", "gex_AM_RequestShort: there is no rank 3: the team has 3", Same),
    ("limit-too-many", "gex_AM_MaxRequestMedium: 17 arguments: 16 are the most", GoesOn),
    ("limit-of-nobody", "gex_AM_MaxReplyLong: there is no rank 3", GoesOn),
];

/// Of negotiated messages that cannot be prepared, or were not.
const PREPARE: &[Wrong] = &[
    ("committed-for-nothing", "gex_AM_CommitRequestMedium: there is no source descriptor", Same),
    ("cancel-for-nothing", "gex_AM_CancelRequestLong: there is no source descriptor", Same),
    ("address-of-nothing", "gex_AM_SrcDescAddr: there is no source descriptor", Same),
    ("prepare-option", "gex_AM_PrepareRequestMedium: lc_opt is not null where there is no buffer", GoesOn),
    ("prepare-no-option", "gex_AM_PrepareRequestMedium: lc_opt is null where there is a buffer", Same),
    (
        "prepare-deferred",
        "gex_AM_PrepareRequestMedium: GEX_EVENT_DEFER is none of an active message's options",
        Same,
    ),
    ("prepare-least-over-most", "gex_AM_PrepareRequestMedium: at least 8 bytes, and at most 4", Same),
    ("prepare-too-many", "gex_AM_PrepareRequestMedium: 17 arguments: 16 are the most", Same),
    (
        "prepare-too-much",
        "gex_AM_PrepareRequestMedium: medium message to rank 0: a payload of 1073741824 bytes",
        Same,
    ),
    ("prepare-outside", "gex_AM_PrepareRequestLong: long message: bytes", Same),
    ("commit-unprepared", "is nothing that this thread has prepared and not ended", Same),
];

/// With a negotiated message prepared.
const PREPARED: &[Wrong] = &[
    (
        "prepared-twice",
        "gex_AM_PrepareRequestLong: not allowed between a prepare and its commit or cancel",
        Says("gex_AM_PrepareRequestLong: what this thread prepared before"),
    ),
    (
        "prepared-and-sends",
        "gex_AM_RequestShort0: not allowed between a prepare and its commit or cancel",
        GoesOn,
    ),
    ("prepared-and-polls", "gasnet_AMPoll: not allowed between a prepare and its commit or cancel", GoesOn),
    (
        "prepared-and-puts",
        "gex_RMA_PutBlockingVal: not allowed between a prepare and its commit or cancel",
        GoesOn,
    ),
    (
        "prepared-too-short",
        "gex_AM_CommitRequestMedium: medium message to rank 0: a payload of 9 bytes, at most 8 are allowed",
        Same,
    ),
    ("prepared-other-count", "gex_AM_CommitRequestMedium: 1 arguments, where 0 were prepared", Same),
    ("prepared-other-kind", "gex_AM_CommitRequestLong: it was prepared for another kind of message", Same),
    ("prepared-for-no-reply", "gex_AM_CommitReplyMedium: it was prepared for another kind of message", Same),
    ("prepared-and-cancelled", "is nothing that this thread has prepared and not ended", Same),
];

/// Of puts and gets.
const TRANSFERS: &[Wrong] = &[
    ("no-such-rank", "gex_RMA_PutBlocking: there is no rank 1000: the team has 3", Same),
    (
        "no-such-node",
        "gasnet_put: gex_RMA_PutBlocking: there is no rank 1000: the team has 3",
        Says("gex_RMA_PutBlocking: there is no rank 1000: the team has 3"),
    ),
    (
        "after-inner-call",
        "gasnet_put: gex_RMA_PutBlocking: there is no rank 1000",
        Says("gex_RMA_PutBlocking: there is no rank 1000"),
    ),
    (
        "after-inner-wait",
        "gasnet_put: gex_RMA_PutBlocking: there is no rank 1000",
        Says("gex_RMA_PutBlocking: there is no rank 1000"),
    ),
    ("unplaced-call", "gex_RMA_PutBlocking: there is no rank 1000", Same),
    ("no-such-team", "gex_RMA_PutBlocking: the team is GEX_TM_INVALID", Same),
    ("client-as-team", "gex_RMA_PutNBI: 0x", Untried),
    (
        "outside",
        "bytes 4093 to 4093+4 are outside the segment of rank 0, which has 4096 bytes (the place is 0x",
        Same,
    ),
    ("outside-nothing", "bytes 0 to 0+1 are outside the segment of rank 1, which has 0 bytes", Same),
    ("not-in-the-segment", "gex_RMA_GetBlocking: 4 bytes at 0x", Same),
    ("put-from-nowhere", "gex_RMA_PutNB: 4 bytes at no address of this rank", Untried),
    ("get-to-nowhere", "gex_RMA_GetNB: 4 bytes at no address of this rank", Untried),
    ("put-no-option", "gex_RMA_PutNB: lc_opt is null", GoesOn),
    ("put-by-group", "gex_RMA_PutNB: GEX_EVENT_GROUP is for implicit puts", GoesOn),
    ("put-odd-option", "gex_RMA_PutNB: lc_opt is 0x", GoesOn),
    (
        "implicit-put-event",
        "gex_RMA_PutNBI: an event for the source is for puts that have one of their own",
        GoesOn,
    ),
    ("value-too-long", "gex_RMA_PutBlockingVal: a value of 9 bytes: 1 to 8 are one", GoesOn),
    ("value-of-nothing", "gex_RMA_GetBlockingVal: a value of 0 bytes: 1 to 8 are one", GoesOn),
];

/// Of events and access regions.
const EVENTS: &[Wrong] = &[
    ("no-event", "gex_Event_Wait: GEX_EVENT_NO_OP is no event", Same),
    ("no-event-tested", "gex_Event_Test: GEX_EVENT_NO_OP is no event", Same),
    ("no-event-in-array", "gex_Event_TestSome: GEX_EVENT_NO_OP is no event", Same),
    (
        "no-event-of-node",
        "gasnet_try_syncnb: gex_Event_Test: GEX_EVENT_NO_OP is no event",
        Says("gex_Event_Test: GEX_EVENT_NO_OP is no event"),
    ),
    ("leaf-of-no-event", "gex_Event_QueryLeaf: GEX_EVENT_NO_OP is no event", GoesOn),
    ("no-such-event", "gex_Event_Wait: the event does not belong to this job", Same),
    ("no-such-barrier", "gex_Event_Wait: the event 0xfffffffffffffffd is none of this job's", Same),
    ("no-such-barrier-tested", "gex_Event_Test: the event 0x8000000000000063 is none of this job's", Same),
    ("events-nowhere", "gex_Event_WaitAll: 3 events at 0x0, where none can be", Same),
    ("odd-events", "gex_Event_WaitAll: 1 events at 0x", Same),
    ("region-not-begun", "gex_NBI_EndAccessRegion: access region: ended, but none is open", Same),
    ("region-nested", "gex_NBI_BeginAccessRegion: access region: begun inside another", Same),
    (
        "region-and-waits",
        "gex_NBI_Wait: access region: implicit operations tested or waited for inside one",
        Same,
    ),
];

/// Of handler-safe locks.
const LOCKS: &[Wrong] = &[
    ("unlock-free", "gex_HSL_Unlock: nobody holds the lock", GoesOn),
    (
        "unlock-free-and-poll",
        "gex_HSL_Unlock: nobody holds the lock",
        Says("gasnet_AMPoll: poll: not allowed while this thread holds"),
    ),
    ("unlock-others", "gex_HSL_Unlock: another thread holds the lock", Same),
    ("lock-nowhere", "gex_HSL_Lock: there is no lock at 0x0", Same),
    ("lock-odd", "gex_HSL_Trylock: there is no lock at 0x", Same),
    ("lock-twice", "gex_HSL_Lock: this thread has the lock already", Same),
    ("lock-tried-twice", "gex_HSL_Trylock: this thread has the lock already", GoesOn),
    ("lock-destroyed", "gex_HSL_Destroy: the lock is held", Same),
    (
        "lock-and-poll",
        "gasnet_AMPoll: not allowed while this thread holds",
        Says("gasnet_AMPoll: poll: not allowed while this thread holds"),
    ),
    (
        "lock-and-block",
        "GASNET_BLOCKUNTIL: not allowed while this thread holds",
        Says("GASNET_BLOCKUNTIL: poll: not allowed while this thread holds"),
    ),
    (
        "lock-and-send",
        "gex_AM_RequestShort0: not allowed while this thread holds",
        Says("gex_AM_RequestShort: active message request: not allowed while this thread"),
    ),
    (
        "lock-and-prepare",
        "gex_AM_PrepareRequestMedium: not allowed while this thread holds",
        Says("prepare an active message request: not allowed while this thread"),
    ),
    ("lock-and-put", "gex_RMA_PutBlocking: not allowed while this thread holds", GoesOn),
    ("lock-and-get", "gasnet_get: not allowed while this thread holds", GoesOn),
    ("lock-and-test", "gex_Event_Test: not allowed while this thread holds", GoesOn),
    (
        "lock-and-wait",
        "gex_Event_WaitSome: not allowed while this thread holds",
        Says("gex_Event_WaitSome: poll: not allowed while this thread holds"),
    ),
    ("lock-and-wait-for-all", "gasnet_wait_syncnbi_puts: not allowed while this thread holds", GoesOn),
    ("lock-and-meet", "gex_Coll_BarrierBlocking: not allowed while this thread holds", Same),
];

/// Of barriers.
const BARRIERS: &[Wrong] = &[
    ("barrier-not-begun", "gasnet_barrier_wait: no barrier was begun", Same),
    ("barrier-tried", "gasnet_barrier_try: no barrier was begun", Same),
    ("barrier-no-result", "gasnet_barrier_result: no barrier has ended", Same),
    ("barrier-no-team", " is no team", Same),
    ("barrier-twice", "gasnet_barrier_notify: the barrier before was not finished", Same),
];

/// Of collectives.
const COLLECTIVES: &[Wrong] = &[
    ("collective-no-team", "gex_Coll_BroadcastNB: ", Same),
    ("collective-no-root", "gex_Coll_BroadcastNB: there is no rank 3: the team has 3", Same),
    ("collective-nowhere", "gex_Coll_BroadcastNB: 8 bytes at no address", Same),
    ("collective-overlap", "gex_Coll_BroadcastNB: source and destination overlap", Same),
    (
        "collective-own-elsewhere",
        "gasworks_coll_all_gather_nb: source and destination overlap: they are apart, or a member has its own where it belongs",
        Same,
    ),
    ("collective-no-type", "gex_Coll_ReduceToAllNB: 0x3 is no type", Same),
    ("collective-no-operation", "gex_Coll_ReduceToAllNB: the operation 0x1 is none for the type 0x10", Same),
    ("collective-no-function", "gex_Coll_ReduceToOneNB: there is no function for GEX_OP_USER", Same),
    ("collective-other-size", "gex_Coll_ReduceToAllNB: the type has 4 bytes, not 8", Same),
    ("collective-user-type", "gex_Coll_ReduceToAllNB: the operation 0x8 is none for GEX_DT_USER", Same),
    ("collective-too-much", "elements of 8 bytes are more than there can be", Same),
    ("images-two", "gasnet_coll_init: rank 1 has 2 images: one is what a rank can have", Same),
    ("images-no-table", "gasnet_coll_init: there is no table of 3 functions", Same),
    ("images-no-function", "gasnet_coll_reduce: no function 2 was given to gasnet_coll_init", Same),
    (
        "images-too-much",
        "gasnet_coll_reduce: 2 elements of 18446744073709551615 bytes are more than there can be",
        Same,
    ),
    ("images-offset", "gasnet_coll_reduce: elements lie one behind the other at an address", Same),
    ("images-no-list", "gasnet_coll_broadcastM: there is no list of addresses", Same),
    (
        "images-neither",
        "gasnet_coll_broadcastM: its flags say one of GASNET_COLL_SINGLE and GASNET_COLL_LOCAL",
        Same,
    ),
    (
        "images-no-scan",
        "gasnet_coll_scan: its flags say one of GASNET_COLL_INCLUSIVE_SCAN and GASNET_COLL_EXCLUSIVE_SCAN",
        Same,
    ),
];

/// Of teams.
const TEAMS: &[Wrong] = &[
    ("team-none-split", "gex_TM_Split: the team is GEX_TM_INVALID", Same),
    ("team-pair-split", " is no team, but a pair of endpoints", Same),
    ("team-several", "gex_TM_Create: 2 new teams: a rank makes one at a time", Same),
    ("team-of-nobody", "gex_TM_Create: a team without a member", Same),
    (
        "team-of-third-endpoints",
        "gex_TM_Create: member 1 is endpoint 3 of rank 1: teams are of first endpoints",
        Same,
    ),
    (
        "team-of-strangers",
        "gex_TM_Create: member 0 is rank 2 of the job, which is none of the old team's",
        Same,
    ),
    ("team-everyone-destroyed", "gex_TM_Destroy: the team of all ranks stays as long as the job", Same),
    ("team-something-destroyed", " is no team", Same),
    ("team-destroyed-in-use", "gex_TM_Destroy: barrier 1 of the team is under way", Same),
    ("team-destroyed", " is no team", Same),
    ("team-destroyed-asked", " is no team, but a destroyed object", GoesOn),
    ("team-gone-under-domain", " is no team", GoesOn),
    ("team-message-to-nobody", "gex_AM_RequestShort: there is no rank 2: the team has 2", Same),
    ("team-put-to-nobody", "gex_RMA_PutBlocking: there is no rank 2: the team has 2", Same),
    ("team-root-is-nobody", "gex_Coll_BroadcastNB: there is no rank 2: the team has 2", Same),
    ("team-translates-nobody", "gex_TM_TranslateRankToJobrank: there is no rank 2: the team has 2", Same),
];

/// Of endpoints beyond the first, their segments, and kinds of memory.
const ENDPOINTS: &[Wrong] = &[
    ("message-by-pair", "gex_AM_RequestShort: a pair with endpoint 5: it is for puts and gets", Same),
    ("pair-past-all", "gex_RMA_PutBlocking: a pair with an endpoint above 63: there are none", Same),
    ("segment-attached-destroyed", "gex_Segment_Destroy: the segment that was attached stays", Same),
    ("segment-something-destroyed", " is no segment", Same),
    ("kind-destroyed", "gex_MK_Destroy: GEX_MK_HOST stays as long as the job", Same),
    ("kind-of-nothing", "gex_MK_QueryClass: 0x0 is no kind of memory: GEX_MK_HOST is", Same),
    ("segment-no-client", "gex_Segment_Create: there is no such client", GoesOn),
    ("segment-no-kind", "gex_Segment_Create: 0x0 is no kind of memory: GEX_MK_HOST is", GoesOn),
    ("segment-no-bytes", "gex_Segment_Create: 0 bytes at 0x", GoesOn),
    ("endpoint-no-place", "gex_EP_Create: there is no such client, or no place for the endpoint", GoesOn),
    (
        "endpoint-for-messages",
        "gex_EP_Create: capabilities 0x1f: an endpoint beyond the first is for RMA",
        GoesOn,
    ),
    ("bound-first", "gex_EP_BindSegment: the first endpoint's segment is attached", GoesOn),
    ("bound-again", "gex_EP_BindSegment: endpoint 1 has a segment, which it keeps", GoesOn),
    ("bound-twice", "gex_EP_BindSegment: the segment is bound to endpoint 1, and to one alone", GoesOn),
    ("bound-something", " is no segment that was created", GoesOn),
    ("bound-destroyed", "gex_Segment_Destroy: 0x", Same),
    (
        "bound-unpublished",
        "gex_RMA_PutBlocking: a pair with endpoint 1: that of rank 0 was not published",
        Same,
    ),
];

/// Of atomic domains and operations.
const ATOMICS: &[Wrong] = &[
    ("atomic-made-nowhere", "gex_AD_Create: there is no place for the domain", Same),
    ("atomic-no-team", "gex_AD_Create: the team is GEX_TM_INVALID", Same),
    ("atomic-pair", "is no team, but a pair of endpoints", Same),
    ("atomic-no-type", "gex_AD_Create: 0x24 is no type", Same),
    (
        "atomic-bits-of-numbers",
        "gex_AD_Create: an atomic domain of Ops(AND) on words of type F64: bits are an integer's",
        Same,
    ),
    ("atomic-user-operation", "gex_AD_Create: an atomic domain of Ops(0x40000000)", Same),
    ("atomic-no-domain", "gex_AD_OpNB_I64: the domain of atomic operations is null", Same),
    ("atomic-domain-of-nothing", "gex_AD_QueryDT: the domain of atomic operations is null", Untried),
    ("atomic-destroyed-nothing", "gex_AD_Destroy: the domain of atomic operations is null", Same),
    ("atomic-team-as-domain", "is no domain of atomic operations, but a team", Untried),
    ("atomic-no-rank", "gex_AD_OpNB_I64: there is no rank 3: the team has 3", Same),
    ("atomic-no-job-rank", "gex_AD_OpNB_I64: there is no rank 3: the team has 3", Same),
    ("atomic-odd", "8 bytes at offset 4 of rank 0's segment, which is no multiple of that", Same),
    ("atomic-outside", "are outside the segment of rank 0, which has 4096 bytes (the place is", Same),
    ("atomic-other-operation", "atomic Ops(FSUB) on a word of type I64: its domain was made for", Same),
    ("atomic-two-operations", "gex_AD_OpNB_I64: the operation 0x40008 is none for the type 0x4", Same),
    ("atomic-operation-of-integers", "gex_AD_OpNB_DBL: the operation 0x1 is none for the type 0x20", Same),
    ("atomic-other-type", "on a word of type F64: its domain was made for", Same),
    ("atomic-no-result", "gex_AD_OpNB_I64: there is no place for the result", Same),
    ("atomic-not-mine", "gex_AD_OpNB_I64: GEX_FLAG_AD_MY_RANK of rank 2, which is another's", Same),
    ("atomic-destroyed", "is no domain of atomic operations, but a destroyed object", Same),
    ("atomic-destroyed-twice", "is no domain of atomic operations, but a destroyed object", Same),
];

/// Of scattered transfers.
const SCATTERED: &[Wrong] = &[
    ("scattered-no-rank", "gex_VIS_StridedPutBlocking: there is no rank 3: the team has 3", Same),
    ("scattered-outside", "gex_VIS_StridedPutBlocking: rank 1: ", Same),
    (
        "scattered-unequal",
        "gex_VIS_VectorPutNB: rank 1: a scattered transfer between 4 bytes of this rank and 3 of the other",
        Same,
    ),
    ("scattered-nowhere", "gex_VIS_IndexedGetNBI: 4 bytes at no address of this rank", Same),
    ("scattered-no-list", "gex_VIS_VectorGetBlocking: 1 pieces at", Same),
    (
        "scattered-completion",
        "gex_VIS_SetPeerCompletionHandler: 128 bytes: GEX_VIS_MAX_PEERCOMPLETION is 127",
        Same,
    ),
];
