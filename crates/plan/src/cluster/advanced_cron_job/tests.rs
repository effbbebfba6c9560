//! Decisions about cron jobs. Long because all of them concern one decision and share its builders.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prewarm_api::kruise::SkipReason;
use serde_json::{Value, json};

use super::child::{Failure, State};
use super::*;
use crate::object::Uid;

/// A cron job of every hour, made at midnight, and its runs.
struct World {
    cron: AdvancedCronJob,
    children: BTreeMap<Arc<str>, Child>,
    refusal: Option<String>,
    replaced: BTreeSet<Uid>,
    is_creating: bool,
}

fn at(time: &str) -> Timestamp {
    format!("2026-11-17T{time}Z").parse().unwrap()
}

fn cron(fields: &Value) -> AdvancedCronJob {
    let mut object = json!({
        "metadata": {"name": "hourly", "namespace": "shop", "uid": "cron-1", "generation": 1,
            "creationTimestamp": "2026-11-17T00:00:00Z"},
        "spec": {"schedule": "0 * * * *", "template": {"imageListPullJobTemplate": {
            "spec": {"images": ["a", "b"], "completionPolicy": {}}}}},
    });
    json_patch::merge(&mut object, fields);
    serde_json::from_value(object).unwrap()
}

impl World {
    fn new(fields: &Value) -> Self {
        let cron = cron(fields);
        let (children, replaced) = (BTreeMap::new(), BTreeSet::new());
        Self { cron, children, refusal: None, replaced, is_creating: false }
    }

    fn decide(&self, now: &str) -> Decision {
        let observed = Observed {
            cron: &self.cron,
            schedule: &timetable::read(&self.cron.spec),
            children: &self.children,
            is_creating: self.is_creating,
            refusal: self.refusal.as_deref(),
            replaced: &self.replaced,
            now: at(now),
        };
        decide(&observed)
    }

    /// Decides and carries it out, again and again until nothing is left to do. Says what was told.
    fn settle(&mut self, now: &str) -> Vec<String> {
        let mut told = Vec::new();
        for _ in 0..10 {
            let decision = self.decide(now);
            let Decision { status, create, replace, prune, notices, .. } = decision;
            if status.is_none() && create.is_none() && replace.is_empty() && prune.is_empty() {
                return told;
            }
            if let Some(status) = status {
                self.cron.status = Some(status);
                told.extend(notices.into_iter().map(|notice| format!("{}: {}", notice.reason, notice.note)));
            }
            for (name, uid) in replace {
                self.children.remove(&name);
                self.replaced.insert(uid);
            }
            for (name, _) in prune {
                self.children.remove(&name);
            }
            if let Some(time) = create {
                self.begin(time, State::Active);
            }
        }
        panic!("it does not come to rest")
    }

    fn begin(&mut self, time: Timestamp, state: State) {
        let run = run::make(&self.cron, TemplateKind::ImageListPullJob, time);
        let mut metadata: ObjectMeta = serde_json::from_value(run["metadata"].clone()).unwrap();
        metadata.uid = Some(format!("uid-{}", time.as_second()));
        metadata.creation_timestamp = Some(Time(time));
        let mut child = Child::of_job(&metadata, None, std::iter::empty()).unwrap();
        (child.kind, child.state) = (TemplateKind::ImageListPullJob, state);
        self.children.insert(child.name.clone(), child);
    }

    fn end(&mut self, time: &str, state: State) {
        let name = run::name(&self.cron, at(time));
        self.children.get_mut(name.as_str()).unwrap().state = state;
    }

    fn status(&self) -> &AdvancedCronJobStatus {
        self.cron.status.as_ref().unwrap()
    }

    fn condition(&self, type_: &str) -> (String, String, String) {
        let conditions = self.status().conditions.as_deref().unwrap();
        let condition = conditions.iter().find(|one| one.type_ == type_).unwrap();
        (condition.status.clone(), condition.reason.clone(), condition.message.clone())
    }

    fn skipped(&self) -> Vec<(SkipReason, i64)> {
        let all = self.status().skipped_runs.iter().flatten();
        all.map(|runs| (runs.reason, runs.count)).collect()
    }

    fn active(&self) -> Vec<&str> {
        self.status().active.iter().flatten().filter_map(|run| run.name.as_deref()).collect()
    }
}

fn failed(images: &[&str]) -> State {
    let images = images.iter().map(|image| (*image).to_owned()).collect();
    State::Failed(Failure { message: "1 of 2 images are not on every node".to_owned(), images })
}

/// kruise T103.
#[test]
fn a_run_that_is_due_is_made_and_written_down() {
    let mut world = World::new(&json!({"spec": {"schedule": "*/5 * * * *"}}));
    assert_eq!(world.settle("00:04:59"), Vec::<String>::new());
    assert_eq!(world.decide("00:04:59").wake_at, Some(at("00:05:00")));
    let told = world.settle("00:05:00");
    assert_eq!(told, ["RunScheduled: made ImageListPullJob hourly-1794873900 for 2026-11-17T00:05:00Z"]);
    assert_eq!(world.status().type_, Some(TemplateKind::ImageListPullJob));
    assert_eq!(world.status().last_schedule_time, Some(Time(at("00:05:00"))));
    assert_eq!(world.active(), ["hourly-1794873900"]);
    assert_eq!(world.children.len(), 1);
}

/// kruise T101, T102.
#[test]
fn the_status_says_what_is_made_from_the_start() {
    let template = json!({"imageListPullJobTemplate": null, "jobTemplate": {"spec": {}}});
    let mut world = World::new(&json!({"spec": {"template": template}}));
    world.settle("00:00:01");
    assert_eq!(world.status().type_, Some(TemplateKind::Job));
    let pod = json!({"template": {"spec": {"containers": []}}});
    let template = json!({"imageListPullJobTemplate": null, "broadcastJobTemplate": {"spec": pod}});
    let mut world = World::new(&json!({"spec": {"template": template}}));
    world.settle("00:00:01");
    assert_eq!(world.status().type_, Some(TemplateKind::BroadcastJob));
}

/// kruise T104.
#[test]
fn history_limits_hold_and_the_run_that_goes_on_is_replaced() {
    let limits = json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1, "startingDeadlineSeconds": 360,
        "concurrencyPolicy": "Replace", "schedule": "*/5 * * * *"});
    let mut world = World::new(&json!({"spec": limits}));
    let states =
        [State::Complete, State::Complete, State::Complete, failed(&["a"]), failed(&["b"]), State::Active];
    for (minute, state) in (5..=30).step_by(5).zip(states) {
        world.begin(at(&format!("00:{minute:02}:00")), state);
    }
    world.cron.status = Some(AdvancedCronJobStatus {
        last_schedule_time: Some(Time(at("00:30:00"))),
        ..AdvancedCronJobStatus::default()
    });
    world.settle("00:35:01");
    let left: Vec<String> =
        world.children.values().map(|child| child.scheduled_at.unwrap().to_string()).collect();
    let minutes: Vec<&str> = left.iter().map(|time| &time[14..16]).collect();
    assert_eq!(minutes, ["10", "15", "25", "35"]);
    assert_eq!(world.active().len(), 1);
}

/// kruise W23: with no child left, the last time is not forgotten.
#[test]
fn a_run_does_not_come_back_when_its_child_is_gone() {
    let mut world = World::new(&json!({"spec": {"successfulJobsHistoryLimit": 0}}));
    world.settle("01:00:00");
    world.end("01:00:00", State::Complete);
    assert_eq!(world.settle("01:10:00"), ["RunCompleted: hourly-1794877200 is complete"]);
    assert!(world.children.is_empty(), "nothing is kept");
    assert_eq!(world.decide("01:59:59").create, None);
    assert_eq!(world.status().last_schedule_time, Some(Time(at("01:00:00"))));
    assert_eq!(world.decide("02:00:00").create, Some(at("02:00:00")));
}

/// kruise W24.
#[test]
fn after_an_outage_the_latest_run_happens_once_and_the_rest_is_counted() {
    let mut world = World::new(&json!({"spec": {"schedule": "* * * * *"}}));
    world.settle("00:01:00");
    world.end("00:01:00", State::Complete);
    world.settle("00:01:10");
    let told = world.settle("04:30:30");
    assert_eq!(
        told,
        [
            "RunsSkipped: 268 runs, from 2026-11-17T00:02:00Z to 2026-11-17T04:29:00Z, were skipped: no controller started \
             them in time",
            "RunScheduled: made ImageListPullJob hourly-1794889800 for 2026-11-17T04:30:00Z",
        ]
    );
    assert_eq!(world.skipped(), [(SkipReason::Missed, 268)]);
    assert_eq!(world.decide("04:30:31").wake_at, Some(at("04:31:00")));
}

/// kruise R98, T14.
#[test]
fn a_paused_cron_job_makes_nothing_and_then_the_latest_once() {
    let mut world = World::new(&json!({"spec": {"paused": true}}));
    assert_eq!(world.settle("05:10:00"), Vec::<String>::new());
    assert_eq!(world.decide("05:10:00").wake_at, None);
    let (status, reason, _) = world.condition("Scheduling");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Paused"));
    world.cron.spec.paused = false;
    let told = world.settle("05:20:00");
    assert_eq!(told.len(), 2);
    assert_eq!(
        told[0],
        "RunsSkipped: 4 runs, from 2026-11-17T01:00:00Z to 2026-11-17T04:00:00Z, were skipped: the cron job was paused"
    );
    assert_eq!(world.condition("Scheduling").1, "OnSchedule");
    assert_eq!(world.skipped(), [(SkipReason::Paused, 4)]);
}

/// kruise R99.
#[test]
fn a_run_that_is_too_late_is_counted_and_does_not_happen() {
    let mut world = World::new(&json!({"spec": {"startingDeadlineSeconds": 600}}));
    let told = world.settle("03:30:00");
    assert_eq!(
        told,
        [
            "RunsSkipped: 3 runs, from 2026-11-17T01:00:00Z to 2026-11-17T03:00:00Z, were skipped: they could not start within \
          the 600 s of startingDeadlineSeconds"
        ]
    );
    assert!(world.children.is_empty());
    assert_eq!(world.settle("03:40:00"), Vec::<String>::new(), "told once");
    world.settle("06:05:00");
    assert_eq!(world.skipped(), [(SkipReason::TooLate, 5)]);
    assert_eq!(world.status().last_schedule_time, Some(Time(at("06:00:00"))));
}

/// kruise R101.
#[test]
fn under_forbid_a_run_waits_for_the_one_before_and_those_between_are_skipped() {
    let mut world = World::new(&json!({"spec": {"concurrencyPolicy": "Forbid"}}));
    world.settle("01:00:00");
    for now in ["02:00:00", "02:30:00", "03:00:01", "04:20:00"] {
        assert_eq!(world.settle(now), Vec::<String>::new());
        assert_eq!(world.children.len(), 1);
    }
    assert_eq!(
        world.condition("Scheduling").2,
        "a run is due and waits until hourly-1794877200 has ended: concurrencyPolicy is Forbid"
    );
    world.end("01:00:00", State::Complete);
    let told = world.settle("04:40:00");
    assert_eq!(
        told,
        [
            "RunCompleted: hourly-1794877200 is complete",
            "RunsSkipped: 2 runs, from 2026-11-17T02:00:00Z to 2026-11-17T03:00:00Z, were skipped: the run before went on, \
             and concurrencyPolicy is Forbid",
            "RunScheduled: made ImageListPullJob hourly-1794888000 for 2026-11-17T04:00:00Z",
        ]
    );
    assert_eq!(world.condition("Scheduling").1, "OnSchedule");
}

/// A cron job of every minute whose runs never end makes a hundred of them, and says why it makes no more.
#[test]
fn runs_that_never_end_do_not_become_more_without_bound() {
    let template = json!({"imageListPullJobTemplate": null, "jobTemplate": {"spec": {}}});
    let mut world = World::new(&json!({"spec": {"schedule": "* * * * *", "template": template}}));
    let mut told = Vec::new();
    for minute in 1..=240 {
        told.extend(world.settle(&format!("{:02}:{:02}:00", minute / 60, minute % 60)));
    }
    assert_eq!(world.children.len(), MOST_UNFINISHED);
    let why = "a run is due and waits because 100 runs have not ended: give them activeDeadlineSeconds, or set \
               concurrencyPolicy to Forbid or Replace";
    assert_eq!(world.condition("Scheduling"), ("False".to_owned(), "TooManyRuns".to_owned(), why.to_owned()));
    assert_eq!(told.iter().filter(|note| note.contains("waits because")).count(), 1, "it is told once");
    world.end("00:07:00", State::Complete);
    world.settle("04:00:30");
    assert_eq!(world.skipped(), [(SkipReason::TooMany, 139)], "01:41 to 03:59");
    assert_eq!(world.condition("Scheduling").1, "OnSchedule");
    assert_eq!(world.active().len(), MOST_UNFINISHED);
}

#[test]
fn under_allow_runs_go_on_beside_each_other() {
    let template = json!({"imageListPullJobTemplate": null, "jobTemplate": {"spec": {}}});
    let mut world = World::new(&json!({"spec": {"template": template}}));
    world.settle("01:00:00");
    world.settle("02:00:00");
    assert_eq!(world.active(), ["hourly-1794877200", "hourly-1794880800"]);
}

#[test]
fn as_many_active_runs_are_listed_as_fit_into_an_object() {
    let template = json!({"imageListPullJobTemplate": null, "jobTemplate": {"spec": {}}});
    let mut world = World::new(&json!({"spec": {"schedule": "@every 1s", "template": template}}));
    for second in 1..=1500 {
        world.begin(at("00:00:00") + jiff::SignedDuration::from_secs(second), State::Active);
    }
    world.settle("00:25:00");
    assert_eq!(world.active().len(), 1000);
    assert_eq!(*world.active().last().unwrap(), run::name(&world.cron, at("00:25:00")));
}

#[test]
fn an_image_list_is_replaced_unless_told_otherwise() {
    let mut world = World::new(&json!({}));
    world.settle("01:00:00");
    let decision = world.decide("02:00:00");
    assert_eq!((decision.replace.len(), decision.create), (1, None), "room first");
    world.settle("02:00:00");
    assert_eq!(world.active(), ["hourly-1794880800"]);
    assert_eq!(
        world.condition("LastRunSucceeded"),
        (
            "False".to_owned(),
            "Replaced".to_owned(),
            "hourly-1794877200 was replaced by the next run".to_owned()
        )
    );
}

/// A controller that died after it made a run finds it: it is neither made again, nor replaced by itself.
#[test]
fn a_run_that_was_made_and_not_written_down_is_found() {
    for policy in ["Replace", "Forbid"] {
        let mut world = World::new(&json!({"spec": {"concurrencyPolicy": policy}}));
        world.settle("00:30:00");
        world.begin(at("01:00:00"), State::Active);
        let decision = world.decide("01:00:20");
        assert_eq!((decision.create, decision.replace.len()), (None, 0), "{policy}");
        assert_eq!(decision.status.unwrap().last_schedule_time, Some(Time(at("01:00:00"))));
    }
}

#[test]
fn a_run_that_ended_before_it_was_written_down_is_told_and_kept_until_then() {
    let mut world = World::new(&json!({"spec": {"successfulJobsHistoryLimit": 0}}));
    world.settle("00:30:00");
    world.begin(at("01:00:00"), State::Complete);
    assert_eq!(world.decide("01:00:20").prune, [], "its time is not written down yet");
    let told = world.settle("01:00:20");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(world.children.is_empty());
}

/// From the proposal: a run in which some images failed is visible as such.
#[test]
fn failed_images_are_named() {
    let mut world = World::new(&json!({}));
    world.settle("01:00:00");
    world.end("01:00:00", failed(&["b"]));
    let told = world.settle("01:10:00");
    assert_eq!(told, ["RunFailed: hourly-1794877200 failed: 1 of 2 images are not on every node: b"]);
    let message = "hourly-1794877200: 1 of 2 images are not on every node: b".to_owned();
    assert_eq!(world.condition("LastRunSucceeded"), ("False".to_owned(), "ImagesFailed".to_owned(), message));
    assert_eq!(world.status().last_failed_image.as_deref(), Some("b"));
    world.settle("02:00:00");
    world.end("02:00:00", State::Complete);
    world.settle("02:10:00");
    assert_eq!(world.condition("LastRunSucceeded").1, "Complete");
    assert_eq!(world.status().last_failed_image.as_deref(), Some("b"), "it is the last one that failed");
}

#[test]
fn many_failed_images_are_named_as_far_as_anybody_reads() {
    let images: Vec<String> = (0..255).map(|number| format!("image-{number}")).collect();
    let mut world = World::new(&json!({}));
    world.settle("01:00:00");
    world.end("01:00:00", failed(&images.iter().map(String::as_str).collect::<Vec<_>>()));
    world.settle("01:10:00");
    let (_, _, message) = world.condition("LastRunSucceeded");
    assert!(message.ends_with("image-9 and 245 more"), "{message}");
}

#[test]
fn a_run_that_somebody_deletes_is_told() {
    let mut world = World::new(&json!({}));
    world.settle("01:00:00");
    world.children.clear();
    let told = world.settle("01:10:00");
    assert_eq!(told, ["RunDeleted: hourly-1794877200 was deleted before its end was seen"]);
    assert_eq!(world.decide("01:10:00").create, None, "it is not made again");
}

#[test]
fn a_refused_run_is_told_in_the_servers_words_and_skipped_when_the_next_is_due() {
    let mut world = World::new(&json!({}));
    world.settle("00:30:00");
    world.refusal = Some("hourly-1794877200: exceeded quota".to_owned());
    let decision = world.decide("01:00:01");
    assert_eq!(decision.create, Some(at("01:00:00")), "it is tried again");
    world.cron.status = decision.status;
    let notes: Vec<(&str, &str)> =
        decision.notices.iter().map(|news| (news.reason, news.note.as_str())).collect();
    assert_eq!(notes, [("RunRefused", "hourly-1794877200: exceeded quota")]);
    assert_eq!(world.decide("01:00:02").notices, [], "told once");
    assert_eq!(world.condition("Scheduling").1, "Refused");
    // Another controller, which has not been refused yet, goes on telling it until a run is there.
    world.refusal = None;
    let decision = world.decide("01:00:02");
    assert_eq!((decision.status, decision.create), (None, Some(at("01:00:00"))));
    world.settle("02:00:00");
    assert_eq!(world.skipped(), [(SkipReason::Refused, 1)]);
    assert_eq!(world.condition("Scheduling").1, "OnSchedule");
}

/// kruise T106, W25: never silence.
#[test]
fn a_schedule_that_cannot_run_is_a_condition_and_an_event() {
    let table = [
        (json!({"schedule": "30-10 * * * *"}), "NotASchedule"),
        (json!({"schedule": "0 0 30 2 *"}), "NeverDue"),
        (json!({"timeZone": "Mars/Olympus"}), "UnknownTimeZone"),
    ];
    for (fields, reason) in table {
        let mut world = World::new(&json!({"spec": fields}));
        let told = world.settle("03:00:00");
        assert!(
            told.len() == 1 && told[0].starts_with(&format!("{reason}: no run will start: ")),
            "{told:?}"
        );
        assert_eq!(world.condition("Scheduling").1, reason);
        assert_eq!(world.decide("05:00:00"), Decision::default(), "{reason}: idle means no writes");
    }
}

/// kruise R90.
#[test]
fn what_happens_every_so_often_is_counted_from_the_last_run() {
    let mut world = World::new(&json!({"spec": {"schedule": "@every 90m", "startingDeadlineSeconds": 60}}));
    assert_eq!(world.decide("01:00:00").wake_at, Some(at("01:30:00")));
    world.settle("01:30:30");
    assert_eq!(world.status().last_schedule_time, Some(Time(at("01:30:00"))));
    assert_eq!(world.decide("02:20:00").wake_at, Some(at("03:00:00")));
    world.settle("05:00:00");
    assert_eq!(world.skipped(), [(SkipReason::TooLate, 2)]);
    assert_eq!(world.decide("05:01:00").wake_at, Some(at("06:00:00")));
}

#[test]
fn clocks_that_are_set_back_bring_no_run_back() {
    let mut world = World::new(&json!({"spec": {"successfulJobsHistoryLimit": 0}}));
    world.settle("03:00:00");
    world.end("03:00:00", State::Complete);
    world.settle("03:01:00");
    let decision = world.decide("01:30:00");
    assert_eq!((decision.create, decision.wake_at), (None, Some(at("04:00:00"))));
}

/// kruise W44.
#[test]
fn a_settled_cron_job_is_not_written() {
    let mut world = World::new(&json!({}));
    world.settle("01:00:00");
    for now in ["01:00:01", "01:20:00", "01:59:59"] {
        let decision = world.decide(now);
        assert_eq!((decision.status, decision.notices), (None, Vec::new()));
    }
}

#[test]
fn a_cron_job_that_is_being_deleted_makes_nothing() {
    let mut world = World::new(&json!({}));
    world.cron.metadata.deletion_timestamp = Some(Time(at("00:30:00")));
    assert_eq!(world.decide("02:00:00"), Decision::default());
}

#[test]
fn while_a_run_is_being_made_no_other_is() {
    let mut world = World::new(&json!({"spec": {"schedule": "@every 1s"}}));
    world.settle("00:00:00");
    world.is_creating = true;
    assert_eq!(world.decide("00:00:05").create, None);
}
