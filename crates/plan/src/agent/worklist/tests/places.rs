//! Slow registries and busy namespaces.

use super::*;

/// One image each, in the registry and for the namespace that its name has.
fn images(names: &[(&str, &str)]) -> Value {
    let image = |(registry, namespace): &(&str, &str)| {
        let owner = json!([{ "uid": format!("{registry}-{namespace}"), "namespace": namespace }]);
        let entry = json!({ "tag": format!("{registry}-{namespace}"), "ownerReferences": owner });
        (format!("{registry}.example/{namespace}"), json!({ "tags": [entry] }))
    };
    json!({ "images": Value::Object(names.iter().map(image).collect()) })
}

fn ask(worklist: &mut Worklist, names: &[(&str, &str)], now: u64) {
    worklist.adopt(read(&images(names)), &BTreeMap::new(), at(now));
}

#[test]
fn two_slow_registries_hold_two_places_and_a_third_one_is_pulled_beside_them() {
    let mut worklist = Worklist::default();
    let mut names = vec![("slow1", "a"), ("slow2", "a")];
    ask(&mut worklist, &names, 0);
    assert_eq!(tags(&worklist.decide(&free(2), at(0))), ["slow1-a", "slow2-a"]);
    names.push(("good", "a"));
    ask(&mut worklist, &names, 5);
    let decision = worklist.decide(&free(2), at(5));
    assert_eq!((tags(&decision), decision.wake_at), (vec![], Some(Duration::from_mins(1))));
    assert_eq!(tags(&worklist.decide(&free(2), at(60))), ["good-a"]);
}

#[test]
fn one_namespace_holds_all_places_and_another_one_is_pulled_beside_it() {
    let mut worklist = Worklist::default();
    let mut names = vec![("hub", "a"), ("slow1", "a"), ("slow2", "a"), ("slow3", "a")];
    ask(&mut worklist, &names, 0);
    worklist.decide(&free(2), at(0));
    assert_eq!(worklist.decide(&free(2), at(60)).starts.len(), 1, "another registry");
    assert_eq!(worklist.decide(&free(2), at(6000)).starts.len(), 0, "and then no more for this namespace");
    names.push(("hub", "b"));
    ask(&mut worklist, &names, 6000);
    assert_eq!(tags(&worklist.decide(&free(2), at(6000))), ["hub-b"]);
    assert_eq!(worklist.running(), 2 + crate::agent::KEPT_PLACES);
}

#[test]
fn of_waiting_tasks_the_namespace_that_holds_no_place_gets_the_last_one() {
    let mut worklist = Worklist::default();
    ask(&mut worklist, &[("a", "one"), ("b", "one"), ("c", "one"), ("z", "two")], 0);
    assert_eq!(tags(&worklist.decide(&free(2), at(0))), ["a-one", "z-two"]);
    worklist.ended(2, success(), at(1), STEADY);
    assert_eq!(tags(&worklist.decide(&free(2), at(1))), ["b-one"], "nobody else wants it");
}
