//! How a value of any bytes and any length travels through servers that cut, refuse or change what they dislike.
//!
//! The bytes are written in 64 characters that every server passes on (letters, digits, `-`, `_`), the text is cut
//! into pieces of at most [`PIECE`] characters, and the first piece begins with the number of pieces and a dot: so a
//! reader never asks for a piece that is not there, and no value is empty.

use crate::wire::quote;

/// The longest value that all servers are known to keep whole.
pub(crate) const PIECE: usize = 512;
/// The most pieces of one value.
const MOST: usize = 1 << 16;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The pieces for some bytes; `None` if they are too many.
pub(crate) fn pieces(bytes: &[u8]) -> Option<Vec<String>> {
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 16);
    for group in bytes.chunks(3) {
        let mut word = [0u8; 4];
        word[1..=group.len()].copy_from_slice(group);
        let word = u32::from_be_bytes(word);
        for i in 0..=group.len() {
            text.push(char::from(DIGITS[(word >> (18 - 6 * i) & 63) as usize]));
        }
    }
    let count = piece_count(text.len())?;
    let text = format!("{count}.{text}");
    Some(text.as_bytes().chunks(PIECE).map(|c| c.iter().copied().map(char::from).collect()).collect())
}

/// The number of pieces for so many characters with their head; `None` if they are too many.
fn piece_count(characters: usize) -> Option<usize> {
    // The head takes room itself: the count grows until the text with its head has as many pieces as it says.
    let mut count = 1usize;
    loop {
        let needed = (count.to_string().len() + 1 + characters).div_ceil(PIECE);
        if needed == count {
            break;
        }
        count = needed;
    }
    (count <= MOST).then_some(count)
}

/// The number of pieces that the first one announces, and the text after that.
pub(crate) fn head(first: &str) -> Result<(usize, &str), String> {
    let parsed = first.split_once('.').and_then(|(count, text)| Some((count.parse::<usize>().ok()?, text)));
    match parsed {
        Some((count, text)) if (1..=MOST).contains(&count) => Ok((count, text)),
        _ => Err(format!("{} does not begin with a number of pieces", quote(first.as_bytes()))),
    }
}

/// The bytes behind the text of all pieces.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let text = text.as_bytes();
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.chunks(4) {
        let mut word = 0u32;
        for (i, c) in group.iter().enumerate() {
            let Some(digit) = DIGITS.iter().position(|d| d == c) else {
                return Err(format!("{} holds a character that was not sent", quote(text)));
            };
            word |= (digit as u32) << (18 - 6 * i);
        }
        if group.len() == 1 {
            return Err(format!("{} was cut", quote(text)));
        }
        bytes.extend_from_slice(&word.to_be_bytes()[1..group.len()]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_round_trips() {
        for len in (0..1200).chain([100_000]) {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
            let pieces = pieces(&bytes).expect("not too many");
            assert!(pieces.iter().all(|p| !p.is_empty() && p.len() <= PIECE));
            let (count, first) = head(&pieces[0]).expect("a head");
            assert_eq!(count, pieces.len(), "{len} bytes");
            assert_eq!(decode(&(first.to_owned() + &pieces[1..].concat())).as_deref(), Ok(bytes.as_slice()));
        }
    }

    #[test]
    fn a_value_has_at_most_65536_pieces() {
        // The head of the longest value is `65536.`.
        let most = 65_536 * 512 - 6;
        for (characters, wanted) in [
            (0, Some(1)),
            (510, Some(1)),
            (511, Some(2)),
            (1022, Some(2)),
            (1023, Some(3)),
            (most - 1, Some(65_536)),
            (most, Some(65_536)),
            (most + 1, None),
        ] {
            assert_eq!(piece_count(characters), wanted, "{characters} characters");
        }
        assert_eq!(head("65536.ab"), Ok((65_536, "ab")));
        assert!(head("65537.ab").is_err());
    }

    #[test]
    fn what_was_cut_or_changed_is_noticed() {
        for first in ["", "(null)", "x.abc", "0.abc", "99999999.abc"] {
            let error = head(first).expect_err(first);
            assert_eq!(error, format!("{first:?} does not begin with a number of pieces"));
        }
        assert_eq!(decode("ab;d"), Err("\"ab;d\" holds a character that was not sent".to_owned()));
        assert_eq!(decode("abcde"), Err("\"abcde\" was cut".to_owned()));
    }
}
