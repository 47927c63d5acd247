//! What a post asks for, and the rules that it is held to before anything is done.
//!
//! A descriptor is read once, when it is posted: clients change it as soon as that is over.

use gasworks_gni_sys::*;

use crate::atomics::Command;
use crate::chip::{Chip, LINE, MOST_BTE, MOST_WITH_FLAG, RESULT, RESULT_ALIGNMENT};
use crate::handle::{Corrupt, Handle};
use crate::reduction::{EXCEPTIONS, Operation, Part, is_name};

/// By which function it was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `GNI_PostFma`: the processor moves the bytes.
    Fma,
    /// `GNI_PostRdma`: the block transfer engine does.
    Bte,
    /// `GNI_PostCqWrite`.
    CqWrite,
    /// By none: the library puts something into a mailbox.
    Smsg,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Bytes go to the target.
    Put,
    /// Then a word is written there as well.
    PutWithFlag {
        /// Where.
        address: u64,
        /// What.
        value: u64,
    },
    /// Bytes come from the target.
    Get,
    /// Then a word is written beside them.
    GetWithFlag {
        /// Where.
        address: u64,
        /// What: the lower 32 bits.
        value: u64,
    },
    /// A word of the target is changed.
    Atomic {
        /// How.
        command: Command,
        /// With what.
        operands: [u64; 2],
        /// The old value comes with a flag: where, and which.
        flag: Option<(u64, u64)>,
    },
    /// An event is made at the target.
    CqWrite {
        /// Its 48 bits.
        value: u64,
    },
    /// Numbers are contributed to a reduction, whose result comes here.
    Reduce {
        /// The name of the reduction.
        id: u64,
        /// The numbers, and what is done to them.
        part: Part,
    },
}

/// Which events are wished for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The source may be used again.
    pub local: bool,
    /// All is done.
    pub global: bool,
    /// An event at the target.
    pub remote: bool,
}

impl Wishes {
    fn of(mode: u16) -> Self {
        let has = |bit| mode & bit != 0;
        Self {
            local: has(GNI_CQMODE_LOCAL_EVENT),
            global: has(GNI_CQMODE_GLOBAL_EVENT),
            remote: has(GNI_CQMODE_REMOTE_EVENT),
        }
    }

    /// How many events come to the poster.
    pub fn here(self) -> u32 {
        u32::from(self.local) + u32::from(self.global)
    }
}

/// A post.
#[derive(Clone, Copy)]
pub struct Post {
    /// What is to be done.
    pub action: Action,
    /// Which events tell of it.
    pub wishes: Wishes,
    /// The bytes here.
    pub local_address: u64,
    /// The handle of their registration.
    pub local_handle: gni_mem_handle_t,
    /// The bytes there.
    pub remote_address: u64,
    /// What the handle of their registration says.
    pub remote_handle: Result<Handle, Corrupt>,
    /// How many.
    pub length: u64,
    /// `GNI_DLVMODE_*`.
    pub delivery: u16,
    /// It begins when all that went by the block transfer engine before is done.
    pub fenced: bool,
    /// By which function it was posted.
    pub way: Way,
    /// The client's name for it.
    pub id: u64,
}

/// What the rules depend on, besides the post.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Which chip.
    pub chip: Chip,
    /// The domain's modes (`GNI_CDM_MODE_*`).
    pub modes: u32,
}

impl Post {
    /// Reads a descriptor that is posted in some way.
    ///
    /// # Errors
    /// `GNI_RC_INVALID_PARAM`, `GNI_RC_ALIGNMENT_ERROR` or `GNI_RC_ILLEGAL_OP`: it breaks a rule of uGNI.
    pub fn read(descriptor: &gni_post_descriptor_t, way: Way, rules: &Rules) -> Result<Self, gni_return_t> {
        let action = action(descriptor, way, rules.chip)?;
        let post = Self {
            action,
            wishes: Wishes::of(descriptor.cq_mode),
            local_address: descriptor.local_addr,
            local_handle: descriptor.local_mem_hndl,
            remote_address: descriptor.remote_addr,
            remote_handle: Handle::open_of_peer(&descriptor.remote_mem_hndl),
            length: if matches!(action, Action::Reduce { .. }) { RESULT } else { descriptor.length },
            delivery: descriptor.dlvr_mode,
            fenced: way == Way::Bte && descriptor.rdma_mode & GNI_RDMAMODE_FENCE != 0,
            way,
            id: descriptor.post_id,
        };
        post.check(rules)?;
        Ok(post)
    }

    fn check(&self, rules: &Rules) -> Result<(), gni_return_t> {
        let has = |mode| rules.modes & mode != 0;
        let both = self.wishes.local && self.wishes.global;
        let invalid = match self.way {
            Way::Fma => self.wishes.local,
            Way::Bte => {
                let fence = self.fenced && !has(GNI_CDM_MODE_BTE_SINGLE_CHANNEL);
                let both = both && !has(GNI_CDM_MODE_DUAL_EVENTS);
                self.length == 0 || self.length > MOST_BTE || fence || both
            }
            Way::CqWrite | Way::Smsg => self.wishes.local,
        };
        if invalid {
            return Err(GNI_RC_INVALID_PARAM);
        }
        let aligned = |to: u64| (self.remote_address | self.length).is_multiple_of(to);
        match self.action {
            Action::Get | Action::GetWithFlag { .. } => {
                let flagged = matches!(self.action, Action::GetWithFlag { .. });
                if self.length == 0 || flagged && self.length > MOST_WITH_FLAG {
                    return Err(GNI_RC_INVALID_PARAM);
                }
                if !aligned(4) || !self.local_address.is_multiple_of(rules.chip.local_alignment()) {
                    return Err(GNI_RC_ALIGNMENT_ERROR);
                }
                self.in_a_line()
            }
            Action::Atomic { command, .. } => {
                if self.length == 0 {
                    return Err(GNI_RC_INVALID_PARAM);
                }
                if !command.is_of(rules.chip) {
                    return Err(GNI_RC_ILLEGAL_OP);
                }
                if !aligned(command.width() as u64) {
                    return Err(GNI_RC_ALIGNMENT_ERROR);
                }
                self.in_a_line()
            }
            Action::Reduce { .. } if !self.local_address.is_multiple_of(RESULT_ALIGNMENT) => {
                Err(GNI_RC_ALIGNMENT_ERROR)
            }
            // There is no memory there with which a queue goes.
            Action::Reduce { .. } if self.wishes.remote => Err(GNI_RC_INVALID_PARAM),
            Action::Put | Action::PutWithFlag { .. } | Action::CqWrite { .. } | Action::Reduce { .. } => {
                Ok(())
            }
        }
    }

    /// An answer with a flag comes in one piece: bytes and flag lie in one line.
    fn in_a_line(&self) -> Result<(), gni_return_t> {
        let (Action::GetWithFlag { address: flag, .. } | Action::Atomic { flag: Some((flag, _)), .. }) =
            self.action
        else {
            return Ok(());
        };
        let last = self.local_address.saturating_add(self.length - 1);
        let flag_last = flag.saturating_add(GNI_FMA_FLAGGED_RESPONSE_SIZE - 1);
        let line = self.local_address / LINE;
        let together = [last, flag, flag_last].into_iter().all(|address| address / LINE == line);
        if together { Ok(()) } else { Err(GNI_RC_ALIGNMENT_ERROR) }
    }
}

fn action(descriptor: &gni_post_descriptor_t, way: Way, chip: Chip) -> Result<Action, gni_return_t> {
    let flag = (descriptor.sync_flag_addr, descriptor.sync_flag_value);
    let (address, value) = flag;
    Ok(match (way, descriptor.r#type) {
        (Way::Fma, GNI_POST_FMA_PUT) | (Way::Bte, GNI_POST_RDMA_PUT) => Action::Put,
        (Way::Fma, GNI_POST_FMA_PUT_W_SYNCFLAG) => Action::PutWithFlag { address, value },
        (Way::Fma, GNI_POST_FMA_GET) | (Way::Bte, GNI_POST_RDMA_GET) => Action::Get,
        (Way::Fma, GNI_POST_FMA_GET_W_FLAG) => Action::GetWithFlag { address, value },
        (Way::Fma, kind @ (GNI_POST_AMO | GNI_POST_AMO_W_FLAG)) => {
            let command = Command::decode(descriptor.amo_cmd).ok_or(GNI_RC_INVALID_PARAM)?;
            let operands = [descriptor.first_operand, descriptor.second_operand];
            Action::Atomic { command, operands, flag: (kind == GNI_POST_AMO_W_FLAG).then_some(flag) }
        }
        // The collective engine is on Aries alone.
        (Way::Fma, GNI_POST_CE) if chip == Chip::Gemini => return Err(GNI_RC_ILLEGAL_OP),
        (Way::Fma, GNI_POST_CE) => reduce(descriptor).ok_or(GNI_RC_INVALID_PARAM)?,
        (Way::CqWrite, GNI_POST_CQWRITE) => Action::CqWrite { value: descriptor.cqwrite_value },
        _ => return Err(GNI_RC_INVALID_PARAM),
    })
}

/// A contribution to a reduction; `None` if there is no such command, mode or name.
fn reduce(descriptor: &gni_post_descriptor_t) -> Option<Action> {
    // Each exception's bit as a mode is the one above it in a result.
    let exceptions = u8::try_from((descriptor.ce_mode & !GNI_CEMODE_TWO_OP) >> 1).ok()?;
    if exceptions & !EXCEPTIONS != 0 || !is_name(descriptor.ce_red_id) {
        return None;
    }
    let operation = Operation::decode(descriptor.ce_cmd, descriptor.ce_mode & GNI_CEMODE_TWO_OP != 0)?;
    let part = Part::new(operation, [descriptor.first_operand, descriptor.second_operand], exceptions);
    Some(Action::Reduce { id: descriptor.ce_red_id, part })
}
