//! The sentence for each reason of an ImagePrefetch.

use jiff::Timestamp;
use prewarm_api::kruise::ImageTagStatus;
use prewarm_api::reference_object::ObjectReference;
use prewarm_plan::cluster::image_prefetch::explain::{Note, OnNode, Unable, Unselected, Why};

use crate::explain::words::{NEXT_PASS, State, no_room, present, reported, unanswered};
use crate::show::{ago, counted, names};

/// The most names that are shown.
const MOST_NAMES: usize = 3;

/// State and sentence of an image on a node.
pub fn sentence(part: &OnNode, status: Option<&ImageTagStatus>, now: Timestamp) -> (State, String) {
    let (state, mut words) = match &part.why {
        Why::Present => (State::Present, present(status, now)),
        Why::Pulling => reported(true, status, now),
        Why::Queued => reported(false, status, now),
        Why::Unanswered(since) => unanswered(*since, now),
        Why::Lost(at) if *at > now => (
            State::Lost,
            format!("the image was removed repeatedly; it is pulled again in {}", ago(now, *at)),
        ),
        Why::Lost(_) => (State::Lost, "the image was removed and is pulled again".to_owned()),
        Why::NotYet(why) => (State::Waiting, format!("no mirror has it yet; they are asked again: {why}")),
        Why::Failed(why) => (State::Failed, failed(why, status)),
        Why::NoImage => (State::Failed, "this is no image; correct spec.images".to_owned()),
        Why::Room(crowd) => (State::Waiting, no_room(*crowd).to_owned()),
        Why::Unable(unable) => unabled(*unable),
        Why::Held(why) => (State::Waiting, why.clone()),
        Why::First(seeds) => (State::Waiting, first(seeds)),
        Why::Wave(done) => (State::Waiting, wave(*done)),
        Why::Turn => (State::Waiting, NEXT_PASS.to_owned()),
        Why::Leaving => (
            State::NotSelected,
            "the ImagePrefetch no longer takes it; its entry is about to go, and images stay".to_owned(),
        ),
    };
    for note in &part.notes {
        words = format!("{words}; {}", noted(note));
    }
    (state, words)
}

/// State and sentence of a node that is not taken.
pub fn unselected(why: Option<Unselected>) -> (State, &'static str) {
    match why {
        Some(Unselected::Gone) | None => (State::Unknown, "there is no node of this name"),
        Some(Unselected::Labels) => (State::NotSelected, "nodeSelector does not match its labels"),
        Some(Unselected::NoAgent) => (State::NotSelected, "no agent runs on this node, so it is never taken"),
        Some(Unselected::NotReady) => (State::NotSelected, "it is not ready"),
        Some(Unselected::Enough) => {
            (State::NotSelected, "it could be taken, and is not: as many nodes as replicas says were taken")
        }
        Some(Unselected::Due) => {
            (State::Waiting, "it can be taken; if this lasts, check that the controller runs")
        }
    }
}

fn failed(why: &str, status: Option<&ImageTagStatus>) -> String {
    match status.and_then(|status| status.failure_class) {
        Some(class) => format!("{class:?}: {why}"),
        None => why.to_owned(),
    }
}

fn unabled(unable: Unable) -> (State, String) {
    match unable {
        Unable::Gone => (State::Unknown, "there is no node of this name any more; another one is about to be taken".to_owned()),
        Unable::NotReady => (State::Waiting, "the node is not ready; it keeps its place for some minutes".to_owned()),
        Unable::NoNodeImage => (
            State::Waiting,
            "the node has no NodeImage yet; virtual nodes never get one, and others within seconds while the controller runs"
                .to_owned(),
        ),
    }
}

fn first(seeds: &[impl ToString]) -> String {
    let all: Vec<String> = seeds.iter().map(ToString::to_string).collect();
    let (asks, has) = if seeds.len() == 1 { ("asks", "it has") } else { ("ask", "one of them has") };
    format!("{} {asks} the registry; this node begins when {has} all images", names(&all, MOST_NAMES))
}

fn wave(done: usize) -> String {
    if done == 0 {
        return "waits for its wave: at the moment no node has all images, so one begins after the other"
            .to_owned();
    }
    let have = if done == 1 { "has" } else { "have" };
    format!(
        "waits for its wave: {} {have} all images, and no more than that pull at once",
        counted(done, "node")
    )
}

fn noted(note: &Note) -> String {
    match note {
        Note::Lifted(owners) if owners.is_empty() => {
            "it may ask the registry all the same: a person wrote this entry of the NodeImage".to_owned()
        }
        Note::Lifted(owners) => {
            let all: Vec<String> = owners.iter().map(named).collect();
            let verb = if owners.len() == 1 { "wants" } else { "want" };
            let all = names(&all, MOST_NAMES);
            format!(
                "it may ask the registry all the same: {all} {verb} the same image, and not from mirrors alone"
            )
        }
        Note::OtherDigest(digest) => {
            format!("the registry gave it {digest}, and another digest to the node that asked first")
        }
    }
}

fn named(owner: &ObjectReference) -> String {
    let kind = owner.kind.as_deref().unwrap_or_default().to_lowercase();
    let name = owner.name.as_deref().unwrap_or_default();
    match owner.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("{kind}/{name} in namespace {namespace}"),
        None => format!("{kind}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use prewarm_plan::cluster::image_prefetch::explain::Asks;
    use prewarm_plan::cluster::node_image::room::Crowd;

    use super::*;

    fn words(why: Why, notes: Vec<Note>) -> String {
        let now = Timestamp::from_second(1000).unwrap();
        let part = OnNode {
            image: "redis:8".to_owned(),
            demand: "uid/1".into(),
            asks: Some(Asks::Mirrors),
            why,
            notes,
        };
        let (state, words) = sentence(&part, None, now);
        format!("{state:?}: {words}")
    }

    #[test]
    fn every_reason_has_its_sentence() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let owner = ObjectReference {
            kind: Some("ImagePullJob".to_owned()),
            namespace: Some("shop".to_owned()),
            name: Some("web".to_owned()),
            ..ObjectReference::default()
        };
        let reasons = [
            Why::Present,
            Why::Pulling,
            Why::Queued,
            Why::Unanswered(at(700)),
            Why::Lost(at(1600)),
            Why::Lost(at(10)),
            Why::NotYet("no mirror in docker.io/hosts.toml has redis:8".to_owned()),
            Why::Failed("the mirror answered 500".to_owned()),
            Why::NoImage,
            Why::Room(Crowd::Full),
            Why::Unable(Unable::Gone),
            Why::Unable(Unable::NotReady),
            Why::Unable(Unable::NoNodeImage),
            Why::Held("these Secrets do not exist: regcred".to_owned()),
            Why::First(vec!["node-1".into()]),
            Why::First(vec!["node-1".into(), "node-2".into()]),
            Why::Wave(0),
            Why::Wave(1),
            Why::Wave(4),
            Why::Turn,
            Why::Leaving,
        ];
        let mut lines: Vec<String> = reasons.into_iter().map(|why| words(why, Vec::new())).collect();
        let (state, enough) = unselected(Some(Unselected::Enough));
        lines.push(format!("{state:?}: {enough}"));
        let notes = [
            Note::Lifted(vec![owner.clone()]),
            Note::Lifted(vec![owner.clone(), owner]),
            Note::Lifted(Vec::new()),
        ];
        lines.extend(notes.into_iter().map(|note| words(Why::Pulling, vec![note])));
        lines.push(words(Why::Present, vec![Note::OtherDigest("sha256:0123".into())]));
        insta::assert_snapshot!(lines.join("\n"));
    }
}
