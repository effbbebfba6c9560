//! Asks the cluster for everything that a check depends on. If a question cannot be answered, a sentence takes the
//! place of the answer, so that the rest is checked all the same.

mod ofen;
mod rights;

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt as _};
use prewarm_api::crd;
use prewarm_api::kruise::NodeImage;
use prewarm_api::permission::{AGENT, CONTROLLER, IMAGE_ALLOW_LIST, LEASE, RIVAL_LEASE, RIVAL_NAMESPACE};
use serde::de::DeserializeOwned;

use super::facts::{Asked, Facts, Policies, Webhook};
use super::judge::Stage;
use crate::reach::{Cluster, Request, look_twice, sentence};

/// At most this many agents that are not ready are asked why.
const MOST_PROBES: usize = 10;
/// The label of all objects of an installation.
const OURS: &str = "app.kubernetes.io/part-of=prewarm";
/// The Lease of OpenKruise's manager.
const RIVAL: (&str, &str) = (RIVAL_NAMESPACE, RIVAL_LEASE);
/// The Deployment of that manager, in the same namespace.
const RIVAL_DEPLOYMENT: &str = "kruise-controller-manager";
/// The names of other implementations' daemons.
const RIVAL_DAEMONS: [&str; 1] = ["kruise-daemon"];
/// The namespace of the Leases of nodes.
const HEARTBEATS: &str = "kube-node-lease";

/// The namespaces that a user names.
pub struct Namespaces<'a> {
    /// The controller's.
    pub controller: &'a str,
    /// The agents', if it is another one.
    pub agents: Option<&'a str>,
}

pub async fn gather(cluster: &Cluster, namespaces: &Namespaces<'_>, stage: Stage) -> anyhow::Result<Facts> {
    let namespace = namespaces.controller;
    let asking = Asking { cluster, namespace };
    let clocks = asking.clocks().await?;
    let ofen_deployments = asking.list(&asking.everywhere::<Deployment>(), &ListParams::default()).await;
    let ofen_deployments =
        ofen_deployments.map(|all| all.into_iter().filter(ofen::is_controller).collect::<Vec<_>>());
    let ofen_in = ofen::namespace(&ofen_deployments);
    let leases = [(asking.namespace, LEASE), RIVAL, (&*ofen_in, ofen::LEASE)];
    let [lease, rival_lease, ofen_lease] = look_twice(asking.cluster, leases).await;
    let agents = ListParams::default().labels(&format!("app.kubernetes.io/name={}", AGENT.name));
    let controllers = ListParams::default().labels(&format!("app.kubernetes.io/name={}", CONTROLLER.name));
    let pods = asking.list(&asking.everywhere::<Pod>(), &agents).await;
    let controller_pods = asking.list(&asking.everywhere::<Pod>(), &controllers).await;
    let is_after = stage == Stage::After;
    let daemon_sets = asking.list(&asking.everywhere::<DaemonSet>(), &ListParams::default()).await;
    let is_rival = |set: &DaemonSet| RIVAL_DAEMONS.contains(&set.name_any().as_str());
    let is_ours =
        |set: &DaemonSet| set.labels().get("app.kubernetes.io/name").is_some_and(|name| name == AGENT.name);
    let pick = |is_wanted: &dyn Fn(&DaemonSet) -> bool| {
        daemon_sets.clone().map(|sets| sets.into_iter().filter(|set| is_wanted(set)).collect::<Vec<_>>())
    };
    let installed = pick(&is_ours).ok().and_then(|sets| sets.first()?.namespace());
    let agents_in =
        namespaces.agents.map(str::to_owned).or(installed).unwrap_or_else(|| namespace.to_owned());
    let ours = ListParams::default().labels(OURS);
    Ok(Facts {
        clocks,
        version: asking.version().await,
        rights: if is_after { Vec::new() } else { asking.rights().await },
        definitions: asking.definitions().await,
        webhooks: asking.webhooks().await,
        policies: asking.policies().await,
        allow_list: asking
            .get(&Api::<ConfigMap>::namespaced(cluster.client.clone(), namespace), IMAGE_ALLOW_LIST)
            .await,
        installed_in: namespace.to_owned(),
        namespace: asking.get(&Api::<Namespace>::all(cluster.client.clone()), &agents_in).await,
        agents_in,
        roles: asking.list(&asking.everywhere::<ClusterRole>(), &ours).await,
        lease,
        rival_lease,
        rival_deployment: asking
            .get(&Api::<Deployment>::namespaced(cluster.client.clone(), RIVAL.0), RIVAL_DEPLOYMENT)
            .await,
        rival_daemons: pick(&is_rival),
        ofen_deployments,
        ofen_daemons: pick(&ofen::is_daemon),
        ofen_lease,
        daemon_sets: pick(&is_ours),
        deployments: asking.list(&asking.everywhere::<Deployment>(), &controllers).await,
        probes: asking.probes(pods.as_deref().unwrap_or_default()).await,
        scrapes: asking.scrapes(controller_pods.as_deref().unwrap_or_default()).await,
        agent_scrapes: asking.scrapes(pods.as_deref().unwrap_or_default()).await,
        pods,
        nodes: asking.list(&Api::<Node>::all(cluster.client.clone()), &ListParams::default()).await,
        heartbeats: asking
            .list(&Api::<Lease>::namespaced(cluster.client.clone(), HEARTBEATS), &ListParams::default())
            .await,
        node_images: asking.node_images().await,
    })
}

struct Asking<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
}

impl Asking<'_> {
    fn everywhere<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = ()>,
    {
        Api::all(self.cluster.client.clone())
    }

    /// A server that does not answer at all is the only error that ends a check.
    async fn clocks(&self) -> anyhow::Result<(Timestamp, Option<Timestamp>)> {
        let request = http::Request::get("/version").body(kube::client::Body::empty())?;
        let answer = self.cluster.client.send(request).await;
        let answer = answer.map_err(|error| {
            let what =
                Request { verb: "get", kind: "Version".into(), resource: "version".into(), namespace: None };
            anyhow::anyhow!(sentence(&error, &what, &self.cluster.name))
        })?;
        let date = answer.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|date| date.timestamp());
        Ok((Timestamp::now(), date))
    }

    async fn version(&self) -> Asked<String> {
        let info = self.cluster.client.apiserver_version().await;
        info.map(|info| format!("{}.{}", info.major, info.minor)).map_err(|error| error.to_string())
    }

    async fn list<K>(&self, api: &Api<K>, params: &ListParams) -> Asked<Vec<K>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        match api.list(params).await {
            Ok(list) => Ok(list.items),
            Err(error) => Err(sentence(&error, &Request::of::<K>("list", None), &self.cluster.name)),
        }
    }

    async fn get<K>(&self, api: &Api<K>, name: &str) -> Asked<Option<K>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        match api.get_opt(name).await {
            Ok(object) => Ok(object),
            Err(error) => Err(sentence(&error, &Request::of::<K>("get", None), &self.cluster.name)),
        }
    }

    async fn definitions(&self) -> BTreeMap<String, Asked<Option<CustomResourceDefinition>>> {
        let api = self.everywhere::<CustomResourceDefinition>();
        let mut definitions = BTreeMap::new();
        for ours in crd::all() {
            let name = ours.name_any();
            let installed = self.get(&api, &name).await;
            definitions.insert(name, installed);
        }
        definitions
    }

    async fn webhooks(&self) -> Asked<Vec<Webhook>> {
        let all = ListParams::default();
        let mutating = self.list(&self.everywhere::<MutatingWebhookConfiguration>(), &all).await?;
        let validating = self.list(&self.everywhere::<ValidatingWebhookConfiguration>(), &all).await?;
        let mut found = Vec::new();
        for configuration in &mutating {
            for webhook in configuration.webhooks.iter().flatten() {
                let place = format!("mutatingwebhookconfiguration/{}", configuration.name_any());
                found.extend(named(
                    place,
                    &webhook.name,
                    webhook.rules.as_deref(),
                    webhook.failure_policy.as_deref(),
                ));
            }
        }
        for configuration in &validating {
            for webhook in configuration.webhooks.iter().flatten() {
                let place = format!("validatingwebhookconfiguration/{}", configuration.name_any());
                found.extend(named(
                    place,
                    &webhook.name,
                    webhook.rules.as_deref(),
                    webhook.failure_policy.as_deref(),
                ));
            }
        }
        Ok(found)
    }

    async fn policies(&self) -> Asked<Policies> {
        let ours = ListParams::default().labels(OURS);
        Ok(Policies {
            policies: self.list(&self.everywhere::<ValidatingAdmissionPolicy>(), &ours).await?,
            bindings: self
                .list(&self.everywhere::<ValidatingAdmissionPolicyBinding>(), &ListParams::default())
                .await?,
        })
    }

    /// What agents that are not ready answer to a probe.
    async fn probes(&self, pods: &[Pod]) -> BTreeMap<String, Asked<String>> {
        let is_unready = |pod: &&Pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
            !conditions.unwrap_or_default().iter().any(|one| one.type_ == "Ready" && one.status == "True")
        };
        let mut answers = BTreeMap::new();
        for pod in pods.iter().filter(is_unready).filter(|pod| is_running(pod)).take(MOST_PROBES) {
            let answer = self.ask(pod, "readyz").await;
            answers.insert(pod.name_any(), answer);
        }
        answers
    }

    /// Whether the first pod that runs answers a scrape.
    async fn scrapes(&self, pods: &[Pod]) -> BTreeMap<String, Asked<()>> {
        let mut answers = BTreeMap::new();
        for pod in pods.iter().filter(|pod| is_running(pod)).take(1) {
            let answer = self.ask(pod, "metrics").await;
            let is_ours = |text: String| {
                let first = text.lines().next().unwrap_or_default().to_owned();
                if text.contains("prewarm_") { Ok(()) } else { Err(first) }
            };
            let answer = answer.and_then(is_ours);
            answers.insert(pod.name_any(), answer);
        }
        answers
    }

    /// Asks a pod through the API server. A refusal by the pod itself counts as an answer.
    async fn ask(&self, pod: &Pod, path: &str) -> Asked<String> {
        let ports =
            pod.spec.iter().flat_map(|spec| &spec.containers).flat_map(|one| one.ports.iter().flatten());
        let port = ports.map(|port| port.container_port).next().ok_or("its pod names no port")?;
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy/{path}");
        let request =
            http::Request::get(path).body(Vec::new()).context("a path").map_err(|error| error.to_string())?;
        match self.cluster.client.request_text(request).await {
            Ok(text) => Ok(text),
            Err(kube::Error::Api(status)) if status.code == 500 && !status.message.is_empty() => {
                Ok(status.message)
            }
            Err(kube::Error::Api(status)) => Err(status.message),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn node_images(&self) -> Asked<Vec<String>> {
        let api: Api<NodeImage> = self.everywhere();
        match api.list_metadata(&ListParams::default()).await {
            Ok(list) => Ok(list.items.iter().map(kube::ResourceExt::name_any).collect()),
            Err(error) => Err(sentence(&error, &Request::of::<NodeImage>("list", None), &self.cluster.name)),
        }
    }
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

/// A webhook, if it names our kinds. One for every kind of any group belongs to a policy engine.
fn named(
    configuration: String,
    name: &str,
    rules: Option<&[RuleWithOperations]>,
    failure_policy: Option<&str>,
) -> Option<Webhook> {
    let is_ours = |rule: &&RuleWithOperations| {
        let mut groups = crd::all().iter().map(|definition| &definition.spec.group);
        groups.any(|group| rule.api_groups.iter().flatten().any(|other| other == group))
    };
    let plurals: Vec<&String> = crd::all().iter().map(|definition| &definition.spec.names.plural).collect();
    let rules = rules.unwrap_or_default().iter().filter(is_ours);
    let named = rules.flat_map(|rule| rule.resources.iter().flatten());
    let base = |resource: &String| resource.split('/').next().unwrap_or_default().to_owned();
    let mut resources: Vec<String> =
        named.map(base).filter(|one| one == "*" || plurals.contains(&one)).collect();
    resources.sort();
    resources.dedup();
    let is_required = failure_policy.is_none_or(|policy| policy == "Fail");
    (!resources.is_empty()).then(|| Webhook { configuration, name: name.to_owned(), resources, is_required })
}
