//! Decision tables of the pass over a job: where nodes are, whom it grants, what it reports.

use jiff::Timestamp;
use prewarm_api::kruise::{CompletionType, ImagePullJob, SecretReference};
use serde_json::{Value, json};

use super::demand;
use super::*;
use crate::cluster::demands::standing::{Claim, Need, Stage, Standing};
use crate::cluster::node_image::node::{Facts, Node};
use crate::cluster::node_image::record::Shared;
use crate::support::build::{self, Entry, at, entry, key, node_image};

mod counting;
mod places;
mod reporting;
mod standings;

/// A node of the job at this stage, with nothing to do.
fn member(stage: Stage) -> Standing {
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

fn in_need(stage: Stage, need: Need) -> Standing {
    Standing { need: Some(need), ..member(stage) }
}

const PULLING: Stage = Stage::Acknowledged { has_started: true };

/// The nodes `n0`, `n1`, … in this order.
fn roll(standings: impl IntoIterator<Item = Standing>) -> Roll {
    let mut roll = Roll::default();
    for (number, standing) in standings.into_iter().enumerate() {
        roll.put(&format!("n{number}").into(), Some(standing));
    }
    roll
}

/// What a pass over a job sees at some second.
fn observed(job: &ImagePullJob, now: i64) -> Observed<'_> {
    Observed {
        job,
        // A test is over soon.
        demand: Box::leak(Box::new(demand(job))),
        hold: None,
        unknown_nodes: UnknownNodes::default(),
        missing_secrets: Vec::new(),
        unusable_secrets: Vec::new(),
        written_at: None,
        begun_at: at(now),
        is_child: false,
        now: at(now),
    }
}

fn job(fields: &Value) -> ImagePullJob {
    build::job("a", fields)
}

/// The job after it was started at the beginning.
fn started(fields: &Value) -> ImagePullJob {
    build::with_status(job(fields), json!({"desired": 0, "startTime": "2023-11-14T22:13:20Z"}))
}
