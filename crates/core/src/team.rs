//! Teams: ordered views of a job's ranks.
//!
//! A team's members are numbered from 0. [`Members`] says which rank each is: all ranks, a stride, or a list.

use crate::Rank;
use thiserror::Error;

/// What is wrong with a team or one of its members.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TeamError {
    /// It has no member.
    #[error("a team without a member")]
    Empty,
    /// A member is no rank.
    #[error("member {member} of a team would be rank {rank}, which is out of range: there are {ranks} ranks")]
    NoSuchRank {
        /// The first such member.
        member: u32,
        /// What was given for its rank.
        rank: i64,
        /// How many there are.
        ranks: u32,
    },
    /// A rank is a member twice.
    #[error("members {first} and {second} of a team would both be rank {rank}")]
    Twice {
        /// The rank.
        rank: Rank,
        /// As what it comes first.
        first: u32,
        /// As what it comes again.
        second: u32,
    },
    /// Two members called a collective of their team by different arguments, or not the same one.
    #[error("members {first} and {second} of a team {what}")]
    NotTheSame {
        /// What they did.
        what: &'static str,
        /// One of them.
        first: u32,
        /// The other.
        second: u32,
    },
    /// There is no such member.
    #[error("member {member} is out of range: the team has {size} members")]
    NoSuchMember {
        /// The member that was named.
        member: u32,
        /// How many there are.
        size: u32,
    },
}

/// Which ranks are members of a team, in order. Equal where these are the same in the same order, however they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    form: Form,
    size: u32,
}

/// One form for each sequence of ranks: what is a stride is no list, and what is everyone is neither.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// All ranks, each its own number.
    Everyone,
    /// Ranks at one distance.
    Stride { first: Rank, step: i32 },
    /// Any ranks; and the members' numbers in the order of their ranks.
    List { ranks: Box<[Rank]>, by_rank: Box<[u32]> },
}

impl Members {
    /// All ranks of a job.
    pub fn everyone(ranks: u32) -> Self {
        Self { form: Form::Everyone, size: ranks }
    }

    /// So many of a job's ranks, from one on, each `step` after the one before.
    ///
    /// # Errors
    /// There is no member, one is no rank, or `step` is 0 for more than one.
    pub fn stride(first: Rank, step: i32, size: u32, ranks: u32) -> Result<Self, TeamError> {
        let Some(last) = size.checked_sub(1) else { return Err(TeamError::Empty) };
        let rank_of = |member: u32| i64::from(first) + i64::from(step) * i64::from(member);
        let is_rank = |member: &u32| (0..i64::from(ranks)).contains(&rank_of(*member));
        if !is_rank(&0) || !is_rank(&last) {
            // Beyond the last that is, if the first is.
            let inside = if step < 0 { i64::from(first) } else { i64::from(ranks) - 1 - i64::from(first) };
            let member = if is_rank(&0) { (inside / i64::from(step.unsigned_abs())) as u32 + 1 } else { 0 };
            return Err(TeamError::NoSuchRank { member, rank: rank_of(member), ranks });
        }
        if step == 0 && size > 1 {
            return Err(TeamError::Twice { rank: first, first: 0, second: 1 });
        }
        let form = match () {
            () if first == 0 && size == ranks && (step == 1 || size == 1) => Form::Everyone,
            () => Form::Stride { first, step: if size == 1 { 1 } else { step } },
        };
        Ok(Self { form, size })
    }

    /// These of a job's ranks.
    ///
    /// # Errors
    /// There is no member, one is no rank, or two are the same.
    pub fn list(members: impl IntoIterator<Item = Rank>, ranks: u32) -> Result<Self, TeamError> {
        let list: Box<[Rank]> = members.into_iter().collect();
        if let Some((member, &rank)) = (0..).zip(&list).find(|&(_, &rank)| rank >= ranks) {
            return Err(TeamError::NoSuchRank { member, rank: rank.into(), ranks });
        }
        // No more than there are ranks, unless one comes twice.
        let mut by_rank: Box<[u32]> = (0..list.len() as u32).collect();
        by_rank.sort_unstable_by_key(|&member| (list[member as usize], member));
        let twice = by_rank.windows(2).find(|two| list[two[0] as usize] == list[two[1] as usize]);
        if let Some(&[first, second]) = twice {
            return Err(TeamError::Twice { rank: list[first as usize], first, second });
        }
        let size = list.len() as u32;
        let step = if let [first, second, ..] = *list { i64::from(second) - i64::from(first) } else { 1 };
        let is_stride = list.windows(2).all(|two| i64::from(two[1]) - i64::from(two[0]) == step);
        match (list.first(), i32::try_from(step)) {
            (None, _) => Err(TeamError::Empty),
            (Some(&first), Ok(step)) if is_stride => Self::stride(first, step, size, ranks),
            _ => Ok(Self { form: Form::List { ranks: list, by_rank }, size }),
        }
    }

    /// These members of this team, as a team of the same job, which has so many ranks.
    ///
    /// # Errors
    /// There is none, one is no member of this team, or two are the same.
    pub fn within(&self, members: impl IntoIterator<Item = u32>, ranks: u32) -> Result<Self, TeamError> {
        let members = Self::list(members, self.size).map_err(|error| match error {
            TeamError::NoSuchRank { rank, ranks, .. } => {
                TeamError::NoSuchMember { member: rank as u32, size: ranks }
            }
            TeamError::Twice { rank, first, second } => {
                TeamError::Twice { rank: self.rank_of(rank).unwrap_or(rank), first, second }
            }
            other => other,
        })?;
        Self::list(members.iter().filter_map(|member| self.rank_of(member)), ranks)
    }

    /// How many there are.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The rank of a member; `None` if there is no such member.
    #[inline]
    pub fn rank_of(&self, member: u32) -> Option<Rank> {
        if member >= self.size {
            return None;
        }
        match &self.form {
            Form::Everyone => Some(member),
            // In range for each member: that was checked.
            Form::Stride { first, step } => {
                Some((i64::from(*first) + i64::from(*step) * i64::from(member)) as Rank)
            }
            Form::List { ranks, .. } => ranks.get(member as usize).copied(),
        }
    }

    /// Which member a rank is; `None` if it is none.
    pub fn member_of(&self, rank: Rank) -> Option<u32> {
        let member = match &self.form {
            Form::Everyone => i64::from(rank),
            Form::Stride { first, step } => {
                let distance = i64::from(rank) - i64::from(*first);
                if distance % i64::from(*step) != 0 {
                    return None;
                }
                distance / i64::from(*step)
            }
            Form::List { ranks, by_rank } => {
                let at = by_rank.binary_search_by_key(&rank, |&member| ranks[member as usize]).ok()?;
                return by_rank.get(at).copied();
            }
        };
        u32::try_from(member).ok().filter(|&member| member < self.size)
    }

    /// Their ranks, in order.
    pub fn iter(&self) -> impl Iterator<Item = Rank> {
        (0..self.size).filter_map(|member| self.rank_of(member))
    }

    /// The rank of the first, and how far on that of each next one is, where that is the same for all.
    pub fn as_stride(&self) -> Option<(Rank, i32)> {
        match self.form {
            Form::Everyone => Some((0, 1)),
            Form::Stride { first, step } => Some((first, step)),
            Form::List { .. } => None,
        }
    }

    /// Whether they are all ranks, each its own number.
    pub fn is_everyone(&self) -> bool {
        matches!(self.form, Form::Everyone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What [`Members::list`] is to say of these ranks.
    fn model(list: &[u32], ranks: u32) -> Result<(), TeamError> {
        if list.is_empty() {
            return Err(TeamError::Empty);
        }
        if let Some(member) = list.iter().position(|&rank| rank >= ranks) {
            let rank = list[member].into();
            return Err(TeamError::NoSuchRank { member: member as u32, rank, ranks });
        }
        let twice = |rank: &u32| list.iter().filter(|other| *other == rank).count() > 1;
        let Some(&rank) = list.iter().filter(|rank| twice(rank)).min() else { return Ok(()) };
        let mut places = (0..).zip(list).filter(|&(_, &of)| of == rank).map(|(member, _)| member);
        let (first, second) = (places.next().unwrap_or(0), places.next().unwrap_or(0));
        Err(TeamError::Twice { rank, first, second })
    }

    fn is_like(members: &Members, list: &[u32], ranks: u32) -> Result<(), TestCaseError> {
        prop_assert_eq!(members.size() as usize, list.len());
        prop_assert_eq!(&members.iter().collect::<Vec<_>>(), list);
        for member in (0..list.len() as u32 + 2).chain([u32::MAX]) {
            prop_assert_eq!(members.rank_of(member), list.get(member as usize).copied());
        }
        for rank in (0..ranks + 2).chain([u32::MAX]) {
            let member = list.iter().position(|&of| of == rank).map(|member| member as u32);
            prop_assert_eq!(members.member_of(rank), member);
        }
        prop_assert_eq!(members.is_everyone(), list.iter().copied().eq(0..ranks));
        let steps: Vec<i64> = list.windows(2).map(|two| i64::from(two[1]) - i64::from(two[0])).collect();
        let step = steps.first().copied().unwrap_or(1);
        let stride = steps.iter().all(|other| *other == step).then_some((list[0], step as i32));
        prop_assert_eq!(members.as_stride(), stride);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 512 }))]
        #[test]
        fn a_list_is_as_a_vector(list in proptest::collection::vec(0..12u32, 0..12), ranks in 1..14u32) {
            let members = Members::list(list.iter().copied(), ranks);
            prop_assert_eq!(members.as_ref().map(|_| ()).map_err(Clone::clone), model(&list, ranks));
            if let Ok(members) = members {
                is_like(&members, &list, ranks)?;
            }
        }

        #[test]
        fn a_permutation_is_a_team(list in Just((0..40u32).collect::<Vec<_>>()).prop_shuffle(), size in 1..40usize) {
            let members = Members::list(list[..size].iter().copied(), 40).expect("all are there, and each once");
            is_like(&members, &list[..size], 40)?;
        }

        #[test]
        fn a_stride_is_as_a_list(first in 0..12u32, step in -5..6i32, size in 0..8u32, ranks in 1..14u32) {
            let ranks_of: Vec<i64> = (0..size).map(|member| i64::from(first) + i64::from(step * member as i32)).collect();
            let stride = Members::stride(first, step, size, ranks);
            match ranks_of.iter().map(|&rank| u32::try_from(rank)).collect::<Result<Vec<_>, _>>() {
                Ok(list) => {
                    prop_assert_eq!(&stride, &Members::list(list.iter().copied(), ranks));
                    if let Ok(stride) = stride {
                        is_like(&stride, &list, ranks)?;
                    }
                }
                Err(_) => {
                    let wrong = ranks_of.iter().position(|rank| !(0..i64::from(ranks)).contains(rank)).expect("one is");
                    let error = TeamError::NoSuchRank { member: wrong as u32, rank: ranks_of[wrong], ranks };
                    prop_assert_eq!(stride, Err(error));
                }
            }
        }

        #[test]
        fn members_of_members(outer in Just((0..20u32).collect::<Vec<_>>()).prop_shuffle(), inner in proptest::collection::vec(0..9u32, 0..6)) {
            let team = Members::list(outer[..8].iter().copied(), 20).expect("a team");
            let within = team.within(inner.iter().copied(), 20);
            let wanted = model(&inner, 8).map_err(|error| match error {
                TeamError::NoSuchRank { rank, .. } => TeamError::NoSuchMember { member: rank as u32, size: 8 },
                TeamError::Twice { rank, first, second } => TeamError::Twice { rank: outer[rank as usize], first, second },
                other => other,
            });
            prop_assert_eq!(within.as_ref().map(|_| ()).map_err(Clone::clone), wanted);
            if let Ok(within) = within {
                is_like(&within, &inner.iter().map(|&member| outer[member as usize]).collect::<Vec<_>>(), 20)?;
            }
        }
    }

    #[test]
    fn the_ends_of_numbers_are_no_members() {
        let (least, most) = (i32::MIN, u32::MAX);
        let outside = |member, rank| Err(TeamError::NoSuchRank { member, rank, ranks: 4 });
        assert_eq!(Members::stride(0, 1, most, 4), outside(4, 4));
        assert_eq!(Members::stride(3, least, 2, 4), outside(1, 3 + i64::from(least)));
        assert_eq!(Members::stride(most, 1, 1, 4), outside(0, most.into()));
        assert_eq!(Members::stride(2, 0, 3, 4), Err(TeamError::Twice { rank: 2, first: 0, second: 1 }));
        assert_eq!(Members::stride(2, 0, 1, 4), Members::list([2], 4));
        assert_eq!(Members::stride(0, 1, 4, 4), Ok(Members::everyone(4)));
        let far = Members::list([most - 1, 0], most).expect("two ranks far apart are a list");
        assert_eq!([far.member_of(0), far.rank_of(0)], [Some(1), Some(most - 1)]);
    }

    #[test]
    fn an_error_names_the_member_and_the_rank() {
        let text = |error: TeamError| error.to_string();
        let said = text(Members::stride(1, 2, 3, 4).expect_err("5 is none"));
        assert_eq!(said, "member 2 of a team would be rank 5, which is out of range: there are 4 ranks");
        let said = text(Members::list([3, 1, 3], 4).expect_err("3 twice"));
        assert_eq!(said, "members 0 and 2 of a team would both be rank 3");
    }
}
