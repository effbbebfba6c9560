//! The address under which pods look for the API server. No kube-proxy runs in a bed, so this does its work.

use anyhow::Context as _;
use prewarm_bed::inside::{self, BRIDGE_ADDRESS};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::ApiServer;
use super::configure::SERVICE_ADDRESS;

/// The port of the Service.
const PORT: u16 = 443;

/// Forwards pods to a server until it is dropped. A bed has one such address, so only one server at a time can have it.
pub struct Service {
    task: JoinHandle<()>,
}

impl ApiServer {
    /// Lets pods reach this server as in every cluster, by the variables that their kubelet sets.
    pub async fn serve_pods(&self) -> anyhow::Result<Service> {
        inside::configure_network(&format!("addr replace {SERVICE_ADDRESS}/32 dev lo\n"))?;
        let listener = TcpListener::bind((SERVICE_ADDRESS, PORT)).await;
        let listener = listener.context("opening the port of the Service; does another server have it?")?;
        let port = self.address.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
        let port = port.context("the server's address has a port")?;
        let task = tokio::spawn(async move {
            // A client whose connection could not be accepted tries again.
            while let Ok((pod, _)) = listener.accept().await {
                tokio::spawn(forward(pod, port));
            }
        });
        Ok(Service { task })
    }
}

async fn forward(mut pod: TcpStream, port: u16) {
    if let Ok(mut server) = TcpStream::connect((BRIDGE_ADDRESS, port)).await {
        // However the connection ends, both sides notice.
        drop(copy_bidirectional(&mut pod, &mut server).await);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}
