//! The contract suite on the embedded server.

#[path = "contract/mod.rs"]
mod contract;

use std::sync::Arc;

use prewarm_embedded::{Options, Server, TokioClock};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_server_keeps_the_contract() {
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    let outcome = contract::run(contract::Side::Embedded, &server.client()).await;
    outcome.unwrap_or_else(|error| panic!("{error:#}"));
}
