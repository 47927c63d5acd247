//! How the subsystems share the auxiliary segment.

/// A subsystem's part of the auxiliary segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxPart {
    /// Where it begins, from the start of the auxiliary segment; a multiple of 128.
    pub offset: u64,
    /// How long it is, at least what was asked for as the least.
    pub len: u64,
}

/// Collects what each subsystem needs at least and would like, then lays the parts out in one segment.
#[derive(Clone, Debug, Default)]
pub struct AuxPlan {
    asked: Vec<(u64, u64)>,
}

const ALIGN: u64 = 128;

impl AuxPlan {
    /// A plan that asks for nothing.
    pub const fn new() -> Self {
        Self { asked: Vec::new() }
    }

    /// Asks for at least `least` and, if there is room, `wanted` bytes. Returns the number of the part.
    pub fn ask(&mut self, least: u64, wanted: u64) -> usize {
        self.asked.push((least, wanted.max(least)));
        self.asked.len() - 1
    }

    /// What everybody needs at least, in bytes.
    pub fn least(&self) -> u64 {
        self.asked.iter().map(|(least, _)| least.next_multiple_of(ALIGN)).sum()
    }

    /// What everybody would like, in bytes.
    pub fn wanted(&self) -> u64 {
        self.asked.iter().map(|(_, wanted)| wanted.next_multiple_of(ALIGN)).sum()
    }

    /// Lays the parts out in `room` bytes: as wanted, first come first served, once all have their least. `None` if
    /// even that does not fit.
    pub fn lay_out(&self, room: u64) -> Option<Vec<AuxPart>> {
        let mut spare = room.checked_sub(self.least())?;
        let mut offset = 0;
        Some(
            self.asked
                .iter()
                .map(|&(least, wanted)| {
                    let (least, wanted) = (least.next_multiple_of(ALIGN), wanted.next_multiple_of(ALIGN));
                    let extra = (wanted - least).min(spare) / ALIGN * ALIGN;
                    spare -= extra;
                    let part = AuxPart { offset, len: least + extra };
                    offset += part.len;
                    part
                })
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_comes_before_wanted() {
        let mut plan = AuxPlan::new();
        plan.ask(100, 1000);
        plan.ask(256, 256);
        assert_eq!(plan.lay_out(383), None);
        let parts = plan.lay_out(512).unwrap_or_default();
        assert_eq!(parts, [AuxPart { offset: 0, len: 256 }, AuxPart { offset: 256, len: 256 }]);
        assert_eq!(plan.lay_out(1 << 20).map(|p| p[0].len), Some(1024));
    }

    /// What is asked for, the room, and how long the parts are, one behind the other; `None` where there is not enough.
    #[test]
    fn parts_are_laid_out_up_to_the_last_byte() {
        type Row = (&'static [(u64, u64)], u64, Option<&'static [u64]>);
        const THREE: &[(u64, u64)] = &[(100, 1000), (256, 300), (0, 200)];
        let rows: [Row; 17] = [
            (&[], 0, Some(&[])),
            (&[(0, 0)], 0, Some(&[0])),
            (&[(1, 0)], 0, None),
            (&[(1, 0)], 127, None),
            (&[(1, 0)], 128, Some(&[128])),
            (&[(128, 129)], 127, None),
            (&[(128, 129)], 255, Some(&[128])),
            (&[(128, 129)], 256, Some(&[256])),
            (THREE, 383, None),
            (THREE, 384, Some(&[128, 256, 0])),
            (THREE, 384 + 127, Some(&[128, 256, 0])),
            (THREE, 384 + 128, Some(&[256, 256, 0])),
            (THREE, 384 + 896 + 100, Some(&[1024, 256, 0])),
            (THREE, 384 + 896 + 128, Some(&[1024, 384, 0])),
            (THREE, 384 + 896 + 128 + 255, Some(&[1024, 384, 128])),
            (THREE, 384 + 896 + 128 + 256, Some(&[1024, 384, 256])),
            (THREE, u64::MAX, Some(&[1024, 384, 256])),
        ];
        for (asked, room, wanted) in rows {
            let mut plan = AuxPlan::new();
            for (number, &(least, wanted)) in asked.iter().enumerate() {
                assert_eq!(plan.ask(least, wanted), number);
            }
            let parts = plan.lay_out(room);
            let lens = parts.as_ref().map(|parts| parts.iter().map(|part| part.len).collect::<Vec<_>>());
            assert_eq!(lens.as_deref(), wanted, "{asked:?} in {room} bytes");
            let mut end = 0;
            for part in parts.into_iter().flatten() {
                assert_eq!(part.offset, end, "{asked:?} in {room} bytes");
                end += part.len;
            }
        }
    }

    #[test]
    fn what_is_asked_for_is_summed_up() {
        let mut plan = AuxPlan::new();
        assert_eq!((plan.least(), plan.wanted()), (0, 0));
        for (least, wanted, sums) in [(100, 1000, (128, 1024)), (500, 100, (640, 1536)), (0, 1, (640, 1664))]
        {
            plan.ask(least, wanted);
            assert_eq!((plan.least(), plan.wanted()), sums);
        }
    }
}
