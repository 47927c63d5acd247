//! The NIC of the fake job.

use super::*;

/// A NIC that moves the bytes of its posts when it is polled.
pub struct FakeNic {
    pub fabric: Arc<Fabric>,
    pub log: Arc<Mutex<NicLog>>,
}

impl FakeNic {
    fn move_bytes(&self, post: &Posted) {
        let len = match post.direction {
            Direction::Update(update) => update.width(),
            _ => post.local.len(),
        };
        let there = self.fabric.segment(post.peer).slice(post.offset as usize, len).expect("inside");
        // SAFETY: whoever posted this promised that its local bytes stay until its completion is polled, which it is not yet.
        let local = unsafe { post.local.borrow() };
        match post.direction {
            Direction::Put => there.write(&read(local)),
            Direction::Get => local.write(&read(there)),
            Direction::Update(update) => {
                let was = update.at(there).expect("an aligned word").to_le_bytes();
                local.write(&was[..local.len()]);
            }
        }
    }
}

impl Nic for FakeNic {
    fn name(&self) -> &'static str {
        "fake"
    }
    fn abilities(&self) -> Abilities {
        let mut of = Atomics::NONE.of;
        of[Type::U64 as usize] = Ops::all();
        let atomics = Atomics { of, mixes: true };
        Abilities { largest: SEGMENT, depth: 128, tells_source: true, atomics, ..Abilities::PLAIN }
    }
    unsafe fn register(&self, bytes: RawSlice) -> Result<Key, NicError> {
        lock(&self.log).registered.push(bytes.len());
        Ok(Key(vec![9, 9]))
    }
    fn deregister(&self, _: &Key) -> Result<(), NicError> {
        Ok(())
    }
    unsafe fn post(&self, post: &Post<'_>) -> Result<(), NicError> {
        let Post { direction, peer, local, remote_offset: offset, tells, source_apart: apart, token, .. } =
            *post;
        let mut log = lock(&self.log);
        log.posts.push((direction, peer, local.len(), post.remote_key.0.clone()));
        log.posted.push_back(Posted { direction, peer, offset, local, tells, apart, token });
        Ok(())
    }
    fn tell(&self, peer: u32, number: u32, landed: bool) {
        self.fabric.tell(peer, number, landed);
    }
    fn poll(&self, burst: usize, sink: &mut dyn FnMut(Completion)) -> usize {
        run_peers();
        let mut said = Vec::new();
        {
            let mut log = lock(&self.log);
            log.polls += 1;
            // What fails says nothing of its source.
            if log.hold != Hold::All && log.fail.is_empty() {
                for post in &mut log.posted {
                    if std::mem::take(&mut post.apart) {
                        said.push(Completion { token: post.token, stage: Stage::Source, result: Ok(()) });
                    }
                }
            }
            while log.hold == Hold::Nothing && said.len() < burst {
                let Some(post) = log.posted.pop_front() else { break };
                let result = log.fail.pop_front().map_or(Ok(()), Err);
                if result.is_ok() {
                    self.move_bytes(&post);
                }
                post.tells.into_iter().for_each(|number| self.tell(post.peer, number, result.is_ok()));
                said.push(Completion { token: post.token, stage: Stage::Whole, result });
            }
        }
        said.iter().for_each(|&completion| sink(completion));
        said.len()
    }
}
