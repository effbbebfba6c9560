//! Why each node of a job is where it is, from the state that its decisions use.

use std::collections::BTreeMap;

use jiff::Timestamp;
use prewarm_api::kruise::ImagePullJob;
use prewarm_api::names::condition::PROGRESSING;

use super::Hold;
use crate::cluster::demands::roll::Roll;
use crate::cluster::demands::standing::{Need, Stage, Standing};
use crate::cluster::node_image::room::Crowd;
use crate::condition::Reason;
use crate::demand::Demand;
use crate::object::NodeName;

/// Why a node is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has the image.
    Present,
    /// It had the image and has lost it; it is asked again at this time.
    Lost(Timestamp),
    /// A write that tells it to pull is on its way.
    Telling,
    /// It was told at this time and has not answered.
    Unanswered(Timestamp),
    /// It has answered and is not done; its report says how far it is.
    Reported {
        /// Whether the pull has begun.
        has_started: bool,
    },
    /// It could not pull; its report says why.
    Failed,
    /// It could not pull for lack of a Secret that is there by now, and is asked again as soon as there is a place.
    Again,
    /// Nothing was asked of it yet.
    Waiting(Wait),
    /// The job does not select it any more, but it still holds a task of the job.
    Leaving,
}

/// Why nothing was asked of a node yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The job grants nothing for now.
    Held(Hold),
    /// The job's parallelism is 0.
    Paused,
    /// As many nodes as may are pulling.
    Parallelism {
        /// How many may.
        limit: usize,
        /// How many nodes are asked before this one.
        ahead: usize,
    },
    /// The node's NodeImage has no room for the job.
    Room(Crowd),
    /// There is a place for it; the controller has to look.
    Turn,
}

/// Why each of the job's nodes is where it is, by name.
pub fn explain(
    demand: &Demand,
    hold: Option<&Hold>,
    roll: &mut Roll,
    now: Timestamp,
) -> BTreeMap<NodeName, Why> {
    let limit = demand.at_once;
    let free = limit.saturating_sub(roll.taken(now));
    let line: BTreeMap<NodeName, usize> = roll.waiting().first(usize::MAX).into_iter().zip(0..).collect();
    let wait = |node: &NodeName| match (hold, line.get(node).copied().unwrap_or_default()) {
        (Some(hold), _) => Wait::Held(hold.clone()),
        (None, _) if limit == 0 => Wait::Paused,
        (None, place) if place < free => Wait::Turn,
        (None, place) => Wait::Parallelism { limit, ahead: place - free },
    };
    roll.standings().map(|(node, standing)| (node.clone(), why(standing, || wait(node)))).collect()
}

fn why(standing: &Standing, wait: impl FnOnce() -> Wait) -> Why {
    match (standing.stage, standing.need) {
        (Stage::Succeeded, Some(Need::Renew(at))) => Why::Lost(at),
        (Stage::Succeeded, _) => Why::Present,
        (Stage::Failed, Some(Need::Retry)) => Why::Again,
        (Stage::Failed, _) => Why::Failed,
        _ if !standing.is_member => Why::Leaving,
        (Stage::Waiting, _) => Why::Waiting(wait()),
        (Stage::Crowded(crowd), _) => Why::Waiting(Wait::Room(crowd)),
        (Stage::Telling, _) => Why::Telling,
        (Stage::Granted(since), _) => Why::Unanswered(since),
        (Stage::Acknowledged { has_started }, _) => Why::Reported { has_started },
    }
}

/// What keeps a job from granting, as far as its status tells. Only the controller has seen its Secrets.
pub fn reported_hold(job: &ImagePullJob) -> Option<Hold> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let progressing = conditions.iter().find(|condition| condition.type_ == PROGRESSING)?;
    match Reason::read(&progressing.reason)? {
        Reason::InvalidImage => Some(Hold::Image),
        Reason::ImageNotAllowed => Some(Hold::NotAllowed(progressing.message.clone())),
        Reason::WaitingForSecrets => Some(Hold::Secrets(progressing.message.clone())),
        Reason::WaitingForSiblings => Some(Hold::Siblings),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::demand;
    use super::*;
    use crate::condition::{ConditionStatus, Finding, set_condition};

    fn job(parallelism: i32) -> ImagePullJob {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "web"},
            "spec": {"image": "nginx", "parallelism": parallelism},
        }))
        .unwrap()
    }

    fn standing(stage: Stage) -> Standing {
        Standing {
            is_member: true,
            stage,
            need: None,
            is_ready: true,
            zone: "".into(),
            bytes: None,
            trouble: None,
        }
    }

    fn explained(job: &ImagePullJob, standings: &[(&str, Standing)]) -> Vec<Why> {
        let mut roll = Roll::default();
        for (name, standing) in standings {
            roll.put(&(*name).into(), Some(standing.clone()));
        }
        let hold = reported_hold(job);
        explain(&demand(job), hold.as_ref(), &mut roll, Timestamp::UNIX_EPOCH).into_values().collect()
    }

    #[test]
    fn who_waits_is_told_the_limit_and_how_many_come_first() {
        let pulling = standing(Stage::Acknowledged { has_started: true });
        let waiting = standing(Stage::Waiting);
        let nodes = [("a", pulling), ("b", waiting.clone()), ("c", waiting.clone()), ("d", waiting.clone())];
        assert_eq!(
            explained(&job(2), &nodes),
            [
                Why::Reported { has_started: true },
                Why::Waiting(Wait::Turn),
                Why::Waiting(Wait::Parallelism { limit: 2, ahead: 0 }),
                Why::Waiting(Wait::Parallelism { limit: 2, ahead: 1 }),
            ]
        );
        assert_eq!(explained(&job(0), &[("a", waiting)]), [Why::Waiting(Wait::Paused)]);
    }

    #[test]
    fn ends_stand_before_what_the_job_still_wants() {
        let again = Standing { need: Some(Need::Retry), ..standing(Stage::Failed) };
        let lost = Standing { need: Some(Need::Renew(Timestamp::UNIX_EPOCH)), ..standing(Stage::Succeeded) };
        let left = Standing { is_member: false, ..standing(Stage::Granted(Timestamp::UNIX_EPOCH)) };
        let nodes = [("a", again), ("b", lost), ("c", left), ("d", standing(Stage::Failed))];
        assert_eq!(
            explained(&job(1), &nodes),
            [Why::Again, Why::Lost(Timestamp::UNIX_EPOCH), Why::Leaving, Why::Failed]
        );
    }

    #[test]
    fn what_holds_a_job_is_read_off_its_status() {
        let mut job = job(1);
        let waiting = [("a", standing(Stage::Waiting))];
        assert_eq!(explained(&job, &waiting), [Why::Waiting(Wait::Turn)]);
        let finding = Finding {
            type_: PROGRESSING,
            status: ConditionStatus::False,
            reason: Reason::WaitingForSecrets,
            message: "Secret shop/pull is being copied for the agents".to_owned(),
        };
        let held = Wait::Held(Hold::Secrets(finding.message.clone()));
        let conditions = job.status.get_or_insert_default().conditions.get_or_insert_default();
        set_condition(conditions, finding, None, Timestamp::UNIX_EPOCH);
        assert_eq!(explained(&job, &waiting), [Why::Waiting(held)]);
    }
}
