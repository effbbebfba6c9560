use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prewarm_api::names;

use super::*;

const CONFIG: &str = "kruise-daemon-config";
const DOCKER: &str = "kubernetes.io/dockerconfigjson";
const LEGACY: &str = "kubernetes.io/dockercfg";

fn content(fingerprint: u64) -> Content {
    Content { type_: DOCKER.to_owned(), fingerprint }
}

fn present(fingerprint: u64) -> SourceState {
    SourceState::Present(content(fingerprint))
}

fn source() -> SourceKey {
    SourceKey { namespace: "team".to_owned(), name: "regcred".to_owned() }
}

fn jobs(names: &[&str]) -> BTreeSet<ObjectKey> {
    let job = |name: &&str| ObjectKey { namespace: "team".to_owned(), name: (*name).to_owned() };
    names.iter().map(job).collect()
}

fn job(name: &str) -> ObjectKey {
    jobs(&[name]).pop_first().unwrap()
}

fn copy(name: &str, references: &[&str]) -> Copy {
    Copy {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        source: Some(source()),
        references: jobs(references),
        mode: Some(names::SECRET_MODE_BATCH.to_owned()),
        content: content(1),
        is_terminating: false,
    }
}

fn settled(claimants: &[&str], copies: &[&Copy], state: &SourceState) -> Settlement {
    let is_taken = |name: &str| copies.iter().any(|copy| copy.name == name);
    settle(&Observed {
        source: &source(),
        state,
        claimants: &jobs(claimants),
        unread: &BTreeSet::new(),
        copies,
        is_taken: &is_taken,
        config_namespace: CONFIG,
    })
}

fn create(references: &[&str]) -> Action {
    Action::Create { name: first_name(), references: jobs(references) }
}

fn update(name: &str, references: &[&str], has_new_data: bool) -> Action {
    let uid = format!("uid-{name}");
    Action::Update { name: name.to_owned(), uid, references: jobs(references), has_new_data }
}

fn delete(name: &str) -> Action {
    Action::Delete { name: name.to_owned(), uid: format!("uid-{name}") }
}

fn first_name() -> String {
    copy::candidate_names(&source()).next().unwrap()
}

fn reference(name: &str) -> SecretReference {
    SecretReference {
        namespace: Some(CONFIG.to_owned()),
        name: Some(name.to_owned()),
        mode: Some("batch".to_owned()),
    }
}

/// kruise T61
#[test]
fn nothing_happens_to_a_source_that_nobody_names_and_that_has_no_copy() {
    for state in [SourceState::Unknown, SourceState::Missing, present(1)] {
        assert_eq!(settled(&[], &[], &state), Settlement::default());
    }
}

/// kruise T70
#[test]
fn jobs_without_a_copy_get_one_and_wait_for_it() {
    let settlement = settled(&["a", "b"], &[], &present(1));
    let expected = Settlement {
        actions: vec![create(&["a", "b"])],
        pending: jobs(&["a", "b"]),
        ..Settlement::default()
    };
    assert_eq!(settlement, expected);
}

/// kruise T71, T76
#[test]
fn a_copy_that_is_as_it_should_be_is_left_alone() {
    let settlement = settled(&["a"], &[&copy("regcred-1", &["a"])], &present(1));
    let expected =
        Settlement { serves: BTreeMap::from([(job("a"), reference("regcred-1"))]), ..Settlement::default() };
    assert_eq!(settlement, expected);
}

/// kruise T71
#[test]
fn a_further_job_joins_the_copy_and_only_it_waits() {
    let settlement = settled(&["a", "b"], &[&copy("regcred-1", &["a"])], &present(1));
    assert_eq!(settlement.actions, [update("regcred-1", &["a", "b"], false)]);
    assert_eq!(settlement.pending, jobs(&["b"]));
    assert_eq!(settlement.serves.len(), 2);
}

/// kruise T3, T71
#[test]
fn changed_data_reaches_the_copy_before_its_jobs_go_on() {
    let settlement = settled(&["a"], &[&copy("regcred-1", &["a"])], &present(2));
    assert_eq!(settlement.actions, [update("regcred-1", &["a"], true)]);
    assert_eq!(settlement.pending, jobs(&["a"]));
    assert_eq!(settlement.serves, BTreeMap::from([(job("a"), reference("regcred-1"))]));
}

/// kruise T60, T67, T73
#[test]
fn a_job_that_left_is_taken_off_the_copy_and_nobody_waits_for_that() {
    let settlement = settled(&["b"], &[&copy("regcred-1", &["a", "b"])], &present(1));
    assert_eq!(settlement.actions, [update("regcred-1", &["b"], false)]);
    assert!(settlement.pending.is_empty());
}

/// kruise T67, T68, T73, T75
#[test]
fn the_copy_goes_with_its_last_job() {
    for state in [SourceState::Unknown, SourceState::Missing, present(1)] {
        for listed in [&["a"][..], &[]] {
            let settlement = settled(&[], &[&copy("regcred-1", listed)], &state);
            let expected = Settlement { actions: vec![delete("regcred-1")], ..Settlement::default() };
            assert_eq!(settlement, expected);
        }
    }
}

/// kruise T62
#[test]
fn a_terminating_copy_is_as_good_as_gone() {
    let leaving = Copy { is_terminating: true, ..copy("regcred-1", &["a"]) };
    assert_eq!(settled(&["a"], &[&leaving], &present(1)).actions, [create(&["a"])]);
    assert_eq!(settled(&[], &[&leaving], &present(1)), Settlement::default());
}

/// kruise T63
#[test]
fn copies_of_other_sources_and_other_secrets_are_left_alone() {
    let other = SourceKey { namespace: "team".to_owned(), name: "other".to_owned() };
    let foreign = Copy { source: Some(other), ..copy("regcred-1", &["a"]) };
    let stranger = Copy { source: None, ..copy("regcred-2", &["a"]) };
    assert_eq!(settled(&["a"], &[&foreign, &stranger], &present(1)).actions, [create(&["a"])]);
    assert_eq!(settled(&[], &[&foreign, &stranger], &present(1)), Settlement::default());
}

/// kruise T64
#[test]
fn of_several_copies_the_first_by_name_is_taken_and_the_others_go() {
    let (one, two) = (copy("regcred-1", &[]), copy("regcred-2", &[]));
    let settlement = settled(&["a"], &[&two, &one], &present(1));
    assert_eq!(settlement.actions, [update("regcred-1", &["a"], false), delete("regcred-2")]);
}

/// kruise T65
#[test]
fn a_job_stays_with_the_last_copy_that_lists_it() {
    let copies = [copy("regcred-1", &["a"]), copy("regcred-2", &["a", "b"]), copy("regcred-3", &["c"])];
    let copies = [&copies[0], &copies[1], &copies[2]];
    let settlement = settled(&["a", "b", "c", "d"], &copies, &present(1));
    assert_eq!(settlement.actions, [update("regcred-1", &["d"], false)]);
    let served: Vec<&str> =
        settlement.serves.values().filter_map(|reference| reference.name.as_deref()).collect();
    assert_eq!(served, ["regcred-2", "regcred-2", "regcred-3", "regcred-1"]);
}

/// kruise T72
#[test]
fn jobs_are_told_of_a_missing_source_and_do_not_wait_for_it() {
    let settlement = settled(&["a"], &[], &SourceState::Missing);
    assert_eq!(settlement, Settlement { is_missing: true, ..Settlement::default() });
}

/// kruise T72
#[test]
fn the_copy_of_a_source_that_was_just_deleted_goes_on_serving_with_its_old_data() {
    let settlement = settled(&["a", "b"], &[&copy("regcred-1", &["a"])], &SourceState::Missing);
    assert!(settlement.is_missing);
    assert_eq!(settlement.actions, [update("regcred-1", &["a", "b"], false)]);
    assert_eq!(settlement.serves.len(), 2);
}

#[test]
fn jobs_wait_until_the_source_was_read() {
    let settlement = settled(&["a"], &[], &SourceState::Unknown);
    assert_eq!(settlement, Settlement { pending: jobs(&["a"]), ..Settlement::default() });
    let settlement = settled(&["a"], &[&copy("regcred-1", &["a"])], &SourceState::Unknown);
    assert_eq!((settlement.actions, settlement.pending), (vec![], jobs(&["a"])));
}

/// A Secret's type is immutable, so writing the source's data into the copy would be refused for ever.
#[test]
fn a_source_of_another_type_gets_another_copy() {
    let old = copy(&first_name(), &["a"]);
    let legacy = SourceState::Present(Content { type_: LEGACY.to_owned(), fingerprint: 2 });
    let settlement = settled(&["a"], &[&old], &legacy);
    let name = copy::candidate_names(&source()).nth(1).unwrap();
    assert_eq!(settlement.actions, [Action::Create { name, references: jobs(&["a"]) }, delete(&old.name)]);
    assert_eq!((settlement.serves.len(), settlement.pending), (0, jobs(&["a"])));
}

#[test]
fn a_copy_of_the_old_scheme_is_used_under_the_old_scheme() {
    let old = Copy { mode: None, ..copy("regcred-1", &["a"]) };
    let settlement = settled(&["a"], &[&old], &present(1));
    assert_eq!(settlement.serves[&job("a")], SecretReference { mode: None, ..reference("regcred-1") });
}

/// An agent uses a copy for the jobs that it lists and for nobody else.
#[test]
fn jobs_beyond_the_limit_of_an_annotation_are_listed_by_another_copy() {
    let names: Vec<String> = (0..2000).map(|number| format!("job-{number:04}-{}", "x".repeat(90))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut copies: Vec<Copy> = Vec::new();
    for _ in 0..2 {
        let settlement = settled(&names, &copies.iter().collect::<Vec<_>>(), &present(1));
        let [Action::Create { name, references }] = &settlement.actions[..] else {
            panic!("{:?}", settlement.actions.len())
        };
        assert!(references_text(references).len() <= 128 * 1024);
        let made = Copy { references: references.clone(), ..copy(name, &[]) };
        assert_eq!(settlement.pending, &settlement.pending | references);
        copies.push(made);
    }
    let settlement = settled(&names, &copies.iter().collect::<Vec<_>>(), &present(1));
    assert_eq!((settlement.actions, settlement.pending.len()), (vec![], 0));
    let is_listed = |(job, reference): (&ObjectKey, &SecretReference)| {
        let copy = copies.iter().find(|copy| reference.name.as_ref() == Some(&copy.name)).unwrap();
        copy.references.contains(job)
    };
    assert!(settlement.serves.len() == 2000 && settlement.serves.iter().all(is_listed));
}

#[test]
fn nothing_is_left_of_a_source_that_is_gone() {
    let settlement = settled(&["a"], &[&copy("regcred-1", &["a"])], &SourceState::Gone);
    let expected =
        Settlement { actions: vec![delete("regcred-1")], is_missing: true, ..Settlement::default() };
    assert_eq!(settlement, expected);
}

#[test]
fn a_secret_that_holds_no_registry_credentials_is_not_copied_and_its_jobs_are_told() {
    let state = SourceState::Unusable("its type is not right".to_owned());
    let unusable = Some("its type is not right".to_owned());
    let expected = Settlement { unusable, ..Settlement::default() };
    assert_eq!(settled(&["a"], &[], &state), expected);
    let settlement = settled(&["a"], &[&copy("regcred-1", &["a"])], &state);
    assert_eq!(settlement, Settlement { actions: vec![delete("regcred-1")], ..expected }, "an old copy goes");
}

#[test]
fn a_job_for_whose_registry_the_source_was_not_read_waits_and_others_do_not() {
    let held = copy("regcred-1", &["a", "b"]);
    let settlement = settle(&Observed {
        source: &source(),
        state: &present(1),
        claimants: &jobs(&["a", "b"]),
        unread: &jobs(&["b"]),
        copies: &[&held],
        is_taken: &|_| true,
        config_namespace: CONFIG,
    });
    assert_eq!((settlement.actions, settlement.pending), (vec![], jobs(&["b"])));
}

/// kruise T69
#[test]
fn a_job_of_the_config_namespace_uses_the_secret_itself() {
    let expected = SecretReference { mode: None, ..reference("regcred") };
    assert_eq!(plain_reference(CONFIG, "regcred"), expected);
}

/// kruise R61
#[test]
fn a_copy_is_named_after_its_source_and_the_same_every_time() {
    let names: Vec<String> = copy::candidate_names(&source()).take(2).collect();
    assert_eq!(names, ["regcred-fbcc9d", "regcred-fbce35"]);
}

#[test]
fn a_copy_is_recognized_by_the_namespace_of_its_source() {
    for name in copy::candidate_names(&source()).take(4) {
        assert!(is_called_like_one_of("team", &name), "{name}");
        assert!(!is_called_like_one_of("other", &name), "{name}");
    }
    for name in ["regcred", "regcred-", "regcred-000000", ""] {
        assert!(!is_called_like_one_of("team", name), "{name}");
    }
}

#[test]
fn the_longest_source_has_a_copy_with_a_valid_name() {
    let name = format!("{}.{}", "a".repeat(245), "b".repeat(7));
    let long = SourceKey { name, ..source() };
    let name = copy::candidate_names(&long).next().unwrap();
    assert_eq!(name.len(), 252);
    assert!(name.starts_with(&format!("{}-", "a".repeat(245))), "{name}");
}

/// kruise R61, T70
#[test]
fn a_copy_has_the_annotations_that_make_it_one_and_no_others() {
    let annotations = annotations(&source(), &jobs(&["b", "a"]));
    let expected = [
        ("imagepulljobs.kruise.io/mode", "batch"),
        ("imagepulljobs.kruise.io/references", "team/a,team/b"),
        ("imagepulljobs.kruise.io/source-key", "team/regcred"),
    ];
    assert_eq!(annotations, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

fn metadata(annotations: BTreeMap<String, String>) -> ObjectMeta {
    ObjectMeta {
        name: Some("regcred-1".to_owned()),
        uid: Some("uid-regcred-1".to_owned()),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    }
}

/// kruise T77
#[test]
fn a_copy_is_read_as_it_was_written() {
    let annotations = annotations(&source(), &jobs(&["a", "b"]));
    assert_eq!(Copy::read(&metadata(annotations), content(1)), copy("regcred-1", &["a", "b"]));
}

/// kruise T77
#[test]
fn absent_and_empty_annotations_are_read_as_nothing() {
    let nothing = Copy { source: None, mode: None, ..copy("regcred-1", &[]) };
    let empty =
        [names::SECRET_SOURCE_ANNOTATION, names::SECRET_REFERENCES_ANNOTATION, names::SECRET_MODE_ANNOTATION]
            .map(|name| (name.to_owned(), String::new()));
    assert_eq!(Copy::read(&metadata(empty.into()), content(1)), nothing);
    assert_eq!(Copy::read(&metadata(BTreeMap::new()), content(1)), nothing);
}

/// kruise T77
#[test]
fn what_is_no_key_is_passed_over() {
    let annotation =
        (names::SECRET_REFERENCES_ANNOTATION.to_owned(), "team/a, team/b,,x,/c,d/,e/f/g".to_owned());
    let read = Copy::read(&metadata(BTreeMap::from([annotation])), content(1));
    assert_eq!(read.references, jobs(&["a", "b"]));
}

#[test]
fn a_deleted_copy_is_read_as_terminating() {
    let deleted = ObjectMeta {
        deletion_timestamp: Some(Time(Timestamp::UNIX_EPOCH)),
        ..metadata(annotations(&source(), &jobs(&["a"])))
    };
    assert!(Copy::read(&deleted, content(1)).is_terminating);
}
