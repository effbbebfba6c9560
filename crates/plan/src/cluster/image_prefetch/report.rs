//! What an ImagePrefetch says of itself (ofen 1.2, R10, R13, W11–W14).

use jiff::Timestamp;
use prewarm_api::names::condition::NODES_SELECTED;
use prewarm_api::names::event::TOO_FEW_NODES;
use prewarm_api::ofen::ImagePrefetchStatus;
use serde_json::json;

use super::reason::{Counts, Situation};
use super::record::Prefetch;
use super::select::HowMany;
use super::status::{is_ready, status};
use super::view::ImageState;
use super::wave::Progress;
use crate::cluster::Kernel;
use crate::cluster::command::{Command, Notice, Verb, Write};
use crate::cluster::demands::secrets::SecretsReady;
use crate::cluster::guard::{guarded, replace_status};
use crate::cluster::interface::STATUS_INTERVAL;
use crate::condition::Finding;
use crate::demand::Role;
use crate::object::{NodeName, Uid};

impl Kernel {
    /// How its nodes are.
    pub(in crate::cluster) fn prefetch_situation(&self, uid: &Uid, now: Timestamp) -> Option<Situation> {
        let prefetch = self.prefetches.all.get(uid)?;
        let selected = prefetch.selected.as_ref()?;
        let mut counts = Counts { selected: selected.len(), ..Counts::default() };
        counts.desired = match prefetch.how_many() {
            HowMany::Some(nodes) => nodes,
            HowMany::All => selected.len(),
        };
        counts.sets = self.sets.count(&prefetch.key);
        for node in prefetch.begun.keys() {
            if self.progress(prefetch, node, now) == Progress::Done {
                counts.pulled += 1;
                continue;
            }
            counts.pulling += 1;
            let has_failed = |part| matches!(self.image_state(part, node), ImageState::Failed(_));
            counts.failed += usize::from(prefetch.parts.iter().any(has_failed));
        }
        Some(Situation {
            counts,
            wants_none: prefetch.how_many() == HowMany::Some(0),
            hold: self.prefetch_hold(uid),
            disagreement: self.disagreement(prefetch),
            secrets: self.secrets_finding(prefetch),
        })
    }

    /// Of several images the first says it whose Secrets are not ready.
    fn secrets_finding(&self, prefetch: &Prefetch) -> Option<Finding> {
        let records = prefetch.parts.iter().filter_map(|part| self.demands.get(&part.uid));
        let mut named = records.filter(|record| record.names_secrets()).map(SecretsReady::of);
        let first = named.next()?;
        let worst =
            named.find(|other| *other != SecretsReady::Copied).filter(|_| first == SecretsReady::Copied);
        Some(worst.unwrap_or(first).finding())
    }

    /// Whether a node that asked the registry later was given another digest.
    fn disagreement(&self, prefetch: &Prefetch) -> Option<(String, String)> {
        let seeds = || prefetch.begun.iter().filter(|(_, begun)| begun.role == Role::Seed);
        prefetch.parts.iter().find_map(|part| {
            let first = prefetch.digests.get(&part.uid)?;
            let differs =
                |node: &&NodeName| self.resolved(part, node).is_some_and(|(_, digest)| digest != *first);
            let node = seeds().map(|(node, _)| node).find(differs)?;
            Some((part.text.clone(), node.to_string()))
        })
    }

    pub(super) fn report_prefetch(
        &mut self,
        uid: &Uid,
        hold: Option<String>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) -> Option<Timestamp> {
        let is_blind = self
            .prefetches
            .all
            .get(uid)?
            .parts
            .iter()
            .any(|part| self.demands.get(&part.uid).is_some_and(|record| self.awaits_first_read(record)));
        let situation = Situation { hold, ..self.prefetch_situation(uid, now)? };
        let prefetch = self.prefetches.all.get_mut(uid)?;
        if prefetch.attempts.is_blocked(now) {
            return prefetch.attempts.pause_ends();
        }
        let selected = prefetch.selected.clone().unwrap_or_default();
        let old = prefetch.object.status.as_ref();
        let new = status(old, &situation, &selected, prefetch.generation(), now);
        let again_at = prefetch.echo.again_at().filter(|at| *at > now);
        let new = Some(new).filter(|new| old != Some(new)).or_else(|| prefetch.echo.again(now));
        let Some(new) = new.filter(|_| !is_blind) else { return again_at };
        let quiet_until = prefetch.written_at.map(|at| at + STATUS_INTERVAL).filter(|at| *at > now);
        let becomes_ready = situation.counts.is_ready() && !old.is_some_and(is_ready);
        if let Some(at) = quiet_until.filter(|_| !becomes_ready) {
            return Some(at);
        }
        let verb = Verb::PatchStatus(guarded(&prefetch.object.metadata, replace_status(json!(new))));
        if let Some(at) = prefetch.attempts.repeats_at(verb.fingerprint(), now) {
            return Some(at);
        }
        let event = too_few(prefetch, &new).map(|notice| notice.about(prefetch.reference()));
        self.events.extend(event);
        prefetch.written_at = Some(now);
        prefetch.echo.begin(new);
        prefetch.attempts.begin(verb.fingerprint());
        commands.push(Command::Write(Write { ticket: prefetch.ticket(uid), verb }));
        again_at
    }
}

/// An event when nodes begin to lack.
fn too_few(prefetch: &Prefetch, new: &ImagePrefetchStatus) -> Option<Notice> {
    let lacks = |status: &ImagePrefetchStatus| {
        let mut all = status.conditions.iter().flatten();
        all.find(|one| one.type_ == NODES_SELECTED && one.status == "False").map(|one| one.message.clone())
    };
    let note = lacks(new)?;
    let was_said = prefetch.object.status.as_ref().and_then(lacks).is_some_and(|old| old == note);
    (!was_said).then(|| Notice::warning(TOO_FEW_NODES, note))
}
