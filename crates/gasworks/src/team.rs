//! Teams: ordered views of a job's ranks.

use crate::{Agent, Error, ThreadMode};
use gasworks_core::{Engine, TeamRows};
use gasworks_extended::Barrier;
use gasworks_extended::barrier::{TeamBarrier, Way};
use gasworks_extended::team;
use std::sync::Arc;

/// A team: some of a job's ranks in an order of their own, this one among them. Its members are numbered from 0.
///
/// [`Job::everyone`](crate::Job::everyone) is the team of all ranks; others are made of it by calls of all members, and teams of those.
/// [`Agent::on`] gives an agent that communicates by a team's numbers.
///
/// ```
/// # use gasworks::{Config, Job, Seq, Table};
/// # fn main() -> Result<(), gasworks::Error> {
/// # let job = Job::<Seq>::open(Config::from_env()?, Table::new())?;
/// let agent = job.agent()?;
/// let everyone = job.everyone();
/// // The even ranks are a team, and the odd ones are another.
/// let half = everyone.split(&agent, Some(agent.rank() % 2), 0)?.expect("a rank with a colour has a team");
/// let within = agent.on(&half);
/// assert_eq!(within.ranks(), half.size());
/// within.barrier()?;
/// # drop(within);
/// # agent.barrier()?;
/// # job.close()
/// # }
/// ```
pub struct Team<'job, M: ThreadMode> {
    engine: &'job Engine<M>,
    teams: &'job Arc<team::Teams>,
    team: Arc<team::Team>,
    rows: TeamRows<'job>,
    barrier: TeamBarrierOf<'job, M>,
}

/// Everyone's barrier is the job's.
enum TeamBarrierOf<'job, M: ThreadMode> {
    Job(&'job Barrier<M>),
    Own(Barrier<M>),
}

impl<'job, M: ThreadMode> Team<'job, M> {
    pub(crate) fn everyone(
        engine: &'job Engine<M>,
        barrier: &'job Barrier<M>,
        teams: &'job Arc<team::Teams>,
        team: &Arc<team::Team>,
    ) -> Self {
        let rows = TeamRows::everyone(engine.peers());
        Self { engine, teams, team: team.clone(), rows, barrier: TeamBarrierOf::Job(barrier) }
    }

    /// Another team of the same job.
    fn with(&self, team: team::Team) -> Result<Self, Error> {
        let &Self { engine, teams, .. } = self;
        let rows =
            TeamRows::new(team.members().clone(), engine.peers()).map_err(gasworks_core::Error::from)?;
        let team = Arc::new(team);
        let barrier = Barrier::new(Way::Team(TeamBarrier::new(teams.clone(), team.clone())));
        Ok(Self { engine, teams, team, rows, barrier: TeamBarrierOf::Own(barrier) })
    }

    /// What its collectives go by.
    pub(crate) fn parts(&self) -> (&'job Engine<M>, &team::Teams, &Arc<team::Team>) {
        (self.engine, self.teams, &self.team)
    }

    fn barrier(&self) -> &Barrier<M> {
        match &self.barrier {
            TeamBarrierOf::Job(barrier) => barrier,
            TeamBarrierOf::Own(barrier) => barrier,
        }
    }

    /// How many members it has.
    pub fn size(&self) -> u32 {
        self.team.members().size()
    }

    /// Which member this rank is.
    pub fn member(&self) -> u32 {
        self.team.own()
    }

    /// The rank of a member; `None` if there is no such member.
    pub fn rank_of(&self, member: u32) -> Option<u32> {
        self.team.members().rank_of(member)
    }

    /// Which member a rank is; `None` if it is none.
    pub fn member_of(&self, rank: u32) -> Option<u32> {
        self.team.members().member_of(rank)
    }

    /// The members' ranks, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.team.members().iter()
    }

    /// A number that is the same on all members, and no other team's in this job: in its upper half the rank of a member. Everyone's is 0.
    pub fn number(&self) -> u64 {
        let team::TeamNumber { maker, counter } = self.team.number();
        u64::from(maker) << 32 | u64::from(counter)
    }

    /// Divides the team: those of its members who pass the same colour are a team, in the order of their keys, and of their numbers in this one
    /// where these are the same. Who passes no colour gets no team. The specification's `gex_TM_Split`. Collective: returns when all members of
    /// this team have called it; the collectives of a team are called in the same order by all of them.
    ///
    /// # Errors
    /// A member called another collective of the team, or a poll finds something wrong.
    pub fn split(&self, _agent: &Agent<'_, M>, color: Option<u32>, key: i64) -> Result<Option<Self>, Error> {
        let split = self.teams.split(self.engine, &self.team, color, key)?;
        split.map(|team| self.with(team)).transpose()
    }

    /// Makes a team of these members of this one, in this order. Who is not among them gets none. The specification's `gex_TM_Create`.
    /// Collective, as [`split`](Self::split): every member of this team calls it with the same members.
    ///
    /// # Errors
    /// On every member alike: there is no member, one is none of this team's, or one comes twice; two members passed others, or called another
    /// collective of the team. Or a poll finds something wrong.
    pub fn create(
        &self,
        _agent: &Agent<'_, M>,
        members: impl IntoIterator<Item = u32>,
    ) -> Result<Option<Self>, Error> {
        let created = self.teams.create(self.engine, &self.team, members)?;
        created.map(|team| self.with(team)).transpose()
    }
}

impl<'job, M: ThreadMode> Agent<'job, M> {
    /// This agent with a team's numbers: those of its members stand in the place of ranks in every call that is made on what is returned, in
    /// pointers and in segments, and its barrier is the team's. Whom a message came from a handler is told as a rank of the job all the same:
    /// [`Team::member_of`] says which member that is.
    pub fn on<'team>(&self, team: &'team Team<'job, M>) -> Agent<'team, M> {
        Agent::within(team.engine, team.barrier(), team.rows.view(), team.member())
    }
}

impl<M: ThreadMode> std::fmt::Debug for Team<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "team {:#x}, member {} of {}", self.number(), self.member(), self.size())
    }
}
