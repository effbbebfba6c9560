//! Properties of the decision about a list: it settles, and nothing is lost or made twice on the way.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{ImageListPullJob, ImagePullJob, ImagePullJobStatus};
use prewarm_plan::cluster::image_list_pull_job::{Child, Decision, Observed, decide};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use serde_json::json;

const LABEL: &str = "controller-revision-hash";

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

fn list(images: &BTreeSet<String>, parallelism: i32, label: Option<String>) -> ImageListPullJob {
    let list = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImageListPullJob",
        "metadata": {"name": "base", "namespace": "team", "uid": "list-uid", "generation": 1},
        "spec": {"images": images, "parallelism": parallelism},
    });
    let mut list: ImageListPullJob = serde_json::from_value(list).expect("a list");
    list.metadata.labels = label.map(|label| [(LABEL.to_owned(), label)].into());
    list
}

fn any_list() -> impl Strategy<Value = ImageListPullJob> {
    (btree_set("[a-e]", 1..5), 1..3, proptest::option::of("[xy]"))
        .prop_map(|(images, parallelism, label)| list(&images, parallelism, label))
}

/// Jobs around the list: its own with any image, template, label and state, and some that it does not control.
fn any_children() -> impl Strategy<Value = Vec<ImagePullJob>> {
    let child = (
        ("[a-e]", 1..3_i32, proptest::option::of("[xy]")),
        (0..3_i64, 0..6_u8, 0..6_u8),
        proptest::option::of([0..3_i32, 0..2, 0..3, 0..3]),
    );
    vec(child, 0..8).prop_map(|children| {
        children.into_iter().enumerate().map(|(number, parts)| job(number, parts)).collect()
    })
}

type Parts = ((String, i32, Option<String>), (i64, u8, u8), Option<[i32; 4]>);

fn job(number: usize, parts: Parts) -> ImagePullJob {
    let ((image, parallelism, label), (age, leaving, foreign), numbers) = parts;
    let list = list(&BTreeSet::from([image]), parallelism, None);
    let mut job = decided(&list, &[]).create.remove(0);
    job.metadata.name = Some(format!("job-{number}"));
    job.metadata.uid = Some(format!("uid-{number}"));
    job.metadata.labels = label.map(|label| [(LABEL.to_owned(), label)].into());
    job.metadata.creation_timestamp = Some(Time(Timestamp::from_second(age).expect("a time")));
    job.metadata.deletion_timestamp = (leaving == 0).then(|| Time(now()));
    if foreign == 0 {
        job.metadata.owner_references = None;
    }
    job.status = numbers.map(|[desired, active, succeeded, failed]| ImagePullJobStatus {
        start_time: Some(Time(now())),
        desired,
        active,
        succeeded,
        failed,
        ..ImagePullJobStatus::default()
    });
    job
}

fn decided(list: &ImageListPullJob, jobs: &[ImagePullJob]) -> Decision {
    let is_taken = |name: &str| jobs.iter().any(|job| job.metadata.name.as_deref() == Some(name));
    let (children, refused) = (jobs.iter().map(Child::from).collect(), &BTreeMap::new());
    decide(&Observed { list, children, refused, is_taken: &is_taken }, now())
}

/// Does what an API server would do.
fn carry_out(decision: Decision, list: &mut ImageListPullJob, jobs: &mut Vec<ImagePullJob>) {
    for mut child in decision.create {
        assert!(jobs.iter().all(|job| job.metadata.name != child.metadata.name), "a name is taken");
        child.metadata.uid = child.metadata.name.as_ref().map(|name| format!("uid-{name}"));
        child.metadata.creation_timestamp = Some(Time(now()));
        jobs.push(child);
    }
    for doomed in decision.delete {
        jobs.retain(|job| job.metadata.uid.as_deref() != Some(&*doomed.uid));
    }
    if let Some(label) = decision.label {
        list.metadata.labels = Some([(LABEL.to_owned(), label)].into());
    }
    if decision.status.is_some() {
        list.status = decision.status;
    }
}

fn is_ours(job: &ImagePullJob) -> bool {
    job.metadata.owner_references.is_some() && job.metadata.deletion_timestamp.is_none()
}

proptest! {
    #[test]
    fn once_settled_nothing_is_written_again(mut list in any_list(), mut jobs in any_children()) {
        // The second pass tells that the children are there.
        for _ in 0..2 {
            carry_out(decided(&list, &jobs), &mut list, &mut jobs);
        }
        let settled = decided(&list, &jobs);
        let expected = Decision { has_all_children: true, ..Decision::default() };
        prop_assert_eq!(settled, expected);
    }

    #[test]
    fn in_the_end_each_image_has_one_child_with_the_lists_template(
        mut list in any_list(), mut jobs in any_children(),
    ) {
        carry_out(decided(&list, &jobs), &mut list, &mut jobs);
        let children: Vec<&ImagePullJob> = jobs.iter().filter(|job| is_ours(job)).collect();
        let images: Vec<&String> = children.iter().map(|child| &child.spec.image).collect();
        prop_assert_eq!(images.len(), list.spec.images.len());
        let images: BTreeSet<&String> = images.into_iter().collect();
        prop_assert_eq!(images, list.spec.images.iter().collect());
        prop_assert!(children.iter().all(|child| child.spec.parallelism == list.spec.parallelism));
    }

    #[test]
    fn what_is_not_the_lists_is_never_touched(mut list in any_list(), mut jobs in any_children()) {
        let foreign = |jobs: &[ImagePullJob]| -> Vec<ImagePullJob> {
            jobs.iter().filter(|job| !is_ours(job)).cloned().collect()
        };
        let before = foreign(&jobs);
        carry_out(decided(&list, &jobs), &mut list, &mut jobs);
        prop_assert_eq!(before, foreign(&jobs));
    }

    #[test]
    fn counts_stay_within_the_list_and_an_end_means_that_all_have_ended(
        list in any_list(), jobs in any_children(),
    ) {
        let decision = decided(&list, &jobs);
        if let Some(status) = decision.status {
            prop_assert!(status.active <= status.desired);
            prop_assert!(status.succeeded <= status.completed && status.completed <= status.desired);
            let is_over = status.completed == status.desired && decision.delete.is_empty();
            prop_assert_eq!(status.completion_time.is_some(), is_over);
            prop_assert!(status.completion_time.is_none() || decision.create.is_empty());
        }
    }

    /// Whatever else came or went since the first try: an image's child has the name whose making was not answered.
    #[test]
    fn a_lost_answer_does_not_lead_to_a_second_child(
        before in btree_set("[a-e]", 1..5), after in btree_set("[a-e]", 1..5), label in proptest::option::of("[xy]"),
    ) {
        let names = |images, label| -> BTreeMap<String, Option<String>> {
            let children = decided(&list(images, 1, label), &[]).create.into_iter();
            children.map(|child| (child.spec.image, child.metadata.name)).collect()
        };
        let (first, second) = (names(&before, None), names(&after, label));
        for image in before.intersection(&after) {
            prop_assert_eq!(&first[image], &second[image]);
        }
    }
}
