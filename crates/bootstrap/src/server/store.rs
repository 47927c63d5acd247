//! What ranks have put: values under keys, attributes of the node, published names.
//!
//! A key is put once. Real servers disagree about a second time (some keep the first value, some the second, some show
//! either to different ranks), so a second put is refused and the first value stays. Two ranks of different servers
//! that put one key before the same fence cannot be told so: there the value of the lower rank is kept, everywhere.

use std::collections::{HashMap, HashSet};

use super::{NameCommand, Refusal, refusal};

#[derive(Debug)]
struct Kept {
    key: String,
    value: String,
    rank: u32,
    /// The fence that made it visible.
    epoch: u64,
}

#[derive(Debug, Default)]
pub(super) struct Store {
    visible: Vec<Kept>,
    /// Where in `visible` a key is.
    index: HashMap<String, usize>,
    /// What was put here since the last fence: rank, key, value.
    fresh: Vec<(u32, String, String)>,
    fresh_keys: HashSet<String>,
    epoch: u64,
    node: HashMap<String, String>,
    names: HashMap<String, String>,
}

impl Store {
    /// Whether a key was put, as far as is known here.
    pub(super) fn has(&self, key: &str) -> bool {
        self.index.contains_key(key) || self.fresh_keys.contains(key)
    }

    pub(super) fn put(&mut self, rank: u32, key: &str, value: &str) {
        self.fresh_keys.insert(key.to_owned());
        self.fresh.push((rank, key.to_owned(), value.to_owned()));
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.index.get(key).map(|&at| self.visible[at].value.as_str())
    }

    /// The pair of that number, of those that are visible.
    pub(super) fn at(&self, number: usize) -> Option<(&str, &str)> {
        self.visible.get(number).map(|kept| (kept.key.as_str(), kept.value.as_str()))
    }

    /// What was put here since the last fence.
    pub(super) fn fresh(&self) -> &[(u32, String, String)] {
        &self.fresh
    }

    /// The fence is passed: what was put here is visible; what others have put is to be [`add`](Self::add)ed.
    pub(super) fn pass_fence(&mut self) {
        self.epoch += 1;
        self.fresh_keys.clear();
        for (rank, key, value) in std::mem::take(&mut self.fresh) {
            self.add(rank, &key, &value);
        }
    }

    /// Makes visible what a rank had put before the fence that was just passed.
    pub(super) fn add(&mut self, rank: u32, key: &str, value: &str) {
        match self.index.get(key) {
            None => {
                self.index.insert(key.to_owned(), self.visible.len());
                let (key, value) = (key.to_owned(), value.to_owned());
                self.visible.push(Kept { key, value, rank, epoch: self.epoch });
            }
            Some(&at) => {
                let kept = &mut self.visible[at];
                if kept.epoch == self.epoch && rank < kept.rank {
                    (kept.rank, kept.value) = (rank, value.to_owned());
                }
            }
        }
    }

    pub(super) fn node_attribute(&self, key: &str) -> Option<&str> {
        self.node.get(key).map(String::as_str)
    }

    pub(super) fn put_node_attribute(&mut self, key: &str, value: &str) {
        self.node.insert(key.to_owned(), value.to_owned());
    }

    /// Carries out a command about names; gives the port that was asked for.
    pub(super) fn name(&mut self, command: NameCommand) -> Result<Option<String>, Refusal> {
        match command {
            NameCommand::Publish { name, .. } if self.names.contains_key(&name) => Err(refusal::PUBLISHED),
            NameCommand::Publish { name, port } => {
                self.names.insert(name, port);
                Ok(None)
            }
            NameCommand::Unpublish { name } => {
                self.names.remove(&name).map(|_| None).ok_or(refusal::NOT_PUBLISHED)
            }
            NameCommand::Lookup { name } => {
                self.names.get(&name).map(|port| Some(port.clone())).ok_or(refusal::NOT_PUBLISHED)
            }
        }
    }
}
