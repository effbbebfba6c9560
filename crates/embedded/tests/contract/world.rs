//! What a case works with: a client, a namespace of its own, and requests with complete answers.

use anyhow::{Context as _, bail, ensure};
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::Side;

/// A definition that is not ours.
const WIDGET: &str = include_str!("widget.json");

/// The part of the server that belongs to one case.
#[derive(Clone)]
pub struct World {
    pub client: Client,
    pub namespace: String,
    side: Side,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub body: Value,
    pub text: String,
}

#[allow(dead_code, reason = "a case file uses what it needs")]
impl World {
    pub async fn new(client: &Client, side: Side, number: usize) -> anyhow::Result<Self> {
        let world = Self { client: client.clone(), namespace: format!("case-{number}"), side };
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": world.namespace },
        });
        world.post("/api/v1/namespaces", &namespace).await?.ok(201)?;
        Ok(world)
    }

    /// Whether the case runs on the embedded server. Only for wording that may differ, never for behaviour.
    pub fn is_embedded(&self) -> bool {
        self.side == Side::Embedded
    }

    /// A name that no other case has, for cluster-scoped objects.
    pub fn unique(&self, name: &str) -> String {
        format!("{name}-{}", self.namespace)
    }

    /// The path of a core resource in the case's namespace, with what follows: `configmaps/one`.
    pub fn core(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    /// The path of a resource of a group in the case's namespace: `at("apps/v1", "deployments")`.
    pub fn at(&self, group_version: &str, rest: &str) -> String {
        format!("/apis/{group_version}/namespaces/{}/{rest}", self.namespace)
    }

    /// The path of the case's widgets, or of one: `widgets("")`, `widgets("/one/status")`.
    pub fn widgets(&self, rest: &str) -> String {
        self.at("contract.example.com/v1beta1", &format!("widgets{rest}"))
    }

    pub async fn make_widget(&self, name: &str, spec: Value) -> anyhow::Result<Value> {
        self.post(&self.widgets(""), &widget(name, spec)).await?.ok(201)
    }

    /// Creates a config map with one entry.
    pub async fn make_map(&self, name: &str) -> anyhow::Result<Value> {
        self.post(&self.core("configmaps"), &map(name)).await?.ok(201)
    }

    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send("GET", path, "", Vec::new()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send("POST", path, "application/json", serde_json::to_vec(body)?).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send("PUT", path, "application/json", serde_json::to_vec(body)?).await
    }

    pub async fn merge(&self, path: &str, patch: &Value) -> anyhow::Result<Answer> {
        self.send("PATCH", path, "application/merge-patch+json", serde_json::to_vec(patch)?).await
    }

    pub async fn json_patch(&self, path: &str, patch: &Value) -> anyhow::Result<Answer> {
        self.send("PATCH", path, "application/json-patch+json", serde_json::to_vec(patch)?).await
    }

    /// `options` are `DeleteOptions`, or null for none.
    pub async fn delete(&self, path: &str, options: &Value) -> anyhow::Result<Answer> {
        let body = if options.is_null() { Vec::new() } else { serde_json::to_vec(options)? };
        self.send("DELETE", path, "application/json", body).await
    }

    /// Sends bytes as they are. An empty content type sends no such header.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> anyhow::Result<Answer> {
        let headers = if content_type.is_empty() { vec![] } else { vec![("content-type", content_type)] };
        self.send_with(method, path, &headers, body).await
    }

    pub async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> anyhow::Result<Answer> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.client.send(request.body(Body::from(body))?).await;
        let (head, body) = response.with_context(|| format!("{method} {path}"))?.into_parts();
        let bytes = body.collect().await.with_context(|| format!("reading {method} {path}"))?.to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer { code: head.status.as_u16(), headers: head.headers, body, text })
    }

    /// Asks until the answer is `Some`, for what a real cluster does a moment later.
    pub async fn eventually<T>(
        &self,
        what: &str,
        mut ask: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let mut asked = 0;
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            asked += 1;
            // On the embedded server everything follows within the request; a few rounds are for other tasks.
            if self.is_embedded() && asked > 100 {
                bail!("still waiting for {what}");
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
    }
}

#[allow(dead_code, reason = "a case file uses what it needs")]
impl Answer {
    /// The body, if the answer has this code.
    pub fn ok(self, code: u16) -> anyhow::Result<Value> {
        ensure!(self.code == code, "wanted {code}, got {}: {}", self.code, self.short());
        Ok(self.body)
    }

    /// The Status, if the answer is a refusal with this code and reason.
    pub fn refused(self, code: u16, reason: &str) -> anyhow::Result<Value> {
        ensure!(
            self.code == code && self.body["reason"] == reason,
            "wanted {code} {reason}, got {}: {}",
            self.code,
            self.short()
        );
        ensure!(
            self.body["kind"] == "Status"
                && self.body["apiVersion"] == "v1"
                && self.body["status"] == "Failure"
                && self.body["code"] == code
                && self.body["metadata"] == json!({}),
            "not a whole Status: {}",
            self.short()
        );
        Ok(self.body)
    }

    /// The values of the Warning headers.
    pub fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all("warning").iter();
        values.map(|value| value.to_str().unwrap_or("not text").to_owned()).collect()
    }

    fn short(&self) -> String {
        self.text.chars().take(1000).collect()
    }
}

/// The causes of a Status as `field reason`, in its order. Several of one kind on one field count once.
#[allow(dead_code, reason = "a case file uses what it needs")]
pub fn causes(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut places: Vec<String> =
        causes.map(|cause| format!("{} {}", text(&cause["field"]), text(&cause["reason"]))).collect();
    places.dedup();
    places
}

/// Compares two values and shows both if they differ.
#[allow(dead_code, reason = "a case file uses what it needs")]
pub fn same(found: impl Into<Value>, wanted: impl Into<Value>) -> anyhow::Result<()> {
    let (found, wanted) = (found.into(), wanted.into());
    ensure!(found == wanted, "wanted {wanted}\n      found {found}");
    Ok(())
}

pub fn widget(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "contract.example.com/v1beta1", "kind": "Widget",
        "metadata": { "name": name }, "spec": spec,
    })
}

/// A config map with one entry.
pub fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } })
}

/// Installs our definitions and the widget's, and waits until all are served.
pub async fn prepare(client: &Client) -> anyhow::Result<()> {
    let world = World { client: client.clone(), namespace: String::new(), side: Side::Real };
    let mut definitions: Vec<Value> =
        prewarm_api::crd::all().iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    definitions.push(serde_json::from_str(WIDGET)?);
    for definition in &definitions {
        define(&world, definition).await?;
    }
    for definition in &definitions {
        served(&world, definition).await?;
    }
    Ok(())
}

pub async fn define(world: &World, definition: &Value) -> anyhow::Result<Value> {
    world.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await?.ok(201)
}

/// Waits until every version of a definition is served.
pub async fn served(world: &World, definition: &Value) -> anyhow::Result<()> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for version in spec["versions"].as_array().context("a definition has versions")? {
        let (group, version, plural) =
            (text(&spec["group"]), text(&version["name"]), text(&spec["names"]["plural"]));
        let path = format!("/apis/{group}/{version}/{plural}");
        world
            .eventually(&format!("{path} to be served"), async || {
                Ok((world.get(&path).await?.code == 200).then_some(()))
            })
            .await?;
    }
    Ok(())
}
