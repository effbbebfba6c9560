//! While a job runs: who counts, who gets a pod, whose pod goes.

use proptest::prelude::*;

use super::*;
use crate::cluster::broadcast_job::fitness::Misfit;
use crate::cluster::broadcast_job::limit;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// kruise T111.
#[test]
fn one_more_pod_is_made_when_one_of_two_runs() {
    let job = job(&json!({"parallelism": 2}));
    let decision = decided(&job, &["a", "b", "c"], &[("a", "Running")]);
    assert_eq!((decision.create, counters(&decision)), (1, [3, 1, 0, 0]));
    assert_eq!(phase(&decision), Some(BroadcastJobPhase::Running));
}

/// kruise T112.
#[test]
fn a_percentage_is_of_the_desired_nodes_and_rounded_up() {
    let names = names(5);
    let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(decided(&job(&json!({"parallelism": "40%"})), &nodes, &[]).create, 2);
    assert_eq!(decided(&job(&json!({"parallelism": "41%"})), &nodes, &[]).create, 3);
    assert_eq!(decided(&job(&json!({"parallelism": "0%"})), &nodes, &[]).create, 0);
}

/// kruise T114: how many may be made; the kernel makes them in batches.
#[test]
fn ten_nodes_and_room_for_twenty_get_ten_pods() {
    let names = names(10);
    let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
    let job = job(&json!({"parallelism": 20}));
    let roll = roll(&job, &nodes, &[]);
    assert_eq!(roll.empty().count().min(decide(&observed(&job), &roll).create), 10);
}

#[test]
fn pods_that_are_being_made_take_room() {
    let job = job(&json!({"parallelism": 2}));
    let roll = roll(&job, &["a", "b", "c"], &[]);
    let create = |creating| decide(&Observed { creating, ..observed(&job) }, &roll).create;
    assert_eq!([create(0), create(1), create(2)], [2, 1, 0]);
}

/// kruise R113.
#[test]
fn each_pod_counts_as_what_it_is() {
    let job = job(&json!({"failurePolicy": {"type": "Continue", "restartLimit": 2}}));
    let nodes = ["a", "b", "c", "d", "e", "f"];
    let pods = [
        ("a", "Running"),
        ("b", "Succeeded"),
        ("c", "Failed"),
        ("d", "leaving"),
        ("e", "restarted 3"),
        ("f", "restarted 2"),
    ];
    assert_eq!(counters(&decided(&job, &nodes, &pods)), [6, 2, 1, 2]);
}

/// kruise R115. What has ended stays: to delete it would only lose its result, and run it again when the node is back.
#[test]
fn pods_on_nodes_that_do_not_fit_any_more_go_and_count_as_failed() {
    let job = job(&json!({"failurePolicy": {"type": "FailFast"}}));
    let mut roll = roll(
        &job,
        &["a", "b", "c"],
        &[("a", "Running"), ("b", "Running"), ("c", "Succeeded"), ("d", "Running")],
    );
    for node in ["b", "c"] {
        roll.set_node(&NodeName::from(node), NodeStanding::Misfit(Misfit::Unschedulable));
    }
    let decision = decide(&observed(&job), &roll);
    assert_eq!(deleted(&decision), ["sweep-b", "sweep-d"], "d is no node at all");
    assert_eq!(counters(&decision), [2, 1, 1, 2]);
    assert_eq!(phase(&decision), Some(BroadcastJobPhase::Running), "that is no failure of a pod");
}

#[test]
fn a_pod_that_leaves_a_node_keeps_it_desired_until_it_is_gone() {
    let job = job(&json!({}));
    let mut roll = roll(&job, &["a", "b"], &[("a", "leaving"), ("b", "Running")]);
    roll.set_node(&NodeName::from("a"), NodeStanding::Misfit(Misfit::Labels));
    assert_eq!(counters(&decide(&observed(&job), &roll)), [2, 1, 0, 0]);
    roll.remove(&NodeName::from("a"), "sweep-a");
    assert_eq!(counters(&decide(&observed(&job), &roll)), [1, 1, 0, 0]);
}

#[test]
fn a_second_live_pod_of_a_node_goes() {
    let job = job(&json!({}));
    let mut roll = roll(&job, &["a"], &[("a", "Running")]);
    roll.put(Pod { name: "sweep-a-2".into(), uid: "2".into(), ..pod("a", "Running") });
    assert_eq!(deleted(&decide(&observed(&job), &roll)), ["sweep-a-2"]);
}

/// kruise R120: more than allowed is told once, and nothing is stopped.
#[test]
fn too_many_active_pods_are_told_once() {
    let job = job(&json!({"parallelism": 1}));
    let roll = roll(&job, &["a", "b", "c"], &[("a", "Running"), ("b", "Running")]);
    let decision = decide(&observed(&job), &roll);
    assert_eq!(
        (reasons(&decision), decision.create, deleted(&decision)),
        (vec!["TooManyActivePods"], 0, vec![])
    );
    assert!(decision.has_too_many);
    let again = decide(&Observed { has_warned_of_too_many: true, ..observed(&job) }, &roll);
    assert_eq!(reasons(&again), Vec::<&str>::new());
}

/// kruise T116.
#[test]
fn a_job_that_continues_goes_on_after_a_failure() {
    let job = job(&json!({"failurePolicy": {"type": "Continue"}}));
    let decision = decided(&job, &["a", "b"], &[("a", "Failed")]);
    assert_eq!((phase(&decision), decision.create > 0), (Some(BroadcastJobPhase::Running), true));
    assert_eq!(counters(&decision), [2, 0, 0, 1]);
}

#[test]
fn the_first_look_notes_when_the_job_began() {
    let fresh = with_status(job(&json!({})), |status| *status = BroadcastJobStatus::default());
    let status = decided(&fresh, &["a"], &[]).status.unwrap();
    assert_eq!(status.start_time.map(|time| time.0), Some(at(NOW)));
}

#[test]
fn a_job_that_fits_no_node_stays_and_says_why() {
    let job = job(&json!({}));
    let mut roll = Roll::new(0);
    assert_eq!(condition(&decide(&observed(&job), &roll), "NodesFound").unwrap().2, "there is no node");
    for (node, misfit) in [("a", Misfit::Labels), ("b", Misfit::Unschedulable), ("c", Misfit::Unschedulable)]
    {
        roll.set_node(&NodeName::from(node), NodeStanding::Misfit(misfit));
    }
    let decision = decide(&observed(&job), &roll);
    let (status, _, message) = condition(&decision, "NodesFound").unwrap();
    assert_eq!(status, "False");
    assert_eq!(
        message,
        "the pod fits no node: 1 node: labels do not match nodeSelector or node affinity; 2 nodes: unschedulable"
    );
    assert_eq!(
        (phase(&decision), reasons(&decision)),
        (Some(BroadcastJobPhase::Running), vec!["NoNodeFits"])
    );
}

#[test]
fn a_hindrance_is_told_once_and_its_end_is_written() {
    let first = job(&json!({}));
    let stuck = roll(&first, &["a"], &[("a", "unschedulable")]);
    let decision = decide(&observed(&first), &stuck);
    let (status, reason, message) = condition(&decision, "PodsScheduled").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "PodUnschedulable"));
    assert_eq!(message, "pod sweep-a finds no place: 0/3 nodes are available: too many pods");
    assert_eq!(reasons(&decision), ["PodUnschedulable"]);
    let known = with_status(first, |status| *status = decision.status.unwrap());
    assert_eq!(
        decide(&observed(&known), &stuck),
        Decision { create: decide(&observed(&known), &stuck).create, ..Decision::default() }
    );
    let placed = decide(&observed(&known), &roll(&known, &["a"], &[("a", "Running")]));
    assert_eq!(condition(&placed, "PodsScheduled").unwrap().0, "True");
}

#[test]
fn a_refusal_is_shown_in_the_servers_own_words() {
    let job = job(&json!({}));
    let refusal = Some("pods \"sweep-a\" is forbidden: exceeded quota");
    let decision = decide(&Observed { refusal, ..observed(&job) }, &roll(&job, &["a"], &[]));
    let words = "pods \"sweep-a\" is forbidden: exceeded quota".to_owned();
    assert_eq!(
        condition(&decision, "PodsCreated"),
        Some(("False".to_owned(), "PodRefused".to_owned(), words.clone()))
    );
    assert_eq!(decision.notices[0].note, words);
}

#[test]
fn nothing_is_decided_about_a_job_that_is_being_deleted() {
    let mut job = job(&json!({}));
    job.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(NOW)));
    assert_eq!(decided(&job, &["a"], &[]), Decision::default());
}

#[test]
fn what_is_no_parallelism_allows_none() {
    let limits = ["x", "5", "-1%", "1.5%", ""].map(|text| limit(&IntOrString::String(text.to_owned()), 10));
    assert_eq!(limits, [0; 5]);
    assert_eq!(limit(&IntOrString::Int(-1), 10), 0);
}

const STATES: [&str; 7] = ["", "Running", "Succeeded", "Failed", "leaving", "restarted 1", "unschedulable"];

proptest! {
    /// Whatever the cluster looks like: never above the parallelism, and what was written changes nothing any more.
    #[test]
    fn deciding_again_changes_nothing(
        states in prop::collection::vec((0..STATES.len(), any::<bool>()), 0..12),
        parallelism in 0..8_i32,
        policy in prop::sample::select(vec!["Continue", "FailFast", "Pause"]),
        is_paused in any::<bool>(),
    ) {
        let mut job = job(&json!({
            "parallelism": parallelism, "paused": is_paused, "failurePolicy": {"type": policy},
        }));
        let mut roll = Roll::new(0);
        for (number, (state, fits)) in states.iter().enumerate() {
            let node = format!("node-{number}");
            let standing = if *fits { NodeStanding::Fits } else { NodeStanding::Misfit(Misfit::Labels) };
            roll.set_node(&NodeName::from(node.as_str()), standing);
            if !STATES[*state].is_empty() {
                roll.put(pod(&node, STATES[*state]));
            }
        }
        let first = decide(&observed(&job), &roll);
        prop_assert!(first.create + roll.tally().active <= usize::try_from(parallelism).unwrap().max(roll.tally().active));
        if first.pauses {
            job.spec.paused = true;
        }
        // Each write is followed by a look; after at most two there is nothing left to write.
        for _ in 0..2 {
            if let Some(status) = decide(&observed(&job), &roll).status {
                job.status = Some(status);
            }
        }
        prop_assert_eq!(decide(&observed(&job), &roll).status, None);
        prop_assert!(!decide(&observed(&job), &roll).pauses);
    }

    /// However many pods somebody has put on a node: what is not asked to go is at most one live pod on each.
    #[test]
    fn one_live_pod_stays_on_a_node(states in prop::collection::vec((0..3_usize, 0..STATES.len()), 0..12)) {
        let job = job(&json!({"failurePolicy": {"type": "Continue"}}));
        let mut roll = roll(&job, &["node-0", "node-1"], &[]);
        let mut live: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
        for (number, (node, state)) in states.iter().enumerate() {
            let (node, state) = (format!("node-{node}"), STATES[*state]);
            let name = format!("sweep-{number}");
            if state == "Running" || state == "unschedulable" {
                live.entry(node.clone()).or_default().push(name.clone());
            }
            if !state.is_empty() {
                roll.put(Pod { name: name.as_str().into(), ..pod(&node, state) });
            }
        }
        let decision = decide(&observed(&job), &roll);
        let gone = deleted(&decision);
        for (node, pods) in live {
            let stays = pods.iter().filter(|name| !gone.contains(&name.as_str())).count();
            prop_assert_eq!(stays, usize::from(node != "node-2"), "{} has {:?}, without {:?}", node, pods, &gone);
        }
    }
}
