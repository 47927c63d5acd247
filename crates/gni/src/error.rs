//! Why there is no transport over uGNI.

use gasworks_bootstrap::BootstrapError;
use gasworks_gni_sys::{CONSTANTS, gni_return_t};
use gasworks_os::OsError;
use gasworks_os::settings::SettingError;
use thiserror::Error;

/// Why the transport could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GniError {
    /// A setting cannot be used as it stands.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// There is no library, or not the right one.
    #[error("{0}; GASWORKS_UGNI_LIBRARY says where libugni is")]
    Library(OsError),
    /// The launcher has not said what a job needs to use the NIC.
    #[error(
        "{variable} is not set: it comes from Cray's PMI, so start the program by aprun or srun, or with \
         GASWORKS_BOOTSTRAP=cray where libpmi can be found"
    )]
    NoJob {
        /// The variable.
        variable: &'static str,
    },
    /// A function of the library did not do what it was asked.
    #[error("{call} gave {code}")]
    Call {
        /// The function.
        call: &'static str,
        /// The name of the code.
        code: &'static str,
    },
    /// The library is of a version without it.
    #[error("this libugni has no {call}")]
    Missing {
        /// The function.
        call: &'static str,
    },
    /// Each domain was to have a descriptor for short transfers, and there are not so many.
    #[error(
        "GNI_CdmAttach gave GNI_RC_ERROR_RESOURCE: the NIC has no descriptor for short transfers left for each process; \
         GASNET_GNI_FMA_SHARING=1 shares them"
    )]
    Dedicated,
    /// The NIC is neither of the two.
    #[error("the NIC is of kind {number}: neither Gemini (0) nor Aries (1)")]
    Chip {
        /// What the library says it is.
        number: u32,
    },
    /// The cache of registrations that was asked for has no library.
    #[error("{0}; GASWORKS_UDREG_LIBRARY says where libudreg is, and GASNET_USE_UDREG=0 goes without it")]
    UdregLibrary(OsError),
    /// The library is not the one that this was built for.
    #[error(
        "{library}: its layout is not known here, for Gasworks was built without a site's udreg_pub.h: build it with \
         GASWORKS_UDREG_INCLUDE=DIR, the directory of that header, or set GASNET_USE_UDREG=0 to go without UDREG"
    )]
    UdregLayout {
        /// Where it is.
        library: String,
    },
    /// It could not be made.
    #[error(
        "{call}() failed with rc={number} ({code}): a cache of {entries} registrations may be too large beside those of other libraries; \
         GASNET_GNI_MEMREG makes it smaller, and GASNET_USE_UDREG=0 goes without it"
    )]
    Udreg {
        /// The function.
        call: &'static str,
        /// The code.
        number: u32,
        /// Its name.
        code: &'static str,
        /// For how many registrations.
        entries: u32,
    },
    /// Memory could not be registered.
    #[error("registering {len} bytes with the NIC: GNI_MemRegister gave {code}")]
    Register {
        /// How many.
        len: usize,
        /// The name of the code.
        code: &'static str,
    },
    /// Memory for the messages, or the segment, could not be had.
    #[error(transparent)]
    Memory(#[from] OsError),
    /// What is asked for is more than can be.
    #[error("{what}")]
    TooLarge {
        /// What, and which setting says so.
        what: String,
    },
    /// A rank has other settings, or says what no rank of ours does.
    #[error("rank {rank} {what}")]
    Differs {
        /// Which.
        rank: u32,
        /// What it says.
        what: String,
    },
    /// The launcher failed.
    #[error("{0}")]
    Bootstrap(#[from] BootstrapError),
    /// The engine could not be made.
    #[error("{0}")]
    Engine(#[from] gasworks_rdma::EngineError),
}

/// Texts of the library's, which are kept for good: it has a few of them.
#[derive(Debug, Default)]
pub(crate) struct Texts(Vec<&'static str>);

impl Texts {
    const MOST: usize = 64;

    pub fn keep(&mut self, text: &str) -> &'static str {
        if let Some(known) = self.0.iter().find(|known| **known == text) {
            return known;
        }
        if self.0.len() == Self::MOST {
            return "the NIC says more than can be kept";
        }
        let kept = Box::leak(text.into());
        self.0.push(kept);
        kept
    }
}

/// What a code is called.
pub(crate) fn code_name(code: gni_return_t) -> &'static str {
    let is_it = |(name, value): &&(&str, i64)| name.starts_with("GNI_RC_") && *value == i64::from(code);
    CONSTANTS.iter().find(is_it).map_or("a code that is none", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_once() {
        let mut texts = Texts::default();
        let first = texts.keep("the target cannot be reached");
        (0..200).for_each(|number| _ = texts.keep(&format!("{number}")));
        assert!(std::ptr::eq(first, texts.keep(&String::from(first))));
        assert_eq!(texts.keep("62"), "62");
        assert_eq!(texts.keep("63"), "the NIC says more than can be kept");
    }
}
