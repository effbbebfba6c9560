//! Cycles of the kernel, in a small world that carries its commands out.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use prewarm_api::kruise::{ImagePullJob, PullPhase};
use serde_json::{Value, json};

use crate::cluster::command::{Command, Verb, Write};
use crate::cluster::{Input, Kind, Subject};
use crate::object::ObjectKey;
use crate::support::build::{at, entry, job, job_key, labelled, node, node_image, unready};
use crate::support::world::{Fate, World, is_job_status, written_node};

mod closing;
mod cost;
mod credentials;
mod fan_out;
mod hand;
mod holding;
mod lists;
mod losses;
mod measuring;
mod rolling;
mod room;
mod selecting;
mod sharing;
mod silent;
mod trouble;
mod unkept;
mod unreadable;

const SECOND: Duration = Duration::from_secs(1);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A person changes fields of a job's spec.
fn edit(world: &mut World, name: &str, fields: &Value) {
    world.store.edit_job(&job_key(name), |job| {
        let mut spec = json!(job.spec);
        json_patch::merge(&mut spec, fields);
        job.spec = serde_json::from_value(spec).unwrap();
    });
}

fn never(name: &str) -> ImagePullJob {
    job(name, &json!({"completionPolicy": {"type": "Never"}, "parallelism": 100}))
}

/// A job for all nodes at once.
fn broad(name: &str) -> ImagePullJob {
    job(name, &json!({"parallelism": 100}))
}

/// Whether a condition of a job holds, and its reason.
fn condition(world: &World, name: &str, type_: &str) -> Option<(bool, String)> {
    let conditions = world.status(name).conditions.unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition.type_ == type_)?;
    Some((found.status == "True", found.reason))
}

/// The patches of NodeImages among commands, by node.
fn patched_nodes(commands: &[Command]) -> Vec<&str> {
    let patches = commands.iter().filter_map(|command| match command {
        Command::Write(Write { ticket, verb: Verb::Patch(..) }) if ticket.kind == Kind::NodeImage => {
            Some(ticket.key.name.as_str())
        }
        _ => None,
    });
    patches.collect()
}

/// All pods of a namespace were listed.
fn pods_listed(namespace: &str) -> Input {
    Input::Listed { kind: Kind::Pod, namespace: Some(namespace.to_owned()), names: BTreeSet::new() }
}
