//! The server, its kinds, and their true state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use prewarm_embedded::{Options, Server, TokioClock};
use serde_json::{Value, json};

/// A kind that is written, followed and compared.
pub struct Kind {
    pub group: &'static str,
    pub name: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

/// A cluster-scoped kind, a namespaced one, and a custom one.
pub const KINDS: [Kind; 3] = [
    Kind { group: "", name: "Node", plural: "nodes", namespaced: false },
    Kind { group: "", name: "ConfigMap", plural: "configmaps", namespaced: true },
    WIDGET,
];
pub const WIDGET: Kind = Kind { group: "example.org", name: "Widget", plural: "widgets", namespaced: true };

impl Kind {
    pub fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group, "v1", self.name);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }

    pub fn api(&self, client: kube::Client) -> Api<DynamicObject> {
        if self.namespaced {
            Api::default_namespaced_with(client, &self.resource())
        } else {
            Api::all_with(client, &self.resource())
        }
    }
}

#[derive(Clone)]
pub struct World {
    pub server: Server,
    /// A client without faults.
    pub client: kube::Client,
}

/// Longer than a watch of `kube-runtime` lasts, so that each watch gets only the bookmark before its end. One every
/// minute would be most of the work of a simulation, and would show nothing that this one does not.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(5);

impl World {
    pub fn new(seed: u64, history_changes: usize) -> Self {
        let clock = TokioClock::starting_at("2030-01-01T00:00:00Z".parse().unwrap());
        let bookmark_interval = BOOKMARK_INTERVAL;
        let options = Options { history_changes, seed, bookmark_interval, ..Options::default() };
        let server = Server::new(Arc::new(clock), options);
        server.install(&definition()).unwrap();
        Self { client: server.client(), server }
    }

    /// What the server has of a kind, by namespace and name.
    pub async fn objects(&self, kind: &Kind, labels: Option<&str>) -> BTreeMap<(String, String), Value> {
        let params = ListParams { label_selector: labels.map(str::to_owned), ..ListParams::default() };
        let list = kind.api(self.client.clone()).list(&params).await.unwrap();
        list.iter().map(|object| (key(object), plain(object))).collect()
    }

    /// The server's last revision.
    pub async fn revision(&self) -> String {
        let list = KINDS[0].api(self.client.clone()).list(&ListParams::default()).await.unwrap();
        list.metadata.resource_version.unwrap()
    }

    /// Everything the server has, as text.
    pub async fn text(&self) -> String {
        let mut text = String::new();
        for kind in &KINDS {
            let group =
                if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
            let request = http::Request::get(format!("{group}/v1/{}", kind.plural)).body(Vec::new()).unwrap();
            text += &self.client.request_text(request).await.unwrap();
        }
        text
    }
}

pub fn key(object: &DynamicObject) -> (String, String) {
    let metadata = &object.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

/// An object without its kind, which the items of a list may lack.
pub fn plain(object: &DynamicObject) -> Value {
    serde_json::to_value(DynamicObject { types: None, ..object.clone() }).unwrap()
}

fn definition() -> Value {
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "type": "object", "properties": { "spec": anything, "status": anything } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.org" },
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}
