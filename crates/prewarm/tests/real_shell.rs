//! The commands that ask a cluster, on a real kube-apiserver: the same transcript as on the embedded API, and what
//! only a real one has, namely roles, and kubectl with its plugins.

#[path = "shell/suite.rs"]
#[expect(dead_code, reason = "some of it is for the embedded API only")]
mod suite;

use std::path::PathBuf;
use std::process::Command;

use anyhow::ensure;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Api;
use kube::api::PostParams;
use prewarm_api::crd;
use prewarm_testkit::binary::given_or;
use prewarm_testkit::{ApiServer, install, real_tests};
use serde_json::json;
use suite::{Shell, compare, furnish, masked};

real_tests! {
    every_command_says_what_the_transcript_says_on_a_real_server,
    missing_rights_are_named_with_a_way_to_check,
    kubectl_finds_its_plugin,
    without_the_definitions_on_a_real_server_the_error_says_how_to_get_them,
    a_check_reports_what_is_missing_and_what_interferes,
}

/// The program that is built along with this, or the one that `PREWARM_BINARY` names.
fn program() -> PathBuf {
    given_or(env!("CARGO_BIN_EXE_prewarm"))
}

async fn every_command_says_what_the_transcript_says_on_a_real_server() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let client = server.client()?;
    install::definitions(&client, crd::all()).await?;
    furnish(&client).await?;
    let shell = Shell { program: program(), kubeconfig: server.kubeconfig().to_owned() };
    compare("transcript", &shell.transcript());
    Ok(())
}

async fn missing_rights_are_named_with_a_way_to_check() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    install::definitions(&server.client()?, crd::all()).await?;
    let shell = Shell { program: program(), kubeconfig: server.kubeconfig_as("anna", None)? };
    for (line, part) in [
        ("status -n shop", "you may not list imagepulljobs.apps.kruise.io in namespace shop: "),
        ("status -A --watch", "you may not watch imagepulljobs.apps.kruise.io: "),
        ("nodes", "you may not list nodeimages.apps.kruise.io: "),
        ("images", "`kubectl auth can-i list nodeimages.apps.kruise.io -A`"),
        ("pull redis:8 -n shop", "`kubectl auth can-i create imagepulljobs.apps.kruise.io -n shop`"),
        ("pull redis:8 nginx:1 -n shop", "you may not create imagelistpulljobs.apps.kruise.io"),
        ("pull redis:8 --every @daily -n shop", "you may not create advancedcronjobs.apps.kruise.io"),
        (
            "explain acj/nightly -n shop",
            "you may not list advancedcronjobs.apps.kruise.io in namespace shop: ",
        ),
    ] {
        let seen = masked(&shell.run(line));
        ensure!(seen.contains(part) && seen.ends_with("[exit 2]\n"), "{seen}");
        ensure!(seen.contains("anna"), "{seen}");
    }
    Ok(())
}

async fn kubectl_finds_its_plugin() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    install::definitions(&server.client()?, crd::all()).await?;
    let directory = prewarm_bed::inside::directory("plugin")?;
    std::os::unix::fs::symlink(program(), directory.join("kubectl-prewarm"))?;
    let mut kubectl = Command::new(prewarm_bed::programs::locate("kubectl")?);
    kubectl.args(["prewarm", "status", "-n", "default"]).env("PATH", &directory);
    let output = kubectl.env("KUBECONFIG", server.kubeconfig()).output()?;
    let stderr = String::from_utf8(output.stderr)?;
    ensure!(
        stderr == "No pull jobs and no cron jobs found in namespace default; -A lists all namespaces.\n",
        "{stderr}"
    );
    Ok(())
}

async fn without_the_definitions_on_a_real_server_the_error_says_how_to_get_them() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let shell = Shell { program: program(), kubeconfig: server.kubeconfig().to_owned() };
    for line in ["status", "nodes", "images", "explain web", "pull redis:8"] {
        let seen = shell.run(line);
        ensure!(seen.contains("s: install the definitions with `prewarm crds |"), "{seen}");
    }
    Ok(())
}

async fn a_check_reports_what_is_missing_and_what_interferes() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let shell = Shell { program: program(), kubeconfig: server.kubeconfig().to_owned() };
    let says = |line: &str, code: u8, parts: &[&str]| {
        let seen = shell.run(line);
        let end = if code == 0 { "‼  0 ✗\n".to_owned() } else { format!("[exit {code}]\n") };
        ensure!(seen.ends_with(&end), "{seen}");
        for part in parts {
            ensure!(seen.contains(part), "{part:?} is not in {seen}");
        }
        Ok(())
    };
    let ready = ["✓ Kubernetes 1.", "✓ you may install everything", "✓ not installed yet: ", "clock agrees"];
    says("check --pre", 0, &ready)?;
    let lacking =
        ["✗ there is no definition of ", "✗ no controller is installed", "✗ no agents are installed"];
    says("check", 1, &lacking)?;
    install::definitions(&server.client()?, crd::all()).await?;
    says("check", 1, &["✓ 7 definitions of this version"])?;
    let webhook = json!({
        "name": "vimagepulljob.kb.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": ["apps.kruise.io"], "apiVersions": ["*"], "operations": ["CREATE"],
            "resources": ["imagepulljobs"]}],
    });
    let configuration = json!({"metadata": {"name": "kruise"}, "webhooks": [webhook]});
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(server.client()?);
    webhooks.create(&PostParams::default(), &serde_json::from_value(configuration)?).await?;
    let in_the_way = [
        "✗ another implementation's webhook vimagepulljob.kb.io handles imagepulljobs",
        "kubectl delete validatingwebhookconfiguration/kruise",
    ];
    says("check --pre", 1, &in_the_way)?;
    for arguments in [
        "annotate crd nodeimages.apps.kruise.io meta.helm.sh/release-name=kruise meta.helm.sh/release-namespace=kruise-system",
        "create namespace kruise-system",
        "create deployment kruise-controller-manager --image kruise -n kruise-system",
    ] {
        server.kubectl(arguments.split(' ')).await?;
    }
    let stopped = [
        "✗ the Helm release kruise-system/kruise has 1 definition of these kinds",
        "✓ OpenKruise's manager is stopped",
    ];
    says("check --pre", 1, &stopped)?;
    for arguments in
        ["create namespace ofen-system", "create deployment ofen-controller --image ofen -n ofen-system"]
    {
        server.kubectl(arguments.split(' ')).await?;
    }
    let of_ofen = [
        "‼ ofen's controller ofen-system/ofen-controller is installed: ",
        "scale deployment ofen-controller",
    ];
    says("check --pre", 1, &of_ofen)?;
    let anna = Shell { program: program(), kubeconfig: server.kubeconfig_as("anna", None)? };
    let seen = anna.run("check --pre");
    ensure!(seen.contains("✗ you may not create customresourcedefinitions, "), "{seen}");
    ensure!(seen.contains("‼ webhooks could not be read: you may not list "), "{seen}");
    let json = shell.run("check --pre -o json");
    ensure!(json.contains("\"verdict\": \"bad\""), "{json}");
    Ok(())
}
