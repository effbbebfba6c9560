//! The store on its own: every remembered revision can be listed again, and every watch leads to the current state.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::{ChangeKind, Interest, Key, Shelf, Stored};
use crate::options::Options;

/// The contents of the objects, by namespace and name.
type Moment = BTreeMap<Key, String>;

/// A write: this value for this object, or none to remove it.
type Write = (usize, Option<u8>);

const KEYS: [(&str, &str); 8] =
    [("a", "x"), ("a", "y"), ("a-b", "x"), ("a-b", "z"), ("b", "x"), ("b", "y.z"), ("b", "y-z"), ("c", "x")];

fn key(index: usize) -> Key {
    let (namespace, name) = KEYS[index];
    Key { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn object(key: &Key, value: &str, revision: u64) -> Arc<Stored> {
    let metadata = json!({ "namespace": key.namespace, "name": key.name });
    Arc::new(Stored::new(&json!({ "metadata": metadata, "value": value }), revision, &[]))
}

fn value(object: &Stored) -> String {
    object.value()["value"].as_str().unwrap_or_default().to_owned()
}

fn shelf(changes: usize, bytes: usize, buffer: usize) -> Shelf {
    let options = Options {
        history_changes: changes,
        history_bytes: bytes,
        watch_buffer: buffer,
        ..Options::default()
    };
    Shelf::new(&options, 0)
}

/// Writes, and returns the contents after each revision. Removing nothing is no write.
fn play(shelf: &mut Shelf, writes: &[Write]) -> Vec<Moment> {
    let mut moments = vec![Moment::new()];
    for (index, written) in writes {
        let key = key(*index);
        let mut moment = moments[moments.len() - 1].clone();
        let revision = moments.len() as u64;
        if let Some(value) = written {
            moment.insert(key.clone(), value.to_string());
            shelf.put(object(&key, &value.to_string(), revision));
        } else {
            let Some(last) = moment.remove(&key) else { continue };
            shelf.remove(object(&key, &last, revision));
        }
        moments.push(moment);
    }
    moments
}

fn shown<'a>(objects: impl Iterator<Item = &'a Arc<Stored>>) -> Vec<(Key, String)> {
    objects.map(|object| (object.key.clone(), value(object))).collect()
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    prop::collection::vec((0..KEYS.len(), prop::option::weighted(0.7, any::<u8>())), 0..60)
}

proptest! {
    #[test]
    fn every_remembered_revision_can_be_listed_again(writes in writes(), changes in 0_usize..40) {
        let mut shelf = shelf(changes, usize::MAX, 1);
        let moments = play(&mut shelf, &writes);
        let oldest = (moments.len() - 1).saturating_sub(changes);
        for (revision, moment) in moments.iter().enumerate() {
            let view = shelf.at(revision as u64);
            if revision < oldest {
                prop_assert!(view.is_err(), "{revision} should be forgotten");
                continue;
            }
            let view = view.expect("a remembered revision");
            let all: Vec<(Key, String)> = moment.clone().into_iter().collect();
            prop_assert_eq!(&shown(view.objects(None, None)), &all);
            for index in 0..KEYS.len() {
                let after = key(index);
                let rest = all.iter().filter(|(key, _)| *key > after).cloned();
                prop_assert_eq!(shown(view.objects(None, Some(&after))), rest.clone().collect::<Vec<_>>());
                for namespace in ["a", "a-b", "b"] {
                    let inside = rest.clone().filter(|(key, _)| key.namespace == namespace);
                    let found = shown(view.objects(Some(namespace), Some(&after)));
                    prop_assert_eq!(found, inside.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn a_watch_from_every_remembered_revision_leads_to_the_current_state(writes in writes(), later in writes()) {
        let mut shelf = shelf(1000, usize::MAX, 1000);
        let past = play(&mut shelf, &writes);
        let watches: Vec<_> = (0..past.len())
            .map(|revision| shelf.watch(Interest::All, revision as u64).expect("a remembered revision"))
            .collect();
        let present = past[past.len() - 1].clone();
        // The second half makes further revisions, which must not disturb the watchers.
        let mut moment = present;
        for (number, (index, written)) in later.iter().enumerate() {
            let (key, revision) = (key(*index), (past.len() + number) as u64);
            match (written, moment.remove(&key)) {
                (Some(value), _) => {
                    moment.insert(key.clone(), value.to_string());
                    shelf.put(object(&key, &value.to_string(), revision));
                }
                (None, Some(last)) => shelf.remove(object(&key, &last, revision)),
                (None, None) => {}
            }
        }
        for (mut watch, mut seen) in watches.into_iter().zip(past) {
            let mut changes = std::mem::take(&mut watch.missed);
            while let Ok(change) = watch.changes.try_recv() {
                changes.push(change);
            }
            for change in changes {
                let was_there = match change.kind {
                    ChangeKind::Deleted => seen.remove(&change.object.key),
                    _ => seen.insert(change.object.key.clone(), value(&change.object)),
                };
                let is_new = change.kind == ChangeKind::Added;
                prop_assert_eq!(was_there.is_none(), is_new);
            }
            prop_assert_eq!(&seen, &moment);
        }
    }
}

#[test]
fn the_history_is_bounded_by_bytes() {
    let mut shelf = shelf(usize::MAX, 10_000, 1);
    let key = key(0);
    for revision in 1..=100 {
        shelf.put(object(&key, &"x".repeat(1000), revision));
    }
    assert!(shelf.at(90).is_err() && shelf.at(97).is_ok());
}

#[test]
fn a_watcher_whose_buffer_is_full_is_cut_and_others_go_on() {
    let mut shelf = shelf(100, usize::MAX, 3);
    let mut slow = shelf.watch(Interest::All, 0).expect("the beginning");
    let mut fast = shelf.watch(Interest::All, 0).expect("the beginning");
    for revision in 1..=10 {
        shelf.put(object(&key(0), "1", revision));
        assert_eq!(fast.changes.try_recv().expect("a change").object.revision, revision);
    }
    let received: Vec<u64> =
        std::iter::from_fn(|| slow.changes.blocking_recv()).map(|change| change.object.revision).collect();
    assert_eq!(received, [1, 2, 3], "what fits is delivered, and then the watch is over");
}

#[test]
fn a_write_costs_only_the_watchers_it_concerns() {
    let mut shelf = shelf(10, usize::MAX, 1);
    let other = |number: u32| Key { namespace: "other".to_owned(), name: number.to_string() };
    let watches: Vec<_> = (0..1000)
        .map(|number| shelf.watch(Interest::Object(other(number)), 0).expect("the beginning"))
        .collect();
    // Their buffers hold one change each, so a single unneeded notification would cut them.
    for revision in 1..=100 {
        shelf.put(object(&key(0), "1", revision));
    }
    shelf.put(object(&other(7), "1", 101));
    let notified = watches.iter().filter(|watch| !watch.changes.is_empty()).count();
    let alive = watches.iter().filter(|watch| !watch.changes.is_closed()).count();
    assert_eq!((notified, alive), (1, 1000));
}

#[test]
fn watchers_that_left_silently_are_forgotten() {
    let mut shelf = shelf(10, usize::MAX, 1);
    for number in 0..10_000_u32 {
        let key = Key { namespace: "a".to_owned(), name: number.to_string() };
        drop(shelf.watch(Interest::Object(key), 0).expect("the beginning"));
    }
    assert!(shelf.watchers.len() < 2000, "{} are remembered", shelf.watchers.len());
}
