//! A real API server takes the agent's events, which it checks more strictly than the embedded one.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use prewarm_agent::{Events, Metrics, events};
use prewarm_api::kruise::FailureClass;
use prewarm_clock::MachineClock;
use prewarm_plan::agent::kruise;
use prewarm_plan::agent::worklist::{Ended, Ending};
use prewarm_testkit::{ApiServer, real_tests, wait};
use serde_json::json;

real_tests! {
    events_with_the_longest_names_and_texts_are_taken,
    a_failure_that_repeats_counts_its_event_up,
    two_nodes_that_fail_alike_record_one_event_of_the_job,
}

fn ending(namespace: &str, job: &str, message: &str) -> anyhow::Result<Ending> {
    let owner = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "namespace": namespace, "name": job, "uid": "0a1b2c3d",
    });
    let entry =
        json!({ "tag": "v1", "pullPolicy": { "ttlSecondsAfterFinished": 1 }, "ownerReferences": [owner] });
    let spec = json!({ "images": { "registry.example/web": { "tags": [entry] } } });
    let task = kruise::read(&spec).tasks.into_values().next().context("the spec has one task")?;
    let result = Ended::Failed { class: FailureClass::NotFound, message: Some(message.to_owned()) };
    Ok(Ending { task, result, took: Duration::from_secs(1) })
}

/// An agent's events on a node, and their writer at work.
fn start(server: &ApiServer, node: &str) -> anyhow::Result<(Events, tokio::task::JoinHandle<()>)> {
    let (events, writer) = events(server.client()?, node, Arc::new(MachineClock), Metrics::new());
    events.set_uid(Some("4e5f6a7b".to_owned()));
    Ok((events, tokio::spawn(writer.run())))
}

async fn listed(api: &Api<Event>, node: &str) -> anyhow::Result<Vec<Event>> {
    let mut events = api.list(&ListParams::default()).await?.items;
    events.retain(|event| {
        event.reporting_instance.as_deref().is_some_and(|instance| node.starts_with(instance))
    });
    Ok(events)
}

async fn events_with_the_longest_names_and_texts_are_taken() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let namespace = server.namespace().await?;
    let (node, job) = (format!("n{}", "o".repeat(252)), format!("{}.job", "j".repeat(249)));
    let (events, writer) = start(server, &node)?;
    events.record(&ending(&namespace, &job, &"ü".repeat(3000))?);
    drop(events);
    writer.await?;
    for namespace in ["default", &namespace] {
        let written = listed(&Api::namespaced(server.client()?, namespace), &node).await?;
        ensure!(written.len() == 1, "{namespace}: {written:?}");
        ensure!(written[0].note.as_ref().is_some_and(|note| note.len() > 1000), "{written:?}");
    }
    Ok(())
}

async fn a_failure_that_repeats_counts_its_event_up() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let namespace = server.namespace().await?;
    let api = Api::<Event>::namespaced(server.client()?, "default");
    let (events, writer) = start(server, "node-of-repeats")?;
    let ending = ending(&namespace, "warm", "cannot pull web:v1")?;
    events.record(&ending);
    let first = async || Ok(listed(&api, "node-of-repeats").await?.pop());
    wait::until("the first event", first).await?;
    events.record(&ending);
    events.record(&ending);
    drop(events);
    writer.await?;
    let written = listed(&api, "node-of-repeats").await?;
    let counts: Vec<_> =
        written.iter().map(|event| event.series.as_ref().map(|series| series.count)).collect();
    ensure!(counts == [Some(3)], "{written:?}");
    Ok(())
}

async fn two_nodes_that_fail_alike_record_one_event_of_the_job() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let namespace = server.namespace().await?;
    let ending = ending(&namespace, "warm", "cannot pull web:v1")?;
    for node in ["one-of-two", "other-of-two"] {
        let (events, writer) = start(server, node)?;
        events.record(&ending);
        drop(events);
        writer.await?;
    }
    let api = Api::<Event>::namespaced(server.client()?, &namespace);
    let written = api.list(&kube::api::ListParams::default()).await?.items;
    ensure!(written.len() == 1, "{written:?}");
    Ok(())
}
