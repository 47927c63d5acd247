//! The sets that C programs have made, by number: a handle is looked up, never followed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;

use gasworks_sock::{Class, Error, Set, Sock, SockId};
use parking_lot::RwLock;

use crate::abi::{CSet, CSock, SUCCESS, code};

struct Table {
    /// How many inits have no finalize yet.
    inits: u32,
    /// The number that was given last.
    last: i32,
    sets: BTreeMap<i32, Set>,
}

static TABLE: RwLock<Table> = RwLock::new(Table { inits: 0, last: 0, sets: BTreeMap::new() });

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The end of every call: the code of its result; the words of an error are kept for the thread.
pub(crate) fn done(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => SUCCESS,
        Err(error) => {
            LAST_ERROR.with(|last| *last.borrow_mut() = error.to_string());
            code(&error)
        }
    }
}

pub(crate) fn last_error() -> String {
    LAST_ERROR.with(|last| last.borrow().clone())
}

fn not_initialised() -> Error {
    Error::new(Class::Init, "use the socket engine").cause("gasworks_sock_init was not called")
}

pub(crate) fn initialised() -> Result<(), Error> {
    if TABLE.read().inits == 0 { Err(not_initialised()) } else { Ok(()) }
}

pub(crate) fn init() {
    TABLE.write().inits += 1;
}

/// The sets that are left after the last finalize are destroyed by force.
pub(crate) fn finalize() -> Result<(), Error> {
    let left = {
        let mut table = TABLE.write();
        table.inits = table.inits.checked_sub(1).ok_or_else(not_initialised)?;
        if table.inits > 0 {
            return Ok(());
        }
        std::mem::take(&mut table.sets)
    };
    left.into_values().try_for_each(|set| set.destroy_now())
}

pub(crate) fn add(set: Set) -> CSet {
    let mut table = TABLE.write();
    table.last += 1;
    let number = table.last;
    table.sets.insert(number, set);
    CSet { number }
}

pub(crate) fn remove(set: CSet) {
    TABLE.write().sets.remove(&set.number);
}

pub(crate) fn set(set: CSet, operation: &'static str) -> Result<Set, Error> {
    let table = TABLE.read();
    if table.inits == 0 {
        return Err(not_initialised());
    }
    let none = || Error::new(Class::BadSet, operation).cause(format!("there is no set {}", set.number));
    table.sets.get(&set.number).cloned().ok_or_else(none)
}

pub(crate) fn sock(sock: CSock, operation: &'static str) -> Result<Sock, Error> {
    let set = set(sock.set, operation).map_err(|error| match error.class() {
        Class::BadSet => Error::new(Class::BadSock, operation).cause("its set is destroyed"),
        _ => error,
    })?;
    let none = || Error::new(Class::BadSock, operation).cause("it is closed, or was never a sock");
    set.sock(SockId::from_number(sock.number)).ok_or_else(none)
}
