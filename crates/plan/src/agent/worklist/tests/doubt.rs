//! Images that stop the runtime, or fill the disk.

use super::*;
use crate::agent::runtime::Absence;
use crate::agent::wait::Alone;

fn stops() -> Outcome {
    Outcome::Interrupted(Absence::Stopped)
}

fn no_room() -> Failure {
    let Outcome::Failed(failure) = failure(FailureClass::NoSpace) else { panic!("it fails") };
    Failure { is_final: true, ..failure }
}

/// Begins whatever may begin, and ends all of it like this.
fn round(worklist: &mut Worklist, now: u64, outcome: impl Fn(&str) -> Outcome) -> Vec<String> {
    let starts = worklist.decide(&free(2), at(now)).starts;
    for start in &starts {
        worklist.ended(start.attempt, outcome(&start.task.key.tag), at(now), STEADY);
    }
    starts.into_iter().map(|start| start.task.key.tag).collect()
}

#[test]
fn an_image_that_stops_the_runtime_is_pulled_alone_and_fails_the_third_time_while_others_go_on() {
    let mut worklist = list(&[json!({ "tag": "a" }), json!({ "tag": "bad" }), json!({ "tag": "c" })]);
    assert_eq!(round(&mut worklist, 0, |_| stops()), ["a", "bad"]);
    assert_eq!(round(&mut worklist, 1, |_| stops()), ["a", "bad"], "anything may have stopped it");
    assert_eq!(status(&worklist, "bad").interruptions, 2);
    assert_eq!(round(&mut worklist, 2, |_| success()), ["c"], "whoever is not in doubt comes first");
    assert_eq!(round(&mut worklist, 3, |_| success()), ["a"], "alone, and proved innocent");
    let start = worklist.decide(&free(2), at(4)).starts.remove(0);
    let ending = worklist.ended(start.attempt, stops(), at(5), STEADY).unwrap();
    let Ended::Failed { class: FailureClass::RuntimeCrash, message: Some(message) } = ending.result else {
        panic!("{ending:?}")
    };
    assert!(
        message.starts_with(
            "cannot pull reg.example/app:bad: the container runtime stopped (attempt 1 of 4): it stopped 3 times"
        ),
        "{message}"
    );
    let bad = status(&worklist, "bad");
    assert_eq!(
        (bad.phase, bad.class, bad.interruptions),
        (Phase::Failed, Some(FailureClass::RuntimeCrash), 3)
    );
}

#[test]
fn while_an_image_is_pulled_alone_others_wait_and_say_so_but_not_for_ever() {
    let mut worklist = list(&[json!({ "tag": "bad" })]);
    for now in 0..2 {
        round(&mut worklist, now, |_| stops());
    }
    worklist.decide(&free(2), at(2));
    let more = [json!({ "tag": "bad" }), json!({ "tag": "c" })];
    worklist.adopt(read(&spec(&more)), &BTreeMap::new(), at(3));
    let decision = worklist.decide(&free(2), at(3));
    assert_eq!((tags(&decision), decision.wake_at), (vec![], Some(Duration::from_secs(602))));
    assert_eq!(status(&worklist, "c").note, Some(Note::Wait(WaitReason::Alone(Alone::Another))));
    assert_eq!(tags(&worklist.decide(&free(2), at(602))), ["c"]);
    worklist.ended(3, stops(), at(603), STEADY);
    let bad = status(&worklist, "bad");
    assert_eq!((bad.phase, bad.interruptions), (Phase::Pulling, 3), "it was not alone when that happened");
    worklist.decide(&free(2), at(603));
    let waits = status(&worklist, "bad").note;
    assert_eq!(waits, Some(Note::Wait(WaitReason::Alone(Alone::Stops { times: 3 }))));
}

#[test]
fn the_count_of_interruptions_survives_a_restart_of_the_agent() {
    let mut worklist = list(&[json!({ "tag": "bad" })]);
    for now in 0..2 {
        round(&mut worklist, now, |_| stops());
    }
    let written = Status::of(Report::new(worklist.states(), None, None));
    let mut restarted = Worklist::default();
    let asked = read(&spec(&[json!({ "tag": "bad" })]));
    restarted.adopt(asked, &reported(&serde_json::to_value(written).unwrap()), at(10));
    round(&mut restarted, 10, |_| stops());
    assert_eq!(phase(&restarted, "bad"), Phase::Failed);
}

#[test]
fn a_runtime_that_is_away_or_unavailable_by_itself_speaks_against_nobody() {
    let mut worklist = list(&[json!({ "tag": "1", "pullPolicy": { "backoffLimit": 0 } })]);
    for now in 0..10 {
        let absence = if now % 2 == 0 { Absence::Unreachable } else { Absence::Unavailable };
        assert_eq!(round(&mut worklist, now, |_| Outcome::Interrupted(absence)), ["1"]);
    }
    let one = status(&worklist, "1");
    assert_eq!((one.phase, one.failed_attempts, one.interruptions), (Phase::Pulling, 0, 0));
}

#[test]
fn an_image_that_fills_the_disk_alone_has_failed() {
    let mut worklist = list(&[json!({ "tag": "bomb" })]);
    worklist.decide(&free(2), at(0));
    let shortage = worklist.ran_short(1, no_room(), at(1), STEADY);
    assert!(shortage.ending.is_some() && shortage.stopped.is_empty(), "{shortage:?}");
    assert_eq!(phase(&worklist, "bomb"), Phase::Failed);
}

#[test]
fn when_the_disk_is_full_all_wait_for_room_and_whoever_fills_it_alone_has_failed() {
    let mut worklist = list(&[json!({ "tag": "a" }), json!({ "tag": "bomb" }), json!({ "tag": "c" })]);
    worklist.decide(&free(2), at(0));
    let shortage = worklist.ran_short(1, no_room(), at(1), STEADY);
    assert_eq!((shortage.ending, shortage.stopped), (None, vec![1, 2]));
    assert_eq!(worklist.ran_short(2, no_room(), at(1), STEADY), Shortage::default(), "it was cancelled");
    let full = Conditions { no_room: Some(super::shortage()), ..free(2) };
    assert_eq!(worklist.decide(&full, at(2)).starts, []);
    assert_eq!(status(&worklist, "a").note, Some(Note::Wait(WaitReason::NoRoom(super::shortage()))));
    assert_eq!(round(&mut worklist, 3, |_| success()), ["c"]);
    assert_eq!(round(&mut worklist, 4, |_| success()), ["a"]);
    let bomb = worklist.decide(&free(2), at(5)).starts.remove(0);
    let ending = worklist.ran_short(bomb.attempt, no_room(), at(6), STEADY).ending.unwrap();
    assert!(matches!(ending.result, Ended::Failed { class: FailureClass::NoSpace, .. }), "{ending:?}");
    let failed = |tag| status(&worklist, tag).failed_attempts;
    assert_eq!((failed("a"), failed("bomb"), failed("c")), (0, 1, 0));
}

#[test]
fn an_image_that_fills_the_disk_more_slowly_than_it_stays_alone_fails_in_the_end() {
    let mut worklist = list(&[json!({ "tag": "large" })]);
    let mut asked = vec![json!({ "tag": "large" })];
    for turn in 0..3 {
        let (now, other) = (turn * 1000, format!("a-{turn}"));
        asked.push(json!({ "tag": other }));
        let first = worklist.decide(&free(2), at(now));
        assert_eq!(tags(&first), ["large"], "turn {turn}");
        worklist.adopt(read(&spec(&asked)), &BTreeMap::new(), at(now));
        let second = worklist.decide(&free(2), at(now + 600));
        worklist.progressed(first.starts[0].attempt, Bytes { done: 1 << 30, total: 1 << 40 });
        let shortage = worklist.ran_short(second.starts[0].attempt, no_room(), at(now + 700), STEADY);
        assert_eq!(shortage.ending.is_some(), turn == 2, "turn {turn}: {shortage:?}");
        assert_eq!(round(&mut worklist, now + 800, |_| success()), [other]);
    }
    assert_eq!(status(&worklist, "large").class, Some(FailureClass::NoSpace));
}
