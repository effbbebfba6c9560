//! The contract suite on the real kube-apiserver, with the controllers whose work the embedded server does itself.

#[path = "contract/mod.rs"]
mod contract;

use prewarm_testkit::{ApiServer, real_tests};

real_tests! { the_real_server_keeps_the_contract }

async fn the_real_server_keeps_the_contract() -> anyhow::Result<()> {
    let controllers = ["namespace-controller", "garbage-collector-controller", "serviceaccount-controller"];
    let server = ApiServer::configure().controllers(&controllers).start().await?;
    contract::run(contract::Side::Real, &server.client()?).await
}
