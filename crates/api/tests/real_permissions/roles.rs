//! The roles, checked for everything that the server serves.

use std::collections::BTreeSet;

use anyhow::ensure;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, ServiceAccount};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_api::permission::{AGENT, Account, CONTROLLER, LEASE, SYSTEM_NAMESPACE};
use serde_json::json;

use crate::cluster::{self, refusal};

const VERBS: [&str; 13] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
];
/// What Kubernetes' own roles allow every account: to ask about itself.
const FOR_EVERYBODY: [(&str, &str); 3] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];
/// How many questions are asked at a time.
const AT_ONCE: usize = 32;

/// Namespace (empty: all), group, resource with subresource, verb.
type Right = (&'static str, String, String, &'static str);

pub async fn the_agent_may_do_what_the_table_says_and_nothing_else() -> anyhow::Result<()> {
    may_do_what_the_table_says_and_nothing_else(AGENT).await
}

pub async fn the_controller_may_do_what_the_table_says_and_nothing_else() -> anyhow::Result<()> {
    may_do_what_the_table_says_and_nothing_else(CONTROLLER).await
}

async fn may_do_what_the_table_says_and_nothing_else(account: Account) -> anyhow::Result<()> {
    let server = cluster::start().await?;
    let client = server.client()?;
    let resources = resources(&client).await?;
    ensure!(resources.len() > 60, "the server serves {} resources", resources.len());
    let namespaces = ["", DEFAULT_CONFIG_NAMESPACE, SYSTEM_NAMESPACE];
    let questions = namespaces.into_iter().flat_map(|namespace| {
        let of = move |(group, resource): &(String, String)| {
            VERBS.map(|verb| (namespace, group.clone(), resource.clone(), verb))
        };
        resources.iter().flat_map(of).collect::<Vec<_>>()
    });
    let granted: BTreeSet<Right> = stream::iter(questions)
        .map(|right| is_granted(&client, &account, right))
        .buffer_unordered(AT_ONCE)
        .try_filter_map(async |(right, granted)| Ok(granted.then_some(right)))
        .try_collect()
        .await?;
    let expected = expected(&account, &namespaces);
    let (surplus, missing): (Vec<_>, Vec<_>) =
        (granted.difference(&expected).collect(), expected.difference(&granted).collect());
    ensure!(surplus.is_empty() && missing.is_empty(), "too much: {surplus:?}; missing: {missing:?}");
    Ok(())
}

fn expected(account: &Account, namespaces: &[&'static str]) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for namespace in namespaces {
        // A permission for a few objects does not allow a request for all.
        for permission in account.permissions.iter().filter(|one| one.names.is_empty()) {
            if permission.scope.namespace().is_none_or(|held| held == *namespace) {
                let right = |verb: &&'static str| {
                    (*namespace, permission.group.to_owned(), permission.resource.to_owned(), *verb)
                };
                rights.extend(permission.verbs.iter().map(right));
            }
        }
        let own =
            FOR_EVERYBODY.map(|(group, resource)| (*namespace, group.into(), resource.into(), "create"));
        rights.extend(own);
    }
    rights
}

/// The group and name of everything that the server serves, including subresources.
async fn resources(client: &Client) -> anyhow::Result<BTreeSet<(String, String)>> {
    let core = client.list_core_api_resources("v1").await?;
    let mut found: BTreeSet<_> = core.resources.into_iter().map(|one| (String::new(), one.name)).collect();
    for group in client.list_api_groups().await?.groups {
        for version in &group.versions {
            let list = client.list_api_group_resources(&version.group_version).await?;
            found.extend(list.resources.into_iter().map(|one| (group.name.clone(), one.name)));
        }
    }
    Ok(found)
}

async fn is_granted(client: &Client, account: &Account, right: Right) -> anyhow::Result<(Right, bool)> {
    let (namespace, group, resource, verb) = &right;
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(account.user()),
            groups: Some(
                [
                    "system:serviceaccounts",
                    &format!("system:serviceaccounts:{SYSTEM_NAMESPACE}"),
                    "system:authenticated",
                ]
                .map(str::to_owned)
                .to_vec(),
            ),
            resource_attributes: Some(ResourceAttributes {
                namespace: Some((*namespace).to_owned()),
                group: Some(group.clone()),
                resource: Some(resource.to_owned()),
                subresource: Some(subresource.to_owned()),
                verb: Some((*verb).to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer =
        Api::<SubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok((right, answer.status.is_some_and(|status| status.allowed)))
}

pub async fn the_controller_may_change_its_own_lease_only() -> anyhow::Result<()> {
    let server = cluster::start().await?;
    let leases = Api::<Lease>::namespaced(server.client()?, SYSTEM_NAMESPACE);
    cluster::create(&leases, json!({"metadata": {"name": "of-others"}})).await?;
    let controller = server.client_of_service_account(SYSTEM_NAMESPACE, CONTROLLER.name).await?;
    let leases = Api::<Lease>::namespaced(controller, SYSTEM_NAMESPACE);
    let own = leases.get(LEASE).await?;
    leases.replace(LEASE, &PostParams::default(), &own).await?;
    let foreign = refusal(leases.get("of-others").await);
    ensure!(foreign.as_ref().is_some_and(|(code, _)| *code == 403), "{foreign:?}");
    Ok(())
}

pub async fn the_agent_reads_secrets_of_the_config_namespace_only() -> anyhow::Result<()> {
    let server = cluster::start().await?;
    for namespace in [DEFAULT_CONFIG_NAMESPACE, "default"] {
        let secrets = Api::<Secret>::namespaced(server.client()?, namespace);
        cluster::create(&secrets, json!({"metadata": {"name": "pull"}})).await?;
    }
    let agent = server.client_of_service_account(SYSTEM_NAMESPACE, AGENT.name).await?;
    let shared = Api::<Secret>::namespaced(agent.clone(), DEFAULT_CONFIG_NAMESPACE);
    shared.get("pull").await?;
    let listed = refusal(shared.list(&ListParams::default()).await);
    ensure!(listed.as_ref().is_some_and(|(code, _)| *code == 403), "{listed:?}");
    let elsewhere = refusal(Api::<Secret>::namespaced(agent, "default").get("pull").await);
    ensure!(elsewhere.as_ref().is_some_and(|(code, _)| *code == 403), "{elsewhere:?}");
    Ok(())
}

pub async fn the_daemon_set_is_taken_with_its_settings() -> anyhow::Result<()> {
    let server = cluster::start().await?;
    let set = Api::<DaemonSet>::namespaced(server.client()?, SYSTEM_NAMESPACE).get(AGENT.name).await?;
    let pod = serde_json::to_value(set.spec.map(|spec| spec.template.spec))?;
    let container = &pod["containers"][0];
    for (found, expected) in [
        (&pod["securityContext"]["runAsUser"], json!(65532)),
        (&pod["securityContext"]["supplementalGroups"], json!([0])),
        (&pod["securityContext"]["seccompProfile"]["type"], json!("RuntimeDefault")),
        (&pod["automountServiceAccountToken"], json!(false)),
        (&pod["hostNetwork"], json!(null)),
        (&pod["tolerations"], json!([{"operator": "Exists"}])),
        (&container["securityContext"]["capabilities"], json!({"drop": ["ALL"]})),
        (&container["securityContext"]["allowPrivilegeEscalation"], json!(false)),
        (&container["securityContext"]["readOnlyRootFilesystem"], json!(true)),
        (&container["image"], json!(concat!("ghcr.io/prewarm/prewarm:", env!("CARGO_PKG_VERSION")))),
        (&container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"], json!("spec.nodeName")),
    ] {
        ensure!(*found == expected, "{found} instead of {expected}");
    }
    let host_paths: Vec<_> = pod["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["hostPath"]["path"].as_str())
        .collect();
    ensure!(host_paths == ["/run/containerd", "/run/crio"], "the agent sees {host_paths:?} of the host");
    Ok(())
}

/// The pod fulfils the level "restricted", as the server confirms by accepting it there.
pub async fn the_deployment_is_taken_where_only_restricted_pods_are() -> anyhow::Result<()> {
    let server = cluster::start().await?;
    let client = server.client()?;
    let deployment =
        Api::<Deployment>::namespaced(client.clone(), SYSTEM_NAMESPACE).get(CONTROLLER.name).await?;
    let spec = deployment.spec.unwrap_or_default();
    ensure!(spec.replicas == Some(2), "one leads, one stands by");
    let restricted = json!({"metadata": {
        "name": "restricted", "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    }});
    cluster::create(&Api::<Namespace>::all(client.clone()), restricted).await?;
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "restricted");
    cluster::create(&accounts, json!({"metadata": {"name": CONTROLLER.name}})).await?;
    let pod = json!({"metadata": {"name": "controller"}, "spec": spec.template.spec});
    cluster::create(&Api::<Pod>::namespaced(client, "restricted"), pod).await?;
    Ok(())
}
