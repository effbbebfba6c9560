use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{FirstSyncStatus, ImageFilesystem, ImageStatus};

use super::*;

fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// When reports leave on a node that has a step to tell at every moment, in milliseconds.
fn steady(desired: i32, until: Duration) -> Vec<u128> {
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
fn nothing_never_leaves() {
    assert_eq!(Coalescer::default().due(Change::Nothing, 10, milliseconds(5)), None);
}

#[test]
fn the_first_report_leaves_at_once_whatever_it_tells() {
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
fn falling_idle_leaves_at_once_and_begins_anew() {
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

/// Pulls so many images, `parallel` at a time, and counts the reports.
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

fn status(tag: &ImageTagStatus) -> NodeImageStatus {
    let count = |phase: PullPhase| i32::from(tag.phase == phase);
    NodeImageStatus {
        desired: 1,
        succeeded: count(PullPhase::Succeeded),
        failed: count(PullPhase::Failed),
        pulling: count(PullPhase::Pulling),
        waiting: count(PullPhase::Waiting),
        image_statuses: Some(BTreeMap::from([("web".to_owned(), ImageStatus { tags: vec![tag.clone()] })])),
        ..NodeImageStatus::default()
    }
}

fn pulling() -> ImageTagStatus {
    ImageTagStatus {
        tag: "v1".to_owned(),
        phase: PullPhase::Pulling,
        progress: 10,
        ..ImageTagStatus::default()
    }
}

fn change(last: &ImageTagStatus, next: &ImageTagStatus) -> Change {
    compare(&status(last), &status(next))
}

#[test]
fn the_same_again_is_nothing() {
    assert_eq!(change(&pulling(), &pulling()), Change::Nothing);
}

#[test]
fn room_on_the_disk_is_nothing() {
    let next = NodeImageStatus {
        image_filesystem: Some(ImageFilesystem { free_bytes: 1, capacity_bytes: 2 }),
        ..status(&pulling())
    };
    assert_eq!(compare(&status(&pulling()), &next), Change::Nothing);
}

#[test]
fn percent_and_bytes_are_progress() {
    let next = ImageTagStatus { progress: 20, bytes_done: Some(2), bytes_total: Some(10), ..pulling() };
    assert_eq!(change(&pulling(), &next), Change::Progress);
}

#[test]
fn unpacking_is_progress_too_until_something_fails() {
    let unpacking = ImageTagStatus { message: Some(UNPACKING.into()), progress: 99, ..pulling() };
    assert_eq!(change(&pulling(), &unpacking), Change::Progress);
    assert_eq!(change(&unpacking, &pulling()), Change::Progress);
    let failed = ImageTagStatus { message: Some("it broke".into()), failed_attempts: 1, ..pulling() };
    assert_eq!(change(&unpacking, &failed), Change::Step);
}

#[test]
fn another_attempt_is_a_step_also_with_progress() {
    assert_eq!(
        change(&pulling(), &ImageTagStatus { failed_attempts: 2, progress: 0, ..pulling() }),
        Change::Step
    );
    assert_eq!(change(&pulling(), &ImageTagStatus { message: Some("…".into()), ..pulling() }), Change::Step);
}

#[test]
fn the_end_of_the_last_pull_is_idle() {
    for phase in [PullPhase::Succeeded, PullPhase::Failed] {
        assert_eq!(change(&pulling(), &ImageTagStatus { phase, ..pulling() }), Change::Idle);
    }
}

#[test]
fn a_loss_on_an_idle_node_is_told_at_once() {
    let succeeded = ImageTagStatus { phase: PullPhase::Succeeded, ..pulling() };
    let lost = ImageTagStatus { lost_at: Some(Time(jiff::Timestamp::UNIX_EPOCH)), ..succeeded.clone() };
    assert_eq!(change(&succeeded, &lost), Change::Idle);
}

#[test]
fn tags_and_images_that_come_or_go_are_steps() {
    let one = status(&pulling());
    let other_tag = status(&ImageTagStatus { tag: "v2".to_owned(), ..pulling() });
    assert_eq!(compare(&one, &other_tag), Change::Step);
    let mut other_name = one.clone();
    other_name.image_statuses = other_name
        .image_statuses
        .map(|images| images.into_values().map(|image| ("shop".to_owned(), image)).collect());
    assert_eq!(compare(&one, &other_name), Change::Step);
    let mut more = one.clone();
    more.image_statuses.as_mut().unwrap().get_mut("web").unwrap().tags.push(pulling());
    assert_eq!(compare(&one, &more), Change::Step);
    assert_eq!(compare(&one, &NodeImageStatus::default()), Change::Idle);
}

#[test]
fn the_end_of_the_first_pass_is_a_step() {
    let next = NodeImageStatus { first_sync_status: Some(FirstSyncStatus::default()), ..status(&pulling()) };
    assert_eq!(compare(&status(&pulling()), &next), Change::Step);
}

#[test]
fn numbers_in_the_text_of_a_waiting_tag_are_nothing_and_other_words_are_a_step() {
    let waiting = |message: &str| ImageTagStatus {
        phase: PullPhase::Waiting,
        message: Some(message.to_owned()),
        ..pulling()
    };
    let twelve = waiting("waits for room: 12 % free");
    assert_eq!(change(&twelve, &waiting("waits for room: 9.5 % free")), Change::Nothing);
    assert_eq!(change(&twelve, &waiting("waits for the registry")), Change::Step);
    assert_eq!(change(&twelve, &ImageTagStatus { message: None, ..twelve.clone() }), Change::Step);
    // In the text of a failure, a number may be all that matters.
    let failed = |message: &str| ImageTagStatus { phase: PullPhase::Failed, ..waiting(message) };
    assert_eq!(change(&failed("status 404"), &failed("status 403")), Change::Idle);
}
