//! How a job ends, and what becomes of it then.

use super::*;

fn over(fields: &Value, type_: &str, phase: BroadcastJobPhase) -> BroadcastJob {
    with_status(job(fields), |status| {
        let condition = json!([{"type": type_, "status": "True"}]);
        status.conditions = serde_json::from_value(condition).unwrap();
        status.completion_time = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(NOW - 10)));
        status.phase = Some(phase);
    })
}

/// kruise T115, R117, R119.
#[test]
fn a_failed_pod_fails_the_job() {
    let job = job(&json!({}));
    let decision =
        decided(&job, &["a", "b", "c"], &[("a", "Succeeded"), ("b", "Succeeded"), ("c", "Failed")]);
    assert_eq!((phase(&decision), counters(&decision)), (Some(BroadcastJobPhase::Failed), [3, 0, 2, 1]));
    let (status, reason, message) = condition(&decision, "Failed").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Failed"));
    assert_eq!(message, "a pod failed, and the failure policy is FailFast: 2 pods succeeded, 1 pods failed");
    assert_eq!(decision.status.unwrap().completion_time.map(|time| time.0), Some(at(NOW)));
    assert_eq!(decision.notices[0].reason, "failed pod is found");
}

/// kruise T117.
#[test]
fn a_job_that_fails_makes_no_further_pod() {
    let decision = decided(&job(&json!({})), &["a", "b"], &[("a", "Failed")]);
    assert_eq!((phase(&decision), decision.create), (Some(BroadcastJobPhase::Failed), 0));
}

/// kruise T120, R118, R119: the status first, so that no pod is lost from the count if the controller dies in between.
#[test]
fn a_job_over_its_deadline_fails_and_its_pods_go() {
    let late = job(&json!({"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 0}}));
    let decision = decided(&late, &["a", "b", "c"], &[("a", "Running"), ("b", "Running")]);
    assert_eq!((phase(&decision), counters(&decision)), (Some(BroadcastJobPhase::Failed), [3, 0, 0, 2]));
    assert_eq!(
        (decision.notices[0].reason, decision.create, deleted(&decision)),
        ("DeadlineExceeded", 0, vec![])
    );
    let failed = with_status(late, |status| *status = decision.status.unwrap());
    let next = decided(&failed, &["a", "b", "c"], &[("a", "Running"), ("b", "Running")]);
    assert_eq!((deleted(&next), &next.status), (vec!["sweep-a", "sweep-b"], &None));
}

/// The deadline is known from the status alone, so that a restart does not lose it (kruise W26).
#[test]
fn the_deadline_is_waited_for() {
    let job = job(&json!({"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 100}}));
    assert_eq!(decided(&job, &["a"], &[("a", "Running")]).wake_at, Some(at(NOW + 40)));
}

/// kruise R121.
#[test]
fn a_job_is_complete_when_every_desired_node_has_a_pod_that_is_over() {
    let job = job(&json!({"failurePolicy": {"type": "Continue"}}));
    let cases = [
        (vec![("a", "Succeeded"), ("b", "Failed")], true),
        (vec![("a", "Succeeded"), ("b", "leaving")], true),
        (vec![("a", "Succeeded"), ("b", "restarted 1")], true),
        (vec![("a", "Succeeded"), ("b", "Running")], false),
        (vec![("a", "Succeeded")], false),
    ];
    for (pods, is_complete) in cases {
        let decision = decided(&job, &["a", "b"], &pods);
        assert_eq!(phase(&decision) == Some(BroadcastJobPhase::Completed), is_complete, "{pods:?}");
        assert_eq!(condition(&decision, "Complete").is_some(), is_complete, "{pods:?}");
    }
}

#[test]
fn a_complete_job_says_how_it_went() {
    let decision = decided(&job(&json!({})), &["a"], &[("a", "Succeeded")]);
    assert_eq!(decision.notices[0].reason, "JobComplete");
    assert_eq!(decision.notices[0].note, "job completed: 1 pods succeeded, 0 pods failed");
}

#[test]
fn a_job_whose_pod_is_being_made_is_not_complete() {
    let job = job(&json!({}));
    let roll = roll(&job, &["a"], &[("a", "Succeeded")]);
    let decision = decide(&Observed { creating: 1, ..observed(&job) }, &roll);
    assert_eq!(phase(&decision), Some(BroadcastJobPhase::Running));
}

/// A pod that was started again too often does not keep the job from its end, and does not outlive it (kruise W26).
#[test]
fn a_job_that_is_over_leaves_no_pod_that_goes_on() {
    let job = over(&json!({"failurePolicy": {"type": "Continue"}}), "Complete", BroadcastJobPhase::Completed);
    let decision = decided(&job, &[], &[("a", "Succeeded"), ("b", "restarted 1"), ("c", "Running")]);
    assert_eq!((deleted(&decision), &decision.status), (vec!["sweep-b", "sweep-c"], &None));
}

/// kruise R111, T16.
#[test]
fn a_job_goes_when_its_time_after_the_end_has_run_out() {
    let kept = |ttl: i32| {
        let fields = json!({"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": ttl}});
        let decision = decided(&over(&fields, "Complete", BroadcastJobPhase::Completed), &[], &[]);
        (decision.is_expired, decision.wake_at)
    };
    assert_eq!(kept(30), (false, Some(at(NOW + 20))));
    assert_eq!(kept(10), (true, None));
    let forever = decided(&over(&json!({}), "Failed", BroadcastJobPhase::Failed), &[], &[]);
    assert_eq!((forever.is_expired, forever.wake_at), (false, None));
}

/// kruise R122.
#[test]
fn a_job_that_never_ends_takes_new_nodes_and_has_no_deadline() {
    let fields = json!({"completionPolicy": {"type": "Never"}});
    let done = decided(&job(&fields), &["a"], &[("a", "Succeeded")]);
    assert_eq!((phase(&done), done.wake_at), (Some(BroadcastJobPhase::Running), None));
    let more = decided(&job(&fields), &["a", "b"], &[("a", "Succeeded")]);
    assert!(more.create > 0);
}

/// kruise R122, R116: failed for good, but never over.
#[test]
fn a_job_that_never_ends_can_fail_and_is_only_counted_then() {
    let fields = json!({"completionPolicy": {"type": "Never"}});
    let decision = decided(&job(&fields), &["a", "b"], &[("a", "Failed"), ("b", "Running")]);
    assert_eq!(phase(&decision), Some(BroadcastJobPhase::Failed));
    let failed = with_status(job(&fields), |status| *status = decision.status.unwrap());
    let next = decided(&failed, &["a", "b", "c"], &[("a", "Failed"), ("b", "leaving")]);
    assert_eq!(
        (phase(&next), counters(&next), next.create),
        (Some(BroadcastJobPhase::Failed), [3, 0, 0, 1], 0)
    );
    assert!(!next.is_expired);
}
