//! What a job reports, to the letter (kruise R46–R49, T40, T41, T47–T49, W43).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::ImagePullJobStatus;

use super::*;

fn reported(fields: &Value, now: i64, standings: impl IntoIterator<Item = Standing>) -> ImagePullJobStatus {
    let job = started(fields);
    report(&observed(&job, now), &roll(standings)).status.expect("there is something to report")
}

fn counts(status: &ImagePullJobStatus) -> [i32; 4] {
    [status.desired, status.active, status.succeeded, status.failed]
}

/// Type, whether it holds, reason.
fn conditions(status: &ImagePullJobStatus) -> Vec<(&str, bool, &str)> {
    let conditions = status.conditions.iter().flatten();
    conditions.map(|one| (one.type_.as_str(), one.status == "True", one.reason.as_str())).collect()
}

fn never() -> Value {
    json!({"completionPolicy": {"type": "Never"}})
}

/// kruise T40, T48, R46–R48
#[test]
fn a_job_whose_nodes_have_all_ended_is_complete() {
    let status = reported(&json!({}), 70, [member(Stage::Succeeded)]);
    let plain = ImagePullJobStatus { conditions: None, ..status.clone() };
    let expected = ImagePullJobStatus {
        start_time: Some(Time(at(0))),
        completion_time: Some(Time(at(70))),
        desired: 1,
        succeeded: 1,
        message: Some("job has completed".to_owned()),
        ..ImagePullJobStatus::default()
    };
    assert_eq!(plain, expected);
    assert_eq!(conditions(&status), [("Progressing", false, "Finished"), ("Complete", true, "Finished")]);
}

/// kruise R48
#[test]
fn a_job_with_failed_nodes_is_over_and_failed() {
    let status = reported(&json!({}), 70, [member(Stage::Succeeded), member(Stage::Failed)]);
    assert_eq!((counts(&status), status.completion_time.is_some()), ([2, 0, 1, 1], true));
    assert_eq!(status.message.as_deref(), Some("job has completed"));
    assert_eq!(conditions(&status), [("Progressing", false, "Finished"), ("Failed", true, "Finished")]);
}

/// kruise T41, R47
#[test]
fn a_job_that_runs_tells_its_counts_and_progress() {
    let status = reported(&json!({}), 70, [member(Stage::Succeeded), member(PULLING), member(Stage::Failed)]);
    assert_eq!((counts(&status), status.completion_time.is_none()), ([3, 1, 1, 1], true));
    assert_eq!(status.message.as_deref(), Some("job is running, progress 66.7%"));
    assert_eq!(status.failed_nodes.as_deref(), Some(&["n2".to_owned()][..]));
    assert_eq!(conditions(&status), [("Progressing", true, "Pulling")]);
}

/// kruise R47
#[test]
fn progress_has_one_decimal() {
    let progress = |done: usize, all: usize| {
        let nodes =
            (0..all).map(|number| member(if number < done { Stage::Succeeded } else { Stage::Waiting }));
        reported(&never(), 0, nodes).message.unwrap()
    };
    assert_eq!(progress(0, 1), "job is running, progress 0.0%");
    assert_eq!(progress(1, 3), "job is running, progress 33.3%");
    assert_eq!(progress(2, 2), "job is running, progress 100.0%");
}

/// kruise R45
#[test]
fn whoever_was_told_and_is_not_done_is_active() {
    let stages = [Stage::Telling, Stage::Granted(at(0)), Stage::Acknowledged { has_started: false }, PULLING];
    assert_eq!(counts(&reported(&json!({}), 999, stages.map(member))), [4, 4, 0, 0]);
}

/// kruise R47, R48
#[test]
fn a_job_without_nodes_is_complete_unless_it_never_ends() {
    let status = reported(&json!({}), 0, []);
    assert_eq!((counts(&status), status.message.as_deref()), ([0; 4], Some("job has completed")));
    let status = reported(&never(), 0, []);
    assert_eq!(
        (status.completion_time.as_ref(), status.message.as_deref()),
        (None, Some("job is running, no progress"))
    );
    assert_eq!(conditions(&status), [("Progressing", true, "NoNodes")]);
}

/// kruise R56
#[test]
fn a_job_that_never_ends_watches() {
    let status = reported(&never(), 0, [member(Stage::Succeeded), member(Stage::Failed)]);
    assert_eq!((counts(&status), status.completion_time.as_ref()), ([2, 0, 1, 1], None));
    assert_eq!(conditions(&status), [("Progressing", true, "Watching")]);
}

/// kruise T49, R49
#[test]
fn a_deadline_fails_whoever_is_not_done_once() {
    let fields = json!({"completionPolicy": {"activeDeadlineSeconds": 300}});
    let both = in_need(PULLING, Need::Attach);
    let nodes = [member(Stage::Succeeded), both, member(Stage::Waiting), member(Stage::Failed)];
    let status = reported(&fields, 600, nodes);
    assert_eq!((counts(&status), status.completion_time), ([4, 0, 1, 3], Some(Time(at(600)))));
    assert_eq!(status.message.as_deref(), Some("job exceeds activeDeadlineSeconds"));
    assert_eq!(status.failed_nodes.unwrap(), ["n1", "n2", "n3"]);
}

/// kruise R49
#[test]
fn a_job_that_is_done_does_not_exceed_its_deadline() {
    let fields = json!({"completionPolicy": {"activeDeadlineSeconds": 300}});
    let status = reported(&fields, 600, [member(Stage::Succeeded)]);
    assert_eq!(status.message.as_deref(), Some("job has completed"));
}

/// kruise R49
#[test]
fn a_deadline_wakes_its_job() {
    let job = started(&json!({"completionPolicy": {"activeDeadlineSeconds": 300}}));
    assert_eq!(report(&observed(&job, 10), &roll([member(PULLING)])).wake_at, Some(at(300)));
    let job = started(&json!({"completionPolicy": {"type": "Never", "activeDeadlineSeconds": 300}}));
    assert_eq!(report(&observed(&job, 10), &roll([member(PULLING)])).wake_at, None);
}

/// kruise R46
#[test]
fn a_job_starts_when_it_is_first_looked_at() {
    let job = job(&json!({"completionPolicy": {"activeDeadlineSeconds": 300}}));
    let now = "2023-11-14T22:13:27.9Z".parse().unwrap();
    let report = report(&Observed { now, begun_at: now, ..observed(&job, 0) }, &roll([member(PULLING)]));
    assert_eq!(report.status.unwrap().start_time, Some(Time(at(7))));
}

/// kruise W43
#[test]
fn five_hundred_failed_nodes_are_named_and_all_are_counted() {
    let nodes = (0..600).map(|_| member(Stage::Failed));
    let status = reported(&never(), 0, nodes);
    let names = status.failed_nodes.unwrap();
    assert_eq!((status.failed, names.len()), (600, 500));
    assert!(names.is_sorted());
    let late = json!({"completionPolicy": {"activeDeadlineSeconds": 0}});
    let status = reported(&late, 0, (0..600).map(|_| member(PULLING)));
    assert_eq!((status.failed, status.failed_nodes.unwrap().len()), (600, 500));
}

#[test]
fn bytes_are_summed_over_the_nodes_that_tell() {
    let nodes = [(3, 9), (9, 9)].map(|bytes| Standing { bytes: Some(bytes), ..member(PULLING) });
    let status = reported(&json!({}), 0, nodes.into_iter().chain([member(PULLING)]));
    assert_eq!((status.bytes_done, status.bytes_total), (Some(12), Some(18)));
    let status = reported(&json!({}), 0, [member(PULLING)]);
    assert_eq!((status.bytes_done, status.bytes_total), (None, None));
}

#[test]
fn a_hindrance_is_told_with_its_reason() {
    let job = started(&json!({"pullSecrets": ["x"]}));
    let progressing = |hold: Hold| {
        let observed = Observed { hold: Some(hold), ..observed(&job, 0) };
        let status = report(&observed, &roll([member(Stage::Waiting)])).status.unwrap();
        let first = conditions(&status)[0];
        (first.1, first.2.to_owned())
    };
    assert_eq!(progressing(Hold::Image), (false, "InvalidImage".to_owned()));
    assert_eq!(progressing(Hold::Secrets("why".to_owned())), (false, "WaitingForSecrets".to_owned()));
    assert_eq!(progressing(Hold::Siblings), (true, "WaitingForSiblings".to_owned()));
    let paused = reported(&json!({"parallelism": 0}), 0, [member(Stage::Waiting)]);
    assert_eq!(conditions(&paused), [("Progressing", false, "Paused")]);
}

/// kruise T47
#[test]
fn a_job_whose_image_cannot_be_read_is_not_complete() {
    let job = started(&json!({"image": "::"}));
    let observed = Observed { hold: Some(Hold::Image), ..observed(&job, 0) };
    assert_eq!(report(&observed, &roll([])).status.unwrap().completion_time, None);
}

#[test]
fn names_without_nodes_are_listed_up_to_a_bound() {
    let job = started(&json!({"selector": {"names": ["n1"]}}));
    let found = |unknown: usize| {
        let absent = (0..unknown).map(|number| format!("x{number}")).collect();
        let unknown_nodes = UnknownNodes { absent, ..UnknownNodes::default() };
        let status = report(&Observed { unknown_nodes, ..observed(&job, 0) }, &roll([member(PULLING)]))
            .status
            .unwrap();
        let condition = status.conditions.unwrap().into_iter().find(|one| one.type_ == "NodesFound").unwrap();
        (condition.status, condition.message)
    };
    assert_eq!(found(0).0, "True");
    assert_eq!(found(2).0, "False");
    assert!(found(2).1.contains("x0, x1;"), "{}", found(2).1);
    assert!(found(12).1.contains("x9 and 2 more;"), "{}", found(12).1);
}

#[test]
fn named_nodes_without_an_agent_are_told_apart_from_unknown_ones() {
    let job = started(&json!({"selector": {"names": ["n1"]}}));
    let found = |absent: &[&str]| {
        let absent = absent.iter().map(|name| (*name).to_owned()).collect();
        let unknown_nodes = UnknownNodes { absent, agentless: vec!["win-1".to_owned()] };
        let status =
            report(&Observed { unknown_nodes, ..observed(&job, 0) }, &roll([member(PULLING)])).status;
        let conditions = status.unwrap().conditions.unwrap();
        let condition = conditions.into_iter().find(|one| one.type_ == "NodesFound").unwrap();
        (condition.status, condition.reason, condition.message)
    };
    let (status, reason, message) = found(&[]);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NodesWithoutAgent"));
    assert_eq!(message, "no agent runs on these nodes, by their labels: win-1; they do not count");
    let (_, reason, message) = found(&["x0"]);
    assert_eq!(reason, "UnknownNodes");
    assert!(message.contains("names: x0;") && message.contains("labels: win-1;"), "{message}");
}

#[test]
fn conditions_that_no_longer_apply_are_forgotten() {
    let job = started(&json!({"selector": {"names": ["n0"]}, "pullSecrets": ["x"]}));
    let before = report(&observed(&job, 0), &roll([member(PULLING)])).status;
    let types = |status: &ImagePullJobStatus| {
        conditions(status).iter().map(|one| one.0.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types(before.as_ref().unwrap()), ["Progressing", "NodesFound", "SecretsReady"]);
    let edited = ImagePullJob { status: before, ..started(&json!({})) };
    let after = report(&observed(&edited, 0), &roll([member(PULLING)])).status.unwrap();
    assert_eq!(types(&after), ["Progressing"]);
}

#[test]
fn what_was_reported_is_not_reported_again() {
    let job = started(&json!({}));
    let first = report(&observed(&job, 5), &roll([member(PULLING)])).status;
    assert!(first.is_some());
    let job = ImagePullJob { status: first, ..job };
    assert_eq!(report(&observed(&job, 900), &roll([member(PULLING)])), Report::default());
}

#[test]
fn a_status_waits_for_its_second_unless_it_is_the_last() {
    let job = started(&json!({}));
    let soon = |stage| {
        let now =
            Observed { written_at: Some(at(5) - std::time::Duration::from_millis(300)), ..observed(&job, 5) };
        report(&now, &roll([member(stage)]))
    };
    let until = at(5) + std::time::Duration::from_millis(700);
    assert_eq!(soon(PULLING), Report { status: None, wake_at: Some(until) });
    assert!(soon(Stage::Succeeded).status.is_some());
}

/// kruise R34
#[test]
fn a_finished_job_expires_if_it_says_when() {
    let over = |completion: Value| build::finished(job(&json!({"completionPolicy": completion})));
    assert_eq!(expires_at(&over(json!({"ttlSecondsAfterFinished": 20}))), Some(at(21)));
    assert_eq!(expires_at(&over(json!({"ttlSecondsAfterFinished": 0}))), Some(at(1)));
    assert_eq!(expires_at(&over(json!({}))), None);
    assert_eq!(expires_at(&started(&json!({"completionPolicy": {"ttlSecondsAfterFinished": 20}}))), None);
}
