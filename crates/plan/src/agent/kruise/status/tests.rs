use prewarm_api::kruise::FailureClass;
use serde_json::json;

use super::super::reported::{reported, reported_first_sync};
use super::*;
use crate::agent::disk::{DiskRoom, MinFree};
use crate::agent::state::Bytes;
use crate::agent::wait::WaitReason;
use crate::object::ImageKey;

fn task(name: &str, tag: &str, phase: Phase) -> TaskState {
    TaskState::new(ImageKey { name: name.to_owned(), tag: tag.to_owned() }, 0, phase)
}

fn time() -> jiff::Timestamp {
    "2026-11-16T02:37:56Z".parse().unwrap()
}

/// A state with something in every field.
fn whole() -> TaskState {
    TaskState {
        version: 3,
        percent: 99,
        bytes: Some(Bytes { done: 9, total: 10 }),
        started_at: Some(time()),
        completed_at: Some(time()),
        image_id: Some("web@sha256:1".to_owned()),
        note: Some(Note::Text("it broke".to_owned())),
        class: Some(FailureClass::NotFound),
        failed_attempts: 2,
        interruptions: 1,
        lost_at: Some(time()),
        ..task("web", "v1", Phase::Pulling)
    }
}

fn waiting_for_room(free: u64) -> Arc<Status> {
    let room = Room { free, capacity: 100 };
    let shortage = DiskRoom { room, inodes: None, min_free: MinFree::default(), path: "/images".into() };
    let note = Some(Note::Wait(WaitReason::NoRoom(shortage)));
    let task = TaskState { note, ..task("web", "v1", Phase::Waiting) };
    Arc::new(Status::of(Report::new(vec![task], None, None)))
}

fn stored(status: &Status) -> Value {
    serde_json::to_value(status).unwrap()
}

#[test]
fn a_status_counts_phases_and_sorts_names_and_tags() {
    let tasks = [
        task("web", "v2", Phase::Pulling),
        task("base", "1", Phase::Failed),
        task("web", "v1", Phase::Succeeded),
        task("web", "v10", Phase::Waiting),
        task("web", "latest", Phase::Succeeded),
    ];
    let first_sync =
        FirstSync { is_success: Some(false), message: Some("1 failed".into()), ..FirstSync::default() };
    let room = Room { free: 1, capacity: 2 };
    let image = |indices: &[usize]| ImageStatus {
        tags: indices.iter().map(|index| tag_status(&tasks[*index])).collect(),
    };
    let wanted = NodeImageStatus {
        desired: 5,
        succeeded: 2,
        failed: 1,
        pulling: 1,
        waiting: 1,
        image_statuses: Some(BTreeMap::from([
            ("base".to_owned(), image(&[1])),
            ("web".to_owned(), image(&[4, 2, 3, 0])),
        ])),
        first_sync_status: Some(FirstSyncStatus {
            status: Some(SyncResult::Failed),
            message: Some("1 failed".into()),
            ..FirstSyncStatus::default()
        }),
        image_filesystem: Some(ImageFilesystem { free_bytes: 1, capacity_bytes: 2 }),
        reported_by: None,
    };
    assert_eq!(build(&Report::new(tasks.to_vec(), Some(first_sync), Some(room))), wanted);
}

#[test]
fn the_status_of_an_empty_spec_has_no_map() {
    assert_eq!(build(&Report::default()), NodeImageStatus::default());
}

#[test]
fn every_part_of_a_state_is_written_and_read_back() {
    assert_eq!(
        serde_json::to_value(tag_status(&whole())).unwrap(),
        json!({
            "tag": "v1", "phase": "Pulling", "progress": 99, "version": 3, "imageID": "web@sha256:1",
            "startTime": "2026-11-16T02:37:56Z", "completionTime": "2026-11-16T02:37:56Z",
            "message": "it broke", "failureClass": "NotFound", "failedAttempts": 2, "interruptions": 1,
            "bytesDone": 9, "bytesTotal": 10, "lostAt": "2026-11-16T02:37:56Z",
        })
    );
    for phase in [Phase::Waiting, Phase::Pulling, Phase::Succeeded, Phase::Failed] {
        let state = TaskState { phase, ..whole() };
        assert_eq!(super::super::reported::state("web", &tag_status(&state)), state);
    }
    for note in [Note::Unpacking, Note::Silence] {
        let phase = if note == Note::Silence { Phase::Failed } else { Phase::Pulling };
        let state = TaskState { phase, note: Some(note), ..whole() };
        assert_eq!(super::super::reported::state("web", &tag_status(&state)), state);
    }
}

#[test]
fn a_status_of_any_shape_is_read_without_harm() {
    assert!(reported(&json!({ "imageStatuses": { "a": { "tags": [{ "tag": 1 }, "x"] } } })).is_empty());
    assert_eq!(reported_first_sync(&json!({ "firstSyncStatus": 5 })), None);
    assert!(Status::read(&json!({ "desired": "many" }), &Echo::default(), []).is_none());
}

#[test]
fn a_status_that_this_agent_wrote_is_recognized_with_its_reasons() {
    let (written, next) = (waiting_for_room(12), waiting_for_room(9));
    let recognized = Status::read(&stored(&written), &Echo::default(), [&next, &written]).unwrap();
    assert_eq!(recognized.change(&next), Change::Nothing, "only the amount of room changed");
    let read = Status::read(&stored(&written), &Echo::default(), []).unwrap();
    assert_eq!(read.change(&written), Change::Nothing, "it says the same");
    assert_eq!(read.change(&next), Change::Step, "the reason behind the text is not known");
}

#[test]
fn what_the_bounds_cut_away_makes_no_difference() {
    let long = |end: char| {
        let note = Some(Note::Text(format!("{}{end}{}", "x".repeat(1000), "x".repeat(1000))));
        Status::of(Report::new(vec![TaskState { note, ..task("web", "v1", Phase::Failed) }], None, None))
    };
    assert_eq!(long('a').change(&long('b')), Change::Nothing);
}

#[test]
fn a_detail_that_another_program_wrote_is_replaced() {
    let own = Status::of(Report::new(vec![task("web", "v1", Phase::Pulling)], None, None));
    let mut other = stored(&own);
    other["imageStatuses"]["web"]["tags"][0]["bytesDone"] = json!(5);
    assert_eq!(Status::read(&other, &Echo::default(), []).unwrap().change(&own), Change::Progress);
}

#[test]
fn what_the_server_made_of_our_own_status_is_our_own() {
    let written = waiting_for_room(7);
    let mut pruned = stored(&written);
    pruned["imageStatuses"]["web"]["tags"][0].as_object_mut().unwrap().remove("message");
    let mut echo = Echo::default();
    echo.begin(written.wire().clone());
    echo.settle(serde_json::from_value(pruned.clone()).ok(), time(), 0.0);
    let read = Status::read(&pruned, &echo, [&written]).unwrap();
    assert_eq!((read.is_own(), read.change(&written)), (true, Change::Nothing));
    let foreign = Status::read(&pruned, &Echo::default(), [&written]).unwrap();
    assert!(!foreign.is_own());
}

#[test]
fn who_reports_and_how_much_room_there_is_makes_no_other_status() {
    let report = |free| Report::new(Vec::new(), None, Some(Room { free, capacity: 100 }));
    let (one, other) = (Status::of(report(1)).by("agent-1"), Status::of(report(2)).by("agent-2"));
    assert_eq!((one.fingerprint(), one.change(&other)), (other.fingerprint(), Change::Nothing));
    assert_eq!(other.reporter(), Some("agent-2"));
    assert_eq!(Status::of(report(1)).by(&"x".repeat(300)).reporter().map(str::len), Some(253));
}
