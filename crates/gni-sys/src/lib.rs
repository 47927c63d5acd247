//! The interface of uGNI, the library that programs use Cray's Gemini and Aries networks through: its types, constants and
//! functions at revision 0x5d, with the names that it gives them.
//!
//! And those of UDREG, its cache of registrations ([`udreg`]), and of PMI, by which its clients find their job ([`pmi`]).
//!
//! The functions stand in one table, [`Ugni`], which is filled by opening a library at run time ([`Ugni::open`]), or by the
//! linker where the feature `linked` is on (`Ugni::linked`), as programs without shared libraries need it.
//!
//! ```no_run
//! use gasworks_gni_sys::{GNI_RC_SUCCESS, Ugni};
//!
//! let ugni = Ugni::open(None)?;
//! let mut chip = 0;
//! // SAFETY: it writes one number.
//! let code = unsafe { (ugni.GNI_GetDeviceType)(&raw mut chip) };
//! assert_eq!(code, GNI_RC_SUCCESS);
//! # Ok::<(), gasworks_os::OsError>(())
//! ```
#![deny(missing_docs)]
#![allow(non_camel_case_types, non_snake_case)]

mod constants;
#[allow(unsafe_code)]
mod functions;
#[allow(unsafe_code)]
pub mod pmi;
#[allow(unsafe_code)]
mod table;
#[allow(unsafe_code)]
mod types;
#[allow(unsafe_code)]
pub mod udreg;

pub use constants::*;
pub use functions::{LIBRARY, Ugni};
pub use types::*;
