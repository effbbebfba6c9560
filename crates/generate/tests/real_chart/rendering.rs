//! What the chart renders to.

use anyhow::{Context as _, ensure};
use prewarm_testkit::ApiServer;
use serde_json::Value;

use crate::helm::{self, chart, examples, objects, render};

/// Definitions of others that examples need, with only the fields that the chart uses, so that any other is refused.
const MONITORING: &str = include_str!("monitoring.yaml");

pub async fn install_yaml_is_what_the_chart_gives() -> anyhow::Result<()> {
    // Without Helm it would not be looked at.
    prewarm_bed::programs::locate("helm")?;
    prewarm_generate::check(prewarm_generate::root())
}

pub async fn install_yaml_is_taken_at_once_by_an_empty_cluster() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let file = prewarm_generate::root().join("deploy/install.yaml").display().to_string();
    server.kubectl(["apply", "--server-side", "--validate=strict", "-f", &file]).await?;
    // Once more, as an upgrade does it.
    server.kubectl(["apply", "--server-side", "--validate=strict", "-f", &file]).await?;
    Ok(())
}

pub async fn helm_finds_nothing_wrong_with_the_chart_and_its_examples() -> anyhow::Result<()> {
    let chart = chart().display().to_string();
    helm::run(&["lint", "--strict", &chart])?;
    for example in examples()? {
        helm::run(&["lint", "--strict", &chart, "--values", &example.display().to_string()])?;
    }
    Ok(())
}

pub async fn a_value_that_nobody_knows_is_refused() -> anyhow::Result<()> {
    for (setting, complaint) in [
        ("kind.broadcastJob=false", "additional properties 'kind' not allowed"),
        ("controller.replicas=two", "/controller/replicas"),
        ("image.digest=latest", "/image/digest"),
        ("credentialProvider.configFile=/etc/config.yaml", "credentialProvider.binDirectory must say"),
        ("runtime.socket=/containerd.sock", "in a directory of its own"),
        ("runtime.socket=/run/crio.sock", "/run holds the sockets of other programs"),
        ("runtime.socket=/var/run//crio.sock", "/var/run holds the sockets of other programs"),
        ("imageAllowList.all={nginx:1}", "/imageAllowList/all/0"),
        ("imageAllowList.namespaces.shop={registry:5000/app:1}", "/imageAllowList/namespaces/shop/0"),
    ] {
        let refusal = render("prewarm", "prewarm-system", &["--set", setting]).err();
        let words = refusal.map(|error| format!("{error:#}")).unwrap_or_default();
        ensure!(words.contains(complaint), "{setting}: {words:?}");
    }
    Ok(())
}

pub async fn every_definition_is_kept_when_the_release_goes() -> anyhow::Result<()> {
    let objects = objects(&render("prewarm", "prewarm-system", &[])?)?;
    let definitions: Vec<&Value> =
        objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition").collect();
    ensure!(definitions.len() == 7, "{} definitions", definitions.len());
    for definition in definitions {
        let policy = &definition["metadata"]["annotations"]["helm.sh/resource-policy"];
        ensure!(policy == "keep", "{}: {policy}", definition["metadata"]["name"]);
    }
    let without = render("prewarm", "prewarm-system", &["--set", "crds.install=false"])?;
    ensure!(!without.contains("CustomResourceDefinition"));
    Ok(())
}

pub async fn no_object_names_a_priority_class_of_the_system() -> anyhow::Result<()> {
    for example in examples()? {
        let rendered = render("prewarm", "prewarm-system", &["--values", &example.display().to_string()])?;
        ensure!(!rendered.contains("system-node-critical") && !rendered.contains("system-cluster-critical"));
        let objects = objects(&rendered)?;
        let agents = of_kind(&objects, "DaemonSet")?;
        ensure!(agents["spec"]["template"]["spec"]["priorityClassName"] == "prewarm-agent");
        ensure!(of_kind(&objects, "PriorityClass")?["metadata"]["name"] == "prewarm-agent");
    }
    Ok(())
}

pub async fn the_controller_has_the_selector_of_the_agents() -> anyhow::Result<()> {
    let flags =
        ["--set", "agent.nodeSelector.pool=gpu", "--set", r"agent.nodeSelector.example\.com/warm=yes"];
    let objects = objects(&render("prewarm", "prewarm-system", &flags)?)?;
    let selector = &of_kind(&objects, "DaemonSet")?["spec"]["template"]["spec"]["nodeSelector"];
    ensure!(selector["kubernetes.io/os"] == "linux" && selector["pool"] == "gpu", "{selector}");
    let arguments = &of_kind(&objects, "Deployment")?["spec"]["template"]["spec"]["containers"][0]["args"];
    let flag = "--agent-node-selector=example.com/warm=yes,kubernetes.io/os=linux,pool=gpu";
    ensure!(arguments.as_array().is_some_and(|all| all.iter().any(|one| one == flag)), "{arguments}");
    Ok(())
}

pub async fn every_example_is_taken_strictly_by_the_api_server() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    // A dry run makes no namespace in which the rest could be.
    for name in ["prewarm-system", "prewarm-agents", "kruise-daemon-config"] {
        helm::namespace(&server, name).await?;
    }
    helm::apply(&server, MONITORING, &[]).await?;
    server.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).await?;
    for example in examples()? {
        let rendered = render("prewarm", "prewarm-system", &["--values", &example.display().to_string()])?;
        helm::apply(&server, &rendered, &["--dry-run=server"])
            .await
            .with_context(|| format!("the API server refuses {}", example.display()))?;
    }
    let misspelt = render("prewarm", "prewarm-system", &["--set", "agent.affinity.nodeAfinity.x=1"])?;
    let refusal = helm::apply(&server, &misspelt, &["--dry-run=server"]).await.err();
    let words = refusal.map(|error| format!("{error:#}")).unwrap_or_default();
    ensure!(words.contains("nodeAfinity"), "what Kubernetes does not know has to be refused: {words:?}");
    Ok(())
}

/// The only object of a kind.
fn of_kind<'a>(objects: &'a [Value], kind: &str) -> anyhow::Result<&'a Value> {
    objects.iter().find(|object| object["kind"] == kind).with_context(|| format!("no {kind} was rendered"))
}
