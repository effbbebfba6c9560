//! What waiting tasks wait for.

use super::*;

#[test]
fn a_task_says_how_long_it_had_waited_when_it_is_first_attempted() {
    let mut worklist = list(&[json!({"tag": "a"}), json!({"tag": "b"})]);
    let waited = |decision: &Decision| decision.starts.iter().map(|start| start.waited).collect::<Vec<_>>();
    let first = worklist.decide(&free(1), at(0));
    assert_eq!(waited(&first), [Some(Duration::ZERO)]);
    worklist.ended(first.starts[0].attempt, success(), at(7), STEADY);
    let second = worklist.decide(&free(1), at(7));
    assert_eq!(waited(&second), [Some(Duration::from_secs(7))]);
    worklist.ended(second.starts[0].attempt, failure(FailureClass::Unreachable), at(8), STEADY);
    let again = worklist.decide(&free(1), at(600));
    assert_eq!(waited(&again), [None], "only the first attempt");
}

#[test]
fn waiting_tasks_are_counted_by_what_they_wait_for() {
    let mut worklist = list(&[json!({"tag": "a"}), json!({"tag": "b"}), json!({"tag": "c"})]);
    let first = worklist.decide(&free(1), at(0));
    assert_eq!(worklist.waits(&free(1), at(0)), Waits { place: 2, ..Waits::default() });
    let full = Conditions { no_room: Some(shortage()), ..free(1) };
    assert_eq!(worklist.waits(&full, at(0)), Waits { room: 2, ..Waits::default() });
    let away = Conditions { hold: Some(Hold::NoRuntime), ..full };
    assert_eq!(worklist.waits(&away, at(0)), Waits { runtime: 2, ..Waits::default() });
    worklist.ended(first.starts[0].attempt, failure(FailureClass::RateLimited), at(1), STEADY);
    assert_eq!(worklist.waits(&free(1), at(1)), Waits { retry: 1, registry: 2, ..Waits::default() });
}
