//! The roll: counts by difference, and places (design 7).

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::cluster::demands::roll::Counts;
use crate::object::NodeName;

fn stages() -> impl Strategy<Value = Stage> {
    prop_oneof![
        Just(Stage::Waiting),
        Just(Stage::Telling),
        (0..60_i64).prop_map(|second| Stage::Granted(at(second))),
        any::<bool>().prop_map(|has_started| Stage::Acknowledged { has_started }),
        Just(Stage::Succeeded),
        Just(Stage::Failed),
    ]
}

fn needs() -> impl Strategy<Value = Option<Need>> {
    let need = prop_oneof![
        Just(Need::Attach),
        Just(Need::Retry),
        Just(Need::Withdraw),
        (0..60_i64).prop_map(|second| Need::Renew(at(second))),
    ];
    proptest::option::of(need)
}

fn standings() -> impl Strategy<Value = Standing> {
    (any::<(bool, bool)>(), stages(), needs(), "[xy]?", proptest::option::of((0..9_i64, 0..9_i64))).prop_map(
        |((is_member, is_ready), stage, need, zone, bytes)| Standing {
            is_member,
            stage,
            need,
            is_ready,
            zone: zone.into(),
            bytes,
            trouble: None,
        },
    )
}

/// Everything that a roll tells.
fn told(roll: &mut Roll, now: Timestamp) -> impl PartialEq + std::fmt::Debug + use<> {
    let places = (roll.taken(now), roll.overdue(), roll.next_overdue());
    let line = (roll.waiting().first(99), roll.waiting().len(), roll.waiting().is_empty());
    let needs = (roll.to_attach(), roll.to_withdraw(), roll.to_retry(99), roll.to_renew(99, now));
    let failed: Vec<NodeName> = roll.failed().cloned().collect();
    (roll.counts(), places, line, needs, failed, roll.unfinished(), roll.next_renewal(now))
}

proptest! {
    #[test]
    fn counts_by_difference_are_those_of_a_fresh_count(
        puts in proptest::collection::vec((0..6_u8, proptest::option::of(standings()), 0..90_i64), 0..40),
    ) {
        let mut kept = Roll::default();
        let mut last = BTreeMap::new();
        for (number, standing, now) in puts {
            let name: NodeName = format!("n{number}").into();
            let has_changed = kept.put(&name, standing.clone());
            prop_assert_eq!(has_changed, last.get(&name) != standing.as_ref());
            match standing {
                Some(standing) => drop(last.insert(name, standing)),
                None => drop(last.remove(&name)),
            }
            // Time goes forward, but a place that was given up may be asked about at any time.
            kept.taken(at(now));
        }
        let mut fresh = Roll::default();
        for (name, standing) in &last {
            fresh.put(name, Some(standing.clone()));
        }
        let end = at(90);
        prop_assert_eq!(told(&mut kept, end), told(&mut fresh, end));
        let counts = kept.counts();
        let waiting = kept.waiting().len();
        prop_assert_eq!(counts.desired, counts.active + counts.succeeded + counts.failed + waiting);
    }
}

#[test]
fn a_granted_node_holds_its_place_for_thirty_seconds_and_the_fraction_of_one() {
    let mut roll = roll([
        member(Stage::Granted(at(0))),
        member(PULLING),
        member(Stage::Telling),
        member(Stage::Waiting),
    ]);
    assert_eq!((roll.taken(at(30)), roll.overdue(), roll.next_overdue()), (3, 0, Some(at(31))));
    assert_eq!((roll.taken(at(31)), roll.overdue(), roll.next_overdue()), (2, 1, None));
    assert_eq!(roll.counts().active, 3);
}

#[test]
fn a_node_that_left_holds_its_place_and_counts_nowhere() {
    let left = |stage| Standing { is_member: false, bytes: Some((1, 2)), ..member(stage) };
    let mut roll = roll([left(Stage::Granted(at(0))), left(PULLING), left(Stage::Failed)]);
    assert_eq!(roll.taken(at(0)), 2);
    assert_eq!(roll.counts(), Counts::default());
    assert!(roll.unfinished().is_empty() && roll.failed().count() == 0);
}

#[test]
fn nothing_changes_if_a_node_is_where_it_was() {
    let mut roll = roll([member(PULLING)]);
    assert!(!roll.put(&"n0".into(), Some(member(PULLING))));
    assert!(roll.put(&"n0".into(), Some(member(Stage::Succeeded))));
    assert!(roll.put(&"n0".into(), None));
    assert!(!roll.put(&"n0".into(), None));
    assert_eq!(roll.visits(), 5);
}
