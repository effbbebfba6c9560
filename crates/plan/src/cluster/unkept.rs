//! Fields that are written and do not come back: told once, with what to do about it.

use std::collections::{BTreeMap, BTreeSet};

use prewarm_api::names::event::FIELDS_NOT_KEPT;
use prewarm_api::reference_object::ObjectReference;

use super::command::Notice;
use super::{Kernel, Kind};
use crate::object::echo::Answer;

/// What a reader can do about it.
const ADVICE: &str = "the installed definitions are not those of this release, or a webhook rewrites them; apply ours: \
                      prewarm crds | kubectl apply --server-side --force-conflicts -f -";

/// The fields of each kind that do not come back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unkept(BTreeMap<Kind, BTreeSet<String>>);

impl Unkept {
    /// Takes note of an answer. Says what is new in it.
    fn note(&mut self, kind: Kind, answer: &Answer) -> Vec<String> {
        let lost = answer.lost();
        if lost.is_empty() && !self.0.contains_key(&kind) {
            return lost;
        }
        let known = self.0.entry(kind).or_default();
        known.retain(|name| lost.contains(name) || !answer.has(name));
        let new = lost.into_iter().filter(|name| known.insert(name.clone())).collect();
        if known.is_empty() {
            self.0.remove(&kind);
        }
        new
    }

    /// What is lost, and what to do about it; nothing if everything is kept.
    pub fn in_words(&self) -> Option<String> {
        let kinds = self.0.iter().map(|(kind, names)| format!("{} of {}", list(names), kind.as_str()));
        let kinds: Vec<String> = kinds.collect();
        (!kinds.is_empty()).then(|| sentence(&kinds.join("; ")))
    }
}

impl Kernel {
    /// A status was written, and the answer shows the object like this.
    pub(super) fn note_answer(&mut self, kind: Kind, about: ObjectReference, answer: Option<&Answer>) {
        let new = answer.map(|answer| self.unkept.note(kind, answer)).unwrap_or_default();
        if !new.is_empty() {
            let note = sentence(&list(&new.into_iter().collect()));
            self.events.push(Notice::warning(FIELDS_NOT_KEPT, note).about(about));
        }
    }
}

/// The same for one status, whose fields these are.
pub fn sentence(names: &str) -> String {
    format!("the API server does not keep what is written to {names}: {ADVICE}")
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(keeps: bool) -> Answer {
        let sent = json!({"desired": 1, "conditions": []});
        let shown = if keeps { sent.clone() } else { json!({"desired": 1}) };
        Answer { sent, shown }
    }

    #[test]
    fn what_is_lost_is_new_once_and_until_it_is_kept() {
        let mut unkept = Unkept::default();
        assert_eq!(unkept.note(Kind::ImagePullJob, &answer(false)), ["conditions"]);
        assert_eq!(unkept.note(Kind::ImagePullJob, &answer(false)), [""; 0]);
        let without = Answer { sent: json!({"desired": 2}), shown: json!({"desired": 2}) };
        unkept.note(Kind::ImagePullJob, &without);
        let words = unkept.in_words().unwrap();
        assert!(words.contains("conditions of image_pull_job: the installed definitions"), "{words}");
        unkept.note(Kind::ImagePullJob, &answer(true));
        assert_eq!(unkept.in_words(), None);
    }
}
