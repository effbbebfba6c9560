//! No set of objects that the API takes makes a NodeImage larger than it may be, in whatever number and order they come and
//! go; and however large they are, a tenant with one small job gets its place.

use std::time::Duration;

use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_api::rule::size::{MOST_SANDBOX_CHARACTERS, MOST_SANDBOX_ENTRIES};
use prewarm_api::validate::{Inspection, inspect};
use prewarm_plan::object::{ObjectKey, SourceKey};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

mod support;

use support::build;
use support::world::World;

/// What a spec may have, and the whole object.
const MOST_SPEC: usize = 384 * 1024;
const MOST_OBJECT: usize = 1024 * 1024;
/// What agents keep a status to.
const MOST_STATUS: usize = 600_000;
const NAMESPACES: usize = 3;
/// As many as a job may name.
const SECRETS: usize = 64;
/// So many things happen before the controller looks.
const AT_ONCE: usize = 8;

/// A job of the largest kind in some respect.
#[derive(Clone, Debug)]
struct Draft {
    namespace: usize,
    image: usize,
    is_long: bool,
    /// What its annotations are made of, if it has any.
    sandbox: Option<&'static str>,
    has_secrets: bool,
    ends: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Create(Draft),
    Delete(usize),
    /// All agents have done what they are told.
    Pull,
    Restart,
}

fn drafts() -> impl Strategy<Value = Draft> {
    let texts = prop::sample::select(vec!["x", "<", "\"", "\u{1}", "ü"]);
    let parts = (
        0..NAMESPACES,
        0..60_usize,
        any::<bool>(),
        prop::option::of(texts),
        prop::bool::weighted(0.1),
        any::<bool>(),
    );
    parts.prop_map(|(namespace, image, is_long, sandbox, has_secrets, ends)| Draft {
        namespace,
        image,
        is_long,
        sandbox,
        has_secrets,
        ends,
    })
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => drafts().prop_map(Step::Create),
        2 => (0..100_usize).prop_map(Step::Delete),
        1 => Just(Step::Pull),
        1 => Just(Step::Restart),
    ]
}

fn namespace(number: usize) -> String {
    format!("{number}{}", "n".repeat(62))
}

fn secret(number: usize) -> String {
    format!("{number:02}{}", "s".repeat(251))
}

fn sandbox(text: &str) -> Value {
    let each = MOST_SANDBOX_CHARACTERS / MOST_SANDBOX_ENTRIES;
    let entry = |number: usize| {
        let key = format!("k{number:02}");
        let value = text.repeat(each - key.len());
        (key, Value::from(value))
    };
    json!({"annotations": (0..MOST_SANDBOX_ENTRIES).map(entry).collect::<serde_json::Map<_, _>>()})
}

impl Draft {
    fn image(&self) -> String {
        let Self { image, .. } = self;
        if self.is_long {
            format!(
                "registry.example-of-a-company.com:5000/{}{image:02}:{}",
                "a".repeat(250),
                "t".repeat(128)
            )
        } else {
            format!("app-{image}:1")
        }
    }

    fn job(&self, number: usize) -> ImagePullJob {
        let type_ = if self.ends { "Always" } else { "Never" };
        let mut spec = json!({"image": self.image(), "parallelism": 9, "completionPolicy": {"type": type_}});
        if let Some(text) = self.sandbox {
            spec["sandboxConfig"] = sandbox(text);
        }
        if self.has_secrets {
            spec["pullSecrets"] = (0..SECRETS).map(secret).collect();
        }
        let mut job = build::job(&format!("{number:03}{}", "j".repeat(250)), &spec);
        job.metadata.namespace = Some(namespace(self.namespace));
        job.metadata.uid = Some(format!("{number:032}"));
        job
    }
}

/// The small tenant's job.
fn modest() -> ImagePullJob {
    build::job("modest", &json!({"image": "modest:1", "completionPolicy": {"type": "Never"}}))
}

/// Bytes as an API server stores them, which escapes what HTML would read otherwise.
fn bytes(value: &Value) -> usize {
    let text = value.to_string();
    text.len() + 5 * text.chars().filter(|character| "<>&".contains(*character)).count()
}

/// What the managed fields have of a value: the keys of its maps.
fn managed(value: &Value) -> Value {
    let Value::Object(map) = value else { return json!({}) };
    let inner = map.iter().map(|(key, value)| (format!("f:{key}"), managed(value)));
    Value::Object(inner.chain([(".".to_owned(), json!({}))]).collect())
}

fn check(object: &NodeImage) {
    let spec = json!(object.spec);
    let size = bytes(&spec);
    assert!(size <= MOST_SPEC, "the spec has {size} bytes");
    let statuses: serde_json::Map<String, Value> =
        object.spec.images.keys().map(|name| (name.clone(), json!({"tags": []}))).collect();
    let metadata =
        bytes(&json!(object.metadata)) + bytes(&managed(&spec)) + bytes(&managed(&Value::Object(statuses)));
    let whole = size + metadata + MOST_STATUS;
    assert!(whole <= MOST_OBJECT, "the object has {whole} bytes");
}

fn is_taken(job: &ImagePullJob) -> bool {
    inspect(&json!(job)) == Inspection::Ours(Vec::new())
}

fn play(steps: Vec<Step>) {
    let mut world = World::of(&["n1"]);
    for number in 0..NAMESPACES * SECRETS {
        let (namespace, name) = (namespace(number / SECRETS), secret(number % SECRETS));
        world.store.sources.insert(SourceKey { namespace, name }, 1);
    }
    let last = steps.len().saturating_sub(1);
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Create(draft) => {
                let job = draft.job(number);
                assert!(is_taken(&job), "the API takes it");
                world.create(job);
            }
            Step::Delete(place) => {
                let keys: Vec<ObjectKey> = world.store.jobs.keys().cloned().collect();
                if let Some(key) = keys.get(place % keys.len().max(1)) {
                    world.store.delete_job(key, world.now);
                }
            }
            Step::Pull => world.pull_all(),
            Step::Restart => world.restart(),
        }
        if number % AT_ONCE == 0 || number == last {
            world.pass(Duration::from_secs(1));
            check(&world.store.images["n1"]);
        }
    }
    world.create(modest());
    world.pass(Duration::from_secs(1));
    check(&world.store.images["n1"]);
    assert_eq!(world.granted("modest"), ["n1"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    #[test]
    fn the_largest_objects_that_the_api_takes_keep_a_node_image_within_its_bounds(steps in vec(steps(), 20..70)) {
        play(steps);
    }
}

/// The worst that one tenant can do: every job as large as it may be, each for an image of its own.
#[test]
fn thirty_of_the_largest_jobs_leave_room_for_a_small_one() {
    let draft = |image| Draft {
        namespace: image % NAMESPACES,
        image,
        is_long: true,
        sandbox: Some("\u{1}"),
        has_secrets: true,
        ends: false,
    };
    play((0..30).map(|image| Step::Create(draft(image))).collect());
}
