//! Registries that fail. Every failure has its class, message and event, and the pull succeeds once the registry
//! has recovered.

use anyhow::{Context as _, ensure};
use http::StatusCode;
use k8s_openapi::api::events::v1::Event;
use prewarm_api::kruise::{FailureClass, ImageTagSpec, ImageTagStatus, PullPhase};
use prewarm_api::names::event::PULL_IMAGE_FAILED;
use prewarm_api::reference_object::ObjectReference;
use prewarm_testkit::image::{Artifact, Image, Layer};
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{FaultProxy, Node, Runtime, wait};

use crate::cluster::Cluster;
use crate::desk::{Desk, entry, find, spec};
use crate::program::Agent;

const ATTEMPTS: i32 = 2;
/// Long enough for the first answer of a runtime, and short enough to wait for it twice.
const HANG_SECONDS: i32 = 3;
/// All faults at once.
const PARALLEL: [&str; 2] = ["--max-parallel-pulls", "20"];

/// A way in which a registry fails.
struct Trouble {
    name: &'static str,
    cause: Cause,
    class: FailureClass,
}

enum Cause {
    Answer(On, Fault),
    NobodyListens,
    NobodyKnowsTheName,
    Untrusted,
}

fn troubles() -> Vec<Trouble> {
    let layer = |name| On::Path(image(name).blobs[1].digest.clone());
    let status = |status| Fault::Status(status);
    let answer = |name, on, fault, class| Trouble { name, cause: Cause::Answer(on, fault), class };
    let trouble = |name, cause, class| Trouble { name, cause, class };
    vec![
        answer("s401", On::Manifests, status(StatusCode::UNAUTHORIZED), FailureClass::Unauthorized),
        answer("s403", On::Manifests, status(StatusCode::FORBIDDEN), FailureClass::Unauthorized),
        answer("s404", On::Manifests, status(StatusCode::NOT_FOUND), FailureClass::NotFound),
        answer(
            "s429",
            On::Manifests,
            Fault::RetryAfter(StatusCode::TOO_MANY_REQUESTS, 1),
            FailureClass::RateLimited,
        ),
        answer("s500", On::Manifests, status(StatusCode::INTERNAL_SERVER_ERROR), FailureClass::Unreachable),
        answer("s503", On::Blobs, status(StatusCode::SERVICE_UNAVAILABLE), FailureClass::Unreachable),
        answer("reset", On::Anything, Fault::Reset, FailureClass::Unreachable),
        answer("hang", On::Manifests, Fault::Hang, FailureClass::TimedOut),
        answer("stall", layer("stall"), Fault::Stall(1000), FailureClass::TimedOut),
        // Not a single byte is sent, because containerd would continue where an answer broke off.
        answer("short", layer("short"), Fault::Truncate(0), FailureClass::Corrupt),
        answer("wrong", layer("wrong"), Fault::WrongBytes, FailureClass::Corrupt),
        trouble("refused", Cause::NobodyListens, FailureClass::Unreachable),
        trouble("nameless", Cause::NobodyKnowsTheName, FailureClass::Unreachable),
        trouble("untrusted", Cause::Untrusted, FailureClass::Tls),
    ]
}

/// Each trouble has an image of its own, because runtimes share the common parts of images.
fn image(name: &str) -> Artifact {
    Image::new(name).layer(Layer::of(500_000)).build()
}

/// A node that reaches each trouble under a host of its own.
struct Scene {
    node: Node,
    desk: Desk,
    agent: Agent,
    namespace: String,
    troubles: Vec<(Trouble, FaultProxy)>,
}

impl Scene {
    async fn set(runtime: Runtime) -> anyhow::Result<Self> {
        let cluster = Cluster::shared().await?;
        let node = cluster.node(runtime).await?;
        let mut meeting = Vec::new();
        for trouble in troubles() {
            cluster.registry.push(&repository(&trouble), &["v1"], &image(trouble.name)).await?;
            let proxy = FaultProxy::start(&cluster.registry).await?;
            meet(&trouble, &proxy, &node, cluster).await?;
            meeting.push((trouble, proxy));
        }
        let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &PARALLEL).await?);
        let namespace = cluster.server.namespace().await?;
        Ok(Self { node, desk, agent, namespace, troubles: meeting })
    }

    /// Asks for one image of each host, each for a job of its own.
    async fn ask(&self, backoff_limit: i32) -> anyhow::Result<()> {
        let names: Vec<String> = self.troubles.iter().map(|(trouble, _)| name(trouble)).collect();
        let entries = self.troubles.iter().map(|(trouble, _)| {
            let owner = ObjectReference {
                api_version: Some("apps.kruise.io/v1beta1".to_owned()),
                kind: Some("ImagePullJob".to_owned()),
                namespace: Some(self.namespace.clone()),
                name: Some(trouble.name.to_owned()),
                uid: Some(format!("uid-of-{}", trouble.name)),
                ..ObjectReference::default()
            };
            let mut entry = ImageTagSpec { owner_references: Some(vec![owner]), ..entry("v1") };
            entry.pull_policy.backoff_limit = backoff_limit;
            if matches!(trouble.cause, Cause::Answer(_, Fault::Hang | Fault::Stall(_))) {
                entry.pull_policy.timeout_seconds = HANG_SECONDS;
            }
            vec![entry]
        });
        self.desk.ask(&spec(names.iter().map(String::as_str).zip(entries))).await
    }

    /// Ends all troubles.
    fn heal(&self) -> anyhow::Result<()> {
        for (trouble, proxy) in &self.troubles {
            proxy.heal();
            if !matches!(trouble.cause, Cause::Answer(..)) {
                self.node.lead(&host(trouble), proxy)?;
            }
        }
        Ok(())
    }
}

async fn meet(
    trouble: &Trouble,
    proxy: &FaultProxy,
    node: &Node,
    cluster: &'static Cluster,
) -> anyhow::Result<()> {
    let host = host(trouble);
    match &trouble.cause {
        Cause::Answer(on, fault) => {
            proxy.fail(on.clone(), fault.clone());
            node.lead(&host, proxy)
        }
        Cause::NobodyListens => node.lead(&host, "http://10.77.0.1:9"),
        Cause::NobodyKnowsTheName => node.lead(&host, "http://no-such-host.example"),
        Cause::Untrusted => {
            let untrusted = FaultProxy::start_untrusted(&cluster.registry).await?;
            node.lead(&host, &untrusted)?;
            // It serves until the test ends.
            std::mem::forget(untrusted);
            Ok(())
        }
    }
}

fn host(trouble: &Trouble) -> String {
    format!("{}.example", trouble.name)
}

fn name(trouble: &Trouble) -> String {
    format!("{}/{}", host(trouble), repository(trouble))
}

fn repository(trouble: &Trouble) -> String {
    format!("faults/{}", trouble.name)
}

pub async fn every_fault_has_its_class_its_sentence_and_its_event_on_containerd() -> anyhow::Result<()> {
    every_fault_has_its_class_its_sentence_and_its_event(Runtime::Containerd).await
}

pub async fn every_fault_has_its_class_its_sentence_and_its_event_on_cri_o() -> anyhow::Result<()> {
    every_fault_has_its_class_its_sentence_and_its_event(Runtime::Crio).await
}

async fn every_fault_has_its_class_its_sentence_and_its_event(runtime: Runtime) -> anyhow::Result<()> {
    let scene = Scene::set(runtime).await?;
    scene.ask(ATTEMPTS - 1).await?;
    let status = scene.desk.settled(scene.troubles.len()).await?;
    let mut wrong = Vec::new();
    for (trouble, _) in &scene.troubles {
        let tag = find(&status, &name(trouble), "v1").context("every entry has a status")?;
        wrong.extend(complaint(trouble, tag).map(|what| format!("{}: {what}: {tag:?}", trouble.name)));
    }
    ensure!(wrong.is_empty(), "on {runtime:?}:\n{}", wrong.join("\n"));
    for (trouble, _) in &scene.troubles {
        let tag = find(&status, &name(trouble), "v1").context("every entry has a status")?;
        job_has_event(&scene, trouble, tag).await?;
    }
    node_image_has_events(&scene).await?;
    scene.agent.process.check()
}

/// What is wrong with the report of a failure, if anything.
fn complaint(trouble: &Trouble, tag: &ImageTagStatus) -> Option<&'static str> {
    let message = tag.message.as_deref().unwrap_or_default();
    let what = format!("cannot pull {}:v1: ", name(trouble));
    let count = format!("(attempt {ATTEMPTS} of {ATTEMPTS})");
    let advice = message.rsplit("; ").next().unwrap_or_default();
    let is_advice_about_it = advice.contains(&host(trouble)) || trouble.class == FailureClass::Unauthorized;
    [
        (tag.phase == PullPhase::Failed, "it did not fail"),
        (tag.failure_class == Some(trouble.class), "it has another class"),
        (tag.failed_attempts == ATTEMPTS, "its attempts are not counted"),
        (tag.completion_time.is_some(), "it has no end"),
        (message.starts_with(&what), "its message does not say what failed"),
        (message.contains(&count), "its message does not count attempts"),
        (message.contains("; ") && is_advice_about_it, "its message does not say what to do"),
        (message.len() <= 512, "its message is too long"),
    ]
    .into_iter()
    .find_map(|(holds, complaint)| (!holds).then_some(complaint))
}

/// The job has exactly one event, a warning with the message of the status.
async fn job_has_event(scene: &Scene, trouble: &Trouble, tag: &ImageTagStatus) -> anyhow::Result<()> {
    let events = wait::until(&format!("the event of {}", trouble.name), async || {
        let events = scene.desk.events("ImagePullJob", trouble.name).await?;
        let of_this_node = |event: &Event| {
            event.metadata.namespace.as_deref() == Some(&scene.namespace)
                && event.reporting_instance.as_deref() == Some(scene.node.name())
        };
        let events: Vec<Event> = events.into_iter().filter(of_this_node).collect();
        Ok((!events.is_empty()).then_some(events))
    })
    .await?;
    let note = format!("on node {}: {}", scene.node.name(), tag.message.as_deref().unwrap_or_default());
    ensure!(events.len() == 1, "{events:#?}");
    ensure!(is_warning(&events[0]) && events[0].note.as_deref() == Some(&note), "{:#?}", events[0]);
    Ok(())
}

/// The NodeImage has one event for each class, and at most one more for later failures.
async fn node_image_has_events(scene: &Scene) -> anyhow::Result<()> {
    let mut classes: Vec<FailureClass> = scene.troubles.iter().map(|(trouble, _)| trouble.class).collect();
    classes.sort();
    classes.dedup();
    let events = wait::until("an event for each class", async || {
        let events = scene.desk.events("NodeImage", scene.node.name()).await?;
        let warnings: Vec<Event> = events.into_iter().filter(is_warning).collect();
        Ok((warnings.len() >= classes.len()).then_some(warnings))
    })
    .await?;
    ensure!(events.len() <= 2 * classes.len(), "{events:#?}");
    Ok(())
}

fn is_warning(event: &Event) -> bool {
    event.type_.as_deref() == Some("Warning") && event.reason.as_deref() == Some(PULL_IMAGE_FAILED)
}

pub async fn every_fault_that_heals_ends_well_on_containerd() -> anyhow::Result<()> {
    every_fault_that_heals_ends_well(Runtime::Containerd).await
}

pub async fn every_fault_that_heals_ends_well_on_cri_o() -> anyhow::Result<()> {
    every_fault_that_heals_ends_well(Runtime::Crio).await
}

async fn every_fault_that_heals_ends_well(runtime: Runtime) -> anyhow::Result<()> {
    let scene = Scene::set(runtime).await?;
    scene.ask(20).await?;
    let all_failed_once = |status: &prewarm_api::kruise::NodeImageStatus| {
        let tag = |trouble: &Trouble| find(status, &name(trouble), "v1");
        let has_failed = |(trouble, _): &(Trouble, FaultProxy)| {
            tag(trouble)
                .is_some_and(|tag| tag.failed_attempts > 0 && tag.failure_class == Some(trouble.class))
        };
        scene.troubles.iter().all(has_failed).then_some(())
    };
    scene.desk.until("each to fail once", all_failed_once).await?;
    scene.heal()?;
    let status = scene.desk.settled(scene.troubles.len()).await?;
    ensure!(status.failed == 0, "{status:#?}");
    for (trouble, _) in &scene.troubles {
        let tag = find(&status, &name(trouble), "v1").context("every entry has a status")?;
        ensure!(tag.message.is_none() && tag.failure_class.is_none() && tag.failed_attempts > 0, "{tag:?}");
        ensure!(
            scene
                .desk
                .events("ImagePullJob", trouble.name)
                .await?
                .iter()
                .all(|event| { event.metadata.namespace.as_deref() != Some(&scene.namespace) }),
            "{} reports a failure that was repaired",
            trouble.name
        );
    }
    Ok(())
}
