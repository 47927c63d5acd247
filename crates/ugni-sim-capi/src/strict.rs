//! Ends the job where a client breaks a rule, if `GASWORKS_UGNI_STRICT` asks for that. What the rules are is for the NIC to know,
//! but for those of handles.
//!
//! # Invariants
//! - strict.1: a function that runs at the end of the process uses nothing but statics that are never dropped, and takes what the system
//!   gives it.

use std::ffi::{c_int, c_void};
use std::process;
use std::sync::{Arc, OnceLock};

use gasworks_os::say;
use gasworks_os::settings::{Kind, Setting};
use gasworks_ugni_sim::nic::{Breach, Event, Inbound, Kind as EventKind, Nic, Rule};

use crate::{call, leave};

const STRICT: Setting = Setting {
    name: "GASWORKS_UGNI_STRICT",
    aliases: &[],
    kind: Kind::Boolean,
    default: "0",
    unit: "",
    meaning: "Whether a client that breaks a rule of uGNI is ended, with a message",
    reader: "ugni-sim",
};

unsafe extern "C" {
    /// As `atexit`, but the hook is told the code. Of the GNU C library.
    fn on_exit(hook: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// The process that is strict, if it is; a child of `fork` has nothing of its own to leave behind.
fn strict_process() -> Option<u32> {
    static STRICT_IN: OnceLock<Option<u32>> = OnceLock::new();
    *STRICT_IN.get_or_init(|| {
        let is_wanted = STRICT.boolean().unwrap_or_else(|error| {
            say(&format!("libugni: {error}"));
            process::abort()
        });
        if is_wanted {
            // SAFETY: strict.1: `at_exit` takes a code and the null pointer of this call, and looks at statics and at a thread-local that
            // has no destructor; its code stays loaded (`build.rs`).
            unsafe { on_exit(at_exit, std::ptr::null_mut()) };
            leave::watch();
        }
        is_wanted.then(process::id)
    })
}

/// Whether clients are held to the rules.
pub(crate) fn is_on() -> bool {
    strict_process().is_some()
}

/// Holds a NIC's client to them.
pub(crate) fn watch(nic: &Nic) {
    if is_on() {
        nic.be_strict(Box::new(|breach| end(breach)), inbound());
    }
}

fn inbound() -> &'static Arc<Inbound> {
    static INBOUND: OnceLock<Arc<Inbound>> = OnceLock::new();
    INBOUND.get_or_init(Arc::default)
}

/// Another process has told this one something, not by writing to its memory.
pub(crate) fn was_told() {
    if is_on() {
        inbound().note();
    }
}

/// An event was taken: those of others tell something.
pub(crate) fn took(event: &Event) {
    if [EventKind::Remote, EventKind::CqWrite, EventKind::Engine].contains(&event.kind) {
        was_told();
    }
}

/// Names the rule, the call and what it was about, and ends the process. By a signal: no launcher takes that for a good end,
/// no hook of the client's goes on as if nothing had happened, and a debugger or a core shows who it was.
fn end(Breach { rule, what }: &Breach) -> ! {
    let call::Call { name, handle, concern } = call::now();
    let mut place = if name.is_empty() { "the NIC's engine".to_owned() } else { name.to_owned() };
    if handle != 0 {
        place += &format!(", handle {handle:#x}");
    }
    if concern != 0 {
        let kind = if name.starts_with("GNI_Smsg") { "message" } else { "descriptor" };
        place += &format!(", {kind} {concern:#x}");
    }
    say(&format!("libugni: strict: {} ({place}): {what}; {}", rule.text(), rule.advice()));
    process::abort()
}

/// A handle leads nowhere: `was` says whether it did once.
pub(crate) fn led_nowhere(kind: &str, was: bool) {
    if was && is_on() {
        end(&Breach { rule: Rule::Stale, what: format!("the {kind} of that handle was destroyed") });
    }
}

extern "C" fn at_exit(code: c_int, _: *mut c_void) {
    check_end(code, "exit");
}

/// Sees what a client that ends well, by this function, leaves behind.
pub(crate) fn check_end(code: c_int, function: &'static str) {
    if code == 0 && strict_process() == Some(process::id()) {
        call::begin(function);
        crate::ugni::check_all();
    }
}
