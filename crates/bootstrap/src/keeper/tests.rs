//! The keeper on its own: what it does of what it hears, and when.

use super::*;
use crate::host::Lines;
use crate::lifeline::Line;
use gasworks_os::unix;

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// The keeper of rank 5, which has not begun, and what it hears from: as the leader, or as a follower of rank 0.
fn state(leads: bool) -> (State, Line) {
    let (ours, theirs) = unix::pair().expect("a pair");
    let line = (if leads { 7 } else { 0 }, Line::new(ours, 0));
    let lines = Lines { lines: vec![line], leads, ..Lines::default() };
    let bell = Box::leak(Box::new(EventFd::new().expect("a bell")));
    let mut state = State::new(5, bell, ExitTimeout::fixed(ms(1000)));
    state.star = Some(Star::new(lines));
    (state, Line::new(theirs, 0))
}

fn asked(code: u8, at_once: bool) -> Phase {
    Phase::Asked { code, at_once, since: Instant::now() }
}

fn ending() -> Phase {
    let since = Instant::now();
    Phase::Ending(Ending { code: 3, since, ready: false, go: false, passed: false, whole: false, steps: 0 })
}

#[test]
fn the_parts_of_the_exit_time_out() {
    assert_eq!((consent_limit(ms(400)), consent_limit(ms(4000))), (ms(100), ms(250)));
    assert_eq!((meeting_limit(ms(1000), 0), meeting_limit(ms(1000), 1)), (ms(1500), ms(500)));
    assert_eq!((verdict_limit(ms(1000), 0), verdict_limit(ms(400), 1)), (ms(1250), ms(200)));
    assert_eq!((leader_limit(ms(1000)), followers_limit(ms(1000))), (ms(1250), ms(1500)));
    let quarters = |waited| quarters_beyond(ms(waited), ms(250), ms(1000));
    assert_eq!([100, 250, 499, 501, 749, 751, 1001].map(quarters), [0, 0, 0, 1, 1, 2, 3]);
    let signals = |waited| [0, 1, 2, 3].map(|step| due_signal(step, ms(waited), ms(1000)));
    let [quit, term, kill] = [Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGKILL].map(Some);
    assert_eq!(signals(500), [None; 4]);
    assert_eq!(signals(501), [quit, None, None, None]);
    assert_eq!(signals(750), [quit, None, None, None]);
    assert_eq!(signals(751), [quit, term, None, None]);
    assert_eq!(signals(1250), [quit, term, None, None]);
    assert_eq!(signals(1251), [quit, term, kill, None]);
}

/// The keeper of rank 5, which leads rank 7 on another host than the first leader, rank 0; and the other ends of both.
fn of_another_host() -> (State, Line, Line) {
    let (mut state, below) = state(true);
    let ((ours, first), (again, seat)) = (unix::pair().expect("a pair"), unix::pair().expect("a pair"));
    let (lines, above) = (vec![(7, Line::new(again, 0))], Some((0, Line::new(ours, 0))));
    state.star = Some(Star::new(Lines { lines, leads: true, above, ..Lines::default() }));
    drop(below);
    (state, Line::new(first, 0), Line::new(seat, 0))
}

#[test]
fn a_host_tells_the_first_leader_what_its_ranks_wish() {
    let (mut state, first, seat) = of_another_host();
    state.hear(Heard::Exit { code: 0, at_once: false });
    state.look_at_the_clock();
    state.look_at_the_clock();
    assert_eq!(first.hear(), Some(Word::Asked { code: 0 }), "this rank does not wish for it");
    state.hear(Heard::Exit { code: 7, at_once: true });
    state.look_at_the_clock();
    assert_eq!(first.hear(), Some(Word::Exit { code: 7, at_once: true }), "once of each");
    assert!(matches!(state.phase, Phase::Asked { .. }), "the first leader decides");
    state.hear(Heard::Verdict { code: 7 });
    assert_eq!(seat.hear(), Some(Word::Verdict { code: 7 }));
}

#[test]
fn a_host_goes_when_the_first_leader_says_so() {
    let (mut state, first, seat) = of_another_host();
    state.phase = ending();
    state.get_ready();
    state.look_at_the_clock();
    seat.say(Word::Ready);
    let star = state.star.as_mut().expect("it has one");
    assert_eq!(star.turn(&[true, false]), []);
    state.look_at_the_clock();
    assert_eq!(first.hear(), Some(Word::Ready), "with all of its ranks");
    state.hear(Heard::Go { whole: true });
    state.look_at_the_clock();
    assert_eq!(seat.hear(), Some(Word::Go { whole: true }));
}

#[test]
fn a_host_whose_first_leader_is_gone_goes_on_by_itself() {
    ending::enter_job();
    for (phase, missed, stays) in
        [(Phase::Running, true, true), (asked(0, false), true, false), (asked(3, false), false, true)]
    {
        let (mut state, first, _seat) = of_another_host();
        drop(first);
        state.phase = phase;
        let star = state.star.as_mut().expect("it has one");
        let heard = star.turn(&[false, true]);
        assert_eq!(heard, [Heard::Gone { rank: 0, bye: false }]);
        heard.into_iter().for_each(|heard| state.hear(heard));
        assert!(matches!(state.star, Some(Star::Leader(_))), "{phase:?}");
        assert!(!state.star.as_ref().is_some_and(Star::has_above), "{phase:?}");
        assert_eq!(state.missing.is_some(), missed, "{phase:?}");
        let is_asked = matches!(state.phase, Phase::Asked { .. });
        assert_eq!(is_asked == matches!(phase, Phase::Asked { .. }), stays, "{phase:?}");
    }
    ending::leave_job();
}

#[test]
fn a_list_of_ranks_is_cut_after_eight() {
    assert_eq!(list_of(&[3]), "3");
    assert_eq!(list_of(&[0, 1, 2, 3, 4, 5, 6, 7]), "0, 1, 2, 3, 4, 5, 6, 7");
    assert_eq!(list_of(&[0, 1, 2, 3, 4, 5, 6, 7, 9]), "0, 1, 2, 3, 4, 5, 6, 7, ...");
}

#[test]
fn the_first_code_that_is_not_zero_is_the_one_asked_for() {
    for (phase, (code, at_once), wanted) in [
        (Phase::Running, (4, true), (4, true)),
        (Phase::Running, (0, false), (0, false)),
        (asked(0, false), (5, false), (5, false)),
        (asked(0, true), (0, false), (0, true)),
        (asked(0, false), (0, true), (0, true)),
        (asked(5, false), (7, true), (5, true)),
        (asked(5, true), (7, true), (5, true)),
        (asked(5, true), (0, false), (5, true)),
    ] {
        let (mut state, _other) = state(true);
        state.phase = phase;
        state.ask(code, at_once);
        match state.phase {
            Phase::Asked { code, at_once, .. } => assert_eq!((code, at_once), wanted, "{phase:?}"),
            other => panic!("{phase:?} became {other:?}"),
        }
    }
    let (mut state, _other) = state(true);
    state.phase = ending();
    state.ask(7, true);
    assert!(matches!(state.phase, Phase::Ending(Ending { code: 3, .. })), "it is certain");
}

#[test]
fn a_rank_that_is_gone_without_a_word_is_missed() {
    ending::enter_job();
    // A leader keeps its place and what it was asked for; a follower is alone, and asks for no end with code 0.
    for (leads, phase) in [(true, Phase::Running), (true, asked(0, false)), (false, asked(0, false))] {
        let (mut state, _other) = state(leads);
        state.phase = phase;
        state.hear(Heard::Gone { rank: 7, bye: false });
        state.miss(8, false);
        assert_eq!(state.missing.map(|(rank, _)| rank), Some(7), "the first");
        assert_eq!(matches!(state.star, Some(Star::Leader(_))), leads);
        assert_eq!(matches!(state.star, Some(Star::Alone)), !leads);
        let goes_on = matches!(phase, Phase::Running) || !leads;
        assert_eq!(matches!(state.phase, Phase::Running), goes_on, "{phase:?}");
    }
    let (mut state, _other) = state(true);
    state.hear(Heard::Gone { rank: 7, bye: true });
    assert!(state.missing.is_none(), "it has said good-bye");
    ending::leave_job();
    state.hear(Heard::Gone { rank: 7, bye: false });
    assert!(state.missing.is_none(), "there is no job any more");
}

#[test]
fn an_end_goes_on_without_the_leader_and_not_for_a_follower() {
    for leads in [true, false] {
        let (mut state, _other) = state(leads);
        state.phase = ending();
        state.hear(Heard::Gone { rank: 7, bye: false });
        assert!(matches!(state.phase, Phase::Ending(Ending { go, .. }) if go != leads), "{leads}");
        assert!(state.missing.is_none());
    }
    let (mut state, _other) = state(false);
    state.hear(Heard::Go { whole: true });
    assert!(matches!(state.phase, Phase::Running), "there is no end to go on with");
    state.phase = ending();
    state.hear(Heard::Go { whole: true });
    assert!(matches!(state.phase, Phase::Ending(Ending { go: true, whole: true, .. })));
}

#[test]
fn the_clock_is_looked_at_only_where_something_is_under_way() {
    const PAUSE: Duration = Duration::from_millis(100);
    const WATCHDOG: Duration = Duration::from_secs(10);
    let ring_after = |pause: Duration, bell: &'static EventFd| {
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            // A test that is over does not hear it.
            let _ = bell.ring();
        });
    };
    let (mut idle, _other) = state(true);
    let begun = Instant::now();
    ring_after(PAUSE, idle.bell);
    assert!(idle.wait().is_empty());
    assert!(begun.elapsed() >= PAUSE, "it sleeps until the bell rings");
    let under_way: [fn(&mut State); 5] = [
        |state| state.lost = Some(Instant::now()),
        |state| state.consulted = Some(Instant::now()),
        |state| state.missing = Some((7, Instant::now())),
        |state| state.phase = asked(0, false),
        |state| state.phase = ending(),
    ];
    for begin in under_way {
        let (mut state, _other) = state(true);
        begin(&mut state);
        let begun = Instant::now();
        ring_after(WATCHDOG, state.bell);
        assert!(state.wait().is_empty());
        assert!(begun.elapsed() < WATCHDOG, "it wakes by itself: {state:?}");
    }
}

#[test]
fn what_the_leader_and_the_launcher_do_wakes_the_keeper() {
    let (mut state, leader) = state(false);
    leader.say(Word::Verdict { code: 4 });
    assert_eq!(state.wait(), [Heard::Verdict { code: 4 }]);
    let (ours, theirs) = unix::pair().expect("a pair");
    state.launcher = Some(ours.into_fd().into());
    leader.say(Word::Bye);
    assert!(state.wait().is_empty() && state.lost.is_none(), "the launcher is there");
    drop(theirs);
    assert!(state.wait().is_empty());
    assert!(state.lost.is_some() && state.launcher.is_none(), "it is gone");
}

#[test]
fn a_rank_is_ready_once() {
    let (mut state, leader) = state(false);
    state.get_ready();
    state.phase = ending();
    state.get_ready();
    state.get_ready();
    drop(state);
    assert_eq!((leader.hear(), leader.hear()), (Some(Word::Ready), None));
}
