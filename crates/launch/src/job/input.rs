//! Standard input on its way to rank 0, which may be on another host.

use gasworks_sock::{Event, Op};

use super::Job;
use crate::remote::message::{Down, Up};
use crate::spawn::Input;
use crate::stdin::{self, Typed};

impl Job {
    /// Rank 0 is there: what comes on standard input goes to it.
    pub(super) fn begin_input(&mut self) -> anyhow::Result<()> {
        match stdin::input(self.takes_input) {
            Input::Null => self.pass_input(Vec::new()),
            _ => {
                self.typed = Some(Typed::new(&self.set)?);
                Ok(())
            }
        }
    }

    /// There is something on standard input.
    pub(super) fn read_input(&mut self, event: &Event) -> anyhow::Result<()> {
        let Some(typed) = self.typed.as_mut().filter(|_| event.op == Op::Readable) else { return Ok(()) };
        let Some(bytes) = typed.read()? else { return Ok(()) };
        if bytes.is_empty() {
            self.typed = None;
        }
        self.pass_input(bytes)
    }

    /// Passes input on, nothing meaning the end.
    fn pass_input(&mut self, bytes: Vec<u8>) -> anyhow::Result<()> {
        match &mut self.tree {
            Some(tree) => {
                tree.send_to_first(&Down::Input(bytes));
                Ok(())
            }
            None => self.feed(&bytes),
        }
    }

    /// Input has come to the host of rank 0.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some(piped) = &mut self.piped {
            piped.feed(bytes);
        }
        self.tell_taken()
    }

    /// The pipe to rank 0 has something to tell.
    pub(super) fn input_event(&mut self, event: Event) -> anyhow::Result<()> {
        if let Some(piped) = &mut self.piped {
            piped.event(event);
        }
        self.tell_taken()
    }

    fn tell_taken(&mut self) -> anyhow::Result<()> {
        let Some(piped) = &mut self.piped else { return Ok(()) };
        let taken = piped.taken();
        // What nobody takes is left to whoever reads the terminal next.
        if self.tree.is_none() && !piped.is_open() {
            self.typed = None;
        }
        if taken > 0 && !self.say_up(&Up::Taken(taken as u64)) {
            self.input_taken(taken)?;
        }
        Ok(())
    }

    /// Rank 0 has taken so much of its input.
    pub(super) fn input_taken(&mut self, count: usize) -> anyhow::Result<()> {
        if let Some(typed) = &mut self.typed {
            typed.taken(count)?;
        }
        Ok(())
    }
}
