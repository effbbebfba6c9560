//! The server on a loopback socket: authentication, the kubeconfig, and how it stops.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use prewarm_embedded::faults::{Action, Faults, ScriptedFault};
use prewarm_embedded::{Limits, Options, ServeError, Server, Serving, TokioClock};
use serde_json::json;
use tokio::net::TcpListener;
use tower::Layer as _;

async fn serve() -> (Server, Serving) {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    (server.clone(), server.serve(listener).unwrap())
}

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig: Kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

#[tokio::test]
async fn the_kubeconfig_is_all_that_a_client_needs() {
    let (server, serving) = serve().await;
    let client = client(&serving.kubeconfig()).await;
    let maps = Api::<ConfigMap>::default_namespaced(client);
    maps.create(&PostParams::default(), &map("from-outside")).await.unwrap();
    let inside = Api::<ConfigMap>::default_namespaced(server.client());
    assert!(inside.get_opt("from-outside").await.unwrap().is_some(), "it is the same server");
}

#[tokio::test]
async fn without_the_right_token_there_is_no_access() {
    let (_, serving) = serve().await;
    let good = serving.kubeconfig();
    for token in ["", "wrong", &serving.token()[1..]] {
        let bad = good.replace(serving.token(), token);
        let answer = Api::<Namespace>::all(client(&bad).await).list(&ListParams::default()).await;
        match answer {
            Err(kube::Error::Api(status)) => {
                assert_eq!((status.code, status.reason.as_str()), (401, "Unauthorized"), "token {token:?}");
            }
            other => panic!("token {token:?} got {other:?}"),
        }
    }
}

#[tokio::test]
async fn every_run_has_a_token_of_its_own() {
    let (_, one) = serve().await;
    let (_, two) = serve().await;
    assert_ne!(one.token(), two.token(), "the seed is the same, the secret is not");
    let stale = one.kubeconfig().replace(&one.url(), &two.url());
    let answer = Api::<Namespace>::all(client(&stale).await).list(&ListParams::default()).await;
    assert!(matches!(answer, Err(kube::Error::HyperError(_) | kube::Error::Service(_))), "{answer:?}");
}

#[tokio::test]
async fn the_server_listens_only_on_loopback() {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    let refused = server.serve(listener).unwrap_err();
    assert!(matches!(refused, ServeError::NotLoopback(SocketAddr::V4(_))), "{refused}");
}

#[tokio::test]
async fn the_kubeconfig_file_is_readable_by_its_owner_only_even_if_there_was_an_open_one() {
    let (_, serving) = serve().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, "of an earlier run").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    serving.write_kubeconfig(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), serving.kubeconfig());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn faults_affect_clients_on_the_socket_too() {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    let faults = Faults::scripted(vec![
        ScriptedFault::at(1, Action::Refused),
        ScriptedFault::at(2, Action::AnswerLost),
    ]);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let serving = prewarm_embedded::serve(faults.layer(server), listener, Limits::default()).unwrap();
    let maps = Api::<ConfigMap>::default_namespaced(client(&serving.kubeconfig()).await);
    for _ in 0..2 {
        let broken = maps.create(&PostParams::default(), &map("one")).await;
        assert!(matches!(broken, Err(kube::Error::HyperError(_) | kube::Error::Service(_))), "{broken:?}");
    }
    let taken = maps.create(&PostParams::default(), &map("one")).await;
    assert!(
        matches!(taken, Err(kube::Error::Api(status)) if status.code == 409),
        "the second one was stored"
    );
    assert_eq!(faults.writes(), 1);
}

#[tokio::test]
async fn stopping_ends_watches_cleanly_and_waits_for_nobody() {
    let (server, serving) = serve().await;
    let maps = Api::<ConfigMap>::default_namespaced(client(&serving.kubeconfig()).await);
    let mut events = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let inside = Api::<ConfigMap>::default_namespaced(server.client());
    inside.create(&PostParams::default(), &map("seen")).await.unwrap();
    let mut seen = events.try_next().await.unwrap();
    while matches!(seen, Some(WatchEvent::Bookmark(_))) {
        seen = events.try_next().await.unwrap();
    }
    assert!(matches!(&seen, Some(WatchEvent::Added(_))), "{seen:?}");
    let address = serving.address();
    let start = Instant::now();
    let (end, ()) = tokio::join!(events.try_next(), serving.stop());
    assert!(end.unwrap().is_none(), "the watch ends without an error");
    // Otherwise the watch would go on for forty minutes.
    assert!(start.elapsed() < Duration::from_mins(1), "it took {:?}", start.elapsed());
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
