//! The environment: reading it as settings, writing it, and saying what was read. A value that is not what it has to be ends the process.
//!
//! # Invariants
//! - environ.1: names and values from C are texts (text.1).

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use gasworks_os::say;
use gasworks_os::settings::Setting;

use crate::fatal::end;
use crate::variable::value;
use crate::{numbers, settings, text};

/// Whether this process says what it read; in a job one of them does.
static SPEAKS: OnceLock<bool> = OnceLock::new();

/// Lets this process say what settings it reads, or be silent. The first word counts; with none it speaks.
pub fn speak(wanted: bool) {
    let _ = SPEAKS.set(wanted);
}

/// Whether a variable says yes.
pub fn is_set(name: &CStr, default: bool) -> bool {
    value(name)
        .map_or(default, |text| numbers::answer(&text).unwrap_or_else(|| bad(name, &text, "yes or no")))
}

/// A number that a variable holds.
pub fn number(name: &CStr, default: f64) -> f64 {
    value(name).map_or(default, |text| text.trim().parse().unwrap_or_else(|_| bad(name, &text, "a number")))
}

/// Whether a setting of the tools says yes.
pub fn is_on(setting: &Setting) -> bool {
    is_set(&settings::name(setting), setting.default == settings::YES)
}

/// The number that a setting of the tools holds.
pub(crate) fn number_of(setting: &Setting) -> f64 {
    // That every default is what it should be is tested.
    number(&settings::name(setting), setting.default.parse().unwrap_or_default())
}

/// Says something that is no error, unless `GASNET_QUIET` forbids it.
pub fn warn(message: &str) {
    if !is_on(&settings::QUIET) {
        say(&format!("WARNING: {message}"));
    }
}

fn bad(name: &CStr, text: &str, wanted: &str) -> ! {
    end(
        None,
        &format!("the environment variable {} is '{text}', which is not {wanted}", name.to_string_lossy()),
    )
}

fn show(name: &str, value: &str, is_default: bool) {
    if gasnett_verboseenv() != 0 {
        say(format!("ENV parameter: {name} = {value:20}{}", if is_default { " (default)" } else { "" })
            .trim_end());
    }
}

/// A name from C.
///
/// # Safety
/// environ.1.
unsafe fn named<'a>(name: *const c_char) -> &'a CStr {
    // SAFETY: environ.1: the caller promises that `name` is a text, and that it stays for `'a`.
    unsafe { CStr::from_ptr(name) }
}

/// `getenv`.
///
/// # Safety
/// variable.1 and environ.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv(name: *const c_char) -> *mut c_char {
    // SAFETY: environ.1: `name` is a text. variable.1: the caller promises that no other thread writes the environment meanwhile.
    unsafe { libc::getenv(name) }
}

/// Sets a variable.
///
/// # Safety
/// variable.1 and environ.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_setenv(name: *const c_char, value: *const c_char) {
    // SAFETY: environ.1: both are texts, which the C library copies. variable.1: no other thread looks at the environment meanwhile.
    if unsafe { libc::setenv(name, value, 1) } != 0 {
        // SAFETY: environ.1: `name` is still the caller's text; `setenv` has kept nothing of it.
        let name = unsafe { text::read(name) }.unwrap_or_default();
        end(None, &format!("the environment variable '{name}' cannot be set"));
    }
}

/// Removes a variable.
///
/// # Safety
/// variable.1 and environ.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_unsetenv(name: *const c_char) {
    // SAFETY: environ.1: `name` is a text; one that cannot be set is not there to be removed. variable.1: no other thread looks meanwhile.
    let _ = unsafe { libc::unsetenv(name) };
}

/// The value of a variable, or the one given.
///
/// # Safety
/// variable.1 and environ.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_withdefault(
    name: *const c_char,
    value: *const c_char,
) -> *mut c_char {
    // SAFETY: environ.1: `name` is a text. variable.1: no other thread writes the environment, so what is found stays.
    let found = unsafe { libc::getenv(name) };
    let given = if found.is_null() { value.cast_mut() } else { found };
    // SAFETY: environ.1: `name` is a text, and so is `given`, the caller's, unless it is null or what was found, which stays (variable.1).
    unsafe { gasnett_envstr_display(name, given, c_int::from(found.is_null())) };
    given
}

/// A variable that says yes or no.
///
/// # Safety
/// variable.1 and environ.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_yesno_withdefault(name: *const c_char, default: c_int) -> c_int {
    // SAFETY: environ.1: the caller promises that `name` is a text until this returns, and so as long as it is borrowed here.
    let name = unsafe { named(name) };
    let answer = is_set(name, default != 0);
    show(&name.to_string_lossy(), if answer { "YES" } else { "NO" }, value(name).is_none());
    c_int::from(answer)
}

/// A variable that holds an integer; an amount of memory where `multiplier` is not 0.
///
/// # Safety
/// variable.1 and environ.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_int_withdefault(
    name: *const c_char,
    default: i64,
    multiplier: u64,
) -> i64 {
    // SAFETY: environ.1: `name` is a text, which the caller keeps until this returns; the borrow ends before.
    let name = unsafe { named(name) };
    let found = value(name);
    let number = found.as_ref().map_or(default, |text| {
        numbers::parse(text, multiplier).unwrap_or_else(|| bad(name, text, "an integer"))
    });
    show(&name.to_string_lossy(), &numbers::format(number, multiplier != 0), found.is_none());
    number
}

/// A variable that holds a number.
///
/// # Safety
/// variable.1 and environ.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_dbl_withdefault(name: *const c_char, default: f64) -> f64 {
    // SAFETY: environ.1: `name` is a text until this returns; the number is found and shown before.
    let name = unsafe { named(name) };
    let number = number(name, default);
    show(&name.to_string_lossy(), &number.to_string(), value(name).is_none());
    number
}

/// An integer in a text, with a unit perhaps. What is none ends the process.
///
/// # Safety
/// text.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_parse_int(text: *const c_char, multiplier: u64) -> i64 {
    // SAFETY: text.1: the caller promises that `text` is null or a text that stays until this returns.
    let text = unsafe { text::read(text) }.unwrap_or_default();
    numbers::parse(&text, multiplier).unwrap_or_else(|| end(None, &format!("'{text}' is not an integer")))
}

/// A number as text, in the caller's buffer.
///
/// # Safety
/// text.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_number(
    value: i64,
    buffer: *mut c_char,
    size: usize,
    is_memory: c_int,
) -> *mut c_char {
    // SAFETY: text.2: the caller promises `size` bytes at `buffer`, for this call.
    unsafe { text::write(&numbers::format(value, is_memory != 0), buffer, size) };
    buffer
}

/// Whether settings are said as they are read.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_verboseenv() -> c_int {
    c_int::from(*SPEAKS.get().unwrap_or(&true) && is_set(c"GASNET_VERBOSEENV", false))
}

/// Says a setting that is a text.
///
/// # Safety
/// environ.1; the value may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_envstr_display(
    name: *const c_char,
    value: *const c_char,
    is_default: c_int,
) {
    // SAFETY: environ.1: `name` is a text, and `value` is null or a text, both until this returns.
    let (name, value) = unsafe { (named(name), text::read(value)) };
    let shown = value.map_or("*not set*".to_owned(), |v| if v.is_empty() { "*empty*".to_owned() } else { v });
    show(&name.to_string_lossy(), &shown, is_default != 0);
}

/// Says a setting that is an integer.
///
/// # Safety
/// environ.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_envint_display(
    name: *const c_char,
    value: i64,
    is_default: c_int,
    is_memory: c_int,
) {
    // SAFETY: environ.1: `name` is a text, which this call shows and does not keep.
    let name = unsafe { named(name) };
    show(&name.to_string_lossy(), &numbers::format(value, is_memory != 0), is_default != 0);
}

/// Says a setting that is a number.
///
/// # Safety
/// environ.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_envdbl_display(name: *const c_char, value: f64, is_default: c_int) {
    // SAFETY: environ.1: `name` is a text; the borrow ends with the statement.
    show(&unsafe { named(name) }.to_string_lossy(), &value.to_string(), is_default != 0);
}
