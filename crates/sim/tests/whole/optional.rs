//! Kinds that are left out: everything else works, the log says so once, and a kind is picked up when it appears.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use prewarm_api::kruise::BroadcastJobPhase;
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_embedded::faults::{Action, Faults, Filter, ScriptedFault, Verb};
use prewarm_sim::{Act, Cluster};
use serde_json::json;
use tracing::subscriber::DefaultGuard;

/// Kinds that can be left out, together or alone, each with the kinds that do nothing without it.
const OPTIONAL: [(&[&str], &[&str]); 6] = [
    // Cron jobs make lists.
    (&["imagelistpulljobs"], &["imagelistpulljobs", "advancedcronjobs"]),
    (&["broadcastjobs"], &["broadcastjobs"]),
    (&["advancedcronjobs"], &["advancedcronjobs"]),
    // An ImagePrefetch makes NodeImageSets.
    (&["imageprefetches"], &["imageprefetches"]),
    (&["nodeimagesets"], &["imageprefetches"]),
    (&["imageprefetches", "nodeimagesets"], &["imageprefetches"]),
];
/// Every definition of them.
const DEFINITIONS: [&str; 5] =
    ["imagelistpulljobs", "broadcastjobs", "advancedcronjobs", "imageprefetches", "nodeimagesets"];
/// The kinds whose objects people make.
const MADE: [&str; 4] = ["imagelistpulljobs", "broadcastjobs", "advancedcronjobs", "imageprefetches"];
/// So long until a kind that appears is looked for again.
const LOOKED_FOR: u64 = 40;

/// What the controller logs, which runs in the thread of its test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Begins to keep what is logged, until the second value is gone.
    fn keep() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// How many lines have this in them.
    fn count(&self, part: &str) -> usize {
        let text = String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned();
        text.lines().filter(|line| line.contains(part)).count()
    }
}

fn definitions(cluster: &Cluster) -> Api<CustomResourceDefinition> {
    Api::all(cluster.client.clone())
}

fn definition(plural: &str) -> &'static CustomResourceDefinition {
    prewarm_api::crd::all().iter().find(|crd| crd.spec.names.plural == plural).unwrap()
}

async fn undefine(cluster: &Cluster, plural: &str) {
    definitions(cluster).delete(&definition(plural).name_any(), &DeleteParams::default()).await.unwrap();
}

async fn define(cluster: &Cluster, plural: &str) {
    definitions(cluster).create(&PostParams::default(), definition(plural)).await.unwrap();
}

/// Two nodes and two images, without any controller.
async fn furnished() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.publish("a:1", Duration::from_secs(1));
    cluster.publish("b:1", Duration::from_secs(1));
    cluster.add_nodes(2).await;
    cluster
}

async fn a_job_works(cluster: &Cluster, name: &str) {
    // A job does not wait for nodes that have no NodeImage yet.
    for node in ["node-1", "node-2"] {
        cluster.node_image_within(60, node, |image| image.is_some()).await;
    }
    cluster.pull(name, json!({"image": "a:1", "parallelism": 2})).await;
    let status = cluster.finished_within(60, name).await.status.unwrap();
    assert_eq!((status.desired, status.succeeded), (2, 2));
}

async fn a_list_works(cluster: &Cluster, seconds: u64) {
    cluster.pull_list("stack", json!({"images": ["a:1"], "parallelism": 2})).await;
    let is_over = async || {
        let list = cluster.lists().get("stack").await.unwrap();
        list.status.is_some_and(|status| status.succeeded == 1)
    };
    cluster.within(Duration::from_secs(seconds), "the end of the list", is_over).await;
}

async fn a_broadcast_works(cluster: &Cluster, seconds: u64) {
    let _player = cluster.play(Act::Succeeds(Duration::from_secs(1)));
    cluster.broadcast("sweep", json!({})).await;
    let is_over = |status: &prewarm_api::kruise::BroadcastJobStatus| {
        status.phase == Some(BroadcastJobPhase::Completed) && status.succeeded == 2
    };
    cluster.broadcast_within(seconds, "sweep", |job| job.status.as_ref().is_some_and(is_over)).await;
}

async fn a_cron_job_works(cluster: &Cluster, seconds: u64) {
    let template = json!({"imageListPullJobTemplate": {"spec": {"images": ["a:1"]}}});
    cluster.cron("v1beta1", "nightly", &json!({"schedule": "*/1 * * * *", "template": template})).await;
    let has_run = |status: &prewarm_api::kruise::AdvancedCronJobStatus| status.last_schedule_time.is_some();
    cluster.cron_within(seconds, "nightly", |cron| cron.status.as_ref().is_some_and(has_run)).await;
}

async fn a_prefetch_works(cluster: &Cluster, seconds: u64) {
    let prefetch = json!({
        "apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch", "metadata": {"name": "kept"},
        "spec": {"images": ["b:1"], "allNodes": true},
    });
    let _kept: ImagePrefetch = cluster.create(prefetch).await;
    let prefetches: Api<ImagePrefetch> = Api::default_namespaced(cluster.client.clone());
    let sets: Api<NodeImageSet> = Api::all(cluster.client.clone());
    let is_over = async || {
        let prefetch = prefetches.get("kept").await.unwrap();
        let has_both = prefetch.status.is_some_and(|status| status.image_pulled_nodes == 2);
        has_both && sets.list(&ListParams::default()).await.unwrap().items.len() == 2
    };
    cluster.within(Duration::from_secs(seconds), "the ImagePrefetch on both nodes", is_over).await;
}

/// An object of a kind does its work, which begins within so many seconds.
async fn works(cluster: &Cluster, plural: &str, seconds: u64) {
    match plural {
        "imagelistpulljobs" => a_list_works(cluster, seconds + 60).await,
        "broadcastjobs" => a_broadcast_works(cluster, seconds + 60).await,
        "advancedcronjobs" => a_cron_job_works(cluster, seconds + 120).await,
        "imageprefetches" => a_prefetch_works(cluster, seconds + 60).await,
        other => panic!("{other} is not optional"),
    }
}

/// Everything but these kinds works.
async fn all_others_work(cluster: &Cluster, idle: &[&str]) {
    a_job_works(cluster, "warm").await;
    for other in MADE.iter().filter(|other| !idle.contains(other)) {
        works(cluster, other, 0).await;
    }
}

/// So do these, as soon as the controller has looked again.
async fn all_are_picked_up(cluster: &Cluster, idle: &[&str]) {
    for plural in idle {
        works(cluster, plural, LOOKED_FOR).await;
    }
    // An ImagePrefetch does not wait until its NodeImageSets can be watched.
    cluster.pass(LOOKED_FOR).await;
}

#[tokio::test(start_paused = true)]
async fn each_kind_may_be_undefined_which_is_said_once_until_it_appears() {
    for (absent, idle) in OPTIONAL {
        let (log, _kept) = Log::keep();
        let mut cluster = furnished().await;
        for plural in absent {
            undefine(&cluster, plural).await;
        }
        cluster.start_controller();
        all_others_work(&cluster, idle).await;
        cluster.pass(600).await;
        assert_eq!(log.count("left out: there is no such definition"), absent.len(), "{absent:?}");
        assert_eq!(log.count("can be watched"), 0, "{absent:?}");
        for plural in absent {
            define(&cluster, plural).await;
        }
        all_are_picked_up(&cluster, idle).await;
        assert_eq!(log.count("can be watched"), absent.len(), "{absent:?}");
        cluster.stop_controller().await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_kind_needs_only_its_own_rights_whose_lack_is_said_once_until_they_are_given() {
    for (hidden, idle) in OPTIONAL {
        let (log, _kept) = Log::keep();
        let mut cluster = furnished().await;
        let is_forbidden = Arc::new(AtomicBool::new(true));
        let refused = |plural: &str, verb| {
            let is_forbidden = Arc::clone(&is_forbidden);
            let is_chosen = move |_| is_forbidden.load(Ordering::Relaxed);
            ScriptedFault::when(is_chosen, Action::Forbidden).of(Filter::verb(verb).of(plural))
        };
        let refused =
            hidden.iter().flat_map(|plural| [Verb::List, Verb::Watch].map(|verb| refused(plural, verb)));
        cluster.faults = Faults::scripted(refused.collect());
        cluster.start_controller();
        all_others_work(&cluster, idle).await;
        cluster.pass(600).await;
        assert_eq!(log.count("left out: this account may not read it"), hidden.len(), "{hidden:?}");
        is_forbidden.store(false, Ordering::Relaxed);
        all_are_picked_up(&cluster, idle).await;
        assert_eq!(log.count("can be watched"), hidden.len(), "{hidden:?}");
        cluster.stop_controller().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_other_definitions_a_job_works_and_they_are_picked_up_when_they_appear() {
    let mut cluster = furnished().await;
    for plural in DEFINITIONS {
        undefine(&cluster, plural).await;
    }
    cluster.start_controller();
    a_job_works(&cluster, "warm").await;
    // What is not there is asked for now and then.
    let before = cluster.faults.journal().len();
    cluster.pass(600).await;
    let asked = cluster.faults.journal().len() - before;
    assert!(asked < 10 * 60, "{asked} requests in ten minutes");
    for plural in DEFINITIONS {
        define(&cluster, plural).await;
    }
    a_list_works(&cluster, LOOKED_FOR + 20).await;
    a_prefetch_works(&cluster, LOOKED_FOR + 20).await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_goes_takes_its_objects_along_and_nothing_else() {
    let mut cluster = furnished().await;
    cluster.start_controller();
    a_list_works(&cluster, 60).await;
    undefine(&cluster, "imagelistpulljobs").await;
    cluster.pass(LOOKED_FOR).await;
    a_job_works(&cluster, "warm").await;
    define(&cluster, "imagelistpulljobs").await;
    cluster.pass(LOOKED_FOR).await;
    a_list_works(&cluster, 60).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_rights_to_the_other_kinds_a_job_works() {
    let mut cluster = furnished().await;
    let refused = |verb, plural| ScriptedFault::always(Action::Forbidden).of(Filter::verb(verb).of(plural));
    let refused =
        DEFINITIONS.iter().flat_map(|plural| [Verb::List, Verb::Watch].map(|verb| refused(verb, plural)));
    cluster.faults = Faults::scripted(refused.collect());
    cluster.start_controller();
    a_job_works(&cluster, "warm").await;
}

#[tokio::test(start_paused = true)]
async fn without_the_definition_of_jobs_entries_by_hand_are_pulled() {
    let mut cluster = furnished().await;
    undefine(&cluster, "imagepulljobs").await;
    cluster.start_controller();
    cluster.node_image_within(60, "node-1", |image| image.is_some()).await;
    let spec = json!({"spec": {"images": {"a": {"tags": [{"tag": "1", "version": 1, "pullPolicy": {"ttlSecondsAfterFinished": 600}}]}}}});
    let patch = kube::api::Patch::Merge(spec);
    cluster.node_images().patch("node-1", &kube::api::PatchParams::default(), &patch).await.unwrap();
    let is_pulled = async || cluster.nodes["node-1"].runtime.has("a:1");
    cluster.within(Duration::from_mins(1), "the entry by hand", is_pulled).await;
    define(&cluster, "imagepulljobs").await;
    cluster.pass(LOOKED_FOR).await;
    a_job_works(&cluster, "warm").await;
}

/// The names of the checks that fail.
fn failing(cluster: &Cluster) -> Vec<&'static str> {
    cluster.readiness().err().into_iter().flatten().map(|(name, _)| name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_definitions_are_deleted_is_not_ready_until_they_are_back() {
    let mut cluster = furnished().await;
    cluster.start_controller();
    a_job_works(&cluster, "first").await;
    assert_eq!(failing(&cluster), [""; 0]);
    let all = [&["nodeimages", "imagepulljobs"], &DEFINITIONS[..]].concat();
    for plural in &all {
        undefine(&cluster, plural).await;
    }
    cluster.pass(LOOKED_FOR).await;
    assert_eq!(failing(&cluster), ["definitions"]);
    for plural in &all {
        define(&cluster, plural).await;
    }
    cluster.pass(LOOKED_FOR).await;
    assert_eq!(failing(&cluster), [""; 0]);
}

/// Applies a definition whose status has no conditions.
async fn forget_conditions(cluster: &Cluster, plural: &str) {
    let name = format!("{plural}.apps.kruise.io");
    let mut definition = definitions(cluster).get(&name).await.unwrap();
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()).unwrap();
        let status = schema.properties.as_mut().and_then(|properties| properties.get_mut("status")).unwrap();
        assert!(status.properties.as_mut().unwrap().remove("conditions").is_some());
    }
    definitions(cluster).replace(&name, &PostParams::default(), &definition).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fields_that_the_server_drops_are_named_by_the_probe_and_by_one_event() {
    let mut cluster = furnished().await;
    forget_conditions(&cluster, "imagepulljobs").await;
    cluster.start_controller();
    cluster.pull("one", json!({"image": "a:1", "completionPolicy": {"type": "Never"}})).await;
    cluster.pull("two", json!({"image": "a:1", "completionPolicy": {"type": "Never"}})).await;
    cluster.pass(60).await;
    let writes = cluster.faults.writes();
    cluster.pass(120).await;
    assert_eq!(cluster.faults.writes(), writes, "an idle cluster is quiet");
    let remark = cluster.readiness().unwrap();
    assert!(remark.starts_with("leader; ") && remark.contains("conditions of image_pull_job"), "{remark}");
    let events = cluster.events().await.into_iter();
    let told = events.filter(|event| event.reason.as_deref() == Some("FieldsNotKept")).count();
    assert_eq!(told, 1);
}
