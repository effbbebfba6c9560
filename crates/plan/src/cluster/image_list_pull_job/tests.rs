//! Decisions about image lists. Long because all of them concern one decision and share its builders.

use prewarm_api::condition::Condition;
use prewarm_api::kruise::{FailedImageStatus, ImagePullJobStatus};
use serde_json::{Value, json};

use super::*;

const START: i64 = 1_800_000_000;
const FOREIGN_HASH: &str = "6c5d8f";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).unwrap()
}

fn time(seconds: i64) -> Value {
    json!(at(seconds).to_string())
}

/// An unfinished list with these images and this template.
fn list_with(images: &[&str], template: &Value) -> ImageListPullJob {
    let mut spec = template.clone();
    spec["images"] = json!(images);
    let metadata = json!({"name": "base", "namespace": "team", "uid": "list-uid", "generation": 3});
    serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImageListPullJob",
        "metadata": metadata,
        "spec": spec,
    }))
    .unwrap()
}

fn list(images: &[&str]) -> ImageListPullJob {
    list_with(images, &json!({}))
}

fn labelled(mut list: ImageListPullJob, hash: &str) -> ImageListPullJob {
    list.metadata.labels = Some([("controller-revision-hash".to_owned(), hash.to_owned())].into());
    list
}

/// A child as this list makes it, after the API server has taken it.
fn child(list: &ImageListPullJob, image: &str) -> ImagePullJob {
    let hash = child::template_hash(&list.spec);
    let name = child::candidate_names(list, image, &hash).next().unwrap();
    let mut child = child::make(list, image, name, &hash);
    child.metadata.uid = Some(format!("uid-{}", child.metadata.name.as_deref().unwrap()));
    child.metadata.creation_timestamp = Some(serde_json::from_value(time(0)).unwrap());
    child
}

fn named(mut child: ImagePullJob, name: &str, created: i64) -> ImagePullJob {
    child.metadata.name = Some(name.to_owned());
    child.metadata.uid = Some(format!("uid-{name}"));
    child.metadata.creation_timestamp = Some(serde_json::from_value(time(created)).unwrap());
    child
}

/// The child after its own controller has reported: nodes in all, pulling, well, badly.
fn reporting(mut child: ImagePullJob, [desired, active, succeeded, failed]: [i32; 4]) -> ImagePullJob {
    let start_time = Some(serde_json::from_value(time(1)).unwrap());
    child.status =
        Some(ImagePullJobStatus { start_time, desired, active, succeeded, failed, ..Default::default() });
    child
}

fn terminating(mut child: ImagePullJob) -> ImagePullJob {
    child.metadata.deletion_timestamp = Some(serde_json::from_value(time(5)).unwrap());
    child
}

fn decided(list: &ImageListPullJob, children: &[&ImagePullJob]) -> Decision {
    decided_when_refused(list, children, &BTreeMap::new())
}

fn decided_when_refused(
    list: &ImageListPullJob,
    children: &[&ImagePullJob],
    refused: &BTreeMap<String, String>,
) -> Decision {
    let is_taken = |name: &str| children.iter().any(|child| child.metadata.name.as_deref() == Some(name));
    decide(
        &Observed {
            list,
            children: children.iter().copied().map(Child::from).collect(),
            refused,
            is_taken: &is_taken,
        },
        at(10),
    )
}

fn created(decision: &Decision) -> Vec<&str> {
    decision.create.iter().map(|child| child.spec.image.as_str()).collect()
}

fn deleted(decision: &Decision) -> Vec<&str> {
    decision.delete.iter().map(|doomed| doomed.name.as_str()).collect()
}

fn name(child: &ImagePullJob) -> &str {
    child.metadata.name.as_deref().unwrap()
}

fn status(decision: &Decision) -> &ImageListPullJobStatus {
    decision.status.as_ref().unwrap()
}

fn condition<'a>(decision: &'a Decision, type_: &str) -> Option<&'a Condition> {
    status(decision).conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

/// Status and reason of a condition.
fn verdict<'a>(decision: &'a Decision, type_: &str) -> Option<(&'a str, &'a str)> {
    condition(decision, type_).map(|condition| (condition.status.as_str(), condition.reason.as_str()))
}

mod children {
    use super::*;

    /// kruise R75, T8
    #[test]
    fn each_image_gets_a_child() {
        let decision = decided(&list(&["nginx:1", "redis:7"]), &[]);
        assert_eq!(created(&decision), ["nginx:1", "redis:7"]);
        assert!(decision.delete.is_empty() && !decision.has_all_children);
    }

    /// kruise R76, W9
    #[test]
    fn a_child_has_the_template_but_no_end_of_its_own() {
        let template = json!({
            "pullSecrets": ["regcred"],
            "selector": {"names": ["node1"]},
            "parallelism": 4,
            "pullPolicy": {"timeoutSeconds": 50, "backoffLimit": 2},
            "completionPolicy": {
                "type": "Always", "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 20,
            },
            "sandboxConfig": {"labels": {"a": "b"}},
            "imagePullPolicy": "Always",
        });
        let decision = decided(&list_with(&["nginx:1"], &template), &[]);
        let mut expected = template.clone();
        expected["image"] = json!("nginx:1");
        expected["completionPolicy"].as_object_mut().unwrap().remove("ttlSecondsAfterFinished");
        assert_eq!(json!(decision.create[0].spec), expected);
    }

    /// kruise R76
    #[test]
    fn a_child_is_the_lists_and_protected_from_the_start_if_it_has_secrets() {
        let public = decided(&list(&["nginx:1"]), &[]);
        assert_eq!(public.create[0].metadata.finalizers, None);
        let decision = decided(&list_with(&["nginx:1"], &json!({"pullSecrets": ["registry"]})), &[]);
        let expected = json!({
            "name": decision.create[0].metadata.name,
            "namespace": "team",
            "labels": {"controller-revision-hash": decision.label},
            "finalizers": ["apps.kruise.io/deletion-protection"],
            "ownerReferences": [{
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "ImageListPullJob",
                "name": "base",
                "uid": "list-uid",
                "controller": true,
            }],
        });
        assert_eq!(json!(decision.create[0].metadata), expected);
    }

    /// kruise T96
    #[test]
    fn an_added_image_gets_a_child_and_the_others_keep_theirs() {
        let list = list(&["nginx:1", "redis:7"]);
        let decision = decided(&list, &[&child(&list, "nginx:1")]);
        assert_eq!(created(&decision), ["redis:7"]);
        assert!(decision.delete.is_empty());
    }

    /// kruise T97
    #[test]
    fn the_child_of_a_removed_image_goes() {
        let list = list(&["nginx:1"]);
        let (stays, goes) = (child(&list, "nginx:1"), child(&list, "redis:7"));
        let decision = decided(&list, &[&stays, &goes]);
        assert!(decision.create.is_empty() && decision.has_all_children);
        let uid = format!("uid-{}", name(&goes));
        assert_eq!(decision.delete, [Doomed { name: name(&goes).to_owned(), uid: uid.as_str().into() }]);
    }

    /// kruise T98
    #[test]
    fn another_template_replaces_every_child() {
        let images = ["nginx:1", "redis:7"];
        let before = list(&images);
        let after = list_with(&images, &json!({"completionPolicy": {"type": "Never"}}));
        let children = images.map(|image| child(&before, image));
        let decision = decided(&after, &[&children[0], &children[1]]);
        assert_eq!(created(&decision), images);
        assert_eq!(decision.delete.len(), 2);
        let names = |jobs: &[ImagePullJob]| -> BTreeSet<String> {
            jobs.iter().map(|job| name(job).to_owned()).collect()
        };
        assert!(names(&decision.create).is_disjoint(&names(&children)));
    }

    /// kruise R75
    #[test]
    fn every_field_of_the_template_counts() {
        let fields = [
            json!({"pullSecrets": ["regcred"]}),
            json!({"selector": {"matchLabels": {"a": "b"}}}),
            json!({"podSelector": {}}),
            json!({"parallelism": 0}),
            json!({"pullPolicy": {"timeoutSeconds": 50}}),
            json!({"completionPolicy": {"activeDeadlineSeconds": 900}}),
            json!({"sandboxConfig": {"annotations": {"a": "b"}}}),
            json!({"imagePullPolicy": "Always"}),
        ];
        for template in fields {
            let before = child(&list(&["nginx:1"]), "nginx:1");
            let decision = decided(&list_with(&["nginx:1"], &template), &[&before]);
            assert_eq!(decision.create.len(), 1, "{template}");
            assert_eq!(deleted(&decision), [name(&before)], "{template}");
        }
    }

    /// kruise W9
    #[test]
    fn a_ttl_on_list_or_child_replaces_no_child() {
        let without = list(&["nginx:1"]);
        let with = list_with(&["nginx:1"], &json!({"completionPolicy": {"ttlSecondsAfterFinished": 20}}));
        let mut old = child(&without, "nginx:1");
        assert!(decided(&with, &[&old]).has_all_children);
        old.spec.completion_policy.ttl_seconds_after_finished = Some(20);
        assert!(decided(&without, &[&old]).has_all_children);
    }

    /// Other programs leave out what is empty, and numbers may be written as texts.
    #[test]
    fn what_means_the_same_replaces_no_child() {
        let template = json!({
            "pullSecrets": [],
            "selector": {"matchLabels": {}},
            "parallelism": "1",
            "sandboxConfig": {"labels": {}},
        });
        let old = child(&list(&["nginx:1"]), "nginx:1");
        let decision = decided(&list_with(&["nginx:1"], &template), &[&old]);
        assert!(decision.create.is_empty() && decision.delete.is_empty());
    }

    /// kruise R73
    #[test]
    fn of_two_children_of_one_image_the_older_one_stays() {
        let list = list(&["nginx:1"]);
        let older = named(child(&list, "nginx:1"), "z", 0);
        let younger = named(child(&list, "nginx:1"), "a", 1);
        assert_eq!(deleted(&decided(&list, &[&younger, &older])), ["a"]);
        let twin = named(child(&list, "nginx:1"), "b", 0);
        assert_eq!(deleted(&decided(&list, &[&older, &twin])), ["z"]);
    }

    #[test]
    fn the_older_child_goes_if_it_has_another_template() {
        let list = list(&["nginx:1"]);
        let never = list_with(&["nginx:1"], &json!({"completionPolicy": {"type": "Never"}}));
        let older = named(child(&never, "nginx:1"), "older", 0);
        let younger = named(child(&list, "nginx:1"), "younger", 1);
        let decision = decided(&list, &[&older, &younger]);
        assert_eq!((created(&decision), deleted(&decision)), (vec![], vec!["older"]));
    }

    /// kruise R73
    #[test]
    fn a_terminating_child_is_replaced_under_another_name() {
        let list = list(&["nginx:1"]);
        let leaving = terminating(child(&list, "nginx:1"));
        let decision = decided(&list, &[&leaving]);
        assert!(decision.delete.is_empty());
        assert_eq!(created(&decision), ["nginx:1"]);
        assert_ne!(name(&decision.create[0]), name(&leaving));
    }

    /// kruise R73
    #[test]
    fn jobs_that_the_list_does_not_control_are_left_alone() {
        let list = list(&["nginx:1"]);
        let mut befriended = named(child(&list, "redis:7"), "befriended", 0);
        befriended.metadata.owner_references.as_mut().unwrap()[0].controller = None;
        let mut foreign = named(child(&list, "redis:7"), "foreign", 0);
        foreign.metadata.owner_references.as_mut().unwrap()[0].uid = "other".to_owned();
        let decision = decided(&list, &[&befriended, &foreign]);
        assert_eq!((created(&decision), deleted(&decision)), (vec!["nginx:1"], vec![]));
    }

    #[test]
    fn a_name_that_somebody_else_took_is_avoided() {
        let list = list(&["nginx:1"]);
        let mut stranger = child(&list, "nginx:1");
        stranger.metadata.owner_references = None;
        let decision = decided(&list, &[&stranger]);
        assert_ne!(name(&decision.create[0]), name(&stranger));
    }

    #[test]
    fn two_images_whose_names_meet_get_two_children() {
        let one = list(&["any:1"]);
        let hash = child::template_hash(&one.spec);
        let mut seen = BTreeMap::new();
        let meeting = (0..).find_map(|number| {
            let image = format!("image:{number}");
            let name = child::candidate_names(&one, &image, &hash).next()?;
            seen.insert(name, image.clone()).map(|other| (other, image))
        });
        let (first, second) = meeting.unwrap();
        let decision = decided(&list(&[&first, &second]), &[]);
        assert_eq!(decision.create.len(), 2);
        assert_ne!(name(&decision.create[0]), name(&decision.create[1]));
    }

    #[test]
    fn a_long_name_of_the_list_is_cut_as_generated_names_are() {
        let mut long = list(&["nginx:1"]);
        long.metadata.name = Some("a".repeat(253));
        let decision = decided(&long, &[]);
        assert_eq!(name(&decision.create[0]).len(), 63);
    }

    /// kruise R79
    #[test]
    fn a_terminating_list_makes_and_deletes_nothing() {
        let mut leaving = list(&["nginx:1"]);
        leaving.metadata.deletion_timestamp = Some(serde_json::from_value(time(5)).unwrap());
        assert_eq!(decided(&leaving, &[&child(&leaving, "redis:7")]), Decision::default());
    }
}

mod label {
    use super::*;

    fn carrying(mut child: ImagePullJob, hash: &str) -> ImagePullJob {
        child.metadata.labels = Some([("controller-revision-hash".to_owned(), hash.to_owned())].into());
        child
    }

    /// kruise R71
    #[test]
    fn a_list_without_hash_gets_one_that_is_the_same_every_time() {
        let template = json!({"parallelism": 3});
        assert_eq!(decided(&list_with(&["nginx:1"], &template), &[]).label.as_deref(), Some("65587575d"));
        assert_eq!(decided(&list_with(&["redis:7"], &template), &[]).label.as_deref(), Some("65587575d"));
    }

    #[test]
    fn the_hash_of_another_implementation_is_kept_while_its_children_are() {
        let list = labelled(list(&["nginx:1", "redis:7"]), FOREIGN_HASH);
        let taken_over = carrying(child(&list, "nginx:1"), FOREIGN_HASH);
        let decision = decided(&list, &[&taken_over]);
        assert_eq!((decision.label.as_deref(), decision.delete.len()), (None, 0));
        let labels = decision.create[0].metadata.labels.as_ref().unwrap();
        assert_eq!(labels["controller-revision-hash"], FOREIGN_HASH);
    }

    #[test]
    fn a_hash_that_no_present_child_carries_is_replaced() {
        let before = list(&["nginx:1"]);
        let stale = carrying(child(&before, "nginx:1"), FOREIGN_HASH);
        let after = labelled(list_with(&["nginx:1"], &json!({"parallelism": 3})), FOREIGN_HASH);
        let decision = decided(&after, &[&stale]);
        let hash = child::template_hash(&after.spec);
        assert_eq!(decision.label.as_deref(), Some(hash.as_str()));
        assert_eq!(child::revision_of(&decision.create[0].metadata), Some(hash.as_str()));
    }

    #[test]
    fn a_child_is_kept_whatever_hash_it_carries() {
        let list = list(&["nginx:1"]);
        let mut unlabelled = child(&list, "nginx:1");
        unlabelled.metadata.labels = None;
        let labelled = carrying(child(&list, "nginx:1"), FOREIGN_HASH);
        for child in [unlabelled, labelled] {
            let decision = decided(&list, &[&child]);
            assert!(decision.create.is_empty() && decision.delete.is_empty());
        }
    }

    #[test]
    fn a_hash_that_is_right_is_not_written_again() {
        let list = list(&["nginx:1"]);
        let hash = child::template_hash(&list.spec);
        assert_eq!(decided(&labelled(list, &hash), &[]).label, None);
    }
}

mod rollup {
    use super::*;

    /// kruise T95
    #[test]
    fn children_are_counted_by_how_far_they_are() {
        let list = list(&["a:1", "b:1", "c:1"]);
        let well = reporting(child(&list, "a:1"), [2, 0, 2, 0]);
        let active = reporting(child(&list, "b:1"), [2, 1, 1, 0]);
        let badly = reporting(child(&list, "c:1"), [2, 0, 1, 1]);
        let decision = decided(&list, &[&well, &active, &badly]);
        let status = status(&decision);
        assert_eq!([status.desired, status.active, status.completed, status.succeeded], [3, 1, 2, 1]);
        let look = format!(
            "the image failed on some nodes; see: kubectl describe imagepulljob {} -n team",
            name(&badly)
        );
        let failed = FailedImageStatus {
            image_pull_job: Some(name(&badly).to_owned()),
            name: Some("c:1".to_owned()),
            message: Some(look),
        };
        assert_eq!(status.failed_image_statuses, Some(vec![failed]));
        assert_eq!(status.completion_time, None);
    }

    /// kruise R46
    #[test]
    fn the_first_pass_is_the_start_and_stays_it() {
        let mut list = list(&["a:1"]);
        let first = decided(&list, &[]);
        assert_eq!(status(&first).start_time.as_ref().unwrap().0, at(10));
        list.status.clone_from(&first.status);
        list.status.as_mut().unwrap().start_time = Some(serde_json::from_value(time(1)).unwrap());
        list.status.as_mut().unwrap().active = 7;
        assert_eq!(status(&decided(&list, &[])).start_time.as_ref().unwrap().0, at(1));
    }

    /// kruise R74
    #[test]
    fn a_child_that_has_not_started_is_not_completed() {
        let list = list(&["a:1"]);
        let mut unstarted = reporting(child(&list, "a:1"), [0, 0, 0, 0]);
        unstarted.status.as_mut().unwrap().start_time = None;
        let decision = decided(&list, &[&unstarted]);
        assert_eq!((status(&decision).completed, status(&decision).succeeded), (0, 0));
    }

    /// kruise R74
    #[test]
    fn the_list_is_complete_when_every_image_is_on_every_node() {
        let list = list(&["a:1", "b:1"]);
        let children = ["a:1", "b:1"].map(|image| reporting(child(&list, image), [2, 0, 2, 0]));
        let decision = decided(&list, &[&children[0], &children[1]]);
        assert_eq!(status(&decision).completion_time.as_ref().unwrap().0, at(10));
        assert_eq!(verdict(&decision, "Complete"), Some(("True", "Finished")));
        assert_eq!(verdict(&decision, "Failed"), None);
        assert_eq!(verdict(&decision, "Progressing"), Some(("False", "Finished")));
        assert_eq!(verdict(&decision, "ChildrenCreated"), Some(("True", "AllCreated")));
    }

    /// kruise T10
    #[test]
    fn the_list_has_failed_when_all_ended_and_an_image_failed() {
        let list = list(&["a:1", "b:1"]);
        let well = reporting(child(&list, "a:1"), [2, 0, 2, 0]);
        let badly = reporting(child(&list, "b:1"), [2, 0, 1, 1]);
        let decision = decided(&list, &[&well, &badly]);
        assert!(status(&decision).completion_time.is_some());
        assert_eq!(verdict(&decision, "Failed"), Some(("True", "Finished")));
        assert_eq!(verdict(&decision, "Complete"), None);
        assert_eq!(status(&decision).failed_image_statuses.as_ref().map(Vec::len), Some(1));
    }

    /// kruise T11
    #[test]
    fn a_list_of_type_never_counts_but_does_not_end() {
        let list = list_with(&["a:1"], &json!({"completionPolicy": {"type": "Never"}}));
        let badly = reporting(child(&list, "a:1"), [2, 0, 1, 1]);
        let decision = decided(&list, &[&badly]);
        assert_eq!((status(&decision).completed, &status(&decision).completion_time), (1, &None));
        assert_eq!(status(&decision).failed_image_statuses.as_ref().map(Vec::len), Some(1));
        assert_eq!(verdict(&decision, "Progressing"), Some(("True", "Watching")));
    }

    /// kruise W10
    #[test]
    fn finished_children_of_removed_images_do_not_close_the_list() {
        let before = list(&["a:1", "b:1"]);
        let children = ["a:1", "b:1"].map(|image| reporting(child(&before, image), [2, 0, 1, 1]));
        let decision = decided(&list(&["a:1", "c:1"]), &[&children[0], &children[1]]);
        let status = status(&decision);
        assert_eq!((status.completed, &status.completion_time), (1, &None));
        assert_eq!(status.failed_image_statuses.as_ref().map(Vec::len), Some(1));
    }

    /// kruise W10
    #[test]
    fn a_list_is_not_over_before_its_old_children_are_gone() {
        let old = reporting(
            named(child(&list_with(&["a"], &json!({"parallelism": 0})), "a"), "old", 0),
            [1, 0, 0, 0],
        );
        let list = list(&["a"]);
        let new = reporting(child(&list, "a"), [1, 0, 1, 0]);
        let decision = decided(&list, &[&old, &new]);
        assert_eq!((decision.delete.len(), status(&decision).completion_time.as_ref()), (1, None));
        assert!(status(&decided(&list, &[&new])).completion_time.is_some());
    }

    #[test]
    fn finished_children_of_another_template_do_not_close_the_list() {
        let finished = reporting(child(&list(&["a:1"]), "a:1"), [2, 0, 2, 0]);
        let decision = decided(&list_with(&["a:1"], &json!({"parallelism": 3})), &[&finished]);
        assert_eq!((status(&decision).completed, &status(&decision).completion_time), (0, &None));
    }

    /// Elsewhere a deadline counts a node twice (kruise R49), and such a child never changes again.
    #[test]
    fn a_finished_child_is_completed_even_if_its_numbers_do_not_add_up() {
        let list = list(&["a:1"]);
        let mut late = reporting(child(&list, "a:1"), [2, 0, 0, 3]);
        late.status.as_mut().unwrap().completion_time = Some(serde_json::from_value(time(9)).unwrap());
        let decision = decided(&list, &[&late]);
        assert!(status(&decision).completion_time.is_some());
        assert_eq!(verdict(&decision, "Failed"), Some(("True", "Finished")));
    }

    #[test]
    fn a_further_failed_node_is_no_further_write() {
        let mut list = list(&["a:1"]);
        list.status = decided(&list, &[&reporting(child(&list, "a:1"), [9, 1, 0, 1])]).status;
        let decision = decided(&list, &[&reporting(child(&list, "a:1"), [9, 1, 0, 2])]);
        assert_eq!(decision.status, None);
    }

    #[test]
    fn a_paused_list_says_so() {
        let decision = decided(&list_with(&["a:1"], &json!({"parallelism": 0})), &[]);
        assert_eq!(verdict(&decision, "Progressing"), Some(("False", "Paused")));
    }

    #[test]
    fn conditions_are_those_of_the_lists_generation() {
        let decision = decided(&list(&["a:1"]), &[]);
        let generations: BTreeSet<_> = status(&decision)
            .conditions
            .iter()
            .flatten()
            .map(|condition| condition.observed_generation)
            .collect();
        assert_eq!(generations, BTreeSet::from([Some(3)]));
    }

    #[test]
    fn a_transition_time_moves_only_on_a_flip() {
        let mut list = list(&["a:1"]);
        list.status = decided(&list, &[]).status;
        let child = child(&list, "a:1");
        let (children, is_taken) = (vec![Child::from(&child)], |_: &str| true);
        let observed = Observed { list: &list, children, refused: &BTreeMap::new(), is_taken: &is_taken };
        let decision = decide(&observed, at(20));
        let since = |type_| condition(&decision, type_).unwrap().last_transition_time.0;
        assert_eq!((since("Progressing"), since("ChildrenCreated")), (at(10), at(20)));
    }
}

mod refusal {
    use super::*;

    fn refused(images: &[&str]) -> BTreeMap<String, String> {
        let reason = "spec.completionPolicy.activeDeadlineSeconds is shorter than one pull may take";
        images.iter().map(|image| ((*image).to_owned(), reason.to_owned())).collect()
    }

    /// kruise R80, W11
    #[test]
    fn a_refused_child_is_told_in_the_servers_words_and_tried_again() {
        let list = list(&["a:1"]);
        let decision = decided_when_refused(&list, &[], &refused(&["a:1"]));
        let told = condition(&decision, "ChildrenCreated").unwrap();
        assert_eq!((told.status.as_str(), told.reason.as_str()), ("False", "Refused"));
        assert_eq!(
            told.message,
            "the ImagePullJobs of these images were refused: a:1: \
             spec.completionPolicy.activeDeadlineSeconds is shorter than one pull may take"
        );
        assert_eq!(verdict(&decision, "Progressing"), Some(("False", "Refused")));
        assert_eq!(created(&decision), ["a:1"]);
        assert!(decision.has_all_children);
    }

    #[test]
    fn the_other_images_go_on() {
        let list = list(&["a:1", "b:1"]);
        let active = reporting(child(&list, "b:1"), [2, 1, 0, 0]);
        let decision = decided_when_refused(&list, &[&active], &refused(&["a:1"]));
        assert_eq!(verdict(&decision, "Progressing"), Some(("True", "Pulling")));
        assert_eq!(verdict(&decision, "ChildrenCreated"), Some(("False", "Refused")));
    }

    #[test]
    fn a_list_with_a_refused_image_does_not_end() {
        let list = list(&["a:1", "b:1"]);
        let done = reporting(child(&list, "b:1"), [2, 0, 2, 0]);
        let decision = decided_when_refused(&list, &[&done], &refused(&["a:1"]));
        assert_eq!(status(&decision).completion_time, None);
    }

    #[test]
    fn a_refusal_that_no_longer_matters_is_not_told() {
        let list = list(&["a:1"]);
        let decision = decided_when_refused(&list, &[&child(&list, "a:1")], &refused(&["a:1", "gone:1"]));
        assert_eq!(verdict(&decision, "ChildrenCreated"), Some(("True", "AllCreated")));
    }

    #[test]
    fn many_refusals_are_told_by_a_few() {
        let images: Vec<String> = (0..255).map(|number| format!("image-{number:03}:1")).collect();
        let images: Vec<&str> = images.iter().map(String::as_str).collect();
        let decision = decided_when_refused(&list(&images), &[], &refused(&images));
        let told = &condition(&decision, "ChildrenCreated").unwrap().message;
        assert!(told.starts_with("the ImagePullJobs of these images were refused: image-000:1: "), "{told}");
        assert!(told.ends_with("; and 250 more") && told.len() < 1000, "{told}");
    }
}

mod ending {
    use super::*;

    fn finished(ttl: Option<i32>) -> ImageListPullJob {
        let template = json!({"completionPolicy": {"ttlSecondsAfterFinished": ttl}});
        let mut list = list_with(&["a:1"], &template);
        let completion_time = Some(serde_json::from_value(time(0)).unwrap());
        list.status = Some(ImageListPullJobStatus { completion_time, ..Default::default() });
        list
    }

    /// kruise R72
    #[test]
    fn a_finished_list_is_left_alone_whatever_its_spec_says() {
        let decision = decided(&finished(None), &[&child(&list(&["b:1"]), "b:1")]);
        assert_eq!(decision, Decision { has_all_children: true, ..Decision::default() });
    }

    /// kruise R72
    #[test]
    fn a_finished_list_waits_for_its_ttl_and_then_goes() {
        let waiting = decided(&finished(Some(11)), &[]);
        assert_eq!((waiting.is_expired, waiting.wake_at), (false, Some(at(11))));
        let expired = decided(&finished(Some(10)), &[]);
        assert_eq!((expired.is_expired, expired.wake_at), (true, None));
    }

    #[test]
    fn the_pass_that_finishes_a_list_knows_when_it_goes() {
        let list = list_with(&["a:1"], &json!({"completionPolicy": {"ttlSecondsAfterFinished": 20}}));
        let done = reporting(child(&list, "a:1"), [1, 0, 1, 0]);
        let decision = decided(&list, &[&done]);
        assert_eq!((decision.wake_at, decision.is_expired), (Some(at(30)), false));
    }
}
