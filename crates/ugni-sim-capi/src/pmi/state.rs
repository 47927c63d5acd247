//! The one state of the process: whichever version of PMI it is used through, and whichever name the library was opened by.
//!
//! A process is in a job from its first init to its last finalize; if it begins again, with all others, that is another
//! job. What ALPS is asked for is what the launcher has told this rank; where that is not all, it needs a job too: all ranks join one
//! and leave it at once.

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

use gasworks_bootstrap::{Told, connect_as_cray, exit};
use gasworks_gni_sys::pmi::*;
use gasworks_ugni_sim::near::Wire;
use parking_lot::Mutex;

use super::Done;
use super::job::{Alps, Facts, Job, failed};
use crate::ugni::always_sock;
use crate::{host, leave};

struct State {
    /// How many inits have no finalize yet.
    inits: u64,
    job: Option<Job>,
    facts: Option<Arc<Facts>>,
    /// What the launcher has told this rank alone, once it was asked for.
    told: Option<Alps>,
}

/// Not in the state, which is locked as long as ranks wait for each other.
static WIRE: OnceLock<Wire> = OnceLock::new();
static ADDRESS: OnceLock<u32> = OnceLock::new();

static STATE: Mutex<State> = Mutex::new(State { inits: 0, job: None, facts: None, told: None });

impl State {
    /// Joins the next job. What the NIC needs is in the environment then.
    fn join(&mut self) -> Done<Job> {
        // First: who has no address is not to keep the others waiting in a job.
        let address = host::address().map_err(failed)?;
        let mut job = Job::begin(connect_as_cray().map_err(failed)?, address, self.facts.clone())?;
        if self.facts.is_none() {
            let nic = job.facts.nic.publish(job.facts.rank);
            if let Some(facts) = Arc::get_mut(&mut job.facts) {
                facts.nic = nic;
            }
            let _ = WIRE.set(job.facts.wire.clone());
            let own = job.facts.nodes.get(job.facts.rank as usize).map(|own| *own as u32);
            let _ = ADDRESS.set(own.unwrap_or(address));
            self.facts = Some(Arc::clone(&job.facts));
        }
        Ok(job)
    }
}

/// The address of this process's NIC: that of its rank, or where it has been in no job the host's.
///
/// # Errors
/// Why the host cannot be described.
pub fn address() -> Result<u32, String> {
    ADDRESS.get().map_or_else(host::address, |address| Ok(*address))
}

/// Joins, or counts that one more has.
///
/// # Errors
/// The launcher fails.
pub fn init() -> Done {
    let mut state = STATE.lock();
    if state.job.is_none() {
        state.job = Some(state.join()?);
    }
    state.inits += 1;
    Ok(())
}

/// Leaves, if nobody else is in any more.
///
/// # Errors
/// Nobody is in; or the launcher fails.
pub fn finalize() -> Done {
    let mut state = STATE.lock();
    state.inits = state.inits.checked_sub(1).ok_or(PMI_ERR_INIT)?;
    let last = state.inits == 0;
    match state.job.take_if(|_| last) {
        Some(job) => {
            leave::write();
            job.link.finalize().map_err(failed)
        }
        None => Ok(()),
    }
}

/// Whether somebody is in.
pub fn initialized() -> bool {
    STATE.lock().job.is_some()
}

/// Does something with the job that the process is in.
///
/// # Errors
/// It is in none; or those of `act`.
pub fn with<T>(act: impl FnOnce(&mut Job) -> Done<T>) -> Done<T> {
    act(STATE.lock().job.as_mut().ok_or(PMI_ERR_INIT)?)
}

/// What ALPS knows of this rank, which is in the environment then. Collective where the process was in no job yet, and its launcher has
/// not told it enough.
///
/// # Errors
/// The launcher fails.
pub fn alps() -> Done<Alps> {
    let mut state = STATE.lock();
    if let Some(facts) = &state.facts {
        return Ok(Alps::of(facts));
    }
    if let Some(told) = &state.told {
        return Ok(told.clone());
    }
    // Ranks that are to reach each other over sockets have to meet, to tell each other where.
    if !always_sock().map_err(failed)?
        && let Some(told) = Told::as_cray().map_err(failed)?
        && let Some(mut alps) = Alps::told(&told, host::address().map_err(failed)?).map_err(failed)?
    {
        let _ = ADDRESS.set(alps.nic.address);
        alps.nic = alps.nic.publish(told.rank);
        state.told = Some(alps.clone());
        return Ok(alps);
    }
    let job = state.join()?;
    job.link.finalize().map_err(failed)?;
    Ok(Alps::of(&job.facts))
}

/// The way to NICs of other hosts, as far as the process has met the other ranks.
pub fn wire() -> Wire {
    WIRE.get().cloned().unwrap_or_default()
}

/// Says why, and ends all ranks with `code`; where the process is in no job, it alone. From any thread, also while another is
/// in a call that waits.
pub fn abort(code: c_int, message: &str) -> ! {
    if let Some(state) = STATE.try_lock()
        && let Some(job) = &state.job
    {
        job.link.abort(code, message);
    }
    gasworks_os::say(&format!("gasworks: {message}"));
    exit(code)
}

/// Says why, and ends this process with `code`; its launcher decides what becomes of the others.
pub fn end(code: c_int, message: &str) -> ! {
    gasworks_os::say(&format!("gasworks: {message}"));
    gasworks_os::process::exit_now(code)
}
