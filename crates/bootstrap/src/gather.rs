//! An all-gather of any lengths in rank order, over one that gives equal lengths in an order of its own.

use crate::BootstrapError;

const DURING: &str = "gather from all ranks";

/// The most that one rank may give.
const MOST: u32 = 1 << 30;

fn is_allowed(len: u32) -> bool {
    len <= MOST
}

/// Everybody's bytes in rank order. `gather` fills its second argument with everybody's copies of the first, all of one
/// length, in an order that is the same at every call. Collective.
pub(crate) fn in_rank_order(
    (rank, size): (u32, u32),
    mine: &[u8],
    mut gather: impl FnMut(Vec<u8>, usize) -> Result<Vec<u8>, BootstrapError>,
) -> Result<Vec<Vec<u8>>, BootstrapError> {
    let len = u32::try_from(mine.len()).ok().filter(|len| is_allowed(*len)).ok_or_else(|| {
        BootstrapError::protocol(DURING, format!("{} bytes are too many for one rank", mine.len()))
    })?;
    let count = size as usize;
    let all = |all: Vec<u8>, each: usize| match all.len() == each * count {
        true => Ok(all),
        false => {
            let what = format!("{} bytes came, and {size} ranks have given {each} each", all.len());
            Err(BootstrapError::protocol(DURING, what))
        }
    };
    // Who stands where, and how much it has.
    let card = [rank.to_le_bytes(), len.to_le_bytes()].concat();
    let each = card.len();
    let cards = all(gather(card, each * count)?, each)?;
    let read = |card: &[u8]| -> Option<(u32, u32)> {
        let (rank, len) = card.split_at_checked(4)?;
        Some((u32::from_le_bytes(rank.try_into().ok()?), u32::from_le_bytes(len.try_into().ok()?)))
    };
    let mut places = vec![None; count];
    let mut longest = 0;
    for (place, card) in cards.chunks_exact(each).enumerate() {
        let seat = read(card).filter(|(_, len)| is_allowed(*len)).and_then(|(rank, len)| {
            let seat = places.get_mut(rank as usize).filter(|seat| seat.is_none())?;
            *seat = Some((place, len as usize));
            Some(len as usize)
        });
        longest = longest.max(seat.ok_or_else(|| {
            let what =
                format!("what came at place {place} of {size} is no rank's, or a rank's that came before");
            BootstrapError::protocol(DURING, what)
        })?);
    }
    if longest == 0 {
        return Ok(vec![Vec::new(); count]);
    }
    let mut padded = mine.to_vec();
    padded.resize(longest, 0);
    let bytes = all(gather(padded, longest * count)?, longest)?;
    let of = |(place, len): (usize, usize)| bytes[place * longest..][..len].to_vec();
    Ok(places.into_iter().flatten().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rank 1 of 3 gets where the ranks stand in the order 2, 0, 1 and have given `given`.
    fn gathered(
        given: [&[u8]; 3],
        spoil: impl Fn(usize, &mut Vec<u8>),
    ) -> Result<Vec<Vec<u8>>, BootstrapError> {
        let mut call = 0;
        in_rank_order((1, 3), given[1], |mine, total| {
            let mut all = Vec::new();
            for rank in [2u32, 0, 1] {
                let theirs = given[rank as usize];
                let mut bytes = match call {
                    0 => [rank.to_le_bytes(), (theirs.len() as u32).to_le_bytes()].concat(),
                    _ => theirs.to_vec(),
                };
                bytes.resize(mine.len(), 0);
                all.extend(bytes);
            }
            assert_eq!(all.len(), total);
            spoil(call, &mut all);
            call += 1;
            Ok(all)
        })
    }

    #[test]
    fn any_lengths_in_any_order_come_out_in_rank_order() {
        let given: [&[u8]; 3] = [b"zero", b"", b"the second"];
        assert_eq!(gathered(given, |_, _| {}).expect("gathered"), given);
        assert_eq!(gathered([b""; 3], |_, _| {}).expect("gathered"), [b""; 3]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let given: [&[u8]; 3] = [b"zero", b"one", b"two"];
        let refused =
            |spoil: fn(usize, &mut Vec<u8>)| gathered(given, spoil).expect_err("spoilt").to_string();
        assert!(refused(|_, all| all.truncate(23)).contains("23 bytes came, and 3 ranks have given 8 each"));
        assert!(refused(|_, all| all[0] = 3).contains("at place 0 of 3 is no rank's"));
        assert!(
            refused(|_, all| all[0] = 1)
                .contains("at place 2 of 3 is no rank's, or a rank's that came before")
        );
        assert!(refused(|_, all| all[7] = 0xff).contains("at place 0 of 3"));
        assert!(
            refused(|call, all| if call == 1 {
                all.push(0)
            })
            .contains("13 bytes came")
        );
    }

    #[test]
    fn a_rank_gives_at_most_1_gib() {
        assert!(is_allowed(1 << 30) && !is_allowed((1 << 30) + 1));
        // Zeroes that nobody touches take no memory. Ranks that give as much as allowed come to the gathering.
        for (len, wanted) in
            [(1 << 30, "gathered"), ((1 << 30) + 1, "1073741825 bytes are too many for one rank")]
        {
            let error = in_rank_order((0, 1), &vec![0; len], |_, _| {
                Err(BootstrapError::protocol(DURING, "gathered"))
            });
            let error = error.expect_err("nothing is gathered").to_string();
            assert_eq!(error, format!("gather from all ranks: {wanted}"));
        }
    }
}
