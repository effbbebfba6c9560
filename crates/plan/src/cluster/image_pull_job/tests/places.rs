//! Whom a job grants (kruise R49–R51, W6; design 7).

use super::*;
use crate::cluster::node_image::node::Want;

fn wanted(fields: &Value, now: i64, roll: &mut Roll) -> Vec<String> {
    let job = started(fields);
    let wants = wants(&observed(&job, now), roll);
    wants.of_nodes.iter().map(|(node, want)| format!("{want:?} {node}")).collect()
}

fn waiting(count: usize) -> Vec<Standing> {
    vec![member(Stage::Waiting); count]
}

/// kruise R50, R51
#[test]
fn free_places_go_to_the_first_in_line() {
    let mut nodes = waiting(4);
    nodes.push(member(PULLING));
    assert_eq!(wanted(&json!({"parallelism": 3}), 0, &mut roll(nodes)), ["Grant n0", "Grant n1"]);
}

/// kruise R50
#[test]
fn without_a_place_nobody_is_granted() {
    for parallelism in [json!(0), json!(1), json!("x"), json!(null)] {
        let mut nodes = roll(waiting(2).into_iter().chain([member(PULLING), member(PULLING)]));
        assert!(wanted(&json!({"parallelism": parallelism}), 0, &mut nodes).is_empty());
    }
}

#[test]
fn those_who_are_asked_again_come_before_those_who_wait() {
    let mut nodes = waiting(1);
    nodes.push(in_need(Stage::Succeeded, Need::Renew(at(0))));
    nodes.push(in_need(Stage::Succeeded, Need::Renew(at(99))));
    nodes.push(in_need(Stage::Failed, Need::Retry));
    let mut roll = roll(nodes);
    assert_eq!(wanted(&json!({"parallelism": 9}), 50, &mut roll), ["Retry n3", "Renew n1", "Grant n0"]);
    assert_eq!(wanted(&json!({"parallelism": 2}), 50, &mut roll), ["Retry n3", "Renew n1"]);
    assert_eq!(wanted(&json!({"parallelism": 1}), 50, &mut roll), ["Retry n3"]);
}

#[test]
fn what_pulls_nothing_needs_no_place() {
    let nodes = [in_need(PULLING, Need::Attach), in_need(Stage::Granted(at(0)), Need::Withdraw)];
    assert_eq!(wanted(&json!({"parallelism": 0}), 0, &mut roll(nodes)), ["Withdraw n1", "Attach n0"]);
}

#[test]
fn a_job_that_is_held_grants_nothing_and_lets_go() {
    let job = started(&json!({"parallelism": 9}));
    for hold in [Hold::Image, Hold::Secrets("why".to_owned()), Hold::Siblings] {
        let observed = Observed { hold: Some(hold), ..observed(&job, 0) };
        let nodes =
            [in_need(PULLING, Need::Withdraw), member(Stage::Waiting), in_need(Stage::Failed, Need::Retry)];
        let wants = wants(&observed, &mut roll(nodes));
        assert_eq!(wants.of_nodes, [("n0".into(), Want::Withdraw)]);
    }
}

/// kruise R49
#[test]
fn after_its_deadline_a_job_wants_nothing() {
    let fields = json!({"parallelism": 9, "completionPolicy": {"activeDeadlineSeconds": 700}});
    assert_eq!(wanted(&fields, 699, &mut roll(waiting(1))), ["Grant n0"]);
    assert!(wanted(&fields, 700, &mut roll(waiting(1))).is_empty());
}

#[test]
fn a_full_job_comes_back_when_a_silent_node_gives_its_place_up() {
    let job = started(&json!({}));
    let mut nodes = roll([member(Stage::Granted(at(5))), in_need(Stage::Failed, Need::Retry)]);
    assert_eq!(wants(&observed(&job, 5), &mut nodes), Wants { of_nodes: vec![], wake_at: Some(at(36)) });
    let again = wants(&observed(&job, 36), &mut nodes);
    assert_eq!(again.of_nodes, [("n1".into(), Want::Retry)]);
}

#[test]
fn a_job_comes_back_when_a_lost_image_may_be_asked_for() {
    let job = started(&json!({}));
    let mut nodes = roll([in_need(Stage::Succeeded, Need::Renew(at(77)))]);
    assert_eq!(wants(&observed(&job, 5), &mut nodes), Wants { of_nodes: vec![], wake_at: Some(at(77)) });
}
