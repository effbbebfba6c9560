//! Everything that a check depends on, read once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::reach::SeenLease;

/// An answer of the cluster, or the sentence that says why there is none.
pub type Asked<T> = Result<T, String>;

pub struct Facts {
    /// This machine's clock, and the server's at the same moment.
    pub clocks: (Timestamp, Option<Timestamp>),
    /// The server's version, such as `1.36`.
    pub version: Asked<String>,
    /// What the user may do.
    pub rights: Vec<Right>,
    /// The definitions that we need, by name; `None` for a missing one.
    pub definitions: BTreeMap<String, Asked<Option<CustomResourceDefinition>>>,
    /// Webhooks that handle our kinds.
    pub webhooks: Asked<Vec<Webhook>>,
    /// The policies that restrict agents to their own nodes, and people to some images.
    pub policies: Asked<Policies>,
    /// The ConfigMap that says which images are allowed.
    pub allow_list: Asked<Option<ConfigMap>>,
    /// The name of the namespace that Prewarm is installed in.
    pub installed_in: String,
    /// The name of the agents' namespace.
    pub agents_in: String,
    /// The agents' namespace.
    pub namespace: Asked<Option<Namespace>>,
    /// The cluster-wide roles of an installation.
    pub roles: Asked<Vec<ClusterRole>>,
    /// The controller's Lease, read twice.
    pub lease: Asked<SeenLease>,
    /// The Lease of OpenKruise's manager, read twice.
    pub rival_lease: Asked<SeenLease>,
    /// The Deployment of that manager.
    pub rival_deployment: Asked<Option<Deployment>>,
    /// Daemons of other implementations.
    pub rival_daemons: Asked<Vec<DaemonSet>>,
    /// Deployments of ofen's controller.
    pub ofen_deployments: Asked<Vec<Deployment>>,
    /// Each DaemonSet of ofen's program on the nodes.
    pub ofen_daemons: Asked<Vec<DaemonSet>>,
    /// The Lease of ofen's controller, read twice.
    pub ofen_lease: Asked<SeenLease>,
    pub deployments: Asked<Vec<Deployment>>,
    pub daemon_sets: Asked<Vec<DaemonSet>>,
    /// The agents' pods.
    pub pods: Asked<Vec<Pod>>,
    /// What agents that are not ready answer to a probe, by pod name.
    pub probes: BTreeMap<String, Asked<String>>,
    /// Whether a controller answers a scrape, by pod name.
    pub scrapes: BTreeMap<String, Asked<()>>,
    /// Whether an agent answers a scrape, by pod name.
    pub agent_scrapes: BTreeMap<String, Asked<()>>,
    pub nodes: Asked<Vec<Node>>,
    /// The heartbeats of nodes.
    pub heartbeats: Asked<Vec<Lease>>,
    /// The names of all NodeImages.
    pub node_images: Asked<Vec<String>>,
}

/// An action that the user may or may not carry out.
#[derive(Clone, Debug)]
pub struct Right {
    /// The action as in a role: `create daemonsets.apps`.
    pub what: String,
    pub is_allowed: Asked<bool>,
}

/// A webhook that handles some of our kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// `mutatingwebhookconfiguration/NAME` or the other kind.
    pub configuration: String,
    pub name: String,
    /// Our kinds among those it handles, by their plurals.
    pub resources: Vec<String>,
    /// Whether requests fail if it cannot be reached.
    pub is_required: bool,
}

/// Our policies, by any name, with their bindings.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Only our policies.
    pub policies: Vec<ValidatingAdmissionPolicy>,
    /// All bindings.
    pub bindings: Vec<ValidatingAdmissionPolicyBinding>,
}
