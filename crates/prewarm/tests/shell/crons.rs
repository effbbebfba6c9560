//! Cron jobs on the embedded API: the cases that a transcript cannot contain.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{Either, ready};
use http::{Request, Response};
use kube::api::{Patch, PatchParams};
use prewarm_api::kruise::AdvancedCronJob;
use prewarm_embedded::{Body, Limits, Options, PassedBody, Server, TokioClock};
use serde_json::json;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use super::suite::{Shell, furnish};
use super::{Watched, World, run};

/// The server's own words for a request for cron jobs that it refuses.
fn answer(code: u16, message: &str) -> Response<Body> {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message});
    let body = Body::from(Bytes::from(status.to_string()));
    Response::builder().status(code).header("content-type", "application/json").body(body).expect("an answer")
}

/// The output of all commands on a cluster that does not show cron jobs.
async fn said(code: u16, message: &'static str, lines: &[&'static str]) -> Vec<String> {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    server.install_definitions();
    furnish(&server.client()).await.expect("the cluster of the fixture");
    let service = tower::service_fn(move |request: Request<PassedBody>| {
        if request.uri().path().ends_with("/advancedcronjobs") {
            Either::Left(ready(Ok(answer(code, message))))
        } else {
            Either::Right(server.clone().oneshot(request))
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let serving = prewarm_embedded::serve(service, listener, Limits::default()).expect("it serves");
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    serving.write_kubeconfig(&kubeconfig).expect("a kubeconfig");
    let mut said = Vec::new();
    for line in lines {
        let shell = Shell { program: env!("CARGO_BIN_EXE_prewarm").into(), kubeconfig: kubeconfig.clone() };
        said.push(run(shell, line).await);
    }
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_shown_to_those_who_may_not_see_cron_jobs() {
    let lines =
        ["status -n shop", "status web -n shop -o json", "status nightly -n shop", "explain nightly -n shop"];
    let said = said(403, "anna cannot list resource advancedcronjobs", &lines).await;
    let why = "you may not list advancedcronjobs.apps.kruise.io in namespace shop: anna cannot list";
    let [all, json, status, explain] = &said[..] else { panic!("{said:?}") };
    assert!(all.contains("imagepulljob/web   Running") && !all.contains("exit"), "{all}");
    assert!(all.contains(&format!("\nCron jobs are not shown: {why}")), "{all}");
    assert!(json.contains("\"name\": \"web\"") && !json.contains("\"crons\""), "{json}");
    for named in [status, explain] {
        let message = format!(
            "error: there is no pull job and no ImagePrefetch nightly, and cron jobs cannot be read: {why}"
        );
        assert!(named.contains(&message) && named.ends_with("[exit 2]\n"), "{named}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_shown_where_cron_jobs_have_no_definition() {
    let said = said(404, "the server could not find the requested resource", &["status -n shop"]).await;
    assert!(said[0].contains("imagepulljob/web   Running") && !said[0].contains("exit"), "{said:?}");
    let message = "has no AdvancedCronJobs: install the definitions with `prewarm crds |";
    assert!(said[0].contains("\nCron jobs are not shown: ") && said[0].contains(message), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_with_cron_jobs_that_may_pass_is_an_error() {
    let said = said(500, "etcd is away", &["status -n shop"]).await;
    assert!(said[0].contains("error: cannot list advancedcronjobs.apps.kruise.io"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_cron_job_shows_when_a_run_begins() {
    let world = World::start().await;
    world.server.install_definitions();
    furnish(&world.server.client()).await.expect("the cluster of the fixture");
    let mut status = Watched::start(&world.shell, &["status", "nightly", "-n", "shop", "--watch"]);
    let mut explain = Watched::start(&world.shell, &["explain", "nightly", "-n", "shop", "--watch"]);
    assert!(status.until("advancedcronjob/nightly").contains("Failed"));
    assert!(explain.until("advancedcronjob/nightly").contains("Failed"));
    let crons: kube::Api<AdvancedCronJob> = kube::Api::namespaced(world.server.client(), "shop");
    let patch = json!({"status": {"active": [{"name": "nightly-4070998800"}]}});
    let written = crons.patch_status("nightly", &PatchParams::default(), &Patch::Merge(patch)).await;
    written.expect("a patch");
    for watched in [&mut status, &mut explain] {
        let line = watched.later("Running").await;
        assert!(line.starts_with("advancedcronjob/nightly"), "{line}");
    }
}
