//! A client that is linked with the libraries, as programs without shared libraries are: says which rank it is, and of which chip.
//!
//! # Invariants
//! - linked.1: what a call writes is a number of ours, and this is the only thread.

use gasworks_gni_sys::pmi::{Pmi, Pmi2};
use gasworks_gni_sys::udreg::Udreg;
use gasworks_gni_sys::{GNI_DEVICE_ARIES, GNI_RC_SUCCESS, Ugni};

fn main() {
    let (ugni, pmi) = (Ugni::linked(), Pmi::linked());
    let (mut spawned, mut rank, mut size, mut chip) = (0, 0, 0, 0);
    // SAFETY: linked.1: each of these writes one number, of this function's; no other thread calls anything.
    unsafe {
        assert_eq!((pmi.PMI_Init)(&raw mut spawned), 0);
        assert_eq!((pmi.PMI_Get_rank)(&raw mut rank), 0);
        assert_eq!((pmi.PMI_Get_size)(&raw mut size), 0);
        assert_eq!((ugni.GNI_GetDeviceType)(&raw mut chip), GNI_RC_SUCCESS);
    }
    let chip = if chip == GNI_DEVICE_ARIES { "Aries" } else { "Gemini" };
    println!("rank {rank} of {size} has a NIC of {chip}");
    // Each is a table of its own library's.
    println!("{:?} and {:?} are linked too", Pmi2::linked(), Udreg::linked());
    // SAFETY: linked.1: it is given nothing to write to; no other thread calls anything.
    assert_eq!(unsafe { (pmi.PMI_Finalize)() }, 0);
}
