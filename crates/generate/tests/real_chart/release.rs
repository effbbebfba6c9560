//! Releases of the chart on a real API server.

use anyhow::ensure;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use prewarm_api::crd;
use prewarm_api::kruise::NodeImage;
use prewarm_testkit::{ApiServer, install, wait};
use serde_json::{Value, json};

use crate::helm::{self, chart, render, run_on};

pub async fn under_another_name_each_agent_is_still_kept_to_its_node() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    install::definitions(&server.client()?, crd::all()).await?;
    for name in ["warming", "warming-agents"] {
        helm::namespace(&server, name).await?;
    }
    let flags = ["--set", "agent.namespace=warming-agents", "--set", "configNamespace.name=warming-secrets"];
    helm::apply(&server, &render("shop", "warming", &flags)?, &[]).await?;
    for node in ["a", "b"] {
        let objects = [
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}),
            json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": node}, "spec": {}}),
        ];
        for object in objects {
            helm::apply(&server, &object.to_string(), &[]).await?;
        }
    }
    let line = [
        "get",
        "flowschema",
        "shop-prewarm-agent",
        "-o",
        "jsonpath={.status.conditions[?(@.type=='Dangling')].status}",
    ];
    wait::until("the agents to have a line of their own", async || {
        Ok((server.kubectl(line).await? == "False").then_some(()))
    })
    .await?;
    let kubeconfig =
        server.kubeconfig_of_service_account("warming-agents", "shop-prewarm-agent", "a").await?;
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let images = Api::<NodeImage>::all(Client::try_from(config)?);
    // The server notices a policy a moment after it was applied.
    wait::until("the policy to be in force", async || {
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        Ok(images.patch_status("b", &dry_run, &status()).await.is_err().then_some(()))
    })
    .await?;
    let params = PatchParams::default();
    images.patch_status("a", &params, &status()).await?;
    match images.patch_status("b", &params, &status()).await {
        Err(kube::Error::Api(refusal)) if refusal.code == 403 => {
            let expected = "the agent of node a may not write the status of NodeImage b";
            ensure!(refusal.message.contains(expected), "{}", refusal.message);
            Ok(())
        }
        other => anyhow::bail!("the API server answered {other:?}"),
    }
}

fn status() -> Patch<Value> {
    Patch::Merge(json!({"status": {"desired": 1, "succeeded": 0, "failed": 0, "pulling": 0}}))
}

/// A kind that can be left out.
struct Kind {
    /// Its value below `kinds`.
    value: &'static str,
    /// Its definitions.
    definitions: &'static [&'static str],
    /// Group and resource of what the controller makes for it, and for no other.
    makes: (&'static str, &'static str),
}

const OPTIONAL: [Kind; 4] = [
    Kind { value: "broadcastJob", definitions: &["broadcastjobs.apps.kruise.io"], makes: ("", "pods") },
    Kind {
        value: "advancedCronJob",
        definitions: &["advancedcronjobs.apps.kruise.io"],
        makes: ("batch", "jobs"),
    },
    Kind {
        value: "imageListPullJob",
        definitions: &["imagelistpulljobs.apps.kruise.io"],
        makes: ("apps.kruise.io", "imagepulljobs"),
    },
    Kind {
        value: "imagePrefetch",
        definitions: &["imageprefetches.ofen.cybozu.io", "nodeimagesets.ofen.cybozu.io"],
        makes: ("ofen.cybozu.io", "nodeimagesets"),
    },
];

pub async fn a_kind_that_is_left_out_brings_neither_its_definition_nor_its_rights() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    helm::namespace(&server, "prewarm-system").await?;
    for is_there in [true, false] {
        let settings = OPTIONAL.map(|Kind { value, .. }| format!("kinds.{value}={is_there}"));
        let flags: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let rendered = render("prewarm", "prewarm-system", &flags)?;
        for name in OPTIONAL.iter().flat_map(|kind| kind.definitions) {
            ensure!(rendered.contains(&format!("  name: {name}\n")) == is_there, "{name}");
        }
        helm::apply(&server, &rendered, &[]).await?;
        for Kind { makes: (group, resource), .. } in OPTIONAL {
            let may = may_create(&server, group, resource).await?;
            ensure!(may == is_there, "{resource} with {settings:?}: {may}");
        }
        // What an upgrade would remove.
        let rights = "clusterrole,clusterrolebinding,role,rolebinding";
        server.kubectl(["delete", rights, "-A", "-l", "app.kubernetes.io/part-of=prewarm"]).await?;
    }
    Ok(())
}

async fn may_create(server: &ApiServer, group: &str, resource: &str) -> anyhow::Result<bool> {
    let attributes = ResourceAttributes {
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        verb: Some("create".to_owned()),
        namespace: Some("default".to_owned()),
        ..ResourceAttributes::default()
    };
    let user = Some("system:serviceaccount:prewarm-system:prewarm-controller".to_owned());
    let spec = SubjectAccessReviewSpec {
        user,
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviews = Api::<SubjectAccessReview>::all(server.client()?);
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// What `docs/install.md` says of definitions that another release or `kubectl` made.
pub async fn definitions_of_others_are_taken_over_on_request_only() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let mut others = crd::all().to_vec();
    for version in others.iter_mut().flat_map(|definition| &mut definition.spec.versions) {
        version.additional_printer_columns = None;
    }
    install::definitions(&server.client()?, &others).await?;
    let chart = chart().display().to_string();
    let release = ["install", "prewarm", &chart, "--namespace", "prewarm-system", "--create-namespace"];
    let refusal = run_on(&server, &release).err().map(|error| format!("{error:#}")).unwrap_or_default();
    ensure!(refusal.contains("invalid ownership metadata"), "{refusal}");
    run_on(&server, &[&release[..], &["--take-ownership", "--force-conflicts"]].concat())?;
    let columns = [
        "get",
        "crd",
        "imagepulljobs.apps.kruise.io",
        "-o",
        "jsonpath={.spec.versions[*].additionalPrinterColumns[*].name}",
    ];
    let columns = server.kubectl(columns).await?;
    ensure!(columns.contains("SUCCEED"), "the definition is still that of others: {columns:?}");
    Ok(())
}

pub async fn an_upgrade_leaves_the_leader_and_an_uninstallation_leaves_the_objects() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let chart = chart().display().to_string();
    let release = ["prewarm", &chart, "--namespace", "prewarm-system"];
    run_on(&server, &[&["install", "--create-namespace"], &release[..]].concat())?;
    let leases = Api::<Lease>::namespaced(server.client()?, "prewarm-system");
    let held = json!({"spec": {"holderIdentity": "pod-1", "leaseDurationSeconds": 15}});
    leases.patch("prewarm-controller", &PatchParams::default(), &Patch::Merge(held)).await?;

    run_on(&server, &[&["upgrade", "--set", "controller.replicas=3"], &release[..]].concat())?;
    let holder = leases.get("prewarm-controller").await?.spec.and_then(|spec| spec.holder_identity);
    ensure!(holder.as_deref() == Some("pod-1"), "{holder:?} leads");
    let replicas = [
        "get",
        "deployment",
        "prewarm-controller",
        "-n",
        "prewarm-system",
        "-o",
        "jsonpath={.spec.replicas}",
    ];
    ensure!(server.kubectl(replicas).await? == "3");

    let client = server.client()?;
    install::definitions(&client, crd::all()).await?;
    let images = Api::<NodeImage>::all(client);
    let image = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": "a"}, "spec": {}});
    images.create(&PostParams::default(), &serde_json::from_value(image)?).await?;
    run_on(&server, &["uninstall", "prewarm", "--namespace", "prewarm-system"])?;
    images.get("a").await?;
    ensure!(leases.get_opt("prewarm-controller").await?.is_none(), "everything else went");
    Ok(())
}
