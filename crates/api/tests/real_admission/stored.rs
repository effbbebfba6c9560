//! Objects that our definitions would refuse, but that were stored earlier: their status, labels and finalizers can
//! still be written, or else nobody could finish or delete them.

use anyhow::{Context as _, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use prewarm_corpus::{Case, Verdict};
use prewarm_testkit::{ApiServer, wait};
use serde_json::{Value, json};

use super::judge::{Answer, Judge};
use super::loosen::without_rules;
use prewarm_testkit::install;

/// Why a refused object of the corpus cannot have been stored earlier.
fn cannot_be_stored(case: &Case) -> Option<&'static str> {
    let Verdict::Refuse { at } = &case.verdict else { return Some("it is taken") };
    match at.as_str() {
        _ if case.old.is_some() => Some("it is about an update"),
        _ if case.object["apiVersion"] == "apps.kruise.io/v1alpha1" => Some("v1beta1 shows the same"),
        "spec.template" if case.rule == "kruise V44" => {
            Some("today's programs do not store several templates either")
        }
        "apiVersion" | "kind" => Some("its kind does not exist"),
        "spec" => Some("today's programs do not store an object without a spec"),
        _ if case.difference.is_some() => Some("the server takes it"),
        _ => None,
    }
}

pub async fn objects_stored_under_looser_rules_keep_taking_other_writes() -> anyhow::Result<()> {
    let server = &ApiServer::start().await?;
    let client = server.client()?;
    let loose: Vec<CustomResourceDefinition> = prewarm_api::crd::all().iter().map(without_rules).collect();
    install::definitions(&client, &loose).await?;
    let judge = Judge::of(server).await?;
    let cases = prewarm_corpus::load()?;
    let mut objects = Vec::new();
    for (index, case) in cases.iter().enumerate().filter(|(_, case)| cannot_be_stored(case).is_none()) {
        let mut object = case.object.clone();
        if object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("case-")) {
            object["metadata"]["name"] = format!("stored-{index}").into();
        }
        // What Kubernetes itself refuses was never stored.
        if let Answer::Taken(stored) = judge.create(&object, "").await? {
            objects.push((case, stored));
        }
    }
    install::definitions(&client, prewarm_api::crd::all()).await?;
    wait_for_our_rules(&judge).await?;
    let mut locked = Vec::new();
    for (case, object) in &objects {
        locked.extend(
            writes_refused(&judge, object).await?.map(|said| format!("{}\n    {said}", case.title())),
        );
    }
    println!(
        "counted: {} objects that would be refused today still take status, label and finalizer writes",
        objects.len()
    );
    ensure!(objects.len() > 50, "only {} objects were stored", objects.len());
    ensure!(
        locked.is_empty(),
        "{} of {} objects are locked:\n{}",
        locked.len(),
        objects.len(),
        locked.join("\n")
    );
    Ok(())
}

/// Rules take effect a moment after the definition is stored.
async fn wait_for_our_rules(judge: &Judge) -> anyhow::Result<()> {
    for served in prewarm_api::served::all() {
        let api_version = format!("{}/{}", served.group, served.versions[0]);
        let bad = json!({
            "apiVersion": api_version, "kind": served.kind, "metadata": { "name": "probe" }, "spec": { "nonsense": 1 },
        });
        wait::until(&format!("the rules of {}", served.kind), async || {
            let answer = judge.create(&bad, "&dryRun=All").await?;
            Ok(matches!(answer, Answer::Refused { .. }).then_some(()))
        })
        .await?;
    }
    Ok(())
}

async fn writes_refused(judge: &Judge, object: &Value) -> anyhow::Result<Option<String>> {
    let name = object["metadata"]["name"].as_str().context("a stored object has a name")?;
    let path = format!("{}/{name}", judge.collection(object));
    let status = match object["kind"].as_str() {
        Some("ImagePullJob" | "ImageListPullJob" | "NodeImage") => json!({ "status": { "desired": 1 } }),
        Some("AdvancedCronJob") => json!({ "status": { "lastScheduleTime": "2026-11-15T08:30:00Z" } }),
        Some("BroadcastJob") => {
            json!({ "status": { "desired": 1, "active": 0, "succeeded": 0, "failed": 0 } })
        }
        _ => json!({ "status": { "observedGeneration": 1 } }),
    };
    let writes = [
        (format!("{path}/status"), status),
        (path.clone(), json!({ "metadata": { "labels": { "touched": "yes" } } })),
        (path.clone(), json!({ "metadata": { "finalizers": ["example.com/hold"] } })),
        (path, json!({ "metadata": { "finalizers": null } })),
    ];
    for (path, patch) in writes {
        if let Answer::Refused { message, .. } = judge.send("PATCH", &path, &patch).await? {
            return Ok(Some(format!("{patch}: {message}")));
        }
    }
    Ok(None)
}
