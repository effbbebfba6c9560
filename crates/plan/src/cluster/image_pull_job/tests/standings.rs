//! Where one node is for one job (kruise R45, R63, T40–T46, W12, W13).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{FailureClass, OwnerResult};

use super::*;
use crate::cluster::demands::standing::{needed, standing};
use crate::cluster::node_image::node::Want;
use crate::demand::selection::Requirements;
use crate::support::build::{labelled, secret, uid};

fn node(entries: &[Entry]) -> Node {
    let mut shared = Shared::default();
    let mut node = Node::default();
    let facts = labelled("n1", &[("topology.kubernetes.io/zone", "x")]);
    node.facts = Some(Facts::read(facts, &Requirements::default(), &mut shared));
    node.image = Some(shared.record(node_image("n1", entries)));
    node
}

/// The job `a` for `nginx:1`.
struct Asking {
    completion: CompletionType,
    secrets: Vec<SecretReference>,
    asks_always: bool,
    lacks_secret: bool,
    is_member: bool,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            completion: CompletionType::Always,
            secrets: Vec::new(),
            asks_always: false,
            lacks_secret: false,
            is_member: true,
        }
    }
}

impl Asking {
    fn standing(&self, node: &Node) -> Option<Standing> {
        let (uid, key) = (uid("a"), key("nginx:1"));
        standing(&self.claim(&uid, &key), node)
    }

    fn claim<'a>(&'a self, uid: &'a str, key: &'a crate::object::ImageKey) -> Claim<'a> {
        Claim {
            uid,
            key,
            is_lasting: self.completion == CompletionType::Never,
            secrets: &self.secrets,
            asks_always: self.asks_always,
            leaves_at_once: false,
            lacks_secret: self.lacks_secret,
            is_member: self.is_member,
        }
    }

    fn need(&self, entry: Entry) -> Option<Need> {
        self.standing(&node(&[entry])).and_then(|standing| standing.need)
    }
}

fn stage(entries: &[Entry]) -> Stage {
    Asking::default().standing(&node(entries)).unwrap().stage
}

fn mine() -> Entry {
    entry("nginx:1").of(&["a"])
}

/// kruise R45
#[test]
fn a_node_that_is_told_nothing_waits() {
    let expected = Standing { zone: "x".into(), ..member(Stage::Waiting) };
    assert_eq!(Asking::default().standing(&node(&[])), Some(expected));
}

/// kruise T46
#[test]
fn a_tag_of_others_is_not_the_jobs() {
    assert_eq!(stage(&[entry("nginx:1").of(&["b"]).succeeded(at(0))]), Stage::Waiting);
    assert_eq!(stage(&[entry("nginx:1").succeeded(at(0))]), Stage::Waiting);
    assert_eq!(stage(&[entry("nginx:2").of(&["a"])]), Stage::Waiting);
}

/// kruise T44
#[test]
fn a_tag_without_an_answer_was_granted_when_it_was_asked_for() {
    assert_eq!(stage(&[mine()]), Stage::Granted(at(0)));
}

/// kruise T42, T43
#[test]
fn an_answer_about_another_tag_or_round_is_none() {
    assert_eq!(stage(&[mine(), entry("nginx:2").of(&["a"]).succeeded(at(0))]), Stage::Granted(at(0)));
    assert_eq!(stage(&[mine().version(3).succeeded(at(0)).version(4)]), Stage::Granted(at(0)));
}

/// kruise T40, T41
#[test]
fn the_phase_of_the_round_is_the_stage() {
    assert_eq!(stage(&[mine().waiting()]), Stage::Acknowledged { has_started: false });
    assert_eq!(stage(&[mine().pulling(at(0))]), PULLING);
    assert_eq!(stage(&[mine().succeeded(at(0))]), Stage::Succeeded);
    assert_eq!(stage(&[mine().failed(at(0))]), Stage::Failed);
    let between = mine().waiting().answer(|status| status.start_time = Some(Time(at(0))));
    assert_eq!(stage(&[between]), PULLING);
}

/// A pull that took the credentials of these owners and was refused to those.
fn private(counts: &[&str], refused: &[&str]) -> Entry {
    let result = |job: &str, failure_class| OwnerResult { uid: uid(job), failure_class, message: None };
    let counts = counts.iter().map(|job| result(job, None));
    let refused = refused.iter().map(|job| result(job, Some(FailureClass::Unauthorized)));
    let results = counts.chain(refused).collect();
    let entry = entry("nginx:1").of(&["a", "b"]).succeeded(at(0));
    entry.answer(|status| status.owner_results = Some(results))
}

/// kruise S7
#[test]
fn a_result_counts_for_whom_the_node_says_it_does() {
    assert_eq!(stage(&[private(&["a", "b"], &[])]), Stage::Succeeded);
    assert_eq!(stage(&[private(&["a"], &["b"])]), Stage::Succeeded);
    assert_eq!(stage(&[private(&["b"], &["a"])]), Stage::Failed);
}

/// kruise S7
#[test]
fn a_job_that_came_later_is_served_by_what_is_there_unless_it_asks_the_registry() {
    let always = Asking { asks_always: true, ..Asking::default() };
    let late = node(&[private(&["b"], &[])]);
    assert_eq!(Asking::default().standing(&late).unwrap().stage, Stage::Succeeded);
    assert_eq!(always.standing(&late).unwrap().stage, Stage::Waiting, "it is granted in its turn");
    let early = node(&[private(&["a", "b"], &[])]);
    assert_eq!(always.standing(&early).unwrap().stage, Stage::Succeeded);
}

/// kruise W12
#[test]
fn a_job_that_was_refused_is_tried_again_with_a_secret_that_came_late() {
    let asking = Asking { secrets: vec![secret("regcred-1", Some("batch"))], ..Asking::default() };
    assert_eq!(asking.need(private(&["b"], &["a"])), Some(Need::Retry));
    assert_eq!(
        asking.need(private(&["a"], &["b"])),
        Some(Need::Attach),
        "others are not pulled again for it"
    );
}

#[test]
fn a_node_without_a_node_image_is_nobodys() {
    assert_eq!(Asking::default().standing(&Node::default()), None);
}

#[test]
fn a_node_is_told_from_the_decision_on() {
    let mut node = node(&[]);
    node.intend(&key("nginx:1"), uid("a").into(), Want::Grant, at(5), 0);
    let stage = |node: &Node| Asking::default().standing(node).unwrap().stage;
    assert_eq!(stage(&node), Stage::Granted(at(5)));
    node.send();
    assert_eq!(stage(&node), Stage::Telling);
    node.land();
    assert_eq!(stage(&node), Stage::Granted(at(5)));
}

/// design 4
#[test]
fn an_entry_that_is_not_taken_has_failed() {
    let mut node = node(&[]);
    node.intend(&key("nginx:1"), uid("a").into(), Want::Grant, at(5), 0);
    node.send();
    let (carried, _) = node.land();
    node.refused(&carried, "too many");
    assert_eq!(Asking::default().standing(&node).unwrap().stage, Stage::Failed);
    assert_eq!(node.refusal(&key("nginx:1")), Some("too many"));
    node.forget_refusals();
    assert_eq!(Asking::default().standing(&node).unwrap().stage, Stage::Waiting);
}

#[test]
fn bytes_are_those_of_the_round() {
    let told = |status: &mut prewarm_api::kruise::ImageTagStatus| {
        (status.bytes_done, status.bytes_total) = (Some(3), Some(9));
    };
    let bytes = |entry: Entry| Asking::default().standing(&node(&[entry])).unwrap().bytes;
    assert_eq!(bytes(mine().pulling(at(0)).answer(told)), Some((3, 9)));
    assert_eq!(bytes(mine().pulling(at(0)).answer(told).version(1)), None);
    assert_eq!(bytes(mine().pulling(at(0)).answer(|status| status.bytes_done = Some(3))), None);
}

/// kruise R42 as we have it
#[test]
fn a_task_on_a_node_that_left_is_withdrawn_until_it_has_begun() {
    let left = Asking { is_member: false, ..Asking::default() };
    assert_eq!(left.standing(&node(&[])), None);
    assert_eq!(left.standing(&node(&[entry("nginx:1").of(&["b"])])), None);
    assert_eq!([mine(), mine().waiting()].map(|entry| left.need(entry)), [Some(Need::Withdraw); 2]);
    let between = mine().waiting().answer(|status| status.start_time = Some(Time(at(0))));
    let begun = [between, mine().pulling(at(0)), mine().succeeded(at(0)), mine().failed(at(0))];
    assert_eq!(begun.map(|entry| left.need(entry)), [None; 4]);
}

#[test]
fn a_write_on_its_way_to_a_node_that_left_still_counts() {
    let left = Asking { is_member: false, ..Asking::default() };
    let mut node = node(&[]);
    node.intend(&key("nginx:1"), uid("a").into(), Want::Grant, at(5), 0);
    assert_eq!(left.standing(&node), None);
    node.send();
    assert_eq!(
        left.standing(&node).map(|standing| (standing.is_member, standing.stage)),
        Some((false, Stage::Telling))
    );
}

fn with_secret() -> Asking {
    Asking { secrets: vec![secret("copy", Some("batch"))], ..Asking::default() }
}

/// kruise T45 as we have it: active, and its Secret is attached.
#[test]
fn a_missing_secret_is_attached_at_every_stage() {
    let entries = [
        mine(),
        mine().pulling(at(0)),
        mine().succeeded(at(0)),
        mine().failed_as(FailureClass::NoSpace, at(0)),
    ];
    assert_eq!(entries.map(|entry| with_secret().need(entry)), [Some(Need::Attach); 4]);
    assert_eq!(with_secret().need(mine().secret("copy", Some("batch"))), None);
}

/// kruise W12, R63
#[test]
fn a_node_that_failed_for_lack_of_a_secret_is_tried_again_with_it() {
    use FailureClass::{NotFound, RateLimited, Unauthorized, Unknown};
    for class in [NotFound, Unauthorized, Unknown] {
        assert_eq!(with_secret().need(mine().failed_as(class, at(0))), Some(Need::Retry));
    }
    assert_eq!(with_secret().need(mine().failed(at(0))), Some(Need::Retry), "others tell no class");
    assert_eq!(with_secret().need(mine().failed_as(RateLimited, at(0))), Some(Need::Attach));
    let tried = mine().secret("copy", Some("batch")).failed_as(Unauthorized, at(0));
    assert_eq!(with_secret().need(tried), None);
}

/// kruise W12, R63
#[test]
fn a_secret_that_another_job_brought_along_counts_as_much() {
    let asked_without = || {
        let entry = mine().with(&json!({"secretMissing": true})).secret("copy", Some("batch"));
        entry.failed_as(FailureClass::Unauthorized, at(0))
    };
    assert_eq!(with_secret().need(asked_without()), Some(Need::Retry));
    let lacking = Asking { lacks_secret: true, ..with_secret() };
    assert_eq!(lacking.need(asked_without()), None, "another one is still missing");
    assert_eq!(Asking::default().need(asked_without()), None, "a job without secrets has nothing to add");
}

fn lost(since: i64) -> Entry {
    mine().succeeded(at(0)).answer(|status| status.lost_at = Some(Time(at(since))))
}

/// kruise W13
#[test]
fn a_lost_image_is_renewed_for_jobs_that_never_end() {
    let never = Asking { completion: CompletionType::Never, ..Asking::default() };
    assert_eq!(never.need(lost(50)), Some(Need::Renew(at(50))));
    assert_eq!(Asking::default().need(lost(50)), None);
    assert_eq!(never.need(lost(50).version(1)), None, "that was another round");
}

/// kruise W13
#[test]
fn after_two_losses_in_an_hour_six_hours_pass() {
    let never = Asking { completion: CompletionType::Never, ..Asking::default() };
    let renewed = json!({"renewedAt": Time(at(0))});
    assert_eq!(never.need(lost(3599).with(&renewed)), Some(Need::Renew(at(6 * 3600))));
    assert_eq!(never.need(lost(3600).with(&renewed)), Some(Need::Renew(at(3600))));
    let eternal = json!({"renewedAt": "9999-12-30T21:59:59Z"});
    assert_eq!(never.need(lost(0).with(&eternal)), Some(Need::Renew(Timestamp::MAX)));
}

#[test]
fn what_is_under_way_is_not_wanted_again() {
    for want in [Want::Attach, Want::Retry, Want::Renew, Want::Withdraw] {
        let mut node = node(&[mine().failed(at(0))]);
        node.intend(&key("nginx:1"), uid("a").into(), want, at(5), 0);
        assert_eq!(with_secret().standing(&node).unwrap().need, None);
        let (uid, key) = (uid("a"), key("nginx:1"));
        assert_eq!(needed(&with_secret().claim(&uid, &key), &node), Some(Need::Retry));
    }
}
