//! The floor: the writes of a run, sent again to new objects of the same server by a client that does nothing else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::{Method, Request};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

use super::record::Write;

/// Maps the objects of the run to the new ones.
pub struct Fresh {
    /// The prefix of node names, in the run and here.
    pub nodes: (&'static str, String),
    /// The namespace, in the run and here.
    pub namespace: (&'static str, String),
    /// The fresh objects, by their path.
    pub objects: HashMap<String, Arc<Mutex<Identity>>>,
}

/// A write that is ready to be sent.
struct Ready {
    method: Method,
    path: String,
    content_type: String,
    body: Text,
    object: Arc<Mutex<Identity>>,
}

enum Text {
    Fixed(Vec<u8>),
    /// Its guards use the version in the answer to the previous write.
    Guarded(Vec<Value>),
}

/// What is known of a fresh object.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Identity {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    /// A fresh object has 1, and every write to its spec adds one.
    pub generation: i64,
}

#[derive(Deserialize)]
struct Answer {
    metadata: Identity,
}

/// Sends all writes, this many at once; those of one object are sent one after the other.
pub async fn replay(
    client: &Client,
    writes: &[Write],
    fresh: &mut Fresh,
    at_once: usize,
) -> anyhow::Result<Duration> {
    let ready = prepare(writes, fresh)?;
    let start = Instant::now();
    stream::iter(ready)
        .map(|write| send(client, write))
        .buffer_unordered(at_once)
        .try_collect::<()>()
        .await?;
    Ok(start.elapsed())
}

fn prepare(writes: &[Write], fresh: &mut Fresh) -> anyhow::Result<Vec<Ready>> {
    let mut ready = Vec::new();
    for write in writes.iter().filter(|write| write.is_taken()) {
        if is_bound(write) {
            let (path, body) = (write.path.clone(), Text::Fixed(write.body.to_vec()));
            let (method, content_type) = (write.method.clone(), write.content_type.clone());
            ready.push(Ready { method, path, content_type, body, object: Arc::default() });
            continue;
        }
        let path = fresh.path(&write.path);
        let object = object_of(write, &fresh.path(write.place()))?;
        let object = fresh.objects.entry(object).or_default().clone();
        let body = fresh.body(write)?;
        let (method, content_type) = (write.method.clone(), write.content_type.clone());
        ready.push(Ready { method, path, content_type, body, object });
    }
    Ok(ready)
}

/// Whether it has to stay in its namespace: that of events about what is in none is fixed. Those of the run have to be gone.
fn is_bound(write: &Write) -> bool {
    let is_event = write.method == Method::POST && write.place().ends_with("/events");
    let event = || serde_json::from_slice::<Value>(&write.body).unwrap_or_default();
    is_event && event()["regarding"]["namespace"].is_null()
}

/// The path of the object that a write is about.
fn object_of(write: &Write, place: &str) -> anyhow::Result<String> {
    if write.method == Method::POST {
        let object: Value = serde_json::from_slice(&write.body)?;
        let name = object["metadata"]["name"].as_str().context("a made object has a name")?;
        return Ok(format!("{place}/{name}"));
    }
    Ok(place.trim_end_matches("/status").to_owned())
}

impl Fresh {
    fn path(&self, path: &str) -> String {
        let (old, new) = &self.nodes;
        let path = path.replace(&format!("/nodeimages/{old}"), &format!("/nodeimages/{new}"));
        let (old, new) = &self.namespace;
        path.replace(&format!("/namespaces/{old}/"), &format!("/namespaces/{new}/"))
    }

    fn body(&self, write: &Write) -> anyhow::Result<Text> {
        if write.method == Method::PATCH && write.content_type == "application/json-patch+json" {
            return Ok(Text::Guarded(serde_json::from_slice(&write.body)?));
        }
        let text = std::str::from_utf8(&write.body)?;
        let (old, new) = &self.namespace;
        let text = text.replace(&format!("\"namespace\":\"{old}\""), &format!("\"namespace\":\"{new}\""));
        Ok(Text::Fixed(text.into_bytes()))
    }
}

async fn send(client: &Client, write: Ready) -> anyhow::Result<()> {
    let mut object = write.object.lock().await;
    let body = match write.body {
        Text::Fixed(body) => body,
        Text::Guarded(mut operations) => {
            for operation in &mut operations {
                guard(operation, &object);
            }
            serde_json::to_vec(&operations)?
        }
    };
    let path = write.path;
    let mut request = Request::builder().method(write.method).uri(&path);
    if !write.content_type.is_empty() {
        request = request.header(http::header::CONTENT_TYPE, write.content_type);
    }
    let text =
        client.request_text(request.body(body)?).await.with_context(|| format!("sending {path} again"))?;
    if path.contains("/nodeimages/") {
        object.generation += i64::from(!path.contains("/status"));
    } else if !path.contains("/pods") {
        // Only jobs are guarded by a version, and a bare client reads nothing that it does not need.
        *object = serde_json::from_str::<Answer>(&text)?.metadata;
    }
    Ok(())
}

fn guard(operation: &mut Value, object: &Identity) {
    if operation["op"] != "test" {
        return;
    }
    match operation["path"].as_str() {
        Some("/metadata/uid") => operation["value"] = object.uid.as_deref().into(),
        Some("/metadata/generation") => operation["value"] = object.generation.into(),
        Some("/metadata/resourceVersion") => operation["value"] = object.resource_version.as_deref().into(),
        _ => {}
    }
}
