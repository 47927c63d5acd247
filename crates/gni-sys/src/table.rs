//! How a table of functions is declared once, and filled in two ways.
//!
//! # Invariants
//! - table.1: the functions of a library of such a name have the types that are declared here.

use std::ffi::CString;

use gasworks_os::OsError;
use gasworks_os::library::Library;

macro_rules! functions {
    (
        $(#[$doc:meta])*
        $table:ident of $link:literal, $libraries:ident;
        needed { $(fn $needed:ident($($na:ident: $nt:ty),* $(,)?) $(-> $nr:ty)?;)* }
        optional { $(fn $optional:ident($($oa:ident: $ot:ty),* $(,)?) $(-> $or:ty)?;)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $table {
            $(#[allow(missing_docs)] pub $needed: unsafe extern "C" fn($($na: $nt),*) $(-> $nr)?,)*
            $(#[allow(missing_docs)] pub $optional: Option<unsafe extern "C" fn($($oa: $ot),*) $(-> $or)?>,)*
        }

        impl $table {
            /// The names of all functions, those that every library has first.
            pub const NAMES: &[&str] = &[$(stringify!($needed),)* $(stringify!($optional),)*];

            /// Opens the library at `path`, or the system's.
            ///
            /// # Errors
            /// There is no such library, or it lacks a function; with its name.
            pub fn open(path: Option<&str>) -> Result<Self, gasworks_os::OsError> {
                let path = path.map(|path| [path]);
                let names = path.as_ref().map_or($libraries, |path| path.as_slice());
                let library = gasworks_os::library::Library::open(names)?;
                Ok(Self {
                    // SAFETY: table.1 of the module `table`: the function of this name has the type of its field.
                    $($needed: unsafe { crate::table::function(&library, stringify!($needed)) }
                        .ok_or_else(|| crate::table::lacks(names, stringify!($needed)))?,)*
                    // SAFETY: table.1 of the module `table`: if there is a function of this name, it has the type of its field.
                    $($optional: unsafe { crate::table::function(&library, stringify!($optional)) },)*
                })
            }

            /// The functions of the library that this program is linked with.
            #[cfg(feature = "linked")]
            pub fn linked() -> Self {
                #[link(name = $link)]
                unsafe extern "C" {
                    $(fn $needed($($na: $nt),*) $(-> $nr)?;)*
                    $(fn $optional($($oa: $ot),*) $(-> $or)?;)*
                }
                Self { $($needed,)* $($optional: Some($optional),)* }
            }
        }

        impl std::fmt::Debug for $table {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($table))
            }
        }
    };
}

pub(crate) use functions;

/// # Safety
/// As [`Library::function`].
pub(crate) unsafe fn function<F: Copy>(library: &Library, name: &str) -> Option<F> {
    let name = CString::new(name).ok()?;
    // SAFETY: the caller promises that `F` is the type of the function `name`, as table.1 has it for those of a table.
    unsafe { library.function(&name) }
}

#[cold]
pub(crate) fn lacks(names: &[&str], name: &str) -> OsError {
    OsError::other("open the library", names.join(" or "), format!("it has no {name}: is it the right one?"))
}
