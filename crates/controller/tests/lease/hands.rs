//! Leases that others write, delete or make.

use prewarm_controller::lease::Loss;
use serde_json::json;
use tokio::time::Instant;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_lease_deleted_below_its_leader_is_made_again_by_it_and_by_nobody_else() {
    let mut world = World::new();
    world.start("a");
    world.pass(0.1).await;
    world.start("b");
    for round in 0..20 {
        world.pass(25.0 + f64::from(round) * 0.3).await;
        world.delete().await;
        world.pass(5.0).await;
        assert_eq!(world.leader().as_deref(), Some("a"));
        assert_eq!(world.lease().await.spec.unwrap().holder_identity.as_deref(), Some("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_of_a_crashed_leader_is_followed_within_twenty_seconds() {
    let mut world = World::new();
    world.start("a");
    world.pass(0.1).await;
    world.start("b");
    world.pass(10.0).await;
    world.take("a").kill().await;
    world.delete().await;
    let (leader, waited) = world.elect().await;
    assert_eq!(leader, "b");
    assert!((15.0..20.0).contains(&waited), "{waited}");
    assert_eq!(world.transitions().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_given_to_another_stops_at_its_next_renewal() {
    for (holder, taken_by) in [("somebody", Some("somebody")), ("", None)] {
        let mut world = World::new();
        world.start("a");
        world.pass(10.0).await;
        world.patch(json!({ "spec": { "holderIdentity": holder } })).await;
        let given = Instant::now();
        assert_eq!(world.take("a").lost().await, Loss::Taken(taken_by.map(str::to_owned)));
        let waited = given.elapsed().as_secs_f64();
        assert!(waited < 2.2, "{waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_goes_on_when_others_write_what_is_not_about_leading() {
    let mut world = World::new();
    world.start("a");
    world.pass(0.1).await;
    world.start("b");
    for round in 0..50 {
        world.pass(1.7).await;
        world.patch(json!({ "metadata": { "annotations": { "round": round.to_string() } } })).await;
    }
    world.pass(30.0).await;
    assert_eq!((world.leader().as_deref(), world.transitions().await), (Some("a"), 1));
    let lease = world.lease().await;
    assert_eq!(lease.metadata.annotations.unwrap()["round"], "49");
    let conflicts = world.metrics.encode();
    let conflicts =
        conflicts.lines().find(|line| line.contains(r#"kind="lease",result="conflict""#)).unwrap();
    assert!(!conflicts.ends_with(" 0"), "it wrote over nobody's change: {conflicts}");
}

#[tokio::test(start_paused = true)]
async fn leases_that_say_little_are_read_for_what_they_say() {
    let nulls = json!({
        "holderIdentity": null, "leaseDurationSeconds": null, "acquireTime": null, "renewTime": null,
        "leaseTransitions": null,
    });
    let held = json!({ "holderIdentity": "somebody" });
    let held_for_a_second = json!({ "holderIdentity": "somebody", "leaseDurationSeconds": 1 });
    let ahead = json!({ "holderIdentity": "somebody", "renewTime": "2999-01-01T00:00:00.000000Z" });
    for (spec, least, most) in [
        (nulls, 0.0, 0.1),
        (json!(null), 0.0, 0.1),
        (json!({ "holderIdentity": "" }), 0.0, 0.1),
        (held, 15.0, 15.1),
        (held_for_a_second, 15.0, 15.1),
        (ahead, 15.0, 15.1),
    ] {
        let mut world = World::without_lease();
        world.install(&spec);
        world.start("a");
        let (_, waited) = world.elect().await;
        assert!((least..most).contains(&waited), "{spec}: {waited}");
        assert_eq!(world.transitions().await, 1);
        world.pass(30.0).await;
        assert_eq!(world.leader().as_deref(), Some("a"));
    }
}
