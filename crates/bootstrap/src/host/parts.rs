//! Several values as one.

/// Several values in one piece, each with its length before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts(Vec<u8>);

impl Parts {
    /// What [`into_bytes`](Self::into_bytes) gave, as it came back from elsewhere; `None` for anything else.
    pub(crate) fn read(whole: Vec<u8>) -> Option<Self> {
        let mut rest = &whole[..];
        while !rest.is_empty() {
            rest = first_of(rest)?.1;
        }
        Some(Self(whole))
    }

    /// All of them, as one value.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Copies of them, in their order.
    pub fn to_vec(&self) -> Vec<Vec<u8>> {
        self.iter().map(<[u8]>::to_vec).collect()
    }

    /// Takes the first of them out; `None` if there is none.
    pub(crate) fn take_first(&mut self) -> Option<Vec<u8>> {
        let first = first_of(&self.0)?.0.to_vec();
        self.0.drain(..4 + first.len());
        Some(first)
    }

    /// The values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (part, after) = first_of(rest)?;
            rest = after;
            Some(part)
        })
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Parts {
    fn from_iter<I: IntoIterator<Item = T>>(parts: I) -> Self {
        let mut whole = Vec::new();
        for part in parts {
            let part = part.as_ref();
            // A part came in a parcel, or is about to go into one, which bounds its length.
            whole.extend((part.len() as u32).to_le_bytes());
            whole.extend_from_slice(part);
        }
        Self(whole)
    }
}

/// The first of some values, and the others.
fn first_of(whole: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = whole.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart_and_nothing_else_is_taken_for_them() {
        let parts = vec![vec![], b"a".to_vec(), vec![7; 300]];
        let joined: Parts = parts.iter().collect();
        assert!(joined.iter().eq(parts.iter().map(|part| &part[..])));
        let whole = joined.clone().into_bytes();
        assert_eq!(Parts::read(whole.clone()), Some(joined));
        assert_eq!(Parts::read(Vec::new()), Some(Parts::default()));
        let mut rest = Parts::read(whole.clone()).expect("parts");
        let taken: Vec<_> = std::iter::from_fn(|| rest.take_first()).collect();
        assert_eq!((taken, rest), (parts, Parts::default()));
        for cut in [1, 3, 5, 8, 11, 20, whole.len() - 1] {
            // Cut between two parts it is a shorter whole.
            assert!(Parts::read(whole[..cut].to_vec()).is_none(), "cut at {cut}");
        }
    }
}
