//! Random programs against a plain model: memories are bytes, queues are lists.

use super::*;
use gasworks_ugni_sim::atomics::Command;
use gasworks_ugni_sim::entry::{Body, Entry, Status};
use proptest::prelude::*;
use std::collections::VecDeque;

const RANKS: usize = 3;
const BYTES: u64 = 8 * WORDS as u64;

/// Something that a client does: who, to whom, where here and there, and how much.
#[derive(Clone, Debug)]
struct Step {
    from: usize,
    to: usize,
    here: u64,
    there: u64,
    length: u64,
    what: What,
    events: u16,
}

#[derive(Clone, Debug)]
enum What {
    Post(gni_post_type_t),
    Amo(u32, u64, u64),
    CqWrite(u64),
    /// Takes so many events from both queues.
    Take(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let kinds = [
        GNI_POST_FMA_PUT,
        GNI_POST_FMA_PUT_W_SYNCFLAG,
        GNI_POST_FMA_GET,
        GNI_POST_RDMA_PUT,
        GNI_POST_RDMA_GET,
    ];
    let commands: Vec<u32> = CONSTANTS
        .iter()
        .filter(|(name, _)| name.starts_with("GNI_FMA_ATOMIC"))
        .map(|(_, value)| *value as u32)
        .collect();
    let what = prop_oneof![
        4 => prop::sample::select(kinds.to_vec()).prop_map(What::Post),
        2 => (prop::sample::select(commands), any::<u64>(), 0..4u64).prop_map(|(c, a, b)| What::Amo(c, a, b)),
        1 => any::<u64>().prop_map(What::CqWrite),
        3 => (0..6usize).prop_map(What::Take),
    ];
    let numbers = (0..RANKS, 0..RANKS, 0..BYTES + 16, 0..BYTES + 16, 0..80u64);
    // Aligned as a rule, for the rest is refused soon.
    let numbers =
        (numbers, any::<bool>()).prop_map(|((from, to, here, there, length), aligned)| match aligned {
            true => (from, to, here & !7, there & !7, length & !7),
            false => (from, to, here, there, length),
        });
    (numbers, what, 0..8u16).prop_map(|((from, to, here, there, length), what, events)| Step {
        from,
        to,
        here,
        there,
        length,
        what,
        events,
    })
}

#[derive(Default)]
struct Model {
    memory: Vec<Vec<u8>>,
    /// What is to come at each rank: transactions, and values from afar.
    here: Vec<VecDeque<(u64, Status)>>,
    there: Vec<VecDeque<u64>>,
    posted: u64,
}

fn range(at: u64, len: u64) -> std::ops::Range<usize> {
    at as usize..(at + len) as usize
}

impl Model {
    /// What a transaction does, to memories and queues.
    fn apply(&mut self, step: &Step, command: Option<Command>) {
        let Step { from, to, here, there, length, .. } = *step;
        let inside = length == 0 || there + length <= BYTES;
        // What lies behind the memory is still of its page, and so of its registration.
        let (mut status, mut remote) = (if inside { Status::Ok } else { Status::Translation }, true);
        match &step.what {
            What::Post(GNI_POST_FMA_PUT | GNI_POST_FMA_PUT_W_SYNCFLAG | GNI_POST_RDMA_PUT) => {
                if here + length > BYTES && length > 0 {
                    status = Status::Translation;
                }
                if status == Status::Ok {
                    let bytes = self.memory[from][range(here.min(BYTES), length)].to_vec();
                    self.memory[to][range(there.min(BYTES), length)].copy_from_slice(&bytes);
                    if matches!(step.what, What::Post(GNI_POST_FMA_PUT_W_SYNCFLAG)) {
                        self.memory[to][range(FLAG, 8)].copy_from_slice(&step.here.to_le_bytes());
                    }
                }
            }
            What::Post(_) => {
                if here + length > BYTES {
                    status = Status::Translation;
                }
                if status == Status::Ok {
                    let bytes = self.memory[to][range(there, length)].to_vec();
                    self.memory[from][range(here, length)].copy_from_slice(&bytes);
                }
            }
            What::Amo(_, first, second) => {
                let command = command.expect("a command");
                let width = command.width() as u64;
                status = Status::Ok;
                if there + width > BYTES {
                    status = Status::Translation;
                } else {
                    let mut word = [0; 8];
                    let place = range(there, width);
                    word[..width as usize].copy_from_slice(&self.memory[to][place.clone()]);
                    let old = u64::from_le_bytes(word);
                    let new = command.apply(old, *first, *second).to_le_bytes();
                    self.memory[to][place].copy_from_slice(&new[..width as usize]);
                    if command.fetches && here + width > BYTES {
                        status = Status::Translation;
                    } else if command.fetches {
                        self.memory[from][range(here, width)].copy_from_slice(&word[..width as usize]);
                    }
                }
            }
            What::CqWrite(value) => {
                (status, remote) = (Status::Ok, false);
                self.tell_there(to, value & 0xffff_ffff_ffff);
            }
            What::Take(_) => unreachable!("no transaction"),
        }
        if remote && status == Status::Ok && step.events & GNI_CQMODE_REMOTE_EVENT != 0 {
            self.tell_there(to, from as u64);
        }
        let (local, global) =
            (step.events & GNI_CQMODE_LOCAL_EVENT != 0, step.events & GNI_CQMODE_GLOBAL_EVENT != 0);
        let count = if status == Status::Ok {
            usize::from(local) + usize::from(global)
        } else {
            usize::from(local || global)
        };
        self.here[from].extend(std::iter::repeat_n((self.posted, status), count));
    }

    fn tell_there(&mut self, to: usize, value: u64) {
        if self.there[to].len() < ENTRIES as usize {
            self.there[to].push_back(value);
        }
    }
}

/// Where flags go: the last word of every memory.
const FLAG: u64 = BYTES - 8;

fn run(chip: Chip, steps: &[Step]) -> Result<(), TestCaseError> {
    let ranks = job(chip, MODES, RANKS as u32);
    let mut model = Model {
        memory: (0..RANKS).map(|rank| (0..BYTES).map(|i| (i * 7 + rank as u64) as u8).collect()).collect(),
        here: vec![VecDeque::new(); RANKS],
        there: vec![VecDeque::new(); RANKS],
        posted: 0,
    };
    for (rank, bytes) in ranks.iter().zip(&model.memory) {
        rank.write(0, bytes);
    }
    for step in steps {
        let (from, to) = (&ranks[step.from], &ranks[step.to]);
        if let What::Take(count) = step.what {
            for _ in 0..count {
                take(chip, from, &mut model, step.from)?;
            }
            continue;
        }
        model.posted += 1;
        let mut descriptor = gni_post_descriptor_t {
            cq_mode: step.events,
            local_addr: from.at(step.here),
            remote_addr: to.at(step.there),
            post_id: model.posted,
            ..from.descriptor(to, GNI_POST_FMA_PUT, step.length)
        };
        let mut command = None;
        match step.what {
            What::Post(kind) => {
                descriptor.r#type = kind;
                (descriptor.sync_flag_addr, descriptor.sync_flag_value) = (to.at(FLAG), step.here);
            }
            What::Amo(number, first, second) => {
                descriptor.r#type = GNI_POST_AMO;
                (descriptor.amo_cmd, descriptor.first_operand, descriptor.second_operand) =
                    (number, first, second);
                command = Command::decode(number);
            }
            What::CqWrite(value) => (descriptor.r#type, descriptor.cqwrite_value) = (GNI_POST_CQWRITE, value),
            What::Take(_) => {}
        }
        // What is refused, for whichever reason, changes nothing.
        if from.post(step.to, &descriptor).is_ok() {
            model.apply(step, command);
        }
        for (rank, bytes) in ranks.iter().zip(&model.memory) {
            prop_assert_eq!(&rank.bytes(0, BYTES as usize), bytes);
        }
    }
    for (number, rank) in ranks.iter().enumerate() {
        while !(model.here[number].is_empty() && model.there[number].is_empty()) {
            take(chip, rank, &mut model, number)?;
        }
        take(chip, rank, &mut model, number)?;
        prop_assert!(rank.endpoints.iter().all(|endpoint| endpoint.idle() == Ok(())));
    }
    Ok(())
}

/// Takes the next event from both queues of a rank, as the model says.
fn take(chip: Chip, rank: &Rank, model: &mut Model, number: usize) -> Result<(), TestCaseError> {
    let here = match rank.events.next() {
        Next::Event(event) => {
            prop_assert_eq!(
                rank.events.completed(event.word).map(|(token, _)| token),
                Ok(event.transaction.unwrap().0)
            );
            Some((event.transaction.unwrap().1, event.status))
        }
        Next::Nothing => None,
    };
    prop_assert_eq!(here, model.here[number].pop_front());
    let there = match rank.arrivals.next() {
        Next::Event(event) => match Entry::decode(event.word, chip).unwrap().body {
            Body::Remote(data) => Some(data),
            Body::Local { .. } | Body::Message { .. } => None,
        },
        Next::Nothing => None,
    };
    prop_assert_eq!(there, model.there[number].pop_front());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_programs_do_what_the_model_does(
        aries: bool,
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 20 } else { 100 }),
    ) {
        run(if aries { Chip::Aries } else { Chip::Gemini }, &steps)?;
    }
}
