//! What a process has asked of its NIC: calls with what they gave, and bytes, written at its end where
//! `GASWORKS_UGNI_WITNESS` says.
//!
//! # Invariants
//! W1. A function that runs at the end of the process uses nothing but statics that are never dropped.

use std::fmt::Write as _;
use std::sync::OnceLock;

use gasworks_gni_sys::{GNI_RC_ERROR_NOMEM, gni_post_type_t, gni_return_t};
use gasworks_os::say;
use gasworks_os::settings::{Kind, Setting};
use gasworks_sync::atomic::{AtomicU64, Ordering::Relaxed};

const PATH: Setting = Setting {
    name: "GASWORKS_UGNI_WITNESS",
    aliases: &[],
    kind: Kind::Text,
    default: "",
    unit: "",
    meaning: "Where each process writes what it has asked of the software NIC: PATH.PID.json",
    reader: "ugni-sim",
};

const CODES: usize = GNI_RC_ERROR_NOMEM as usize + 1;
/// Types of posts are below this.
const TYPES: usize = 16;

/// What a function was asked, by what it gave.
pub(crate) struct Calls {
    name: &'static str,
    codes: [AtomicU64; CODES],
}

/// Posts of a type, and their bytes.
struct Posts {
    count: AtomicU64,
    bytes: AtomicU64,
}

static POSTS: [Posts; TYPES] =
    [const { Posts { count: AtomicU64::new(0), bytes: AtomicU64::new(0) } }; TYPES];

/// Whether anybody wants to know. The first time, the end of the process is seen to.
fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| {
        let wanted = PATH.raw().is_some();
        if wanted {
            // SAFETY: W1.
            unsafe { libc::atexit(write) };
        }
        wanted
    })
}

impl Calls {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, codes: [const { AtomicU64::new(0) }; CODES] }
    }

    /// It was called, and gave this.
    pub(crate) fn gave(&self, code: gni_return_t) {
        if is_wanted()
            && let Some(count) = self.codes.get(code as usize)
        {
            count.fetch_add(1, Relaxed);
        }
    }
}

/// Bytes were posted.
pub(crate) fn posted(kind: gni_post_type_t, bytes: u64) {
    if is_wanted()
        && let Some(posts) = POSTS.get(kind as usize)
    {
        posts.count.fetch_add(1, Relaxed);
        posts.bytes.fetch_add(bytes, Relaxed);
    }
}

extern "C" fn write() {
    let Some((_, path)) = PATH.raw() else { return };
    let path = format!("{path}.{}.json", std::process::id());
    if let Err(error) = std::fs::write(&path, text()) {
        say(&format!("libugni: {path}: {error}"));
    }
}

/// All of it as JSON: what was never called is left out.
fn text() -> String {
    let calls = crate::ugni::all_calls().iter().filter_map(|calls| {
        let codes = calls.codes.iter().zip(crate::ugni::code_names());
        let given: Vec<String> = codes
            .map(|(count, name)| (count.load(Relaxed), name))
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("\"{name}\": {count}"))
            .collect();
        (!given.is_empty()).then(|| format!("    \"{}\": {{{}}}", calls.name, given.join(", ")))
    });
    let posts = (0..).zip(&POSTS).filter_map(|(kind, posts)| {
        let (count, bytes) = (posts.count.load(Relaxed), posts.bytes.load(Relaxed));
        let name = crate::ugni::post_name(kind);
        (count > 0).then(|| format!("    \"{name}\": {{\"posts\": {count}, \"bytes\": {bytes}}}"))
    });
    let all = |lines: &mut dyn Iterator<Item = String>| lines.collect::<Vec<_>>().join(",\n");
    let mut text = String::new();
    // A string takes it.
    let _ = write!(
        text,
        "{{\n  \"process\": {},\n  \"calls\": {{\n{}\n  }},\n  \"posted\": {{\n{}\n  }}\n}}\n",
        std::process::id(),
        all(&mut { calls }),
        all(&mut { posts }),
    );
    text
}
