//! Credentials that are right, wrong, late, rotated and malformed; none of them is ever visible.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use prewarm_api::kruise::{
    FailureClass, ImageTagSpec, ImageTagStatus, NodeImageSpec, PullPhase, SecretReference,
};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_testkit::image::{Image, Layer};
use prewarm_testkit::registry::Challenge;
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{FaultProxy, Node, Runtime};
use serde_json::{Value, json};

use crate::cluster::{Cluster, apply};
use crate::desk::{Desk, entry, spec};
use crate::program::Agent;

const REPOSITORY: &str = "secrets/web";
const USER: &str = "warmer";
const RIGHT: &str = "correct-horse-battery-staple";
const WRONG: &str = "tr0ub4dor-and-3";
/// The most verbose log level.
const TELL_ALL: [&str; 4] = ["--log-level", "trace", "--max-parallel-pulls", "8"];

/// A registry for one case, which admits one user.
struct Case {
    proxy: FaultProxy,
    name: String,
    secret: String,
}

impl Case {
    async fn new(label: &str, node: &Node, challenge: Challenge) -> anyhow::Result<Self> {
        let proxy = FaultProxy::start(&Cluster::shared().await?.registry).await?;
        proxy.require(USER, RIGHT, challenge);
        // CRI-O sends credentials only to the host that the name contains.
        node.lead(proxy.host(), &proxy)?;
        let name = format!("{}/{REPOSITORY}", proxy.host());
        Ok(Self { name, secret: format!("{}-{label}", node.name()), proxy })
    }

    fn image(&self) -> (&str, &str) {
        (&self.name, "v1")
    }

    /// Writes the Secret of this case with a password.
    async fn write(&self, desk: &Desk, password: &str) -> anyhow::Result<()> {
        let config = json!({ "auths": { self.proxy.host(): { "username": USER, "password": password } } });
        write(desk, &self.secret, "kubernetes.io/dockerconfigjson", ".dockerconfigjson", &config.to_string())
            .await
    }
}

async fn write(desk: &Desk, name: &str, kind: &str, key: &str, content: &str) -> anyhow::Result<()> {
    let api = Api::<Secret>::namespaced(desk.client.clone(), DEFAULT_CONFIG_NAMESPACE);
    let secret = json!({ "metadata": { "name": name }, "type": kind, "stringData": { key: content } });
    apply(&api, secret).await.map(drop)
}

fn named(name: &str) -> SecretReference {
    let namespace = Some(DEFAULT_CONFIG_NAMESPACE.to_owned());
    SecretReference { namespace, name: Some(name.to_owned()), mode: None }
}

/// One image for each case, with its Secret and this many repetitions.
fn wish<'a>(cases: impl IntoIterator<Item = (&'a Case, i32)>) -> NodeImageSpec {
    let mut wish = NodeImageSpec::default();
    for (case, repetitions) in cases {
        let mut tag: ImageTagSpec = entry("v1");
        tag.pull_policy.backoff_limit = repetitions;
        let mut one = spec([(case.name.as_str(), vec![tag])]);
        for image in one.images.values_mut() {
            image.pull_secrets = Some(vec![named(&case.secret)]);
        }
        wish.images.append(&mut one.images);
    }
    wish
}

async fn push() -> anyhow::Result<&'static Cluster> {
    let cluster = Cluster::shared().await?;
    let image = Image::new("secrets").layer(Layer::of(100_000)).build();
    cluster.registry.push(REPOSITORY, &["v1"], &image).await?;
    Ok(cluster)
}

pub async fn secrets_good_wrong_late_and_rotated_are_used_on_containerd() -> anyhow::Result<()> {
    secrets_good_wrong_late_and_rotated_are_used(Runtime::Containerd, Challenge::Token).await
}

pub async fn secrets_good_wrong_late_and_rotated_are_used_on_cri_o() -> anyhow::Result<()> {
    secrets_good_wrong_late_and_rotated_are_used(Runtime::Crio, Challenge::Basic).await
}

async fn secrets_good_wrong_late_and_rotated_are_used(
    runtime: Runtime,
    challenge: Challenge,
) -> anyhow::Result<()> {
    let cluster = push().await?;
    let node = cluster.node(runtime).await?;
    let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &TELL_ALL).await?);
    let good = Case::new("good", &node, challenge).await?;
    let late = Case::new("late", &node, challenge).await?;
    let rotated = Case::new("rotated", &node, challenge).await?;
    let corrected = Case::new("corrected", &node, challenge).await?;
    good.write(&desk, RIGHT).await?;
    rotated.write(&desk, WRONG).await?;
    corrected.write(&desk, WRONG).await?;
    desk.ask(&wish([(&good, 0), (&late, 20), (&rotated, 20), (&corrected, 0)])).await?;

    let tag = desk.succeeded(good.image(), 0).await?;
    ensure!(tag.failed_attempts == 0, "{tag:?}");
    // A message alone may have another cause, such as waiting for other pulls.
    let why_refused = |tag: &ImageTagStatus| tag.failure_class.and(tag.message.clone());
    let refusal = desk.until_tag("to be refused", late.image(), why_refused).await?;
    let missing = format!("credentials: secret {DEFAULT_CONFIG_NAMESPACE}/{} does not exist", late.secret);
    ensure!(refusal.contains(&missing) && refusal.contains("not authorized"), "{refusal}");
    late.write(&desk, RIGHT).await?;
    let is_refused = |tag: &ImageTagStatus| tag.failure_class;
    let class = desk.until_tag("to be refused", rotated.image(), is_refused).await?;
    ensure!(class == FailureClass::Unauthorized, "{class:?}");
    rotated.write(&desk, RIGHT).await?;
    // All attempts are used up, but a change of the Secret leads to another one.
    let failed = desk.ended(corrected.image(), 0).await?;
    ensure!(failed.phase == PullPhase::Failed && failed.failed_attempts == 1, "{failed:?}");
    ensure!(failed.failure_class == Some(FailureClass::Unauthorized), "{failed:?}");
    corrected.write(&desk, RIGHT).await?;
    for case in [&late, &rotated, &corrected] {
        let is_there = |tag: &ImageTagStatus| (tag.phase == PullPhase::Succeeded).then_some(());
        desk.until_tag("to succeed", case.image(), is_there).await?;
    }
    agent.was_refused_nothing()?;
    nothing_is_seen_of(&[RIGHT, WRONG], &desk, &agent).await
}

pub async fn nothing_of_a_malformed_secret_is_seen_anywhere() -> anyhow::Result<()> {
    const PARTS: [&str; 5] = [
        "not-base64-xyzzy",
        "no-object-plugh",
        "number-and-frobozz",
        "half-a-document-zork",
        "long-lost-grue",
    ];
    let cluster = push().await?;
    for runtime in Runtime::ALL {
        let node = cluster.node(runtime).await?;
        let (desk, agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &TELL_ALL).await?);
        let case = Case::new("malformed", &node, Challenge::Basic).await?;
        let host = case.proxy.host();
        let long = PARTS[4].repeat(20_000);
        let contents = [
            (
                "kubernetes.io/dockerconfigjson",
                json!({ "auths": { host: { "auth": PARTS[0] } } }).to_string(),
            ),
            ("kubernetes.io/dockerconfigjson", json!({ "auths": PARTS[1] }).to_string()),
            ("kubernetes.io/dockercfg", json!({ host: { "username": 5, "password": PARTS[2] } }).to_string()),
            ("example.com/odd", format!("{{ \"auths\": {{ \"{}", PARTS[3])),
            (
                "kubernetes.io/dockerconfigjson",
                json!({ "auths": { host: { "username": USER, "password": long } } }).to_string(),
            ),
        ];
        let mut wish = wish([(&case, 1)]);
        let mut secrets = Vec::new();
        for (number, (kind, content)) in contents.iter().enumerate() {
            let name = format!("{}-{number}", case.secret);
            let key = if kind.ends_with("dockercfg") { ".dockercfg" } else { ".dockerconfigjson" };
            write(&desk, &name, kind, key, content).await?;
            secrets.push(named(&name));
        }
        for image in wish.images.values_mut() {
            image.pull_secrets = Some(secrets.clone());
        }
        desk.ask(&wish).await?;
        let tag = desk.ended(case.image(), 0).await?;
        ensure!(tag.failure_class == Some(FailureClass::Unauthorized), "{runtime:?}: {tag:?}");
        let message = tag.message.context("a failure has a message")?;
        let problem = format!("; credentials: secret {DEFAULT_CONFIG_NAMESPACE}/{}", node.name());
        ensure!(message.contains(&problem), "{message}");
        nothing_is_seen_of(&PARTS, &desk, &agent).await?;
    }
    Ok(())
}

/// Searches the status, all events, the metrics and the log for texts, plain and in base64.
async fn nothing_is_seen_of(texts: &[&str], desk: &Desk, agent: &Agent) -> anyhow::Result<()> {
    let events = Api::<Event>::all(desk.client.clone()).list(&ListParams::default()).await?;
    let log = agent.process.log();
    ensure!(log.contains("TRACE"), "the log is not as verbose as it could be");
    let status: Value = json!(desk.status().await?);
    let places = [
        ("the status", status.to_string()),
        ("events", json!(events.items).to_string()),
        ("the metrics", agent.metrics().await?),
        ("the log", log),
    ];
    for (place, seen) in &places {
        for text in texts {
            for form in [(*text).to_owned(), base64(text), base64(&format!("{USER}:{text}"))] {
                ensure!(!seen.contains(&form), "{place} shows {form}");
            }
        }
    }
    Ok(())
}

fn base64(text: &str) -> String {
    let encoded = json!(k8s_openapi::ByteString(text.as_bytes().to_vec()));
    // Without the end, which depends on the bytes that follow.
    encoded.as_str().unwrap_or_default().trim_end_matches('=').to_owned()
}

pub async fn a_refused_credential_does_not_keep_a_public_image_away() -> anyhow::Result<()> {
    let cluster = push().await?;
    for runtime in Runtime::ALL {
        let node = cluster.node(runtime).await?;
        let (desk, _agent) = (cluster.desk(&node)?, Agent::start(cluster, &node, &[]).await?);
        let proxy = FaultProxy::start(&cluster.registry).await?;
        node.lead(proxy.host(), &proxy)?;
        let case = Case {
            name: format!("{}/{REPOSITORY}", proxy.host()),
            secret: format!("{}-stale", node.name()),
            proxy,
        };
        case.write(&desk, WRONG).await?;
        // The registry refuses as many requests as one pull makes. The next pull must come without a credential, because
        // there is only one credential and one attempt.
        let refusal = Fault::Status(http::StatusCode::UNAUTHORIZED);
        case.proxy.fail(On::Manifests, refusal.clone());
        ensure!(node.cri()?.pull(&format!("{}:v1", case.name), None).await.is_err());
        let of_one_pull = case.proxy.requests_on(&On::Manifests).len();
        case.proxy.heal();
        case.proxy.fail_times(of_one_pull, On::Manifests, refusal);
        desk.ask(&wish([(&case, 0)])).await?;
        let tag = desk.succeeded(case.image(), 0).await?;
        ensure!(tag.failed_attempts == 0, "{runtime:?}: {tag:?}");
    }
    Ok(())
}
