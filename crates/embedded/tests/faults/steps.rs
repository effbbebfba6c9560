//! Steps that the tests of faults share.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, PostParams, VersionMatch};
use kube::{Api, Client, ResourceExt};
use prewarm_embedded::faults::{FaultPlan, Faults, Rates};
use prewarm_embedded::{Options, Server, TokioClock};
use serde_json::json;
pub fn server() -> Server {
    server_with(Options::default())
}

pub fn server_with(options: Options) -> Server {
    let beginning = "2030-01-01T00:00:00Z".parse().unwrap();
    Server::new(Arc::new(TokioClock::starting_at(beginning)), options)
}

pub fn maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

pub fn map(name: &str, value: u64) -> ConfigMap {
    let object = json!({ "metadata": { "name": name }, "data": { "value": value.to_string() } });
    serde_json::from_value(object).unwrap()
}

pub async fn create(api: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    api.create(&PostParams::default(), &map(name, 0)).await
}

pub async fn change(api: &Api<ConfigMap>, name: &str, value: u64) -> kube::Result<ConfigMap> {
    let patch = Patch::Merge(json!({ "data": { "value": value.to_string() } }));
    api.patch(name, &PatchParams::default(), &patch).await
}

pub async fn names(api: &Api<ConfigMap>) -> Vec<String> {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.iter().map(ResourceExt::name_any).collect()
}

pub fn version(object: &ConfigMap) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

pub fn always(change: impl FnOnce(&mut Rates)) -> Faults {
    let mut rates = Rates::default();
    change(&mut rates);
    Faults::new(FaultPlan::always(rates), 7)
}

pub fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("no answer: {other}"),
    }
}

pub fn io_kind(error: &kube::Error) -> std::io::ErrorKind {
    match error {
        kube::Error::Service(cause) => cause.downcast_ref::<std::io::Error>().unwrap().kind(),
        other => panic!("not a broken connection: {other}"),
    }
}

pub fn any_version() -> ListParams {
    ListParams::default().matching(VersionMatch::NotOlderThan).at("0")
}
