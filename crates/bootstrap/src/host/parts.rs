//! Several values as one.

/// Parts of a whole, each with its length before it.
pub(crate) fn join(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(parts.iter().map(|part| part.len() + 4).sum());
    for part in parts {
        // A part came in a parcel, or is about to go into one, which bounds its length.
        whole.extend((part.len() as u32).to_le_bytes());
        whole.extend_from_slice(part);
    }
    whole
}

/// The parts of what [`join`] made; `None` for anything else.
pub(crate) fn split(mut whole: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    while !whole.is_empty() {
        let (len, rest) = whole.split_first_chunk()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        parts.push(part.to_vec());
        whole = rest;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart_and_nothing_else_is_taken_for_them() {
        let parts = vec![vec![], b"a".to_vec(), vec![7; 300]];
        let whole = join(&parts);
        assert_eq!(split(&whole), Some(parts));
        assert_eq!(split(&[]), Some(vec![]));
        for cut in [1, 3, 5, 8, 11, 20, whole.len() - 1] {
            // Cut between two parts it is a shorter whole.
            assert!(split(&whole[..cut]).is_none(), "cut at {cut}");
        }
    }
}
