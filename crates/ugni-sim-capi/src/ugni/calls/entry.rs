//! What events say.

use gasworks_gni_sys::*;
use gasworks_ugni_sim::entry::{Body, Entry, Status, Tells};
use gasworks_ugni_sim::reduction;

use crate::ugni::object::COLLECTIVES;
use crate::ugni::raw::{Answer, Out, Text};
use crate::ugni::settings;

/// An event, taken apart. What is none says nothing.
fn open(event: u64) -> Option<Entry> {
    Entry::decode(event, settings::chip()?)
}

fn ask(event: u64, question: impl FnOnce(&Entry) -> u64) -> u64 {
    open(event).map_or(0, |entry| question(&entry))
}

/// 48 bits of an event that came from afar.
pub(super) fn data(event: u64) -> u64 {
    ask(event, |entry| match entry.body {
        Body::Remote(data) => Tells::open(data).1,
        Body::Local { .. } | Body::Message { .. } => 0,
    })
}

/// What an event from afar says, or what a message is called.
pub(super) fn said(event: u64) -> u64 {
    ask(event, |entry| match entry.body {
        Body::Remote(data) => Tells::open(data).1,
        Body::Message { id, .. } => id.into(),
        Body::Local { .. } => 0,
    })
}

pub(super) fn source(event: u64) -> u64 {
    ask(event, |entry| entry.source as u64)
}

pub(super) fn status(event: u64) -> u64 {
    ask(event, |entry| entry.status.into())
}

pub(super) fn overrun(event: u64) -> u64 {
    ask(event, |entry| entry.overrun.into())
}

pub(super) fn remote_overrun(event: u64) -> u64 {
    ask(event, |entry| entry.remote_overrun.into())
}

pub(super) fn instance(event: u64) -> u64 {
    ask(event, |entry| match entry.body {
        Body::Local { instance, .. } => instance.into(),
        Body::Remote(data) => data & u64::from(u32::MAX),
        Body::Message { .. } => 0,
    })
}

pub(super) fn remote_instance(event: u64) -> u64 {
    data(event) & u64::from(u32::MAX)
}

pub(super) fn transaction(event: u64) -> u64 {
    ask(event, |entry| match entry.body {
        Body::Local { transaction, .. } => transaction.into(),
        Body::Remote(_) | Body::Message { .. } => 0,
    })
}

pub(super) fn kind(event: u64) -> u64 {
    ask(event, |entry| match entry.body {
        Body::Local { kind, .. } | Body::Message { kind, .. } => kind.into(),
        Body::Remote(_) => 0,
    })
}

/// What the sender has called a message.
pub(super) fn message(event: u64) -> u64 {
    ask(event, |entry| match entry.body {
        Body::Message { id, .. } => id.into(),
        Body::Local { .. } | Body::Remote(_) => 0,
    })
}

/// Of an engine's event: the engine's name, or what the event has of it if the engine is gone.
pub(super) fn engine(event: u64) -> u64 {
    let short = reduction::engine(data(event));
    let mut name = short;
    COLLECTIVES.each(|collective| {
        let own = collective.engine.name();
        if u64::from(reduction::short_name(own)) == short {
            name = own.into();
        }
    });
    name
}

/// The same: the name of the reduction.
pub(super) fn reduction(event: u64) -> u64 {
    reduction::name(data(event))
}

pub(super) fn is_dla_overflow(event: u64) -> u32 {
    (status(event) == Status::DlaOverflow as u64).into()
}

pub(super) fn is_enqueue(event: u64) -> u32 {
    (status(event) == Status::Enqueue as u64).into()
}

/// Of sub-kinds, of transaction types, and of dynamic load alleviation no event of this NIC says anything.
pub(super) fn none(_event: u64) -> u64 {
    0
}

/// An event with another part; what is none stays as it is.
fn changed(event: u64, change: impl FnOnce(&mut Entry)) -> u64 {
    let Some((mut entry, chip)) = open(event).zip(settings::chip()) else { return event };
    change(&mut entry);
    entry.encode(chip)
}

/// The lower half of what came from afar is its value.
fn with_value(data: u64, value: u64) -> u64 {
    const VALUE: u64 = u32::MAX as u64;
    data & !VALUE | value & VALUE
}

pub(super) fn set_instance(event: u64, value: u64) -> u64 {
    changed(event, |entry| match &mut entry.body {
        Body::Local { instance, .. } => *instance = value as u32,
        Body::Remote(data) => *data = with_value(*data, value),
        Body::Message { .. } => {}
    })
}

pub(super) fn set_remote_instance(event: u64, value: u64) -> u64 {
    changed(event, |entry| {
        if let Body::Remote(data) = &mut entry.body {
            *data = with_value(*data, value);
        }
    })
}

pub(super) fn set_transaction(event: u64, value: u64) -> u64 {
    changed(event, |entry| {
        if let Body::Local { transaction, .. } = &mut entry.body {
            *transaction = value as u32;
        }
    })
}

pub(super) fn set_message(event: u64, value: u64) -> u64 {
    changed(event, |entry| {
        if let Body::Message { id, .. } = &mut entry.body {
            *id = value as u32;
        }
    })
}

/// What has another shape then begins with nothing but its type; what came from afar has none.
pub(super) fn set_kind(event: u64, value: u64) -> u64 {
    let of = (value & GNI_CQ_EVENT_TYPE_MSGQ) as u8;
    let is_message = [GNI_CQ_EVENT_TYPE_SMSG, GNI_CQ_EVENT_TYPE_MSGQ].contains(&of.into());
    changed(event, |entry| match (&mut entry.body, is_message) {
        (Body::Remote(_), _) => {}
        (Body::Local { kind, .. }, false) | (Body::Message { kind, .. }, true) => *kind = of,
        (body, true) => *body = Body::Message { kind: of, id: 0 },
        (body, false) => *body = Body::Local { kind: of, instance: 0, transaction: 0 },
    })
}

pub(super) fn clear_status(event: u64) -> u64 {
    changed(event, |entry| entry.status = Status::Ok as u8)
}

pub(super) fn error_text(event: u64, text: Text, length: u32) -> Answer {
    let status = open(event).and_then(|entry| Status::of(entry.status.into()));
    text.set(status.ok_or(GNI_RC_INVALID_PARAM)?.text(), length)
}

pub(super) fn is_recoverable(event: u64, recoverable: Out<u32>) -> Answer {
    let status = open(event).and_then(|entry| Status::of(entry.status.into()));
    let status = status.filter(|status| *status != Status::Ok).ok_or(GNI_RC_INVALID_STATE)?;
    recoverable.set(status.is_recoverable().into());
    Ok(())
}
