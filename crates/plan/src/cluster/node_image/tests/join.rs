//! What jobs write into a spec, alone and beside each other (kruise R53, R54, T50–T57, W3, W4).

use std::slice;

use prewarm_api::kruise::{ImagePullPolicy, ImageTagSpec, OwnerResult, SandboxConfig};
use serde_json::{Value, json};

use super::*;
use crate::support::build::{Entry, entry, finished, job, secret};

/// A job whose entries do not depend on chance.
fn never(name: &str) -> ImagePullJob {
    job(name, &json!({"completionPolicy": {"type": "Never"}}))
}

fn always(name: &str) -> ImagePullJob {
    job(name, &json!({"imagePullPolicy": "Always"}))
}

fn tag(object: &NodeImage, image: &str) -> ImageTagSpec {
    let key = key(image);
    object.spec.images[&key.name].tags.iter().find(|tag| tag.tag == key.tag).unwrap().clone()
}

/// The tag `nginx:1` after job `b` has joined an entry of job `a`.
fn joined(entry: Entry, joining: ImagePullJob) -> ImageTagSpec {
    let scene = Scene::of(node_image("n1", &[entry])).job(job("a", &json!({}))).job(joining);
    tag(&scene.at(100).want("b", "nginx:1", Want::Grant).after(), "nginx:1")
}

fn owners(tag: &ImageTagSpec) -> Vec<&str> {
    tag.owner_references.iter().flatten().filter_map(|owner| owner.name.as_deref()).collect()
}

fn asked_at(tag: &ImageTagSpec) -> Timestamp {
    tag.created_at.clone().unwrap().0
}

/// kruise T50, R54
#[test]
fn a_granted_node_gets_the_tag_its_owner_and_its_secrets() {
    let fields = json!({"completionPolicy": {"activeDeadlineSeconds": 1200, "ttlSecondsAfterFinished": 60},
                        "pullPolicy": {"timeoutSeconds": 50, "backoffLimit": 2}});
    let copy = secret("copy", Some("batch"));
    let scene = Scene::of(node_image("n1", &[])).job_with(job("a", &fields), slice::from_ref(&copy));
    let after = scene.at(7).want("a", "nginx:1", Want::Grant).after();
    let policy = &tag(&after, "nginx:1").pull_policy;
    let ttl = policy.ttl_seconds_after_finished;
    assert!((360..660).contains(&ttl), "{ttl}");
    let expected = entry("nginx:1").of(&["a"]).secret("copy", Some("batch")).with(&json!({
        "createdAt": "2023-11-14T22:13:27Z",
        "pullPolicy": {"timeoutSeconds": 50, "backoffLimit": 2, "activeDeadlineSeconds": 1200,
                       "ttlSecondsAfterFinished": ttl},
    }));
    assert_eq!(after.spec, node_image("n1", &[expected]).spec);
}

/// kruise R54
#[test]
fn nodes_that_are_granted_together_share_what_is_random() {
    let with = |entries: &[Entry]| node_image("n1", entries);
    let ttl = |object: NodeImage, seconds: i64| {
        let scene = Scene::of(object).job(job("a", &json!({}))).at(seconds);
        tag(&scene.want("a", "nginx:1", Want::Grant).after(), "nginx:1")
            .pull_policy
            .ttl_seconds_after_finished
    };
    assert_eq!(ttl(with(&[]), 0), ttl(with(&[entry("redis:7")]), 1));
    assert!((0..10).any(|minute| ttl(with(&[]), minute * 60) != ttl(with(&[]), 0)));
}

/// kruise T57
#[test]
fn a_daily_refresh_has_half_an_hour_or_its_timeout() {
    for (timeout, expected) in [(600, 1800), (1799, 1800), (3600, 3600)] {
        let fields =
            json!({"completionPolicy": {"type": "Never"}, "pullPolicy": {"timeoutSeconds": timeout}});
        let scene = Scene::of(node_image("n1", &[])).job(job("a", &fields));
        let tag = tag(&scene.want("a", "nginx:1", Want::Grant).after(), "nginx:1");
        assert_eq!(tag.pull_policy.active_deadline_seconds, Some(expected));
    }
}

/// kruise T51, T55
#[test]
fn an_owned_tag_with_its_secrets_is_left_alone() {
    let entry = entry("nginx:1").of(&["a"]);
    let copy = secret("copy", Some("batch"));
    let with = Scene::of(node_image("n1", &[entry.clone().secret("copy", Some("batch"))]));
    let without = Scene::of(node_image("n1", &[entry]));
    for want in [Want::Attach, Want::Grant] {
        let [with, without] = [&with, &without].map(|scene| Scene::of(scene.object.clone()));
        let with = with.job_with(job("a", &json!({})), slice::from_ref(&copy));
        assert!(with.want("a", "nginx:1", want).is_settled());
        assert!(without.job(job("a", &json!({}))).want("a", "nginx:1", want).is_settled());
    }
}

/// kruise T52, T53
#[test]
fn a_missing_secret_is_added_without_another_round() {
    let (one, two) = (secret("one", Some("batch")), secret("two", Some("batch")));
    let entry = entry("nginx:1").of(&["a"]).version(3).secret("one", Some("batch"));
    let scene =
        Scene::of(node_image("n1", slice::from_ref(&entry))).job_with(job("a", &json!({})), &[two, one]);
    let after = scene.want("a", "nginx:1", Want::Attach).after();
    assert_eq!(after, node_image("n1", &[entry.secret("two", Some("batch"))]));
}

/// kruise T54, W3
#[test]
fn a_second_job_does_not_disturb_a_pull_that_goes_on() {
    let open = entry("nginx:1").of(&["a"]).version(3);
    for entry in [open.clone(), open.clone().waiting(), open.pulling(at(0))] {
        for joining in [job("b", &json!({})), always("b")] {
            let tag = joined(entry.clone(), joining);
            assert_eq!((tag.version, owners(&tag), asked_at(&tag)), (3, vec!["a", "b"], at(0)));
        }
    }
}

/// kruise T54, W3
#[test]
fn a_second_job_is_satisfied_with_a_present_image() {
    let tag = joined(entry("nginx:1").of(&["a"]).version(3).succeeded(at(0)), job("b", &json!({})));
    assert_eq!((tag.version, owners(&tag), asked_at(&tag)), (3, vec!["a", "b"], at(0)));
}

/// kruise T54
#[test]
fn a_second_job_that_asks_the_registry_begins_another_round() {
    let tag = joined(entry("nginx:1").of(&["a"]).version(3).succeeded(at(0)), always("b"));
    assert_eq!((tag.version, owners(&tag), asked_at(&tag)), (4, vec!["a", "b"], at(100)));
    assert_eq!(tag.image_pull_policy, ImagePullPolicy::Always);
}

/// kruise T54
#[test]
fn a_second_job_begins_another_round_where_the_image_is_not() {
    let ended = entry("nginx:1").of(&["a"]).version(3);
    let lost = ended.clone().succeeded(at(0)).answer(|status| status.lost_at = status.start_time.clone());
    for entry in [ended.failed(at(0)), lost] {
        let tag = joined(entry, job("b", &json!({})));
        assert_eq!((tag.version, asked_at(&tag)), (4, at(100)));
    }
}

/// kruise S7: what was pulled with credentials of others is pulled again for a job that asks the registry.
#[test]
fn a_job_that_came_after_a_private_pull_begins_another_round_only_if_it_asks_the_registry() {
    let counts = OwnerResult { uid: uid("a"), failure_class: None, message: None };
    let private = entry("nginx:1").of(&["a", "b"]).version(3).succeeded(at(0));
    let private = private.answer(|status| status.owner_results = Some(vec![counts]));
    let granted = |late: ImagePullJob| {
        let scene = Scene::of(node_image("n1", slice::from_ref(&private))).job(job("a", &json!({})));
        scene.job(late).at(100).want("b", "nginx:1", Want::Grant)
    };
    let tag = granted(always("b")).after().spec.images["nginx"].tags[0].clone();
    assert_eq!((tag.version, owners(&tag)), (4, vec!["a", "b"]));
    assert!(granted(job("b", &json!({}))).is_settled());
}

/// An image of many tenants keeps no list of all who ever wanted it.
#[test]
fn copies_that_are_gone_or_serve_no_job_go_with_the_next_write() {
    let (mine, new) = (secret("mine", Some("batch")), secret("new", Some("batch")));
    let entry = entry("nginx:1").of(&["a"]);
    let entry =
        ["mine", "gone", "stranger"].into_iter().fold(entry, |entry, name| entry.secret(name, Some("batch")));
    let entry = entry.secret("by-hand", None);
    let scene = || {
        let scene = Scene::of(node_image("n1", slice::from_ref(&entry)));
        let scene = scene.secrets(&["mine", "new", "stranger", "by-hand"]);
        scene.job_with(job("a", &json!({})), slice::from_ref(&mine))
    };
    assert!(scene().is_settled(), "by itself it is worth no write");
    let scene = scene().job_with(job("b", &json!({})), slice::from_ref(&new));
    let after = scene.want("b", "nginx:1", Want::Grant).after();
    let expected = [mine, secret("by-hand", None), new];
    assert_eq!(after.spec.images["nginx"].pull_secrets.as_deref(), Some(&expected[..]));
}

/// kruise T54
#[test]
fn secrets_of_both_jobs_are_on_the_image() {
    let entry = entry("nginx:1").of(&["a"]).secret("one", Some("batch"));
    let one = secret("one", Some("batch"));
    let scene = Scene::of(node_image("n1", &[entry])).job_with(job("a", &json!({})), slice::from_ref(&one));
    let scene = scene.job_with(job("b", &json!({})), &[secret("two", Some("batch"))]);
    let after = scene.want("b", "nginx:1", Want::Grant).after();
    let expected = [secret("one", Some("batch")), secret("two", Some("batch"))];
    assert_eq!(after.spec.images["nginx"].pull_secrets.as_deref(), Some(&expected[..]));
}

/// kruise W4
#[test]
fn a_shared_tag_has_the_longest_limits_of_its_owners() {
    let policy = |fields: &Value, joining: &Value| {
        let entry = entry("nginx:1").of(&["a"]).with(&json!({"pullPolicy": fields}));
        json!(joined(entry, job("b", joining)).pull_policy)
    };
    let held = json!({"timeoutSeconds": 10, "backoffLimit": 9, "ttlSecondsAfterFinished": 99_999,
                      "activeDeadlineSeconds": 10});
    let deadline = json!({"completionPolicy": {"activeDeadlineSeconds": 2000}});
    let expected = json!({"timeoutSeconds": 600, "backoffLimit": 9, "ttlSecondsAfterFinished": 99_999,
                          "activeDeadlineSeconds": 2000});
    assert_eq!(policy(&held, &deadline), expected);
    assert_eq!(policy(&held, &json!({}))["activeDeadlineSeconds"], Value::Null);
}

/// kruise W4
#[test]
fn a_running_round_asks_the_registry_if_one_of_its_owners_wants_that() {
    let tag = joined(entry("nginx:1").of(&["a"]), always("b"));
    assert_eq!(tag.image_pull_policy, ImagePullPolicy::Always);
    let held = entry("nginx:1").of(&["a"]).with(&json!({"imagePullPolicy": "Always"}));
    let tag = joined(held, job("b", &json!({})));
    assert_eq!(tag.image_pull_policy, ImagePullPolicy::Always);
}

#[test]
fn another_round_asks_the_registry_only_for_those_who_still_want_that() {
    let failed = entry("nginx:1").of(&["a"]).with(&json!({"imagePullPolicy": "Always"})).failed(at(0));
    let policy = |first: ImagePullJob| {
        let scene =
            Scene::of(node_image("n1", slice::from_ref(&failed))).job(first).job(job("b", &json!({})));
        tag(&scene.want("b", "nginx:1", Want::Grant).after(), "nginx:1").image_pull_policy
    };
    assert_eq!(policy(always("a")), ImagePullPolicy::Always);
    assert_eq!(policy(finished(always("a"))), ImagePullPolicy::IfNotPresent);
}

#[test]
fn a_job_that_joins_what_a_person_wrote_marks_it() {
    let by_hand = entry("nginx:1").with(&json!({"imagePullPolicy": "Always"}));
    let tag = joined(by_hand.clone().failed(at(0)), job("b", &json!({})));
    assert!(tag.manual);
    assert_eq!((tag.version, tag.image_pull_policy, owners(&tag)), (1, ImagePullPolicy::Always, vec!["b"]));
    let tag = joined(by_hand.succeeded(at(0)), job("b", &json!({})));
    assert_eq!((tag.version, tag.manual), (0, true));
}

#[test]
fn the_tag_of_a_job_is_not_marked() {
    assert!(!joined(entry("nginx:1").of(&["a"]), job("b", &json!({}))).manual);
}

/// kruise T56
#[test]
fn a_tag_that_comes_back_begins_after_the_last_reported_round() {
    let mut object = node_image("n1", &[entry("nginx:1").version(5).succeeded(at(0))]);
    object.spec.images.clear();
    let scene = Scene::of(object).job(job("a", &json!({}))).want("a", "nginx:1", Want::Grant);
    assert_eq!(tag(&scene.after(), "nginx:1").version, 6);
}

/// kruise R53, R56
#[test]
fn a_tag_that_comes_back_as_it_expires_begins_after_its_last_round() {
    let gone = entry("nginx:1").of(&["gone"]).version(5);
    for (entry, expected) in [(gone.clone(), 6), (gone.clone().version(7).succeeded(at(0)).version(2), 8)] {
        let scene = Scene::of(node_image("n1", &[entry])).job(job("a", &json!({})));
        let tag = tag(&scene.want("a", "nginx:1", Want::Grant).after(), "nginx:1");
        assert_eq!((tag.version, owners(&tag)), (expected, vec!["a"]));
    }
}

/// design 4
#[test]
fn one_patch_carries_all_that_jobs_want_of_a_node() {
    let jobs = [("a", "nginx:2"), ("b", "nginx:1"), ("c", "reg.example/team/app:v1"), ("d", "nginx:1")];
    let mut scene = Scene::of(node_image("n1", &[entry("busybox:1")]));
    for (name, image) in jobs {
        scene = scene.job(job(name, &json!({"image": image}))).want(name, image, Want::Grant);
    }
    let after = scene.after();
    let names: Vec<&String> = after.spec.images.keys().collect();
    assert_eq!(names, ["busybox", "nginx", "reg.example/team/app"]);
    let tags: Vec<&str> = after.spec.images["nginx"].tags.iter().map(|tag| tag.tag.as_str()).collect();
    assert_eq!(tags, ["1", "2"]);
    assert_eq!((owners(&tag(&after, "nginx:1")), tag(&after, "nginx:1").version), (vec!["b", "d"], 0));
    assert!(matches!(scene.decide().action, Some(Action::Patch { grants: 4, .. })));
}

#[test]
fn a_job_that_is_gone_writes_nothing() {
    assert!(Scene::of(node_image("n1", &[])).want("gone", "nginx:1", Want::Grant).is_settled());
}

/// kruise R53, W4
#[test]
fn a_job_brings_its_sandbox_and_leaves_that_of_others() {
    let sandbox = |name: &str| SandboxConfig {
        labels: Some([("by".to_owned(), name.to_owned())].into()),
        annotations: None,
    };
    let by = |name: &str| job(name, &json!({"sandboxConfig": sandbox(name)}));
    let after = |held: Entry, mine: Option<SandboxConfig>| {
        let mut object = node_image("n1", &[held]);
        object.spec.images.get_mut("nginx").unwrap().sandbox_config = mine;
        let scene = Scene::of(object).job(job("a", &json!({}))).job(by("b"));
        scene.want("b", "nginx:1", Want::Grant).after().spec.images["nginx"].sandbox_config.clone()
    };
    let (alone, other) = (entry("nginx:2").of(&["b"]), entry("nginx:2").of(&["a"]));
    assert_eq!(after(alone, Some(sandbox("old"))), Some(sandbox("b")));
    assert_eq!(after(other.clone(), Some(sandbox("a"))), Some(sandbox("a")));
    assert_eq!(after(other, None), Some(sandbox("b")));
    assert_eq!(after(entry("nginx:2"), Some(sandbox("hand"))), Some(sandbox("hand")));
}

/// kruise W12, W13
#[test]
fn a_node_is_asked_again_by_another_round() {
    let failed = entry("nginx:1").of(&["a"]).version(3).failed(at(0));
    for (want, renewed_at) in [(Want::Retry, None), (Want::Renew, Some(at(50)))] {
        let scene = Scene::of(node_image("n1", slice::from_ref(&failed))).job(job("a", &json!({}))).at(50);
        let tag = tag(&scene.want("a", "nginx:1", want).after(), "nginx:1");
        assert_eq!((tag.version, asked_at(&tag)), (4, at(50)));
        assert_eq!(tag.renewed_at.map(|time| time.0), renewed_at);
    }
}

#[test]
fn two_jobs_that_ask_again_begin_one_round() {
    let failed = entry("nginx:1").of(&["a", "b"]).failed(at(0));
    let scene = Scene::of(node_image("n1", &[failed])).job(never("a")).job(job("b", &json!({})));
    let scene = scene.want("a", "nginx:1", Want::Retry).want("b", "nginx:1", Want::Retry);
    assert_eq!(tag(&scene.after(), "nginx:1").version, 1);
}

#[test]
fn nobody_asks_again_for_a_round_that_is_over() {
    let mut scene = Scene::of(node_image("n1", &[entry("nginx:1").of(&["a"]).failed(at(0))]));
    scene = scene.job(job("a", &json!({}))).want("a", "nginx:1", Want::Retry);
    scene.node.image =
        Some(Shared::default().record(node_image("n1", &[entry("nginx:1").of(&["a"]).version(1)])));
    assert!(scene.is_settled());
}

/// kruise R42
#[test]
fn a_job_that_withdraws_takes_its_tag_along() {
    let scene = Scene::of(node_image("n1", &[entry("nginx:1").of(&["a"])])).job(job("a", &json!({})));
    assert!(scene.want("a", "nginx:1", Want::Withdraw).after().spec.images.is_empty());
}

/// kruise R42
#[test]
fn a_job_that_withdraws_leaves_the_tag_to_others() {
    let after = |entry: Entry| {
        let scene = Scene::of(node_image("n1", &[entry])).job(job("a", &json!({}))).job(job("b", &json!({})));
        scene.want("a", "nginx:1", Want::Withdraw).after()
    };
    assert_eq!(after(entry("nginx:1").of(&["a", "b"])), node_image("n1", &[entry("nginx:1").of(&["b"])]));
    let manual = entry("nginx:1").with(&json!({"manual": true}));
    let expected = node_image("n1", slice::from_ref(&manual));
    assert_eq!(json!(after(manual.of(&["a"]))), json!(expected));
}

/// kruise W3
#[test]
fn a_tag_goes_from_a_job_that_withdraws_to_one_that_joins_as_it_is() {
    let scene = Scene::of(node_image("n1", &[entry("nginx:1").of(&["a"])]));
    let scene = scene.job(job("a", &json!({}))).job(job("b", &json!({})));
    let after = scene.want("a", "nginx:1", Want::Withdraw).want("b", "nginx:1", Want::Grant).after();
    let tag = tag(&after, "nginx:1");
    assert_eq!((tag.version, owners(&tag), asked_at(&tag)), (0, vec!["b"], at(0)));
}
