//! The job: how it begins, its segment, how it ends.
//!
//! # Invariants
//! As in the crate.

use crate::codes::refused;
use crate::face::{Face, FaceMode, end_at_panics, fail, went};
use crate::known::{Endpoints, Known, Teams};
use crate::layout::{
    Client, ERR_BAD_ARG, ERR_RESOURCE, Endpoint, Flags, Kind, OK, Objects, PAIRS, RankInfo, Segment, Team,
};
use gasworks::{Config, Job, Seq, Table, ThreadMode};
use gasworks_memory::Row;
use gasworks_os::memfd::page_size;
use gasworks_sync::Lock;
use gasworks_sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

/// What `gex_Client_Init` gives back.
#[derive(Clone, Copy, Debug)]
pub struct Results {
    /// `gex_Client_t *`.
    pub client: *mut *mut Client,
    /// `gex_EP_t *`.
    pub ep: *mut *mut Endpoint,
    /// `gex_TM_t *`.
    pub tm: *mut *mut Team,
}

/// Stores what C asked for.
///
/// # Safety
/// capi.1: there is room, or none is wanted.
pub(crate) unsafe fn give<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: capi.1: `place` is not null here, and the caller has room for one `T` there.
        unsafe { place.write(value) };
    }
}

/// What a program's network is called that was compiled as it says. The networks have one library, under several names: it is the program
/// that says for which it is.
fn conduit(compiled: &str) -> Option<&str> {
    compiled.split_once("CONDUIT=")?.1.split_once('(').map(|(name, _)| name)
}

/// The same, if it is a network that is known here.
fn over<'c, M: ThreadMode>(call: &str, compiled: &'c str) -> &'c str {
    match conduit(compiled).filter(|name| M::networks().find(name).is_ok()) {
        Some(name) => name,
        None => fail(
            call,
            format!("the program was compiled as {compiled}, for a network that is not known here"),
        ),
    }
}

/// The largest payload of a Medium in programs that were compiled as the header's words say.
///
/// # Safety
/// capi.1.
pub(crate) unsafe fn max_medium_of(call: &str, compiled: *const c_char) -> usize {
    // SAFETY: capi.1: the caller passes on the configuration of the program's header, a literal.
    let compiled = unsafe { CStr::from_ptr(compiled) }.to_string_lossy();
    let networks = Seq::networks();
    went(call, networks.find(over::<Seq>(call, &compiled)).and_then(|network| network.max_medium()))
}

/// `gex_Client_Init`, of a program that was compiled as it says, and whose segment is at most so large, if it says that (not 0, or by a text). What it
/// makes is in `objects`, too.
///
/// # Safety
/// capi.1, capi.3.
pub unsafe fn init<M: FaceMode>(
    objects: *mut Objects,
    results: Results,
    (name, argv): (*const c_char, *const *const *const c_char),
    flags: Flags,
    compiled: *const c_char,
    (most, limit): (u64, *const c_char),
) -> c_int {
    const CALL: &str = "gex_Client_Init";
    end_at_panics();
    // SAFETY: capi.1: `compiled` is a literal: the configuration that the program's header has.
    let compiled = unsafe { CStr::from_ptr(compiled) }.to_string_lossy();
    let own = format!("THREADMODEL={},", M::MODEL);
    if !compiled.contains(&own) {
        fail(CALL, format!("the program was compiled as {compiled}, and its library is of {own}"));
    }
    let network = over::<M>(CALL, &compiled);
    if M::slot().get().is_some() {
        fail(CALL, "the job has begun: there is one client, once");
    }
    let nowhere = results.client.is_null() || results.ep.is_null() || results.tm.is_null();
    if nowhere && crate::place::is_known() {
        fail(CALL, "there is no place for the client, its endpoint or its team");
    }
    let is_debug = compiled.contains(",debug,");
    // SAFETY: capi.1: `name` is not null here and ends with a zero; it is copied below.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    // SAFETY: capi.1: `argv` is null, or leads to null or to a program's arguments, of which the first is its name or null.
    unsafe {
        let program = argv.as_ref().and_then(|argv| argv.as_ref()).map_or(std::ptr::null(), |first| *first);
        gasworks_tools::start::gasnett_backtrace_init(program);
    }
    gasworks_tools::crash::watch();
    gasworks_tools::machine::keep_memory_if_wanted();
    let mut config = went(CALL, Config::from_env()).network(network);
    if !limit.is_null() {
        // SAFETY: capi.1: `limit` is not null here: it is a text that C has set `gasnet_max_segsize_str` to.
        let limit = unsafe { CStr::from_ptr(limit) }.to_string_lossy();
        config = went(CALL, config.segment_limit(&limit));
    }
    let config = config.segment_later().end_by_return(true);
    let config = if most > 0 { config.segment_max(most) } else { config };
    let job = went(CALL, Job::<M>::open(config, Table::new()));
    let peers = job.engine().peers();
    let (rows, rank, size) = (peers.rows().as_ptr(), job.rank(), job.ranks());
    gasworks_tools::environ::speak(rank == 0);
    if rank == 0 && gasworks_tools::environ::gasnett_verboseenv() != 0 {
        // A report that nobody can read is no reason to fail.
        let lines = gasworks::settings::lines(gasworks_tools::settings::SETTINGS.iter());
        let _ = std::io::Write::write_all(&mut std::io::stderr(), lines.as_bytes());
    }
    gasworks_tools::crash::of_rank(rank, size);
    gasworks_tools::backtrace::of_rank(rank);
    gasworks_tools::start::freeze_if_wanted();
    // All of it stays until the process ends (capi.2).
    let leak = |client: Client| Box::into_raw(Box::new(client));
    let (cdata, kind) = (std::ptr::null(), |kind: Kind| kind as u32);
    let name = CString::from(name).into_raw();
    let client = leak(Client { cdata, kind: kind(Kind::Client), flags, name });
    let ep = kind(Kind::Endpoint);
    let ep = Endpoint { cdata, kind: ep, flags: 0, client, segment: null_mut(), index: 0, pairs: null_mut() };
    let ep = Box::into_raw(Box::new(ep));
    let pitch = size_of::<Row>() as isize;
    let team = Team { cdata, kind: kind(Kind::Team), flags: 0, client, ep, rows, pitch, rank, size };
    let pair = Team { kind: kind(Kind::Pair), ..team };
    let team = Box::into_raw(Box::new(team));
    // Endpoints that are not there have one row for all ranks, which is closed.
    let closed = Box::into_raw(Box::new(Row::default()));
    let mut pairs = vec![Team { rows: closed, pitch: 0, size: 0, ..pair }; PAIRS + 1];
    pairs[0] = pair;
    let pairs = Box::leak(pairs.into_boxed_slice()).as_mut_ptr();
    // SAFETY: capi.2: `ep` was made above and is never freed, and nobody else knows it yet.
    unsafe { (*ep).pairs = pairs };
    let segment = kind(Kind::Segment);
    let segment = Segment { cdata, kind: segment, flags: 0, client, address: null_mut(), size: 0 };
    let segment = Box::into_raw(Box::new(segment));
    // Made where they stay: an array would first lie on the stack.
    let entries: Box<[_]> = (0..256).map(|_| Default::default()).collect();
    let Ok(entries) = entries.try_into() else { unreachable!("there are 256") };
    let places = went(CALL, job.places());
    let infos = |ranks: Vec<u32>| ranks.into_iter().map(|rank| RankInfo { rank }).collect();
    let (neighbours, host) = (infos(places.around(rank)), infos(places.on_host_of(rank)));
    let everyone = Known::everyone(team, job.teams().1.clone());
    let (teams, endpoints) = (Lock::new(Teams::default()), Lock::new(Endpoints::first(ep)));
    // Read here: the end may come in a handler of signals, where no environment is read.
    let syncs = gasworks_tools::environ::is_on(&gasworks_tools::settings::FS_SYNC);
    M::slot().set(Face {
        job,
        is_debug,
        syncs,
        client,
        ep,
        team,
        everyone,
        teams,
        pairs,
        endpoints,
        segment,
        kind_data: Lock::new(std::ptr::null()),
        entries,
        functions: Lock::new(Vec::new()),
        places,
        neighbours,
        uses_mapped: AtomicBool::new(false),
        host,
    });
    // SAFETY: capi.1: `objects` is the library's own static, which C reads after this call alone; each result is null or C's room for it.
    unsafe {
        objects.write(Objects { client, ep, tm: team });
        give(results.client, client);
        give(results.ep, ep);
        give(results.tm, team);
    }
    OK
}

/// `gex_Segment_Attach`; `hook` is told of it. A segment of no bytes is one, in which nothing is.
///
/// # Safety
/// capi.1.
pub unsafe fn attach<M: FaceMode>(
    place: *mut *mut Segment,
    team: *const Team,
    size: usize,
    hook: Option<unsafe extern "C" fn(*mut c_void, usize)>,
) -> c_int {
    const CALL: &str = "gex_Segment_Attach";
    let face = M::slot().of(CALL);
    if team != face.team {
        fail(CALL, format!("{team:p} is not the team of all ranks"));
    }
    if !size.is_multiple_of(page_size()) {
        let what = format!("{size} bytes: wanted a multiple of {}", page_size());
        return refused(CALL, what, ERR_BAD_ARG);
    }
    let (ep, segment) = (face.ep, face.segment);
    // SAFETY: capi.2: the endpoint is there and stays; C attaches once, by one thread, so that nobody writes this field now.
    if unsafe { !(*ep).segment.is_null() } {
        return refused(CALL, "there is a segment: one is attached, once", ERR_RESOURCE);
    }
    face.settle(CALL);
    went(CALL, face.job.attach(size as u64));
    if face.uses_mapped.load(Relaxed) {
        face.show_mapped();
    }
    let address = face.own(0).cast();
    // SAFETY: capi.2: both objects are there and stay. No reference to them is held: handlers may have read them meanwhile, and C reads
    // the segment only where the endpoint names it, which it does last.
    unsafe {
        (&raw mut (*segment).address).write(address);
        (&raw mut (*segment).size).write(size);
        (&raw mut (*ep).segment).write(segment);
    }
    // SAFETY: capi.1: `place` is null or C's room for a segment's handle.
    unsafe { give(place, segment) };
    if let Some(hook) = hook {
        // SAFETY: capi.1: C has set the hook to a function that takes where a segment begins and its length.
        unsafe { hook(address, size) };
    }
    went(CALL, face.agent(CALL).barrier());
    OK
}

/// `gasnet_exit`.
pub fn exit<M: FaceMode>(code: c_int) -> ! {
    if crate::place::is_known() {
        M::slot().of("gasnet_exit");
    }
    if M::slot().get().is_some_and(|face| face.syncs) {
        gasworks_tools::process::sync_files();
    }
    gasworks::exit(code)
}
