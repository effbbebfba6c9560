//! Serves the embedded API with Prewarm's definitions on loopback, and writes a kubeconfig to the given path:
//!
//! ```console
//! $ cargo run -p prewarm-embedded --example serve -- /tmp/kubeconfig
//! $ kubectl --kubeconfig /tmp/kubeconfig get imagepulljobs -w
//! ```

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use prewarm_embedded::{Options, Server, TokioClock};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let path: PathBuf = std::env::args_os().nth(1).context("the path of the kubeconfig is missing")?.into();
    let server = Server::new(Arc::new(TokioClock::of_the_machine()), Options::default());
    server.install_definitions();
    let serving = server.serve(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)?;
    serving.write_kubeconfig(&path).context("writing the kubeconfig")?;
    println!("serving on {} until Ctrl-C; kubectl --kubeconfig {}", serving.url(), path.display());
    tokio::signal::ctrl_c().await?;
    std::fs::remove_file(&path).context("removing the kubeconfig, which is of no more use")?;
    serving.stop().await;
    Ok(())
}
