//! Every case of the corpus, judged by the real server.

use anyhow::{Context as _, ensure};
use prewarm_api::validate;
use prewarm_testkit::ApiServer;
use serde_json::Value;

use super::judge::{self, Answer};

pub async fn every_object_of_the_corpus_gets_its_verdict_from_the_server() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let judge = judge::Judge::new(server).await?;
    let cases = prewarm_corpus::load()?;
    let mut wrong = Vec::new();
    for case in &cases {
        let answer = judge.ask(case).await.with_context(|| case.title())?;
        if !judge::agrees(case.server_verdict(), &answer) {
            wrong.push(format!(
                "{}\n    wanted {:?}\n    said {answer}",
                case.title(),
                case.server_verdict()
            ));
        }
    }
    println!("counted: {} corpus objects judged by the real kube-apiserver", cases.len());
    ensure!(wrong.is_empty(), "{} of {} verdicts are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    Ok(())
}

pub async fn what_the_server_stores_has_the_defaults_that_validate_fills_in() -> anyhow::Result<()> {
    let server = ApiServer::shared().await?;
    let judge = judge::Judge::new(server).await?;
    let mut differing = Vec::new();
    let mut compared = 0;
    for case in prewarm_corpus::load()?.iter().filter(|case| case.old.is_none()) {
        let Answer::Taken(stored) = judge.ask(case).await? else { continue };
        let ours = defaulted(&case.object).with_context(|| case.title())?;
        compared += 1;
        if stored.get("spec") != ours.get("spec") {
            differing.push(format!(
                "{}\n  server {}\n  ours   {}",
                case.title(),
                stored["spec"],
                ours["spec"]
            ));
        }
    }
    println!("counted: {compared} stored objects compared");
    ensure!(compared > 50, "only {compared} objects were compared");
    ensure!(differing.is_empty(), "{} defaulted objects differ:\n{}", differing.len(), differing.join("\n"));
    Ok(())
}

fn defaulted(object: &Value) -> anyhow::Result<Value> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split('/').next().unwrap_or_default();
    let served =
        prewarm_api::served::find(group, text("kind")).context("a case of a foreign kind was taken")?;
    let mut copy = object.clone();
    validate::admit(served, &mut copy, None);
    Ok(copy)
}
