use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{FailureClass, FirstSyncStatus, ImageStatus, OwnerResult};
use proptest::prelude::*;

use super::*;

const NAMES: usize = 256;
const TAGS: usize = 5;

fn time() -> Time {
    Time("2026-11-16T02:37:56Z".parse::<Timestamp>().unwrap())
}

fn status(names: usize, tags: usize, tag: impl Fn(usize, usize) -> ImageTagStatus) -> NodeImageStatus {
    let image = |name: usize| ImageStatus { tags: (0..tags).map(|number| tag(name, number)).collect() };
    let images: BTreeMap<_, _> = (0..names).map(|name| (long_name(name), image(name))).collect();
    let desired = i32::try_from(names * tags).unwrap();
    NodeImageStatus { desired, image_statuses: Some(images), ..NodeImageStatus::default() }
}

/// As long as a repository's name can be.
fn long_name(number: usize) -> String {
    format!("registry.example/{number:0>238}")
}

fn digest(number: usize) -> String {
    format!("sha256:{number:0>64}")
}

fn failed(name: usize, number: usize) -> ImageTagStatus {
    ImageTagStatus {
        tag: digest(number),
        phase: PullPhase::Failed,
        start_time: Some(time()),
        completion_time: Some(time()),
        version: 1,
        message: Some(format!("cannot pull {}: {} try again", long_name(name), "x".repeat(2000))),
        failure_class: Some(FailureClass::InvalidReference),
        failed_attempts: 4,
        ..ImageTagStatus::default()
    }
}

fn succeeded(name: usize, number: usize) -> ImageTagStatus {
    ImageTagStatus {
        tag: digest(number),
        phase: PullPhase::Succeeded,
        progress: 100,
        start_time: Some(time()),
        completion_time: Some(time()),
        version: 1,
        image_id: Some(format!("{}@{}", long_name(name), digest(number))),
        failed_attempts: 1,
        bytes_done: Some(123_456_789_012),
        bytes_total: Some(123_456_789_012),
        ..ImageTagStatus::default()
    }
}

/// What is left of every tag if all of them were treated alike.
fn first_tag(status: &NodeImageStatus) -> ImageTagStatus {
    tags(status).next().unwrap().clone()
}

#[test]
fn a_small_status_loses_nothing() {
    let small = status(50, 2, |name, number| ImageTagStatus { message: None, ..succeeded(name, number) });
    assert_eq!(bounded(small.clone()), small);
}

#[test]
fn a_long_message_keeps_both_ends_within_its_bound() {
    let message = first_tag(&bounded(status(1, 1, failed))).message.unwrap();
    assert!((510..=512).contains(&message.len()), "{}", message.len());
    assert!(message.starts_with("cannot pull registry.example") && message.ends_with("xxx try again"));
}

#[test]
fn numbers_that_the_schema_refuses_are_moved_into_its_bounds() {
    let wild = ImageTagStatus {
        progress: 1000,
        failed_attempts: -1,
        interruptions: -1,
        bytes_done: Some(-1),
        bytes_total: Some(i64::MIN),
        image_id: Some("x".repeat(1025)),
        ..ImageTagStatus::default()
    };
    let tame = ImageTagStatus {
        progress: 100,
        bytes_done: Some(0),
        bytes_total: Some(0),
        ..ImageTagStatus::default()
    };
    assert_eq!(bounded(status(1, 1, |_, _| wild.clone())), status(1, 1, |_, _| tame.clone()));
}

#[test]
fn the_text_of_the_first_pass_is_cut() {
    let first = FirstSyncStatus { message: Some("x".repeat(100_000)), ..FirstSyncStatus::default() };
    let status = NodeImageStatus { first_sync_status: Some(first), ..NodeImageStatus::default() };
    assert!(bounded(status).first_sync_status.unwrap().message.unwrap().len() <= 4096);
}

#[test]
fn if_everything_failed_messages_are_shortened_evenly_and_nothing_else_is_lost() {
    let whole = status(NAMES, TAGS, failed);
    let fitting = bounded(whole.clone());
    let size = size(&fitting);
    assert!((MOST_STATUS_BYTES - 2 * NAMES * TAGS..=MOST_STATUS_BYTES).contains(&size), "{size}");
    let lengths: Vec<usize> = tags(&fitting).map(|tag| tag.message.as_ref().unwrap().len()).collect();
    assert!(lengths.iter().all(|length| *length == lengths[0] && *length > SHORTEST_MESSAGE), "{lengths:?}");
    let without_messages = |mut status: NodeImageStatus| {
        for_each(&mut status, drop_message);
        status
    };
    assert_eq!(without_messages(fitting), without_messages(whole));
}

#[test]
fn if_everything_succeeded_with_the_longest_names_ids_lose_the_name_that_their_key_has() {
    let fitting = bounded(status(NAMES, TAGS, succeeded));
    assert!(size(&fitting) <= MOST_STATUS_BYTES);
    let wanted = status(NAMES, TAGS, |name, number| ImageTagStatus {
        image_id: Some(digest(number)),
        bytes_done: None,
        bytes_total: None,
        ..succeeded(name, number)
    });
    assert_eq!(fitting, wanted);
}

#[test]
fn one_failure_among_successes_keeps_its_whole_message() {
    let short = |tag| ImageTagStatus { image_id: Some("web@sha256:1".to_owned()), ..tag };
    let mixed = |name, number| if name == 7 { failed(name, number) } else { short(succeeded(name, number)) };
    let fitting = bounded(status(NAMES, TAGS, mixed));
    assert_eq!(fitting.image_statuses.unwrap()[&long_name(7)].tags[0].message.as_ref().unwrap().len(), 512);
}

#[test]
fn the_longest_tags_that_a_schema_takes_leave_phases_versions_and_ends() {
    let whole = |name, number| ImageTagStatus {
        tag: format!("{number:x>256}"),
        version: i64::MAX,
        image_id: Some("x".repeat(1024)),
        lost_at: Some(time()),
        ..failed(name, number)
    };
    let fitting = bounded(status(NAMES, TAGS, whole));
    assert!(size(&fitting) <= MOST_STATUS_BYTES, "{}", size(&fitting));
    let left = tags(&fitting).count();
    assert!(left > NAMES * TAGS * 9 / 10, "{left} tags left");
    assert_eq!(first_tag(&fitting).completion_time, Some(time()));
}

#[test]
fn beyond_all_bounds_waiting_tags_are_left_out_before_ended_ones() {
    let tag = |name, number| {
        let phase = if number % 2 == 0 { PullPhase::Succeeded } else { PullPhase::Waiting };
        ImageTagStatus { phase, ..succeeded(name, number) }
    };
    let fitting = bounded(status(256, 20, tag));
    assert!(size(&fitting) <= MOST_STATUS_BYTES);
    assert_eq!(fitting.desired, 5120);
    let left = |phase| tags(&fitting).filter(|tag| tag.phase == phase).count();
    assert_eq!(left(PullPhase::Succeeded), 2560);
    assert!(left(PullPhase::Waiting) < 2560);
}

fn any_tag() -> impl Strategy<Value = ImageTagStatus> {
    let text = prop::sample::select(vec!["x", "ü", "\"", "\u{1}", "\u{1f980}"]);
    let texts = (text.clone(), 1..256_usize, text, 0..2000_usize, 0..1100_usize);
    let numbers =
        (any::<i64>(), any::<i32>(), any::<i32>(), prop::option::of(any::<i64>()), 0..4_u8, any::<bool>());
    (texts, numbers).prop_map(
        |((tag, tags, message, messages, ids), (version, progress, attempts, bytes, phase, is_lost))| {
            ImageTagStatus {
                tag: tag.repeat(tags),
                phase: [PullPhase::Waiting, PullPhase::Pulling, PullPhase::Succeeded, PullPhase::Failed]
                    [usize::from(phase)],
                progress,
                start_time: Some(time()),
                completion_time: Some(time()),
                version,
                image_id: Some(format!("{}@{}", "n".repeat(ids), digest(1))),
                digest: Some(digest(1)),
                message: Some(message.repeat(messages)),
                failure_class: Some(FailureClass::InvalidReference),
                failed_attempts: attempts,
                interruptions: attempts,
                bytes_done: bytes,
                bytes_total: bytes,
                lost_at: is_lost.then(time),
                owner_results: is_lost.then(|| vec![result(&message.repeat(messages))]),
            }
        },
    )
}

fn result(message: &str) -> OwnerResult {
    let failure_class = Some(FailureClass::Unauthorized);
    OwnerResult { uid: "u".repeat(36), failure_class, message: Some(message.to_owned()) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn no_status_is_larger_than_the_bound_and_bounding_it_again_changes_nothing(
        kinds in prop::collection::vec(any_tag(), 1..8),
        names in 1..=NAMES,
        count in 1..=TAGS,
    ) {
        let wild = status(names, count, |name, number| kinds[(name * 5 + number) % kinds.len()].clone());
        let once = bounded(wild);
        prop_assert!(size(&once) <= MOST_STATUS_BYTES);
        prop_assert!(tags(&once).all(|tag| tag.message.as_ref().is_none_or(|message| message.len() <= 512)));
        prop_assert_eq!(bounded(once.clone()), once);
    }
}
