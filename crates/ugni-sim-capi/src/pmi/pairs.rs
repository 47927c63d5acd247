//! Keys and their values.
//!
//! Launchers disagree about a key that is put twice and about one that is absent, so neither is asked of them: a rank
//! keeps what it puts until all ranks meet, then gives it to all, and holds what all have given. What comes of it is the
//! same everywhere: a key that this rank has put, or knows, is refused; of the values that several ranks give at one
//! meeting the lowest rank's stays; an absent key is told at once.

use std::collections::{BTreeMap, BTreeSet};

use gasworks_gni_sys::pmi::*;

use super::Done;

/// The keys and values of a job, as one rank knows them.
#[derive(Debug, Default)]
pub struct Pairs {
    known: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The keys that this rank has put and nobody knows yet.
    own: BTreeSet<Vec<u8>>,
    put: Vec<(Vec<u8>, Vec<u8>)>,
    committed: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Pairs {
    /// Keeps a value for the next meeting after the next commit.
    ///
    /// # Errors
    /// The key is empty, too long, or was put before; the value is too long.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Done {
        if key.is_empty() || self.known.contains_key(key) || self.own.contains(key) {
            return Err(PMI_ERR_INVALID_KEY);
        }
        if key.len() >= PMI2_MAX_KEYLEN {
            return Err(PMI_ERR_INVALID_KEY_LENGTH);
        }
        if value.len() >= PMI2_MAX_VALLEN {
            return Err(PMI_ERR_INVALID_VAL_LENGTH);
        }
        self.own.insert(key.to_vec());
        self.put.push((key.to_vec(), value.to_vec()));
        Ok(())
    }

    /// What was put is for the next meeting.
    pub fn commit(&mut self) {
        self.committed.append(&mut self.put);
    }

    /// What this rank brings to a meeting.
    pub fn bring(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in self.committed.drain(..).flat_map(|(key, value)| [key, value]) {
            // Keys and values are short, as was checked.
            bytes.extend((part.len() as u16).to_le_bytes());
            bytes.extend(part);
        }
        bytes
    }

    /// What all have brought, in the order of ranks. `None`: it is not what ranks bring.
    pub fn learn(&mut self, all: &[Vec<u8>]) -> Option<()> {
        for mut rest in all.iter().map(Vec::as_slice) {
            while !rest.is_empty() {
                let (key, value);
                (key, rest) = part(rest)?;
                (value, rest) = part(rest)?;
                self.known.entry(key.to_vec()).or_insert_with(|| value.to_vec());
                self.own.remove(key);
            }
        }
        Some(())
    }

    /// What somebody has brought under a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.known.get(key).map(Vec::as_slice)
    }
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u16::from_le_bytes(*len).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_known_after_a_meeting_and_nothing_else() {
        let mut ranks = [Pairs::default(), Pairs::default()];
        ranks[0].put(b"mine", b"a;b=/ \n").expect("put");
        ranks[0].commit();
        ranks[0].put(b"later", b"").expect("put");
        ranks[1].put(b"theirs", &[7; 1023]).expect("put");
        ranks[1].commit();
        for meeting in 0..2 {
            let brought: Vec<_> = ranks.iter_mut().map(Pairs::bring).collect();
            for rank in &mut ranks {
                rank.learn(&brought).expect("pairs");
                assert_eq!(rank.get(b"mine"), Some(&b"a;b=/ \n"[..]));
                assert_eq!(rank.get(b"theirs"), Some(&[7; 1023][..]));
                assert_eq!(rank.get(b"later"), (meeting == 1).then_some(&b""[..]));
                assert_eq!(rank.get(b"absent"), None);
            }
            ranks[0].commit();
        }
    }

    #[test]
    fn a_key_is_put_once() {
        let mut ranks = [Pairs::default(), Pairs::default()];
        for (rank, value) in ranks.iter_mut().zip([b"first", b"other"]) {
            rank.put(b"key", value).expect("put");
            assert_eq!(rank.put(b"key", value), Err(PMI_ERR_INVALID_KEY));
            rank.commit();
            assert_eq!(rank.put(b"key", value), Err(PMI_ERR_INVALID_KEY));
        }
        let brought: Vec<_> = ranks.iter_mut().map(Pairs::bring).collect();
        for rank in &mut ranks {
            rank.learn(&brought).expect("pairs");
            assert_eq!(rank.get(b"key"), Some(&b"first"[..]), "the lowest rank's");
            assert_eq!(rank.put(b"key", b"again"), Err(PMI_ERR_INVALID_KEY));
        }
    }

    #[test]
    fn what_is_too_long_is_refused_and_damage_is_noticed() {
        let mut pairs = Pairs::default();
        assert_eq!(pairs.put(b"", b""), Err(PMI_ERR_INVALID_KEY));
        assert_eq!(pairs.put(&[b'k'; 64], b""), Err(PMI_ERR_INVALID_KEY_LENGTH));
        assert_eq!(pairs.put(b"key", &[b'v'; 1024]), Err(PMI_ERR_INVALID_VAL_LENGTH));
        pairs.put(&[b'k'; 63], b"value").expect("put");
        pairs.commit();
        let brought = pairs.bring();
        for cut in [1, 2, 64, 65, 67, brought.len() - 1] {
            assert_eq!(Pairs::default().learn(&[brought[..cut].to_vec()]), None, "cut at {cut}");
        }
    }
}
