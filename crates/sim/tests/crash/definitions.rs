//! Stories under definitions of another version: they lack a field that we write, so that the server drops it without a word.
//! Not everything works then, but nobody writes for ever.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use prewarm_embedded::faults::{Entry, Faults, Verb};
use prewarm_sim::{Cluster, on_paused_time};
use tokio::time::Instant;

use crate::branch::Branches;
use crate::broadcasts::BROADCASTS;
use crate::crons::CRONS;
use crate::prefetches::{PREFETCHES, REFUSED};
use crate::scenarios::SCENARIOS;
use crate::{ECHOES, IDLE, Scenario, Victim, known};

/// A field that other implementations of the API do not have: the plural of its kind, and where it is. `*` stands for any
/// key of a map or any item of a list.
type Field = (&'static str, &'static [&'static str]);

/// All of them, as `docs/compatibility.md` has them.
const FIELDS: [Field; 21] = [
    ("imagepulljobs", &["status", "conditions"]),
    ("imagepulljobs", &["status", "bytesDone"]),
    ("imagepulljobs", &["status", "bytesTotal"]),
    ("imagelistpulljobs", &["status", "conditions"]),
    ("broadcastjobs", &["status", "pausedFailures"]),
    ("advancedcronjobs", &["status", "conditions"]),
    ("advancedcronjobs", &["status", "lastFailedImage"]),
    ("advancedcronjobs", &["status", "skippedRuns"]),
    ("nodeimages", &["spec", "images", "*", "tags", "*", "manual"]),
    ("nodeimages", &["spec", "images", "*", "tags", "*", "renewedAt"]),
    ("nodeimages", &["spec", "images", "*", "tags", "*", "secretMissing"]),
    REGISTRY_POLICY,
    ("nodeimages", &["spec", "images", "*", "tags", "*", "digest"]),
    ("nodeimages", &["status", "imageFilesystem"]),
    ("nodeimages", &["status", "reportedBy"]),
    ("nodeimages", &["status", "imageStatuses", "*", "tags", "*", "failureClass"]),
    ("nodeimages", &["status", "imageStatuses", "*", "tags", "*", "failedAttempts"]),
    ("nodeimages", &["status", "imageStatuses", "*", "tags", "*", "bytesDone"]),
    ("nodeimages", &["status", "imageStatuses", "*", "tags", "*", "lostAt"]),
    ("nodeimages", &["status", "imageStatuses", "*", "tags", "*", "digest"]),
    ("nodeimagesets", &["spec", "imageDownloadRetryLimit"]),
];

const REGISTRY_POLICY: Field = ("nodeimages", &["spec", "images", "*", "tags", "*", "registryPolicy"]);

/// The groups of our kinds.
const GROUPS: [&str; 2] = ["apps.kruise.io", "ofen.cybozu.io"];

/// So much longer a story may take: retries come with jitter.
const SLACK: Duration = Duration::from_secs(20);

/// The kinds that are written in a story.
fn kinds(scenario: &Scenario) -> &'static [&'static str] {
    let is_among = |stories: &[Scenario]| stories.iter().any(|story| story.name == scenario.name);
    match () {
        () if is_among(BROADCASTS) => &["broadcastjobs"],
        () if is_among(CRONS) => &["advancedcronjobs", "imagelistpulljobs", "imagepulljobs", "nodeimages"],
        () if is_among(PREFETCHES) => &["imagepulljobs", "nodeimages", "nodeimagesets"],
        () => {
            assert!(is_among(SCENARIOS));
            &["imagelistpulljobs", "imagepulljobs", "nodeimages"]
        }
    }
}

/// The writes to our kinds in a story under definitions that lack these fields, and how long it took, which is at most so
/// long: what waits for a field that is not there waits for ever.
async fn writes(scenario: &Scenario, fields: &[Field], most: Duration) -> (usize, Duration) {
    let mut cluster = Cluster::new();
    for (image, milliseconds) in scenario.images {
        cluster.publish(image, Duration::from_millis(*milliseconds));
    }
    for field in fields {
        take_out(&cluster, field).await;
    }
    cluster.add_nodes(scenario.nodes).await;
    cluster.start_controller();
    known(&cluster).await;
    let start = Instant::now();
    // Whether it ends makes no difference here.
    drop(tokio::time::timeout(most, (scenario.play)(&mut cluster)).await);
    let took = start.elapsed();
    tokio::time::sleep(ECHOES + IDLE).await;
    let count = |faults: &Faults| faults.journal().iter().filter(|entry| is_ours(entry)).count();
    let agents: usize = cluster.nodes.values().map(|node| count(&node.faults)).sum();
    (agents + count(&cluster.faults), took)
}

fn is_ours(entry: &Entry) -> bool {
    let is_write = matches!(entry.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete);
    is_write && GROUPS.iter().any(|group| entry.path.contains(&format!("/apis/{group}/")))
}

/// Applies a definition without this field.
async fn take_out(cluster: &Cluster, (plural, path): &Field) {
    let resource = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let definitions = api.list(&<_>::default()).await.expect("definitions").items;
    let has_plural = |definition: &DynamicObject| definition.data["spec"]["names"]["plural"] == *plural;
    let mut definition = definitions.into_iter().find(has_plural).expect("a definition");
    let name = definition.metadata.name.clone().expect("a definition has a name");
    for version in definition.data["spec"]["versions"].as_array_mut().expect("versions") {
        let (field, parents) = path.split_last().expect("a path");
        let schema =
            parents.iter().fold(&mut version["schema"]["openAPIV3Schema"], |schema, name| match *name {
                "*" if schema.get("items").is_some() => &mut schema["items"],
                "*" => &mut schema["additionalProperties"],
                name => &mut schema["properties"][name],
            });
        let properties = schema["properties"].as_object_mut().expect("an object with fields");
        assert!(properties.remove(*field).is_some(), "{name} has no {path:?}");
    }
    let _: DynamicObject =
        api.replace(&name, &PostParams::default(), &definition).await.expect("it is valid");
}

/// Plays a story under our definitions, then without each field and without all of them.
async fn compare(scenario: &Scenario) -> usize {
    let (usual, took) = writes(scenario, &[], Duration::MAX).await;
    let kinds = kinds(scenario);
    // Without it, that node goes on asking the registry in vain, and says so each time.
    let is_needed = |field: &Field| *field == REGISTRY_POLICY && scenario.name == REFUSED;
    let fields = FIELDS.into_iter().filter(|field| kinds.contains(&field.0) && !is_needed(field));
    let fields: Vec<Field> = fields.collect();
    let sets = fields.chunks(1).chain([fields.as_slice()]);
    let mut played = 0;
    for set in sets {
        let (count, _) = writes(scenario, set, took + SLACK).await;
        // A fifth, and in the shortest stories two: an agent that cannot tell its own report by its name, because a watch shows it before
        // the answer does and without that name, reports once more.
        let most = (usual * 6 / 5).max(usual + 2);
        assert!(count <= most, "{}: {count} writes instead of {usual} without {set:?}", scenario.name);
        played += 1;
    }
    played
}

pub fn lacking_a_field() -> Vec<String> {
    let scenarios = Victim::Controller.scenarios();
    let branches = Branches::default();
    let (_, ends) = branches.play(|| {
        for (number, scenario) in (1..).zip(&scenarios) {
            if branches.begin(number) {
                return on_paused_time(async { compare(scenario).await.to_string() });
            }
        }
        String::new()
    });
    let plays = ends.into_iter().map(|(number, end)| {
        let plays: Result<usize, _> = end.map(|plays| plays.parse().expect("it is the number of plays"));
        plays.unwrap_or_else(|panic| panic!("scenario {number}: {panic}"))
    });
    let plays: usize = plays.sum();
    vec![format!("counted: {plays} plays of {} scenarios without fields of ours", scenarios.len())]
}
