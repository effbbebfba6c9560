//! A job that is paused, by hand or by its failure policy.

use super::*;

fn pausing(fields: &Value) -> BroadcastJob {
    let mut all = json!({"failurePolicy": {"type": "Pause"}});
    json_patch::merge(&mut all, fields);
    job(&all)
}

/// kruise T119, R116.
#[test]
fn a_paused_job_makes_no_pod_and_lets_its_pods_run() {
    let names = names(10);
    let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
    let pods = [("node-0", "Running"), ("node-1", "Running"), ("node-2", "Running")];
    let decision = decided(&job(&json!({"paused": true})), &nodes, &pods);
    assert_eq!((phase(&decision), counters(&decision)), (Some(BroadcastJobPhase::Paused), [10, 3, 0, 0]));
    assert_eq!((decision.create, deleted(&decision)), (0, vec![]));
}

/// kruise T118, R117, W26: the pause is written to the spec.
#[test]
fn a_failure_pauses_the_job_in_its_spec() {
    let decision = decided(&pausing(&json!({})), &["a", "b"], &[("a", "Failed")]);
    assert_eq!(decision, Decision { pauses: true, ..Decision::default() });
}

#[test]
fn a_paused_job_notes_the_failures_that_were_seen() {
    let decision = decided(&pausing(&json!({"paused": true})), &["a", "b"], &[("a", "Failed")]);
    assert_eq!(decision.status.unwrap().paused_failures, Some(1));
}

/// kruise W26: resuming does not pause again at once.
#[test]
fn a_resumed_job_goes_on_until_the_next_failure() {
    let resumed = with_status(pausing(&json!({})), |status| {
        status.phase = Some(BroadcastJobPhase::Paused);
        status.paused_failures = Some(1);
    });
    let decision = decided(&resumed, &["a", "b"], &[("a", "Failed")]);
    assert_eq!((phase(&decision), reasons(&decision)), (Some(BroadcastJobPhase::Running), vec!["Continue"]));
    assert!(decision.create > 0);
    let again = decided(&resumed, &["a", "b"], &[("a", "Failed"), ("b", "Failed")]);
    assert!(again.pauses);
}

#[test]
fn failures_that_are_gone_do_not_speak_for_those_that_come() {
    let resumed = with_status(pausing(&json!({})), |status| status.paused_failures = Some(2));
    let fewer = decided(&resumed, &["a", "b"], &[("a", "Failed")]);
    let status = fewer.status.unwrap();
    assert_eq!(status.paused_failures, Some(1));
    let next = with_status(resumed, |old| *old = status);
    assert!(decided(&next, &["a", "b"], &[("a", "Failed"), ("b", "Failed")]).pauses);
}

#[test]
fn a_paused_job_is_neither_failed_nor_completed_meanwhile() {
    for policy in ["FailFast", "Continue", "Pause"] {
        let fields = json!({
            "paused": true, "failurePolicy": {"type": policy},
            "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 1},
        });
        let decision = decided(&job(&fields), &["a"], &[("a", "Failed")]);
        assert_eq!(phase(&decision), Some(BroadcastJobPhase::Paused), "{policy}");
    }
}
