//! The same nodes and jobs, and events in different orders.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::chaos::Chaos;
use super::draft::{JobDraft, Step, fates, paces};

/// Things that happen in any order and make no difference in the end.
pub fn choices() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_usize, paces()).prop_map(|(node, pace)| Step::Progress { node, pace }),
        8 => (0..3_usize).prop_map(Step::Hear),
        8 => Just(Step::Turn),
        10 => (0..8_usize, fates()).prop_map(|(command, fate)| Step::Arrive { command, fate }),
        8 => (0..8_usize).prop_map(Step::Answer),
        3 => (0..20_u64).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ]
}

/// What can be told in the end: jobs by name, and how many jobs own each entry of each node.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    jobs: BTreeMap<String, JobEnd>,
    entries: BTreeSet<(String, String, usize)>,
}

#[derive(Debug, PartialEq, Eq)]
struct JobEnd {
    counts: [i32; 4],
    is_over: bool,
    failed_nodes: Vec<String>,
}

/// How a world ends in which these jobs meet these steps.
pub fn end(drafts: &[JobDraft], steps: &[Step]) -> End {
    let mut chaos = Chaos::new(4);
    for (number, draft) in drafts.iter().enumerate() {
        // A job that is deleted at its end tells nothing.
        let draft = JobDraft { ttl: None, ..draft.clone() };
        chaos.take(Step::CreateJob(number, draft));
    }
    for step in steps {
        chaos.take(step.clone());
    }
    chaos.come_to_rest();
    let jobs = chaos.world.store.jobs.iter().map(|(key, job)| {
        let status = job.status.clone().unwrap_or_default();
        let end = JobEnd {
            counts: [status.desired, status.active, status.succeeded, status.failed],
            is_over: status.completion_time.is_some(),
            failed_nodes: status.failed_nodes.unwrap_or_default(),
        };
        (key.name.clone(), end)
    });
    let entries = chaos.world.store.images.iter().flat_map(|(node, object)| {
        let images = object.spec.images.iter();
        images.flat_map(move |(name, image)| {
            let owners =
                |tag: &prewarm_api::kruise::ImageTagSpec| tag.owner_references.iter().flatten().count();
            image.tags.iter().map(move |tag| (node.clone(), format!("{name}:{}", tag.tag), owners(tag)))
        })
    });
    End { jobs: jobs.collect(), entries: entries.collect() }
}
