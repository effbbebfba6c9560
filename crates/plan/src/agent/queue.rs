//! Which task is pulled next: who holds the fewest places, then owners alternate, and of one owner's tasks the oldest comes first.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::places::Places;
use super::task::Task;
use crate::object::ImageKey;

/// Remembers when each owner was last served.
#[derive(Clone, Debug, Default)]
pub struct Rotation {
    last: BTreeMap<String, u64>,
    count: u64,
}

/// At most this many owners are remembered. Beyond that, the one served longest ago is forgotten and may come early once.
const MAX_OWNERS: usize = 4096;

impl Rotation {
    /// The next of these tasks, if there is any. A namespace and a registry that hold a place come behind those that hold none,
    /// so that as long as others wait nobody gets the last place on top of the first.
    pub fn next<'a>(&self, waiting: impl Iterator<Item = &'a Task>, places: &Places<'_>) -> Option<&'a Task> {
        let turn = |task: &Task| self.last.get(task.owner()).copied().unwrap_or(0);
        waiting.min_by_key(|task| (places.share(task), turn(task), age(task), &task.key))
    }

    /// Notes that a task of this owner was begun.
    pub fn served(&mut self, owner: &str) {
        self.count += 1;
        self.last.insert(owner.to_owned(), self.count);
        if self.last.len() > MAX_OWNERS {
            let oldest = self.last.iter().min_by_key(|(_, served)| **served).map(|(owner, _)| owner.clone());
            oldest.and_then(|owner| self.last.remove(&owner));
        }
    }
}

/// Sorts entries without a time behind those that have one, because nobody knows how long they have waited.
fn age(task: &Task) -> (bool, Option<Timestamp>, &ImageKey) {
    (task.created_at.is_none(), task.created_at, &task.key)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::agent::kruise::read;
    use crate::agent::places::Holder;
    use serde_json::json;

    fn tasks(entries: &[(&str, &str, Option<&str>)]) -> Vec<Task> {
        let read_one = |(tag, owner, created): &(&str, &str, Option<&str>)| {
            let owners = if owner.is_empty() { json!([]) } else { json!([{ "uid": owner }]) };
            let mut entry = json!({ "tag": tag, "ownerReferences": owners });
            if let Some(created) = created {
                entry["createdAt"] = json!(created);
            }
            read(&json!({ "images": { "app": { "tags": [entry] } } })).tasks.into_values().next().unwrap()
        };
        entries.iter().map(read_one).collect()
    }

    fn order(mut waiting: Vec<Task>) -> Vec<String> {
        let mut rotation = Rotation::default();
        let mut order = Vec::new();
        let free = Places { parallel: 1, holders: vec![] };
        while let Some(next) = rotation.next(waiting.iter(), &free).cloned() {
            rotation.served(next.owner());
            waiting.retain(|task| task.key != next.key);
            order.push(next.key.tag);
        }
        order
    }

    #[test]
    fn within_an_owner_the_oldest_comes_first() {
        let waiting = tasks(&[
            ("new", "a", Some("2026-11-15T08:00:02Z")),
            ("old", "a", Some("2026-11-15T08:00:01Z")),
            ("undated", "a", None),
        ]);
        assert_eq!(order(waiting), ["old", "new", "undated"]);
    }

    #[test]
    fn owners_alternate_however_many_tasks_one_of_them_has() {
        let waiting = tasks(&[
            ("a1", "a", Some("2026-11-15T08:00:00Z")),
            ("a2", "a", Some("2026-11-15T08:00:00Z")),
            ("a3", "a", Some("2026-11-15T08:00:00Z")),
            ("b1", "b", Some("2026-11-15T09:00:00Z")),
            ("hand", "", Some("2026-11-15T10:00:00Z")),
        ]);
        assert_eq!(order(waiting), ["a1", "b1", "hand", "a2", "a3"]);
    }

    #[test]
    fn who_holds_a_place_comes_behind_those_who_hold_none() {
        let spec = json!({ "images": {
            "slow.example/a": { "tags": [
                { "tag": "1", "ownerReferences": [{ "uid": "a", "namespace": "one" }] },
                { "tag": "2", "ownerReferences": [{ "uid": "b", "namespace": "one" }] },
                { "tag": "3", "ownerReferences": [{ "uid": "c", "namespace": "two" }] },
            ] },
            "zoo.example/a": { "tags": [{ "tag": "4", "ownerReferences": [{ "uid": "d", "namespace": "one" }] }] },
        }});
        let tasks: Vec<Task> = read(&spec).tasks.into_values().collect();
        let holders = vec![Holder { task: &tasks[0], since: Duration::ZERO }];
        let places = Places { parallel: 2, holders };
        let next = |waiting: &[Task]| {
            Rotation::default().next(waiting.iter(), &places).map(|task| task.key.tag.clone()).unwrap()
        };
        assert_eq!(next(&tasks[1..]), "3", "another namespace comes first");
        let own = [tasks[1].clone(), tasks[3].clone()];
        assert_eq!(next(&own), "4", "then another registry");
        assert_eq!(next(&tasks[1..2]), "2", "a place that nobody else wants is given to anybody");
    }

    #[test]
    fn the_number_of_remembered_owners_is_bounded() {
        let mut rotation = Rotation::default();
        for owner in 0..MAX_OWNERS + 10 {
            rotation.served(&owner.to_string());
        }
        assert_eq!(rotation.last.len(), MAX_OWNERS);
        assert!(!rotation.last.contains_key("0"));
    }
}
