//! kubectl, as a person uses it, on the embedded server and on a real one: the output must be the same.

#[path = "real_kubectl/person.rs"]
mod person;
#[path = "real_kubectl/script.rs"]
mod script;
#[path = "real_kubectl/visible.rs"]
mod visible;

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use prewarm_bed::inside;
use prewarm_embedded::{Options, Server, Serving, TokioClock};
use prewarm_testkit::{ApiServer, real_tests};
use tokio::net::TcpListener;

use person::Person;
use script::{SCRIPT, Step};

real_tests! { a_person_with_kubectl_sees_the_same_on_both_servers }

async fn a_person_with_kubectl_sees_the_same_on_both_servers() -> anyhow::Result<()> {
    let controllers = ["garbage-collector-controller", "namespace-controller", "serviceaccount-controller"];
    let (real, embedded) =
        tokio::try_join!(ApiServer::configure().controllers(&controllers).start(), serve())?;
    let kubeconfig = inside::directory("embedded")?.join("kubeconfig");
    embedded.write_kubeconfig(&kubeconfig).context("writing the kubeconfig")?;
    let at_real = Person::new(real.kubeconfig(), inside::directory("person-real")?)?;
    let at_embedded = Person::new(&kubeconfig, inside::directory("person-embedded")?)?;
    install_definitions(&at_real).await?;

    let mut differences = Vec::new();
    for step in SCRIPT {
        let (wanted, got) = tokio::try_join!(at_real.take(step), at_embedded.take(step))?;
        if wanted != got {
            differences.push(format!("$ kubectl {}\n{}", step.line(), visible::difference(&wanted, &got)));
        }
    }
    println!("kubectl: {} steps on each server, {} differ", SCRIPT.len(), differences.len());
    ensure!(
        differences.is_empty(),
        "kubectl's output differs (- real, + embedded):\n{}",
        differences.join("\n")
    );
    embedded.stop().await;
    Ok(())
}

async fn serve() -> anyhow::Result<Serving> {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    for definition in prewarm_api::crd::all() {
        let definition = serde_json::to_value(definition)?;
        server.install(&definition).map_err(|refusal| anyhow::anyhow!(refusal.message))?;
    }
    Ok(server.serve(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)?)
}

/// The real server gets the definitions as a person installs them.
async fn install_definitions(person: &Person) -> anyhow::Result<()> {
    let mut list = Vec::new();
    for definition in prewarm_api::crd::all() {
        list.push(serde_json::to_value(definition)?);
    }
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": list }).to_string();
    person.expect(&Step::new(&["apply", "--server-side", "-f", "-"]), &list).await?;
    let wait = Step::new(&["wait", "crd", "--all", "--for=condition=Established", "--timeout=30s"]);
    person.expect(&wait, "").await
}
