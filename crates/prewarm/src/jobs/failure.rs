//! Which nodes do not have a job's image and why, read off their NodeImages and grouped by reason.

use std::collections::BTreeMap;

use prewarm_api::kruise::{FailureClass, ImagePullJob, ImageTagStatus, NodeImage, OwnerResult, PullPhase};
use prewarm_api::reference::ImageRef;
use serde::Serialize;

use crate::show::{counted, names};

/// A node that could not pull the image.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub node: String,
    pub image: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// The message of the node's report.
    pub message: String,
}

/// Nodes that failed for the same reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The class of the failure, if it was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// The message of the first of them.
    pub message: String,
    /// All of them, by name.
    pub nodes: Vec<String>,
}

/// The most node names that are shown for a group; JSON and YAML have all.
const MOST_NAMES: usize = 10;

impl Group {
    /// The lines below a table: what failed, on how many nodes, why, and on which.
    pub fn remark(&self, subject: &str) -> String {
        let Self { class, message, nodes } = self;
        let class = class.map(|class| format!(" ({class:?})")).unwrap_or_default();
        let (count, nodes) = (counted(nodes.len(), "node"), names(nodes, MOST_NAMES));
        format!("\n{subject}: {count} failed{class}: {message}\n  {nodes}\n")
    }
}

/// The message for a node whose NodeImage does not report the image any more.
pub const FORGOTTEN: &str = "the reason is no longer reported; see the events of the job";

/// The nodes that could not pull a job's image, by name.
pub fn failures<'a>(job: &ImagePullJob, images: impl IntoIterator<Item = &'a NodeImage>) -> Vec<Failure> {
    let Ok(reference) = ImageRef::parse(&job.spec.image) else { return Vec::new() };
    let listed = job.status.as_ref().and_then(|status| status.failed_nodes.clone()).unwrap_or_default();
    let mut found: BTreeMap<String, Failure> =
        listed.into_iter().map(|node| (node.clone(), failure(job, node, None))).collect();
    for object in images {
        let node = object.metadata.name.clone().unwrap_or_default();
        let Some(status) = status_for(object, &reference, job) else { continue };
        let concerns = found.contains_key(&node) || is_wanted(object, &reference, job);
        if status.phase == PullPhase::Failed && concerns {
            found.insert(node.clone(), failure(job, node, Some(&status)));
        }
    }
    found.into_values().collect()
}

fn failure(job: &ImagePullJob, node: String, status: Option<&ImageTagStatus>) -> Failure {
    let message = status.and_then(|status| status.message.clone());
    Failure {
        node,
        image: job.spec.image.clone(),
        class: status.and_then(|status| status.failure_class),
        message: message.unwrap_or_else(|| FORGOTTEN.to_owned()),
    }
}

/// What a node reports about an image, as it is for a job: a result may count for others and not for this one.
pub fn status_for(object: &NodeImage, reference: &ImageRef, job: &ImagePullJob) -> Option<ImageTagStatus> {
    status_of(object, reference, job.metadata.uid.as_deref())
}

/// The same for whoever has this UID in the entry.
pub fn status_of(object: &NodeImage, reference: &ImageRef, uid: Option<&str>) -> Option<ImageTagStatus> {
    let images = object.status.as_ref()?.image_statuses.as_ref()?;
    let mut status =
        images.get(reference.name())?.tags.iter().find(|tag| tag.tag == reference.tag())?.clone();
    let results = status.owner_results.take().unwrap_or_default();
    let own = results.into_iter().find(|result| uid == Some(&*result.uid));
    if let Some(OwnerResult { failure_class: Some(class), message, .. }) = own {
        status.phase = PullPhase::Failed;
        (status.failure_class, status.message) = (Some(class), message);
    }
    Some(status)
}

/// Whether the node was granted the image for this job.
fn is_wanted(object: &NodeImage, reference: &ImageRef, job: &ImagePullJob) -> bool {
    let Some(image) = object.spec.images.get(reference.name()) else { return false };
    let mut owners = image
        .tags
        .iter()
        .filter(|tag| tag.tag == reference.tag())
        .flat_map(|tag| tag.owner_references.iter().flatten());
    owners.any(|owner| owner.uid.is_some() && owner.uid == job.metadata.uid)
}

/// The failures by class, the most frequent first.
pub fn grouped(failures: &[Failure]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for failure in failures {
        let alike = groups.iter_mut().find(|group| {
            let is_same = group.class.is_some() || group.message == failure.message;
            group.class == failure.class && is_same
        });
        match alike {
            Some(group) => group.nodes.push(failure.node.clone()),
            None => groups.push(Group {
                class: failure.class,
                message: failure.message.clone(),
                nodes: vec![failure.node.clone()],
            }),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.nodes.len()));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(node: &str, class: Option<FailureClass>, message: &str) -> Failure {
        Failure { node: node.to_owned(), image: "web".to_owned(), class, message: message.to_owned() }
    }

    #[test]
    fn nodes_that_fail_alike_are_one_group_and_the_largest_comes_first() {
        let groups = grouped(&[
            failure("a", Some(FailureClass::NotFound), "no tag (attempt 1 of 4)"),
            failure("b", Some(FailureClass::Unauthorized), "who are you"),
            failure("c", Some(FailureClass::Unauthorized), "who is that"),
            failure("d", None, "silent"),
            failure("e", None, "late"),
        ]);
        let shown: Vec<(&str, usize)> =
            groups.iter().map(|group| (group.message.as_str(), group.nodes.len())).collect();
        assert_eq!(shown, [("who are you", 2), ("no tag (attempt 1 of 4)", 1), ("silent", 1), ("late", 1)]);
    }
}
