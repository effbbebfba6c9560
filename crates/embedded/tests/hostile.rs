//! Garbage, truncated and hostile requests: each gets a clear refusal or a closed connection, costs little, and leaves
//! a server that goes on serving everyone else.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "hostile/bodies.rs"]
mod bodies;
#[path = "hostile/fuzz.rs"]
mod fuzz;
#[path = "hostile/socket.rs"]
mod socket;
#[path = "hostile/sockets.rs"]
mod sockets;

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use prewarm_embedded::{Body, Options, Server, TokioClock};
use serde_json::Value;
use tower::ServiceExt as _;

/// A server with our definitions.
fn server() -> Server {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    server.install_definitions();
    server
}

/// Sends a request without a socket.
async fn ask(server: &Server, request: Request<Full<Bytes>>) -> Response<Body> {
    server.clone().oneshot(request).await.unwrap()
}

/// The code of an answer. If it is a refusal, also checks that a client can read it.
async fn code(response: Response<Body>) -> u16 {
    said(response).await.0
}

/// The same, with the sentence of a refusal.
async fn said(response: Response<Body>) -> (u16, String) {
    let code = response.status().as_u16();
    let mut words = String::new();
    if code >= 400 {
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let status: Value = serde_json::from_slice(&text).expect("a refusal is JSON");
        assert_eq!((status["kind"].as_str(), status["code"].as_u64()), (Some("Status"), Some(code.into())));
        status["message"].as_str().unwrap().clone_into(&mut words);
        assert!(!words.is_empty(), "a refusal says why");
    }
    (code, words)
}

/// Sends an ordinary request.
async fn still_serves(client: &Client) {
    let namespaces = Api::<Namespace>::all(client.clone());
    assert_eq!(namespaces.get("default").await.unwrap().metadata.name.as_deref(), Some("default"));
}
