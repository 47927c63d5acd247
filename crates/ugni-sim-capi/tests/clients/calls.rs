//! Random programs of calls, also wrong ones, by clients with three NICs, against a plain model of memory and events: of each
//! call it knows the codes that it may give, of each queue what comes next, and of each memory all bytes.
//!
//! In the adversarial mood a client that looks at an empty queue often enough has all that is on its way arrive; then the same is true.

use std::collections::VecDeque;
use std::process::Command;
use std::ptr::null_mut;

use gasworks_gni_sys::*;
use gasworks_os::memfd::{self, Mapping, MemFd};
use gasworks_testkit::cases::is_nightly;
use proptest::prelude::*;

use super::program::{Programs, run as well};

const NICS: usize = 3;
const PAGE: u64 = 4096;
const BYTES: u64 = 4 * PAGE;
/// What the domains of the NICs allow.
const MODES: [u32; NICS] =
    [0, GNI_CDM_MODE_DUAL_EVENTS, GNI_CDM_MODE_DUAL_EVENTS | GNI_CDM_MODE_BTE_SINGLE_CHANNEL];
/// Looks after which nothing is on its way.
const LOOKS: usize = 100;

/// Something that a client does. What it does that to is picked among all that there ever was, and nothing.
#[derive(Clone, Debug)]
enum Step {
    CqCreate { nic: usize, entries: u32 },
    CqDestroy { queue: usize },
    EpCreate { nic: usize, queue: usize },
    EpBind { end: usize, to: usize },
    EpUnbind { end: usize },
    EpDestroy { end: usize },
    SetData { end: usize, value: u32 },
    Register { nic: usize, first: u64, len: u64, queue: usize, read_only: bool },
    Deregister { nic: usize, memory: usize },
    Post(Box<Posting>),
    Get { queue: usize },
}

#[derive(Clone, Debug)]
struct Posting {
    end: usize,
    /// 0: `GNI_PostFma`, 1: `GNI_PostRdma`, 2: `GNI_PostCqWrite`.
    way: usize,
    kind: gni_post_type_t,
    here: (usize, u64),
    there: (usize, u64),
    length: u64,
    events: u16,
    fence: bool,
    command: gni_fma_cmd_type_t,
    operands: [u64; 2],
    flag: u64,
}

fn aligned(most: u64) -> impl Strategy<Value = u64> {
    (0..most, prop::sample::select(vec![0u64, 0, 0, 3, 7, 7, 7])).prop_map(|(number, mask)| number & !mask)
}

fn posting() -> impl Strategy<Value = Posting> {
    // As a rule by the function that it is for.
    let kinds = [
        (0, GNI_POST_FMA_PUT),
        (0, GNI_POST_FMA_PUT_W_SYNCFLAG),
        (0, GNI_POST_FMA_GET),
        (0, GNI_POST_AMO),
        (0, GNI_POST_AMO),
        (1, GNI_POST_RDMA_PUT),
        (1, GNI_POST_RDMA_GET),
        (2, GNI_POST_CQWRITE),
    ];
    let commands = [
        GNI_FMA_ATOMIC_ADD,
        GNI_FMA_ATOMIC_FADD,
        GNI_FMA_ATOMIC_CSWAP,
        GNI_FMA_ATOMIC_FAND,
        GNI_FMA_ATOMIC2_FSWAP,
        0xff,
    ];
    let what = (prop::sample::select(kinds.to_vec()), prop::option::weighted(0.05, 0..3usize));
    let events = prop_oneof![3 => Just(GNI_CQMODE_GLOBAL_EVENT), 4 => 0..8u16];
    let length = prop_oneof![6 => aligned(64), 1 => aligned(BYTES), 1 => Just(0), 1 => Just(u64::MAX)];
    let places = ((0..99usize, aligned(BYTES)), (0..99usize, aligned(BYTES)), length, aligned(BYTES));
    let rest = (prop::sample::select(commands.to_vec()), any::<[u64; 2]>(), prop::bool::weighted(0.1));
    (0..99usize, what, places, events, rest).prop_map(|(end, what, places, events, rest)| {
        let ((way, kind), other) = what;
        let ((here, there, length, flag), (command, operands, fence)) = (places, rest);
        let way = other.unwrap_or(way);
        Posting { end, way, kind, here, there, length, events, fence, command, operands, flag }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let some = || 0..99usize;
    let length = prop_oneof![1..BYTES, Just(0), Just(u64::MAX)];
    prop_oneof![
        2 => (0..NICS, 0..9u32).prop_map(|(nic, entries)| Step::CqCreate { nic, entries }),
        1 => some().prop_map(|queue| Step::CqDestroy { queue }),
        3 => (0..NICS, some()).prop_map(|(nic, queue)| Step::EpCreate { nic, queue }),
        3 => (some(), 0..NICS + 1).prop_map(|(end, to)| Step::EpBind { end, to }),
        1 => some().prop_map(|end| Step::EpUnbind { end }),
        1 => some().prop_map(|end| Step::EpDestroy { end }),
        1 => (some(), any::<u32>()).prop_map(|(end, value)| Step::SetData { end, value }),
        3 => (0..NICS, 0..BYTES, length, some(), prop::bool::weighted(0.1)).prop_map(
            |(nic, first, len, queue, read_only)| Step::Register { nic, first, len, queue, read_only }
        ),
        1 => (0..NICS, some()).prop_map(|(nic, memory)| Step::Deregister { nic, memory }),
        12 => posting().prop_map(|post| Step::Post(Box::new(post))),
        8 => some().prop_map(|queue| Step::Get { queue }),
    ]
}

/// A call of the library.
macro_rules! call {
    ($ugni:expr, $name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: what is passed is the library's, a number, or leads to a value that lives as long as the call or its world.
        unsafe { ($ugni.$name)($($argument),*) }
    };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Undecided,
    Source,
    Destination,
}

/// An event that is to come.
#[derive(Clone, Debug)]
enum Told {
    /// Of this post, which has ended well or not, with so many more to come.
    Here {
        post: usize,
        well: bool,
        last: bool,
    },
    There(u64),
}

struct Queue {
    handle: gni_cq_handle_t,
    nic: usize,
    live: bool,
    entries: usize,
    role: Role,
    /// Requests that are taken.
    requests: usize,
    told: VecDeque<Told>,
    lost: bool,
}

struct End {
    handle: gni_ep_handle_t,
    nic: usize,
    queue: Option<usize>,
    live: bool,
    to: Option<usize>,
    value: Option<u32>,
    outstanding: usize,
}

struct Memory {
    handle: gni_mem_handle_t,
    nic: usize,
    first: u64,
    end: u64,
    live: bool,
    read_only: bool,
    queue: Option<usize>,
}

struct Post {
    descriptor: Box<gni_post_descriptor_t>,
    end: usize,
}

struct World<'a> {
    ugni: &'a Ugni,
    domains: Vec<gni_cdm_handle_t>,
    nics: Vec<gni_nic_handle_t>,
    address: u32,
    aries: bool,
    /// Look at these, which nothing comes to, and time goes on.
    clocks: Vec<gni_cq_handle_t>,
    memory: Vec<Mapping>,
    /// That of one stays open, so that others reach it there: few bytes of it go another way.
    #[expect(dead_code, reason = "it is kept open")]
    open_file: Option<MemFd>,
    model: Vec<Vec<u8>>,
    queues: Vec<Queue>,
    ends: Vec<End>,
    registered: Vec<Memory>,
    posts: Vec<Post>,
}

/// One of a list, or none.
fn pick<T>(list: &[T], number: usize) -> Option<usize> {
    let at = number % (list.len() + 1);
    (at < list.len()).then_some(at)
}

impl<'a> World<'a> {
    fn new(ugni: &'a Ugni, aries: bool, number: u32) -> Self {
        let (mut domains, mut nics, mut clocks, mut memory, mut address) =
            (vec![], vec![], vec![], vec![], 0);
        let mut open_file = None;
        for (nic, modes) in MODES.into_iter().enumerate() {
            let (mut domain, mut device, mut clock) = (null_mut(), null_mut(), null_mut());
            let cookie = std::process::id() << 10 | number & 0x3ff;
            assert_eq!(call!(ugni, GNI_CdmCreate(nic as u32, 5, cookie, modes, &mut domain)), 0);
            assert_eq!(call!(ugni, GNI_CdmAttach(domain, 0, &mut address, &mut device)), 0);
            assert_eq!(call!(ugni, GNI_CqCreate(device, 1, 0, 0, None, null_mut(), &mut clock)), 0);
            domains.push(domain);
            nics.push(device);
            clocks.push(clock);
            let file = memfd::create("calls", BYTES as usize).expect("memory");
            memory.push(file.map().expect("mapped"));
            open_file = open_file.or((nic == 1).then_some(file));
        }
        let model = vec![vec![0; BYTES as usize]; NICS];
        let (queues, ends, registered, posts) = (vec![], vec![], vec![], vec![]);
        Self {
            ugni,
            domains,
            nics,
            address,
            aries,
            clocks,
            memory,
            open_file,
            model,
            queues,
            ends,
            registered,
            posts,
        }
    }

    fn base(&self, nic: usize) -> u64 {
        self.memory[nic].as_ptr().expose_provenance() as u64
    }

    /// All that is on its way arrives.
    fn settle(&self) {
        for clock in self.clocks.iter().cycle().take(LOOKS * NICS) {
            let mut event = 0;
            assert_eq!(call!(self.ugni, GNI_CqGetEvent(*clock, &mut event)), GNI_RC_NOT_DONE);
        }
    }

    fn queue_handle(&self, queue: Option<usize>) -> gni_cq_handle_t {
        queue.map_or(null_mut(), |queue| self.queues[queue].handle)
    }

    fn end_handle(&self, end: Option<usize>) -> gni_ep_handle_t {
        end.map_or(null_mut(), |end| self.ends[end].handle)
    }

    /// The end, if it is there.
    fn live_end(&mut self, end: Option<usize>) -> Option<&mut End> {
        self.ends.get_mut(end?).filter(|end| end.live)
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::CqCreate { nic, entries } => {
                let mut handle = null_mut();
                let code = call!(
                    self.ugni,
                    GNI_CqCreate(self.nics[nic], entries, 0, 0, None, null_mut(), &mut handle)
                );
                prop_assert_eq!(code, if entries == 0 { GNI_RC_INVALID_PARAM } else { 0 });
                if code == 0 {
                    let (entries, told) = (entries as usize, VecDeque::new());
                    let role = Role::Undecided;
                    self.queues.push(Queue {
                        handle,
                        nic,
                        live: true,
                        entries,
                        role,
                        requests: 0,
                        told,
                        lost: false,
                    });
                }
            }
            Step::CqDestroy { queue } => {
                let queue = pick(&self.queues, queue);
                // Where others may still write a client leaves it alone.
                if queue.is_some_and(|queue| {
                    self.registered.iter().any(|memory| memory.live && memory.queue == Some(queue))
                }) {
                    return Ok(());
                }
                let code = call!(self.ugni, GNI_CqDestroy(self.queue_handle(queue)));
                let there = queue.filter(|queue| self.queues[*queue].live);
                let used = there
                    .is_some_and(|queue| self.ends.iter().any(|end| end.live && end.queue == Some(queue)));
                prop_assert_eq!(
                    code,
                    match there {
                        None => GNI_RC_INVALID_PARAM,
                        Some(_) if used => GNI_RC_ERROR_RESOURCE,
                        Some(_) => 0,
                    }
                );
                if let (0, Some(queue)) = (code, there) {
                    self.queues[queue].live = false;
                }
            }
            Step::EpCreate { nic, queue } => {
                let (queue, mut handle) = (pick(&self.queues, queue), null_mut());
                let code =
                    call!(self.ugni, GNI_EpCreate(self.nics[nic], self.queue_handle(queue), &mut handle));
                let good = queue.is_none_or(|queue| {
                    let queue = &self.queues[queue];
                    queue.live && queue.nic == nic && queue.role != Role::Destination
                });
                prop_assert_eq!(code, if good { 0 } else { GNI_RC_INVALID_PARAM });
                if good {
                    if let Some(queue) = queue {
                        self.queues[queue].role = Role::Source;
                    }
                    self.ends.push(End {
                        handle,
                        nic,
                        queue,
                        live: true,
                        to: None,
                        value: None,
                        outstanding: 0,
                    });
                }
            }
            Step::EpBind { end, to } => {
                let end = pick(&self.ends, end);
                let code = call!(self.ugni, GNI_EpBind(self.end_handle(end), self.address, to as u32));
                let free = self.live_end(end).filter(|end| end.to.is_none());
                prop_assert_eq!(code, if free.is_some() { 0 } else { GNI_RC_INVALID_PARAM });
                if let Some(end) = free {
                    end.to = Some(to);
                }
            }
            Step::EpUnbind { end } => {
                let end = pick(&self.ends, end);
                let code = call!(self.ugni, GNI_EpUnbind(self.end_handle(end)));
                let wanted = match self.live_end(end) {
                    None => GNI_RC_INVALID_PARAM,
                    Some(end) if end.outstanding > 0 => GNI_RC_NOT_DONE,
                    Some(end) => {
                        end.to = None;
                        0
                    }
                };
                prop_assert_eq!(code, wanted);
            }
            Step::EpDestroy { end } => {
                let end = pick(&self.ends, end);
                let code = call!(self.ugni, GNI_EpDestroy(self.end_handle(end)));
                let wanted = self.live_end(end).map_or(GNI_RC_INVALID_PARAM, |end| {
                    end.live = false;
                    0
                });
                prop_assert_eq!(code, wanted);
            }
            Step::SetData { end, value } => {
                let end = pick(&self.ends, end);
                let code = call!(self.ugni, GNI_EpSetEventData(self.end_handle(end), 1, value));
                let there = self.live_end(end);
                prop_assert_eq!(code, if there.is_some() { 0 } else { GNI_RC_INVALID_PARAM });
                if let Some(end) = there {
                    end.value = Some(value);
                }
            }
            Step::Register { nic, first, len, queue, read_only } => {
                let len = if len == u64::MAX { len } else { len.min(BYTES - first) };
                let (queue, mut handle) = (pick(&self.queues, queue), gni_mem_handle_t::zeroed());
                let flags = if read_only { GNI_MEM_READ_ONLY } else { 0 };
                let (at, queue_handle) = (self.base(nic) + first, self.queue_handle(queue));
                let code = call!(
                    self.ugni,
                    GNI_MemRegister(self.nics[nic], at, len, queue_handle, flags, u32::MAX, &mut handle)
                );
                let good = len > 0
                    && len != u64::MAX
                    && queue.is_none_or(|queue| {
                        let queue = &self.queues[queue];
                        queue.live && queue.nic == nic && queue.role != Role::Source
                    });
                prop_assert_eq!(code, if good { 0 } else { GNI_RC_INVALID_PARAM });
                if good {
                    if let Some(queue) = queue {
                        self.queues[queue].role = Role::Destination;
                    }
                    // Of a page all may be reached.
                    let (first, end) = (first / PAGE * PAGE, (first + len).next_multiple_of(PAGE));
                    self.registered.push(Memory { handle, nic, first, end, live: true, read_only, queue });
                }
            }
            Step::Deregister { nic, memory } => {
                let memory = pick(&self.registered, memory);
                let mut handle =
                    memory.map_or(gni_mem_handle_t::zeroed(), |memory| self.registered[memory].handle);
                let code = call!(self.ugni, GNI_MemDeregister(self.nics[nic], &mut handle));
                let named = memory.and_then(|memory| self.named(nic, memory));
                prop_assert_eq!(code, if named.is_some() { 0 } else { GNI_RC_INVALID_PARAM });
                if let Some(named) = named {
                    self.registered[named].live = false;
                }
            }
            Step::Post(ref post) => self.post(post)?,
            Step::Get { queue } => {
                let Some(queue) = pick(&self.queues, queue) else { return Ok(()) };
                self.get(queue)?;
            }
        }
        for (memory, model) in self.memory.iter().zip(&self.model) {
            // SAFETY: it is mapped, and the library writes there only while it is called, or before it has settled.
            let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), BYTES as usize) };
            prop_assert!(bytes == model, "a memory is not what it should be");
        }
        Ok(())
    }

    /// The registration of a NIC that a handle means, be it an older one's.
    fn named(&self, nic: usize, memory: usize) -> Option<usize> {
        let word = self.registered[memory].handle.qword1;
        let same = |memory: &Memory| memory.live && memory.nic == nic && memory.handle.qword1 == word;
        self.registered.iter().position(same)
    }

    /// The same, where bytes may be read or written; `None`: not there.
    fn reached(
        &self,
        nic: usize,
        memory: Option<usize>,
        (at, len): (u64, u64),
        write: bool,
    ) -> Option<usize> {
        let named = self.named(nic, memory?)?;
        let (own, said) = (&self.registered[named], &self.registered[memory?]);
        let end = at.checked_add(len)?;
        let inside = |memory: &Memory| memory.first <= at && end <= memory.end;
        (inside(own) && inside(said) && !(write && own.read_only)).then_some(named)
    }

    fn post(&mut self, post: &Posting) -> Result<(), TestCaseError> {
        let Posting { way, kind, length, events, fence, command, operands, flag, .. } = *post;
        let end = pick(&self.ends, post.end);
        let Some(from) = end.map(|end| self.ends[end].nic) else { return Ok(()) };
        let to = end.and_then(|end| self.ends[end].to);
        let (here, there) = (pick(&self.registered, post.here.0), pick(&self.registered, post.there.0));
        let ((_, at_here), (_, at_there)) = (post.here, post.there);
        // Where no NIC has the number, it is the handle that says whose memory is meant.
        let meant = to.and_then(|to| if to < NICS { Some(to) } else { Some(self.registered[there?].nic) });
        // What lies over itself comes out in any way.
        let over = meant == Some(from)
            && at_here < at_there.saturating_add(length)
            && at_there < at_here.saturating_add(length);
        // Of a source that ends in the midst some may have been put before that was found.
        let cut = at_here < BYTES && at_here.saturating_add(length) > BYTES;
        if over || cut {
            return Ok(());
        }
        let there_base = meant.map_or(0, |to| self.base(to));
        let handle = |memory: Option<usize>| {
            memory.map_or(gni_mem_handle_t::zeroed(), |memory| self.registered[memory].handle)
        };
        let number = self.posts.len();
        let mut descriptor = Box::new(gni_post_descriptor_t {
            r#type: kind,
            cq_mode: events,
            local_addr: self.base(from) + at_here,
            local_mem_hndl: handle(here),
            remote_addr: there_base + at_there,
            remote_mem_hndl: handle(there),
            length,
            rdma_mode: if fence { GNI_RDMAMODE_FENCE } else { 0 },
            sync_flag_addr: there_base + flag,
            sync_flag_value: operands[1],
            amo_cmd: command,
            first_operand: operands[0],
            second_operand: operands[1],
            cqwrite_value: operands[0],
            post_id: number as u64 + 1000,
            ..gni_post_descriptor_t::zeroed()
        });
        let handle = self.end_handle(end);
        let code = match way {
            0 => call!(self.ugni, GNI_PostFma(handle, &mut *descriptor)),
            1 => call!(self.ugni, GNI_PostRdma(handle, &mut *descriptor)),
            _ => call!(self.ugni, GNI_PostCqWrite(handle, &mut *descriptor)),
        };
        let end = end.expect("one was picked");
        let wrong = self.wrong(post, end, here, there, descriptor.remote_addr, descriptor.local_addr);
        let right = if wrong.is_empty() { code == 0 } else { wrong.contains(&code) };
        prop_assert!(right, "it gives {code}, wanted one of {wrong:?}");
        if code != 0 {
            return Ok(());
        }
        self.settle();
        self.posts.push(Post { descriptor, end });
        let well = self.carry_out(post, (from, to), there);
        let (local, global) = (events & GNI_CQMODE_LOCAL_EVENT != 0, events & GNI_CQMODE_GLOBAL_EVENT != 0);
        let count =
            if well { usize::from(local) + usize::from(global) } else { usize::from(local || global) };
        if local || global {
            let queue = self.ends[end].queue.expect("it has one");
            self.ends[end].outstanding += usize::from(local) + usize::from(global);
            self.queues[queue].requests += 1;
            for left in (0..count).rev() {
                self.queues[queue].told.push_back(Told::Here { post: number, well, last: left == 0 });
            }
        }
        Ok(())
    }

    /// The codes of all that is wrong with a post.
    fn wrong(
        &self,
        post: &Posting,
        end: usize,
        here: Option<usize>,
        there: Option<usize>,
        remote: u64,
        local: u64,
    ) -> Vec<gni_return_t> {
        let Posting { way, kind, length, events, fence, command, .. } = *post;
        let End { nic, queue, live, to, .. } = self.ends[end];
        let has = |mode| MODES[nic] & mode != 0;
        let (one, other) = (events & GNI_CQMODE_LOCAL_EVENT != 0, events & GNI_CQMODE_GLOBAL_EVENT != 0);
        let mut wrong = Vec::new();
        let mut refuse = |is: bool, code: gni_return_t| {
            if is {
                wrong.push(code);
            }
        };
        let gets = [GNI_POST_FMA_GET, GNI_POST_RDMA_GET].contains(&kind);
        let puts = [GNI_POST_FMA_PUT, GNI_POST_FMA_PUT_W_SYNCFLAG, GNI_POST_RDMA_PUT].contains(&kind);
        let changes = kind == GNI_POST_AMO;
        let fetches = changes && command != GNI_FMA_ATOMIC_ADD;
        let own = match kind {
            GNI_POST_RDMA_PUT | GNI_POST_RDMA_GET => 1,
            GNI_POST_CQWRITE => 2,
            _ => 0,
        };
        refuse(!live || to.is_none() || own != way, GNI_RC_INVALID_PARAM);
        refuse(one && way != 1, GNI_RC_INVALID_PARAM);
        refuse(one && other && !has(GNI_CDM_MODE_DUAL_EVENTS), GNI_RC_INVALID_PARAM);
        refuse(way == 1 && (length == 0 || length > u32::MAX.into()), GNI_RC_INVALID_PARAM);
        refuse(way == 1 && fence && !has(GNI_CDM_MODE_BTE_SINGLE_CHANNEL), GNI_RC_INVALID_PARAM);
        refuse((gets || changes) && length == 0, GNI_RC_INVALID_PARAM);
        refuse(gets && (!(remote | length).is_multiple_of(4)), GNI_RC_ALIGNMENT_ERROR);
        refuse(gets && !self.aries && !local.is_multiple_of(4), GNI_RC_ALIGNMENT_ERROR);
        refuse(changes && !(remote | length).is_multiple_of(8), GNI_RC_ALIGNMENT_ERROR);
        refuse(changes && command == 0xff, GNI_RC_INVALID_PARAM);
        refuse(changes && command == GNI_FMA_ATOMIC2_FSWAP && !self.aries, GNI_RC_ILLEGAL_OP);
        let bytes = (local.wrapping_sub(self.base(nic)), length);
        let registered = gets || fetches || kind == GNI_POST_RDMA_PUT;
        let reached = self.reached(nic, here, bytes, false).map(|memory| &self.registered[memory]);
        refuse(registered && reached.is_none(), GNI_RC_INVALID_PARAM);
        refuse((gets || fetches) && reached.is_some_and(|memory| memory.read_only), GNI_RC_PERMISSION_ERROR);
        let said = there.map(|memory| &self.registered[memory]);
        refuse((puts || changes) && said.is_some_and(|memory| memory.read_only), GNI_RC_PERMISSION_ERROR);
        if one || other {
            let full = queue.map(|queue| {
                let Queue { entries, requests, .. } = self.queues[queue];
                let most = if has(GNI_CDM_MODE_DUAL_EVENTS) { (entries / 2).max(1) } else { entries };
                requests >= most
            });
            refuse(full.is_none(), GNI_RC_INVALID_PARAM);
            refuse(full == Some(true), GNI_RC_ERROR_RESOURCE);
        }
        wrong
    }

    /// What a post does; whether that goes well.
    fn carry_out(
        &mut self,
        post: &Posting,
        (from, to): (usize, Option<usize>),
        there: Option<usize>,
    ) -> bool {
        let Posting { kind, length, events, command, operands, flag, .. } = *post;
        let ((_, at_here), (_, at_there)) = (post.here, post.there);
        let bytes = (at_there, if kind == GNI_POST_AMO { 8 } else { length });
        let knows = |nic: &usize| match kind {
            GNI_POST_CQWRITE => there.and_then(|there| self.named(*nic, there)).is_some(),
            _ => self.reached(*nic, there, bytes, false).is_some(),
        };
        let to = to.and_then(|to| if to < NICS { Some(to) } else { (0..NICS).find(knows) });
        let Some(to) = to else { return false };
        let range = |at: u64, len: u64| at as usize..(at + len) as usize;
        let value = self.ends[self.posts.last().expect("this one").end].value.unwrap_or(from as u32);
        match kind {
            GNI_POST_CQWRITE => {
                // All NICs here are one process's, and a value names a queue alone: whichever NIC's memory it was registered with.
                let nics = std::iter::once(to).chain((0..NICS).filter(|nic| *nic != to));
                let queue = there
                    .and_then(|there| nics.into_iter().find_map(|nic| self.named(nic, there)))
                    .and_then(|named| self.registered[named].queue);
                if let Some(queue) = queue {
                    self.tell(queue, operands[0] & 0xffff_ffff_ffff);
                }
                return queue.is_some();
            }
            GNI_POST_AMO => {
                // One word, whatever the length.
                if self.reached(to, there, (at_there, 8), true).is_none() {
                    return false;
                }
                let place = &mut self.model[to][range(at_there, 8)];
                let old = u64::from_le_bytes(place.try_into().expect("eight"));
                let [first, second] = operands;
                let new = match command {
                    GNI_FMA_ATOMIC_ADD | GNI_FMA_ATOMIC_FADD => old.wrapping_add(first),
                    GNI_FMA_ATOMIC_FAND => old & first,
                    GNI_FMA_ATOMIC2_FSWAP => first,
                    _ if old == first => second,
                    _ => old,
                };
                place.copy_from_slice(&new.to_le_bytes());
                if command != GNI_FMA_ATOMIC_ADD {
                    self.model[from][range(at_here, 8)].copy_from_slice(&old.to_le_bytes());
                }
            }
            GNI_POST_FMA_GET | GNI_POST_RDMA_GET => {
                if self.reached(to, there, (at_there, length), false).is_none() {
                    return false;
                }
                let bytes = self.model[to][range(at_there, length)].to_vec();
                self.model[from][range(at_here, length)].copy_from_slice(&bytes);
            }
            _ => {
                // What the processor puts need not be registered, but has to be there.
                let inside = length == 0 || at_here.checked_add(length).is_some_and(|end| end <= BYTES);
                if !inside || self.reached(to, there, (at_there, length), true).is_none() {
                    return false;
                }
                let bytes = self.model[from].get(range(at_here, length)).unwrap_or(&[]).to_vec();
                self.model[to][range(at_there, length)].copy_from_slice(&bytes);
                if kind == GNI_POST_FMA_PUT_W_SYNCFLAG {
                    if !flag.is_multiple_of(8) || self.reached(to, there, (flag, 8), true).is_none() {
                        return false;
                    }
                    self.model[to][range(flag, 8)].copy_from_slice(&operands[1].to_le_bytes());
                }
            }
        }
        let named = there.and_then(|there| self.named(to, there));
        if let Some(queue) = named.and_then(|named| self.registered[named].queue)
            && events & GNI_CQMODE_REMOTE_EVENT != 0
        {
            self.tell(queue, value.into());
        }
        true
    }

    fn tell(&mut self, queue: usize, value: u64) {
        let queue = &mut self.queues[queue];
        if queue.told.len() < queue.entries {
            queue.told.push_back(Told::There(value));
        } else {
            queue.lost = true;
        }
    }

    /// Takes the next event, as the model says, and completes it.
    fn get(&mut self, at: usize) -> Result<(), TestCaseError> {
        let mut event = 0;
        let handle = self.queues[at].handle;
        let code = call!(self.ugni, GNI_CqGetEvent(handle, &mut event));
        if !self.queues[at].live {
            prop_assert_eq!(code, GNI_RC_INVALID_PARAM);
            return Ok(());
        }
        let next = loop {
            let next = self.queues[at].told.pop_front();
            if let Some(Told::Here { post, well, last }) = next {
                let end = &mut self.ends[self.posts[post].end];
                let events = self.posts[post].descriptor.cq_mode & GNI_CQMODE_DUAL_EVENTS;
                // After a failure nothing more is waited for.
                end.outstanding -= if well { 1 } else { events.count_ones() as usize };
                self.queues[at].requests -= usize::from(last);
                if !end.live {
                    continue;
                }
            }
            break next;
        };
        let lost = std::mem::take(&mut self.queues[at].lost);
        match next {
            None => prop_assert_eq!(code, GNI_RC_NOT_DONE),
            Some(Told::There(value)) => {
                prop_assert_eq!(code, if lost { GNI_RC_ERROR_RESOURCE } else { 0 });
                prop_assert_eq!(event & 0xffff_ffff_ffff, value);
            }
            Some(Told::Here { post, well, .. }) => {
                let wanted = if well { 0 } else { GNI_RC_TRANSACTION_ERROR };
                prop_assert_eq!(code, wanted);
                let mut found = null_mut();
                prop_assert_eq!(call!(self.ugni, GNI_GetCompleted(handle, event, &mut found)), wanted);
                let posted: *const gni_post_descriptor_t = &*self.posts[post].descriptor;
                prop_assert_eq!(found.cast_const(), posted);
                prop_assert_eq!(self.posts[post].descriptor.post_id, post as u64 + 1000);
            }
        }
        Ok(())
    }

    /// Takes all that is left: then nothing is outstanding.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        for queue in (0..self.queues.len()).filter(|queue| self.queues[*queue].live).collect::<Vec<_>>() {
            while !self.queues[queue].told.is_empty() {
                self.get(queue)?;
            }
            self.get(queue)?;
        }
        for end in self.ends.iter().filter(|end| end.live) {
            prop_assert_eq!(call!(self.ugni, GNI_EpUnbind(end.handle)), 0);
        }
        Ok(())
    }
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        for domain in &self.domains {
            call!(self.ugni, GNI_CdmDestroy(*domain));
        }
    }
}

/// By this the test knows that it is the one that another has started, with a library and its settings.
const LIBRARY: &str = "GASWORKS_UGNI_CALLS_LIBRARY";

fn setting(name: &str) -> Option<String> {
    let found = gasworks_os::environ::all().find(|(other, _)| other.to_str() == Some(name));
    found.map(|(_, value)| value.to_string_lossy().into_owned())
}

/// The NIC's settings are the environment's: each kind of NIC has a process of its own.
#[test]
fn random_programs_of_calls_do_what_the_model_does() {
    let Some(library) = setting(LIBRARY) else {
        let programs = Programs::shared("vmdh", &["ugni", "pmi"]);
        for (chip, mood) in
            [("aries", "plain"), ("gemini", "plain"), ("aries", "adversarial"), ("gemini", "adversarial")]
        {
            let mut own = Command::new(std::env::current_exe().expect("this test"));
            own.args(["--exact", "calls::random_programs_of_calls_do_what_the_model_does"]);
            own.env(LIBRARY, programs.library("ugni")).env("GASWORKS_UGNI_CHIP", chip);
            own.env("GASWORKS_UGNI_MOOD", mood);
            assert!(well(&mut own).contains("1 passed"));
        }
        return;
    };
    let aries = setting("GASWORKS_UGNI_CHIP").as_deref() == Some("aries");
    let ugni = Ugni::open(Some(&library)).expect("the library");
    let number = std::cell::Cell::new(0);
    let cases = if is_nightly() { 128 } else { 32 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), 1..120))| {
        number.set(number.get() + 1);
        let mut world = World::new(&ugni, aries, number.get());
        for step in &steps {
            world.step(step)?;
        }
        world.finish()?;
    });
}
