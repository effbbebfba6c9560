use super::*;
use crate::agent::disk::{DiskRoom, MinFree, Room};
use crate::agent::report::FirstSync;
use crate::agent::state::Bytes;
use crate::agent::wait::WaitReason;
use crate::object::ImageKey;

fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// When reports leave on a node that always has a step to report, in milliseconds.
fn steady(desired: usize, until: Duration) -> Vec<u128> {
    let mut coalescer = Coalescer::default();
    let (mut now, mut left) = (Duration::ZERO, Vec::new());
    while now < until {
        now = coalescer.due(Change::Step, desired, now).unwrap();
        left.push(now.as_millis());
        coalescer.sent(Change::Step, now);
    }
    left
}

#[test]
fn steps_of_a_small_node_image_leave_every_second_at_last() {
    assert_eq!(steady(49, milliseconds(3700)), [0, 250, 750, 1750, 2750, 3750]);
}

#[test]
fn steps_of_a_large_node_image_leave_every_eight_seconds_at_last() {
    assert_eq!(steady(50, milliseconds(24_000)), [1000, 2000, 4000, 8000, 16_000, 24_000]);
}

#[test]
fn a_report_without_changes_never_leaves() {
    assert_eq!(Coalescer::default().due(Change::Nothing, 10, milliseconds(5)), None);
}

#[test]
fn the_first_report_leaves_at_once_whatever_it_reports() {
    for change in [Change::Progress, Change::Step, Change::Idle] {
        assert_eq!(Coalescer::default().due(change, 10, milliseconds(5)), Some(milliseconds(5)));
    }
}

#[test]
fn work_on_a_large_node_image_that_ends_within_a_second_is_one_report() {
    let mut coalescer = Coalescer::default();
    assert_eq!(coalescer.due(Change::Step, 50, milliseconds(5)), Some(milliseconds(1005)));
    assert_eq!(coalescer.due(Change::Step, 50, milliseconds(900)), Some(milliseconds(1005)));
    assert_eq!(coalescer.due(Change::Idle, 50, milliseconds(950)), Some(milliseconds(950)));
    coalescer.sent(Change::Idle, milliseconds(950));
    // The next stretch of work has a second of its own.
    assert_eq!(coalescer.due(Change::Step, 50, milliseconds(8000)), Some(milliseconds(9000)));
    coalescer.sent(Change::Step, milliseconds(9000));
    assert_eq!(coalescer.due(Change::Step, 50, milliseconds(9100)), Some(milliseconds(10_000)));
}

#[test]
fn a_node_that_falls_idle_reports_at_once_and_starts_with_short_intervals_again() {
    let mut coalescer = Coalescer::default();
    for now in [0, 250, 750] {
        coalescer.sent(Change::Step, milliseconds(now));
    }
    assert_eq!(coalescer.due(Change::Step, 10, milliseconds(800)), Some(milliseconds(1750)));
    assert_eq!(coalescer.due(Change::Idle, 10, milliseconds(800)), Some(milliseconds(800)));
    coalescer.sent(Change::Idle, milliseconds(800));
    assert_eq!(coalescer.due(Change::Step, 10, milliseconds(5000)), Some(milliseconds(5000)));
    coalescer.sent(Change::Step, milliseconds(5000));
    assert_eq!(coalescer.due(Change::Step, 10, milliseconds(5000)), Some(milliseconds(5250)));
}

#[test]
fn work_that_begins_right_after_the_last_ended_waits_a_moment() {
    let mut coalescer = Coalescer::default();
    coalescer.sent(Change::Idle, milliseconds(800));
    assert_eq!(coalescer.due(Change::Step, 10, milliseconds(810)), Some(milliseconds(1050)));
}

#[test]
fn progress_alone_leaves_every_five_seconds() {
    let mut coalescer = Coalescer::default();
    coalescer.sent(Change::Step, milliseconds(1000));
    assert_eq!(coalescer.due(Change::Progress, 10, milliseconds(1100)), Some(milliseconds(6000)));
    coalescer.sent(Change::Progress, milliseconds(6000));
    assert_eq!(coalescer.due(Change::Progress, 10, milliseconds(6000)), Some(milliseconds(11_000)));
    // A step that comes after progress is not held up by it.
    assert_eq!(coalescer.due(Change::Step, 10, milliseconds(6100)), Some(milliseconds(6250)));
}

#[test]
fn fifty_images_two_at_a_time_take_at_most_seven_reports_within_fifteen_seconds() {
    for pull in [1, 10, 20, 55, 100, 170, 300, 450, 599] {
        let reports = simulate(50, 2, milliseconds(pull));
        assert!(reports <= 7, "{reports} reports with pulls of {pull} ms");
    }
}

#[test]
fn each_further_eight_seconds_take_one_report_more() {
    let fifteen = simulate(50, 2, milliseconds(600));
    let thirty_one = simulate(50, 2, milliseconds(1240));
    assert_eq!(thirty_one - fifteen, 2);
}

/// Pulls `images` images, `parallel` at a time, and counts the reports.
fn simulate(images: u64, parallel: u64, pull: Duration) -> u32 {
    let mut coalescer = Coalescer::default();
    let (mut reports, mut pending, mut now) = (0, Change::Step, Duration::ZERO);
    let rounds = images.div_ceil(parallel);
    for round in 0..=rounds {
        let end = pull * u32::try_from(round).unwrap();
        while let Some(due) = coalescer.due(pending, 50, now).filter(|due| *due < end) {
            (now, reports) = (due, reports + 1);
            coalescer.sent(pending, now);
            pending = Change::Nothing;
        }
        (now, pending) = (end, if round == rounds { Change::Idle } else { Change::Step });
    }
    assert_eq!(coalescer.due(pending, 50, now), Some(now));
    reports + 1
}

fn status(task: &TaskState) -> Report {
    Report::new(vec![task.clone()], None, None)
}

fn pulling() -> TaskState {
    TaskState { percent: 10, ..TaskState::new(key("web", "v1"), 0, Phase::Pulling) }
}

fn key(name: &str, tag: &str) -> ImageKey {
    ImageKey { name: name.to_owned(), tag: tag.to_owned() }
}

fn text(text: &str) -> Note {
    Note::Text(text.to_owned())
}

fn change(last: &TaskState, next: &TaskState) -> Change {
    compare(&status(last), &status(next))
}

#[test]
fn an_unchanged_task_is_not_worth_a_report() {
    assert_eq!(change(&pulling(), &pulling()), Change::Nothing);
}

#[test]
fn free_room_alone_is_not_worth_a_report() {
    let next = Report { room: Some(Room { free: 1, capacity: 2 }), ..status(&pulling()) };
    assert_eq!(compare(&status(&pulling()), &next), Change::Nothing);
}

#[test]
fn a_change_of_percent_and_bytes_is_progress() {
    let next = TaskState { percent: 20, bytes: Some(Bytes { done: 2, total: 10 }), ..pulling() };
    assert_eq!(change(&pulling(), &next), Change::Progress);
}

#[test]
fn unpacking_is_progress_too_until_something_fails() {
    let unpacking = TaskState { note: Some(Note::Unpacking), percent: 99, ..pulling() };
    assert_eq!(change(&pulling(), &unpacking), Change::Progress);
    assert_eq!(change(&unpacking, &pulling()), Change::Progress);
    let failed = TaskState { note: Some(text("it broke")), failed_attempts: 1, ..pulling() };
    assert_eq!(change(&unpacking, &failed), Change::Step);
}

#[test]
fn another_attempt_is_a_step_even_if_progress_changed_too() {
    assert_eq!(change(&pulling(), &TaskState { failed_attempts: 2, percent: 0, ..pulling() }), Change::Step);
    assert_eq!(change(&pulling(), &TaskState { note: Some(text("…")), ..pulling() }), Change::Step);
}

#[test]
fn the_end_of_the_last_pull_is_idle() {
    for phase in [Phase::Succeeded, Phase::Failed] {
        assert_eq!(change(&pulling(), &TaskState { phase, ..pulling() }), Change::Idle);
    }
}

#[test]
fn a_loss_on_an_idle_node_is_reported_at_once() {
    let succeeded = TaskState { phase: Phase::Succeeded, ..pulling() };
    let lost = TaskState { lost_at: Some(jiff::Timestamp::UNIX_EPOCH), ..succeeded.clone() };
    assert_eq!(change(&succeeded, &lost), Change::Idle);
}

#[test]
fn tags_and_images_that_come_or_go_are_steps() {
    let one = status(&pulling());
    for other in [key("web", "v2"), key("shop", "v1")] {
        assert_eq!(compare(&one, &status(&TaskState { key: other, ..pulling() })), Change::Step);
    }
    let more = Report::new(vec![pulling(), pulling()], None, None);
    assert_eq!(compare(&one, &more), Change::Step);
    assert_eq!(compare(&one, &Report::default()), Change::Idle);
}

#[test]
fn the_end_of_the_first_pass_is_a_step() {
    let next = Report { first_sync: Some(FirstSync::default()), ..status(&pulling()) };
    assert_eq!(compare(&status(&pulling()), &next), Change::Step);
}

#[test]
fn a_waiting_task_reports_another_reason_but_not_another_amount_of_room() {
    let waiting = |reason| TaskState { phase: Phase::Waiting, note: Some(Note::Wait(reason)), ..pulling() };
    let room = |free| {
        let room = Room { free, capacity: 100 };
        waiting(WaitReason::NoRoom(DiskRoom {
            room,
            inodes: None,
            min_free: MinFree::default(),
            path: "/images".into(),
        }))
    };
    let registry = WaitReason::SlowRegistry { registry: "slow.example".to_owned() };
    assert_eq!(change(&room(12), &room(9)), Change::Nothing);
    assert_eq!(change(&room(12), &waiting(registry)), Change::Step);
    assert_eq!(change(&room(12), &TaskState { note: None, ..room(12) }), Change::Step);
    // In the text of a failure, a number may be all that matters.
    let failed = |message| TaskState { phase: Phase::Failed, note: Some(text(message)), ..pulling() };
    assert_eq!(change(&failed("status 404"), &failed("status 403")), Change::Idle);
}

#[test]
fn a_reason_that_was_read_back_as_text_says_the_same() {
    let waiting = |note| TaskState { phase: Phase::Waiting, note, ..pulling() };
    let place = Some(Note::Wait(WaitReason::NoPlace { places: 2 }));
    assert_eq!(
        change(&waiting(Some(text("waits for one of 2 places"))), &waiting(place.clone())),
        Change::Nothing
    );
    assert_eq!(change(&waiting(Some(text("waits for one of 3 places"))), &waiting(place)), Change::Step);
}
