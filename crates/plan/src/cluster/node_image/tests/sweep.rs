//! What is taken out of a spec, and what is not (kruise R11–R15, T20–T33).

use serde_json::json;

use super::*;
use crate::support::build::{entry, finished, job};

fn never(name: &str) -> ImagePullJob {
    job(name, &json!({"completionPolicy": {"type": "Never"}}))
}

fn tags(object: &NodeImage) -> Vec<String> {
    let images = object.spec.images.iter();
    images.flat_map(|(name, image)| image.tags.iter().map(move |tag| format!("{name}:{}", tag.tag))).collect()
}

/// kruise T22, turned round: without a beginning neither silence nor age could be judged.
#[test]
fn an_entry_without_a_beginning_is_stamped() {
    let by_hand = entry("nginx:1").with(&json!({"createdAt": null}));
    let after = Scene::of(node_image("n1", &[by_hand])).at(7).after();
    assert_eq!(
        after,
        node_image("n1", &[entry("nginx:1").with(&json!({"createdAt": "2023-11-14T22:13:27Z"}))])
    );
}

/// kruise T23
#[test]
fn an_owner_of_another_kind_is_not_ours_to_judge() {
    let mut of_kind = owner("gone");
    of_kind.kind = Some("CloneSet".to_owned());
    let mut of_group = owner("gone");
    of_group.api_version = Some("apps/v1".to_owned());
    for owner in [of_kind, of_group] {
        assert!(Scene::of(node_image("n1", &[entry("nginx:1").owned_by(vec![owner])])).is_settled());
    }
}

/// kruise T24, R58
#[test]
fn an_entry_goes_with_its_job() {
    assert!(tags(&Scene::of(node_image("n1", &[entry("nginx:1").of(&["gone"])])).after()).is_empty());
}

#[test]
fn an_entry_goes_with_its_job_in_whichever_version_the_owner_is_written() {
    let mut old = owner("gone");
    old.api_version = Some("apps.kruise.io/v1alpha1".to_owned());
    assert!(tags(&Scene::of(node_image("n1", &[entry("nginx:1").owned_by(vec![old])])).after()).is_empty());
}

/// kruise T25
#[test]
fn an_entry_of_an_earlier_job_of_the_same_name_goes() {
    let mut earlier = owner("a");
    earlier.uid = Some("earlier".to_owned());
    let scene =
        Scene::of(node_image("n1", &[entry("nginx:1").owned_by(vec![earlier])])).job(job("a", &json!({})));
    assert!(tags(&scene.after()).is_empty());
}

/// kruise T26, T27
#[test]
fn an_entry_stays_while_its_job_exists_finished_or_not() {
    for job in [job("a", &json!({})), finished(job("a", &json!({})))] {
        assert!(Scene::of(node_image("n1", &[entry("nginx:1").of(&["a"])])).job(job).is_settled());
    }
}

/// kruise T28
#[test]
fn an_entry_of_two_jobs_loses_the_one_that_is_gone() {
    let scene = Scene::of(node_image("n1", &[entry("nginx:1").of(&["gone", "a"])])).job(job("a", &json!({})));
    assert_eq!(scene.after(), node_image("n1", &[entry("nginx:1").of(&["a"])]));
}

/// kruise T29
#[test]
fn an_image_stays_with_the_tags_that_it_has_left() {
    let both = [entry("nginx:1").of(&["gone"]), entry("nginx:2").of(&["a"])];
    let scene = Scene::of(node_image("n1", &both)).job(job("a", &json!({})));
    assert_eq!(scene.after(), node_image("n1", &[entry("nginx:2").of(&["a"])]));
}

/// kruise T30 with a finished or `Never` owner, and by hand
#[test]
fn a_result_expires_when_nobody_counts_it() {
    let entry = entry("nginx:1").succeeded(at(10));
    let by_hand = Scene::of(node_image("n1", std::slice::from_ref(&entry)));
    let of = || Scene::of(node_image("n1", &[entry.clone().of(&["a"])]));
    for scene in [by_hand, of().job(finished(job("a", &json!({})))), of().job(never("a"))] {
        assert!(tags(&scene.at(610).after()).is_empty());
    }
}

/// kruise W1, design 8
#[test]
fn a_result_stays_while_a_job_that_ends_counts_it() {
    let entry = entry("nginx:1").of(&["a", "b"]).succeeded(at(10));
    let scene = Scene::of(node_image("n1", &[entry])).job(job("a", &json!({}))).job(never("b")).at(9999);
    assert_eq!(scene.decide(), Decision::default());
}

/// kruise T31, W19
#[test]
fn before_its_time_a_result_stays_and_the_pass_comes_back_to_the_second() {
    let object = node_image("n1", &[entry("nginx:1").succeeded(at(10))]);
    let decision = Scene::of(object).at(609).decide();
    assert_eq!(decision, Decision { action: None, wake_at: Some(at(610)) });
}

/// Another agent may write fractions; the pass must not come back before them.
#[test]
fn an_end_within_a_second_is_met_within_that_second() {
    let half = |second: i64| at(second) + std::time::Duration::from_millis(500);
    let object = node_image("n1", &[entry("nginx:1").succeeded(half(10))]);
    let scene = Scene { now: half(609), ..Scene::of(object.clone()) };
    assert_eq!(scene.decide(), Decision { action: None, wake_at: Some(half(610)) });
    assert!(tags(&Scene { now: half(610), ..Scene::of(object) }.after()).is_empty());
}

/// kruise R13
#[test]
fn the_result_of_an_earlier_round_does_not_expire() {
    let object = node_image("n1", &[entry("nginx:1").version(3).succeeded(at(0)).version(4)]);
    assert_eq!(tags(&Scene::of(object).at(599).after()), ["nginx:1"]);
}

#[test]
fn an_end_beyond_all_time_is_no_end() {
    let entry = entry("nginx:1").succeeded("9999-12-30T00:00:00Z".parse().unwrap());
    let eternal = entry.with(&json!({"pullPolicy": {"ttlSecondsAfterFinished": i32::MAX}}));
    assert_eq!(Scene::of(node_image("n1", &[eternal])).decide(), Decision::default());
}

/// kruise T32
#[test]
fn any_number_of_entries_with_living_jobs_is_left_alone() {
    let entries = ["nginx:1", "nginx:2", "redis:7", "reg.example/a/b:x"].map(|image| entry(image).of(&["a"]));
    assert!(Scene::of(node_image("n1", &entries)).job(job("a", &json!({}))).is_settled());
}

/// kruise R15
#[test]
fn of_several_images_only_those_that_change_are_written() {
    let entries = [entry("nginx:1").of(&["a"]), entry("reg.example/a/b:x").of(&["gone"])];
    let scene = Scene::of(node_image("n1", &entries)).job(job("a", &json!({})));
    let Some(Action::Patch { operations, .. }) = scene.decide().action else { panic!() };
    assert_eq!(operations[2..], [json!({"op": "remove", "path": "/spec/images/reg.example~1a~1b"})]);
}

#[test]
fn an_image_that_a_person_left_without_tags_is_left_alone() {
    let mut object = node_image("n1", &[]);
    object.spec.images.insert("nginx".to_owned(), prewarm_api::kruise::ImageSpec::default());
    assert!(Scene::of(object).is_settled());
}

/// kruise R12 for an entry that a person wrote and a job has joined
#[test]
fn what_a_person_wrote_outlives_the_jobs_that_joined_it() {
    let joined = entry("nginx:1").of(&["gone"]).with(&json!({"manual": true}));
    let after = Scene::of(node_image("n1", &[joined])).after();
    assert_eq!(after, node_image("n1", &[entry("nginx:1").with(&json!({"manual": true}))]));
    assert!(Scene::of(after).is_settled());
}

/// kruise T33 on an image of jobs
#[test]
fn named_secrets_go_when_they_are_gone_and_shared_copies_stay() {
    let tag = entry("nginx:1").of(&["a"]);
    let all = tag.clone().secret("old", None).secret("missing", None).secret("copy", Some("batch"));
    let scene = Scene::of(node_image("n1", &[all])).job(job("a", &json!({}))).secrets(&["old"]);
    assert_eq!(scene.after(), node_image("n1", &[tag.secret("old", None).secret("copy", Some("batch"))]));
}

/// kruise T33
#[test]
fn secrets_stay_while_nobody_knows_whether_they_exist() {
    let object = node_image("n1", &[entry("nginx:1").of(&["a"]).secret("missing", None)]);
    assert!(Scene::of(object).job(job("a", &json!({}))).is_settled());
}

/// kruise R14 as we have it
#[test]
fn secrets_of_an_image_stay_when_a_person_wrote_one_of_its_tags() {
    let by_hand = [entry("nginx:2"), entry("nginx:2").of(&["a"]).with(&json!({"manual": true}))];
    for by_hand in by_hand {
        let object = node_image("n1", &[entry("nginx:1").of(&["a"]).secret("missing", None), by_hand]);
        assert!(Scene::of(object).job(job("a", &json!({}))).secrets(&[]).is_settled());
    }
}

#[test]
fn one_patch_carries_all_that_is_due() {
    let entries = [
        entry("nginx:1").of(&["gone"]),
        entry("redis:7").succeeded(at(0)),
        entry("busybox:1").with(&json!({"createdAt": null})),
    ];
    let mut object = node_image("n1", &entries);
    object.metadata.labels = Some([("old".to_owned(), "1".to_owned())].into());
    let after = Scene::of(object).at(600).after();
    assert_eq!((tags(&after), after.metadata.labels), (vec!["busybox:1".to_owned()], Some(BTreeMap::new())));
}
