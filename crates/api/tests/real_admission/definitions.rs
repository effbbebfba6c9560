//! The definitions as a user sees them: installed with kubectl, read as tables, used in both versions.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use http::Request;
use prewarm_bed::programs;
use prewarm_testkit::ApiServer;
use serde_json::{Value, json};

use super::judge::{Answer, Judge};
use prewarm_testkit::install;

fn definitions_folder() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds").display().to_string()
}

pub async fn kubectl_applies_the_definitions_without_a_word_and_a_second_time_changes_nothing()
-> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let folder = definitions_folder();
    for ending in [" created", " unchanged"] {
        let output = server.kubectl_output(["apply", "-f", &folder]).await?;
        let (out, complaints) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.success() && complaints.is_empty(), "kubectl said: {complaints}");
        let lines: Vec<&str> = out.lines().collect();
        ensure!(lines.len() == 7 && lines.iter().all(|line| line.ends_with(ending)), "kubectl said: {out}");
    }
    Ok(())
}

/// Kubernetes 1.30 is the oldest supported version. Its own library checks the schemas and the cost of CEL rules.
pub async fn the_oldest_served_kubernetes_takes_the_definitions() -> anyhow::Result<()> {
    let mut command = Command::new(programs::locate("judge-definitions")?);
    for crd in prewarm_api::crd::all() {
        command.arg(Path::new(&definitions_folder()).join(prewarm_api::crd::file_name(crd)));
    }
    let output = command.output().context("starting judge-definitions")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && said.contains("7 definitions accepted"), "{said}");
    Ok(())
}

pub async fn kubectl_explains_every_kind_in_every_version() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    install::definitions(&server.client()?, prewarm_api::crd::all()).await?;
    for served in prewarm_api::served::all() {
        for version in &served.versions {
            let api_version = format!("--api-version={}/{version}", served.group);
            let kind = served.kind.to_lowercase();
            let text = prewarm_testkit::wait::until(&format!("the manual of {kind}"), async || {
                let output = server.kubectl_output(["explain", &kind, &api_version, "--recursive"]).await?;
                Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
            })
            .await?;
            ensure!(
                text.contains("images") || text.contains("image") || text.contains("template"),
                "{kind}: {text}"
            );
        }
    }
    let text = server.kubectl(["explain", "imagepulljob.spec.parallelism"]).await?;
    ensure!(text.contains("How many nodes may pull one image at the same time"), "kubectl said: {text}");
    Ok(())
}

pub async fn the_server_prints_the_usual_columns() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    install::definitions(&server.client()?, prewarm_api::crd::all()).await?;
    let kruise = ["v1alpha1", "v1beta1"].map(|version| format!("/apis/apps.kruise.io/{version}"));
    let columns = [
        ("imagepulljobs", "Name TOTAL ACTIVE SUCCEED FAILED AGE MESSAGE"),
        ("imagelistpulljobs", "Name TOTAL SUCCEEDED COMPLETED AGE"),
        ("nodeimages", "Name DESIRED PULLING SUCCEED FAILED AGE"),
        ("advancedcronjobs", "Name Schedule Type LastScheduleTime AGE"),
        ("broadcastjobs", "Name Desired Active Succeeded Failed AGE"),
    ];
    for group in &kruise {
        for (plural, wanted) in columns {
            ensure!(table(server, &format!("{group}/{plural}")).await? == wanted, "{group}/{plural}");
        }
    }
    let prefetches = table(server, "/apis/ofen.cybozu.io/v1/imageprefetches").await?;
    ensure!(prefetches == "Name DesiredNodes ImagePulledNodes Age", "{prefetches}");
    let sets = table(server, "/apis/ofen.cybozu.io/v1/nodeimagesets").await?;
    ensure!(sets == "Name Desired Available Failed Node(wide)", "{sets}");
    Ok(())
}

/// The server's own column names for a list, as it gives them to kubectl.
async fn table(server: &ApiServer, path: &str) -> anyhow::Result<String> {
    let request = Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())?;
    let table: Value = server.client()?.request(request).await.with_context(|| path.to_owned())?;
    let columns = table["columnDefinitions"].as_array().context("a table has columns")?;
    let names = columns.iter().map(|column| {
        let wide = if column["priority"] == json!(0) { "" } else { "(wide)" };
        format!("{}{wide}", column["name"].as_str().unwrap_or_default())
    });
    Ok(names.collect::<Vec<_>>().join(" "))
}

pub async fn a_trip_through_the_old_version_loses_nothing() -> anyhow::Result<()> {
    let server = ApiServer::start().await?;
    let judge = Judge::new(&server).await?;
    let mut trips = 0;
    let cases = prewarm_corpus::load()?;
    let taken =
        cases.iter().filter(|case| case.old.is_none() && case.verdict == prewarm_corpus::Verdict::Accept);
    for (index, case) in
        taken.filter(|case| case.object["apiVersion"] == "apps.kruise.io/v1beta1").enumerate()
    {
        let mut object = case.object.clone();
        if object["metadata"]
            .get("name")
            .is_some_and(|name| name.as_str().is_some_and(|name| name.starts_with("case-")))
        {
            object["metadata"]["name"] = format!("trip-{index}").into();
        }
        let Answer::Taken(stored) = judge.create(&object, "").await? else { continue };
        let name = stored["metadata"]["name"].as_str().context("a stored object has a name")?.to_owned();
        let at = |version: &str| format!("{}/{name}", judge.collection(&object).replace("v1beta1", version));
        let old: Value = get(&server, &at("v1alpha1")).await?;
        ensure!(old["spec"] == stored["spec"], "{}: v1alpha1 shows {}", case.title(), old["spec"]);
        let written = judge.send("PUT", &at("v1alpha1"), &old).await?;
        ensure!(matches!(written, Answer::Taken(_)), "{}: {written}", case.title());
        let back: Value = get(&server, &at("v1beta1")).await?;
        ensure!(back["spec"] == stored["spec"], "{}: came back as {}", case.title(), back["spec"]);
        ensure!(
            back["metadata"]["generation"] == stored["metadata"]["generation"],
            "{}: was changed",
            case.title()
        );
        trips += 1;
    }
    println!("counted: {trips} objects went through v1alpha1 and back");
    ensure!(trips > 50, "only {trips} objects made the trip");
    Ok(())
}

async fn get(server: &ApiServer, path: &str) -> anyhow::Result<Value> {
    let request = Request::get(path).body(Vec::new())?;
    server.client()?.request(request).await.with_context(|| path.to_owned())
}
