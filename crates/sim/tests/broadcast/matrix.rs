//! Every failure policy with every completion policy, paused or not, with nodes that come and go: whatever happens, there
//! are never more pods than allowed and never two on a node, and in the end nobody writes.

use prewarm_api::kruise::BroadcastJobPhase;
use prewarm_sim::Act;
use serde_json::{Value, json};

use crate::support::{SECOND, cluster, counters, edit, edit_node, phase};

/// What happens to the nodes meanwhile.
#[derive(Clone, Copy, Debug)]
enum Coming {
    Nobody,
    Joins,
    Leaves,
    IsCordoned,
}

/// How the job is expected to stand at the end: its phase and its counters.
fn expected(policy: &str, completion: &str, pauses: bool, coming: Coming) -> (BroadcastJobPhase, [i32; 4]) {
    let nodes = match coming {
        // A job that fails at once does so while the node is cordoned, and is not counted any more unless it never ends.
        Coming::IsCordoned if policy == "FailFast" && completion == "Always" && !pauses => 3,
        Coming::Nobody | Coming::IsCordoned => 4,
        Coming::Joins => 5,
        Coming::Leaves => 3,
    };
    match (policy, completion) {
        // The first pod fails, one at a time, so that nothing else ran.
        ("FailFast", _) => (BroadcastJobPhase::Failed, [nodes, 0, 0, 1]),
        ("Continue" | "Pause", "Always") => (BroadcastJobPhase::Completed, [nodes, 0, nodes - 1, 1]),
        _ => (BroadcastJobPhase::Running, [nodes, 0, nodes - 1, 1]),
    }
}

async fn play(policy: &str, completion: &str, pauses: bool, coming: Coming) {
    let story = format!("{policy}, {completion}, pauses {pauses}, {coming:?}");
    let (mut cluster, player) = cluster(4).await;
    player.act("node-1", Act::Fails(3 * SECOND));
    let fields: Value = json!({
        "parallelism": 1, "paused": pauses, "failurePolicy": {"type": policy},
        "completionPolicy": {"type": completion},
    });
    cluster.broadcast("sweep", fields).await;
    cluster.pass(2).await;
    match coming {
        Coming::Nobody => {}
        Coming::Joins => cluster.make_node("node-5", json!({})).await,
        Coming::Leaves => cluster.delete_node("node-4").await,
        Coming::IsCordoned => edit_node(&cluster, "node-4", json!({"spec": {"unschedulable": true}})).await,
    }
    cluster.pass(2).await;
    if let Coming::IsCordoned = coming {
        edit_node(&cluster, "node-4", json!({"spec": {"unschedulable": null}})).await;
    }
    // Whoever paused it, by hand or by policy, resumes it.
    for _ in 0..2 {
        cluster.pass(10).await;
        let job = cluster.broadcasts().get("sweep").await.unwrap();
        if job.spec.paused {
            assert_eq!(phase(&job), Some(BroadcastJobPhase::Paused), "{story}");
            edit(&cluster, "sweep", json!({"spec": {"paused": false}})).await;
        }
    }
    cluster.pass(60).await;
    let job = cluster.broadcasts().get("sweep").await.unwrap();
    assert_eq!(
        (phase(&job).unwrap(), counters(&job)),
        expected(policy, completion, pauses, coming),
        "{story}"
    );
    assert_eq!(player.most(), (1, 1), "{story}");
    drop(player);
    let before = cluster.faults.writes();
    cluster.pass(120).await;
    assert_eq!(cluster.faults.writes(), before, "{story}: an idle cluster writes");
}

#[tokio::test(start_paused = true)]
async fn every_policy_holds_with_every_other() {
    let mut played = 0;
    for policy in ["FailFast", "Continue", "Pause"] {
        for completion in ["Always", "Never"] {
            for pauses in [false, true] {
                for coming in [Coming::Nobody, Coming::Joins, Coming::Leaves, Coming::IsCordoned] {
                    play(policy, completion, pauses, coming).await;
                    played += 1;
                }
            }
        }
    }
    println!("counted: {played} plays");
}
