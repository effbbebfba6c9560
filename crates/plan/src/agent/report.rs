//! The whole status of a NodeImage, made from the states of its tasks (kruise D13), and kept within bounds.

use std::collections::BTreeMap;

use prewarm_api::kruise::{
    FirstSyncStatus, ImageFilesystem, ImageStatus, ImageTagStatus, NodeImageStatus, PullPhase,
};

mod bound;

pub use bound::{MOST_STATUS_BYTES, bounded};

/// How far the task of one entry of the spec is.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    /// The image's name, as the key in the spec.
    pub name: String,
    /// Its tag's status.
    pub status: ImageTagStatus,
}

/// Makes the status of a spec whose entries are in these states: one state for each tag in the spec and none besides.
pub fn build(
    tasks: &[TaskState],
    first_sync: Option<FirstSyncStatus>,
    filesystem: Option<ImageFilesystem>,
) -> NodeImageStatus {
    let count = |phase: PullPhase| number(tasks.iter().filter(|task| task.status.phase == phase).count());
    let mut images = BTreeMap::<String, ImageStatus>::new();
    for task in tasks {
        images.entry(task.name.clone()).or_default().tags.push(task.status.clone());
    }
    for image in images.values_mut() {
        image.tags.sort_by(|one, other| one.tag.cmp(&other.tag));
    }
    NodeImageStatus {
        desired: number(tasks.len()),
        succeeded: count(PullPhase::Succeeded),
        failed: count(PullPhase::Failed),
        pulling: count(PullPhase::Pulling),
        waiting: count(PullPhase::Waiting),
        image_statuses: Some(images).filter(|images| !images.is_empty()),
        first_sync_status: first_sync,
        image_filesystem: filesystem,
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str, tag: &str, phase: PullPhase) -> TaskState {
        let status = ImageTagStatus { tag: tag.to_owned(), phase, ..ImageTagStatus::default() };
        TaskState { name: name.to_owned(), status }
    }

    #[test]
    fn a_status_counts_phases_and_sorts_names_and_tags() {
        let tasks = [
            task("web", "v2", PullPhase::Pulling),
            task("base", "1", PullPhase::Failed),
            task("web", "v1", PullPhase::Succeeded),
            task("web", "v10", PullPhase::Waiting),
            task("web", "latest", PullPhase::Succeeded),
        ];
        let first_sync = FirstSyncStatus { message: Some("1 failed".into()), ..FirstSyncStatus::default() };
        let filesystem = ImageFilesystem { free_bytes: 1, capacity_bytes: 2 };
        let image = |indices: &[usize]| ImageStatus {
            tags: indices.iter().map(|index| tasks[*index].status.clone()).collect(),
        };
        let wanted = NodeImageStatus {
            desired: 5,
            succeeded: 2,
            failed: 1,
            pulling: 1,
            waiting: 1,
            image_statuses: Some(BTreeMap::from([
                ("base".to_owned(), image(&[1])),
                ("web".to_owned(), image(&[4, 2, 3, 0])),
            ])),
            first_sync_status: Some(first_sync.clone()),
            image_filesystem: Some(filesystem.clone()),
        };
        assert_eq!(build(&tasks, Some(first_sync), Some(filesystem)), wanted);
    }

    #[test]
    fn the_status_of_an_empty_spec_has_no_map() {
        assert_eq!(build(&[], None, None), NodeImageStatus::default());
    }
}
