//! What the software NIC reads that clients and peers have written.

use std::fs::File;
use std::os::unix::fs::FileExt;

use gasworks_gni_sys::*;
use gasworks_os::memfd;
use gasworks_sync::atomic::Ordering::Relaxed;
use gasworks_ugni_sim::chip::Chip;
use gasworks_ugni_sim::handle::{Flags, Handle};
use gasworks_ugni_sim::letter::{FRAME, Letter};
use gasworks_ugni_sim::mailbox::{Layout, Receiver, Sender, Word, size_needed};
use gasworks_ugni_sim::msgq::{Head, INSTANCES, Node, Plan, decode, encode};
use gasworks_ugni_sim::post::{Post, Rules, Way};
use gasworks_ugni_sim::window::Window;

/// Numbers from the front of some bytes; zeros when there are no more.
pub(crate) struct Numbers<'a>(pub(crate) &'a [u8]);

impl Numbers<'_> {
    pub(crate) fn next(&mut self, bytes: usize) -> u64 {
        let (front, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        front.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.next(8)
    }

    fn half(&mut self) -> u32 {
        self.next(4) as u32
    }

    pub(crate) fn quarter(&mut self) -> u16 {
        self.next(2) as u16
    }

    fn handle(&mut self) -> gni_mem_handle_t {
        gni_mem_handle_t { qword1: self.word(), qword2: self.word() }
    }

    fn chip(&mut self) -> Chip {
        Chip::ALL[(self.next(1) & 1) as usize]
    }
}

/// What clients describe: a post, memory, a mailbox, or a shared message queue, as the first byte says.
pub fn descriptor(data: &[u8]) {
    let [kind, bytes @ ..] = data else { return };
    let numbers = Numbers(bytes);
    match kind % 4 {
        0 => post(numbers),
        1 => memory(numbers),
        2 => mailbox(numbers),
        _ => shared(numbers),
    }
}

/// Refused, or it keeps to the rules that have no exception.
fn post(mut from: Numbers<'_>) {
    let rules = Rules { chip: from.chip(), modes: from.half() };
    let way = [Way::Fma, Way::Bte, Way::CqWrite][from.next(1) as usize % 3];
    let descriptor = gni_post_descriptor_t {
        r#type: from.next(1) as gni_post_type_t,
        cq_mode: from.quarter(),
        dlvr_mode: from.quarter(),
        rdma_mode: from.quarter(),
        local_addr: from.word(),
        local_mem_hndl: from.handle(),
        remote_addr: from.word(),
        remote_mem_hndl: from.handle(),
        length: from.word(),
        sync_flag_value: from.word(),
        sync_flag_addr: from.word(),
        amo_cmd: from.half() as gni_fma_cmd_type_t,
        first_operand: from.word(),
        second_operand: from.word(),
        cqwrite_value: from.word(),
        ce_cmd: from.half(),
        ce_mode: from.half(),
        ce_red_id: from.word(),
        post_id: from.word(),
        ..Default::default()
    };
    if let Ok(post) = Post::read(&descriptor, way, &rules) {
        assert!(way == Way::Bte || !post.wishes.local, "what the processor moves has no LOCAL event");
        assert!(way != Way::Bte || post.length > 0 && post.length <= u32::MAX.into());
        assert_eq!((post.id, post.delivery), (descriptor.post_id, descriptor.dlvr_mode));
        assert_eq!(post.remote_handle, Handle::open(&descriptor.remote_mem_hndl));
    }
}

/// What opens is sealed again alike, but for bits that mean nothing in its layout.
fn memory(mut from: Numbers<'_>) {
    let handle = from.handle();
    if let Ok(opened) = Handle::open(&handle) {
        assert_eq!(Handle::open(&opened.seal()), Ok(opened));
        let (address, len) = (from.word(), from.word());
        assert!(!opened.covers(address, len) || address >= opened.first());
    }
}

/// A mailbox that can be lies inside its bytes, and whatever words are in it, what is read lies there too.
fn mailbox(mut from: Numbers<'_>) {
    let attributes = gni_smsg_attr_t {
        msg_type: from.next(1) as gni_smsg_type_t,
        msg_buffer: std::ptr::without_provenance_mut(from.word() as usize),
        buff_size: from.half(),
        mbox_offset: from.half(),
        mbox_maxcredit: from.quarter(),
        msg_maxsize: from.half(),
        ..Default::default()
    };
    let needed = size_needed(&attributes);
    let Some(layout) = Layout::of(&attributes) else { return };
    assert!(needed.is_ok());
    let (first, len) = Layout::place(&attributes);
    let inside = |address: u64, bytes: u64| address >= first && address + bytes <= first + len;
    assert!(inside(layout.credit, 8) && inside(layout.word(layout.credits), 8));
    assert!(inside(layout.bytes, layout.room) && layout.word(layout.credits) + 8 <= layout.bytes);
    let (mut receiver, mut sender) = (Receiver::new(layout), Sender::new(layout));
    while !from.0.is_empty() {
        if let Some(slot) = sender.find(from.next(3)) {
            assert!(inside(slot.address, 0) && inside(layout.word(slot.number), 8));
            sender.put(slot);
        }
        // Words that could be the next one's, or not.
        let word = match from.next(1) {
            0 => from.word(),
            length => Word { number: receiver.released() as u32 + 1, length: length as u16, tag: 1 }.encode(),
        };
        match receiver.see(word) {
            Ok(Some(arrival)) => {
                assert!(inside(arrival.address, arrival.length) && arrival.length <= layout.most());
                receiver.release();
            }
            Ok(None) => {}
            Err(_) => return,
        }
        if sender.see_credit(from.next(1)).is_err() {
            return;
        }
    }
}

/// A plan's parts lie inside of it; a node that is understood says so again, and its lanes lie in its memory.
fn shared(mut from: Numbers<'_>) {
    let attributes = gni_msgq_attr_t {
        max_msg_sz: from.next(1) as u32,
        smsg_q_sz: from.quarter().into(),
        rcv_pool_sz: from.half(),
        num_msgq_eps: from.quarter().into(),
        nloc_insts: from.next(1) as u32,
        modes: from.next(1) as u8,
        rcv_cq_sz: from.half(),
    };
    if let Ok(plan) = Plan::of(&attributes) {
        assert_eq!(Plan::decode(plan.encode()), Some(plan));
        let value = u64::from(from.half());
        if let Some((connection, place)) = plan.lane_of(value) {
            assert!(connection < plan.connections && place < INSTANCES);
            assert_eq!(plan.value_of(connection, place), value);
        }
    }
    let _ = Plan::decode([from.word(), from.word()]);
    let head = Head::decode(&from.0[..from.0.len().min(16)]);
    assert_eq!(Head::decode(&head.encode()), head);
    let told = decode(from.0);
    let address = told.pe_addr;
    if let Ok(node) = Node::read(&told, address) {
        assert_eq!(Node::read(&decode(&encode(&told)), address).as_ref(), Ok(&node));
        for (place, member) in (0..).zip(&node.members) {
            assert_eq!(node.place_of(member.instance), Some(place));
            let (lane, _) = node.lane_at(member, INSTANCES - 1);
            assert!(member.memory.covers(lane, node.lane.stride()));
        }
    }
}

/// A letter of a peer: refused, or one that it could have sent.
pub fn letter(data: &[u8]) {
    let mut frame = [0; FRAME];
    frame.iter_mut().zip(data).for_each(|(to, byte)| *to = *byte);
    if let Some(letter) = Letter::decode(&frame) {
        assert_eq!(Letter::decode(&letter.encode()), Some(letter));
    }
}

/// Bytes of the file of a window.
const SHOWN: usize = 1 << 16;

/// The window of a peer that writes anything into it: refused, or what is laid over it lies inside, and nobody who uses it waits
/// for ever.
pub fn window(data: &[u8]) {
    let Ok(file) = memfd::create("gasworks-fuzz", SHOWN) else { return };
    let Ok(mapping) = file.map() else { return };
    let data = &data[..data.len().min(SHOWN)];
    if File::from(file.into_fd()).write_all_at(data, 0).is_err() {
        return;
    }
    let Ok(window) = Window::open(mapping) else { return };
    let shape = window.shape();
    assert!(shape.bytes() <= SHOWN);
    for number in (0..16).chain([255, 4095, u16::MAX]) {
        let registration = window.registration(number);
        assert_eq!(registration.is_some(), usize::from(number) < shape.registrations);
        if let Some(visit) = registration.and_then(|registration| registration.enter()) {
            let place = visit.place();
            let _ = place.queue.and_then(|queue| window.queue(queue)).map(|queue| queue.push(EVENT));
        }
        if let Some(queue) = window.queue(number) {
            assert!(usize::from(number) < shape.queues);
            let _ = (queue.holds_event(), queue.push(EVENT), queue.overrun());
            (0..64).map_while(|_| queue.pop()).for_each(drop);
        }
        let virtually = Handle { descriptor: number, flags: Flags::VMDH, ..Handle::default() };
        let _ = window.descriptor(&virtually).and_then(|descriptor| window.registration(descriptor));
    }
    let words = window.messages().map(|words| [2, 3].map(|at: usize| words[at].load(Relaxed)));
    let _ = words.and_then(Plan::decode);
}

/// Any event.
const EVENT: u64 = 1 << 60 | 7;
