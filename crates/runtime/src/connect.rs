//! Finds the node's runtime and checks that it is one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::endpoint::Endpoint;
use crate::proto::cri::image_service_client::ImageServiceClient;
use crate::proto::cri::runtime_service_client::RuntimeServiceClient;
use crate::proto::cri::{ImageFsInfoRequest, VersionRequest, VersionResponse};
use crate::runtime::Runtime;
use crate::scrub;
use crate::socket::SocketError;

/// The sockets of runtimes below a run directory, in the order in which they are tried (kruise D40).
const SOCKETS: [&str; 6] = [
    "containerd.sock",
    "containerd/containerd.sock",
    "crio.sock",
    "crio/crio.sock",
    "cri-dockerd.sock",
    "cri-dockerd/cri-dockerd.sock",
];

/// How long a runtime may take to report its file systems, and its version (kruise D41).
const FILESYSTEMS_LIMIT: Duration = Duration::from_secs(10);
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// The requested version of CRI.
const CRI_VERSION: &str = "v1";

/// Why there is no usable runtime.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The socket cannot be used.
    #[error("{0}")]
    Socket(#[from] SocketError),
    /// Something listens, but it is not a runtime, or it is an old one.
    #[error("{endpoint} does not speak CRI v1, the only version that is supported: {text}")]
    NotCri {
        /// The socket or pipe.
        endpoint: String,
        /// The answer.
        text: String,
    },
    /// The runtime did not answer in time, or answered with an error.
    #[error("the runtime on {endpoint} did not answer {call}: {text}")]
    NoAnswer {
        /// The socket or pipe.
        endpoint: String,
        /// The call that it did not answer.
        call: &'static str,
        /// The error, or that the time was over.
        text: String,
    },
    /// No candidate below the run directory can be used.
    #[error("no container runtime below {}: {}", directory.display(), list(tried))]
    NoneFound {
        /// The directory that was searched.
        directory: PathBuf,
        /// Why each candidate cannot be used, in the order in which they were tried.
        tried: Vec<ConnectError>,
    },
    /// The run directory itself cannot be read.
    #[error("the run directory {} cannot be read: {source}", directory.display())]
    NoDirectory {
        /// The directory that should be searched.
        directory: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The sockets that are tried below a run directory such as `/run`, in order.
pub fn candidates(run_directory: &Path) -> Vec<PathBuf> {
    SOCKETS.iter().map(|socket| run_directory.join(socket)).collect()
}

impl Runtime {
    /// Connects to a runtime and checks that it answers as one.
    pub async fn connect(endpoint: &Endpoint) -> Result<Self, ConnectError> {
        endpoint.try_out().await?;
        let channel = endpoint.channel();
        let mut images = ImageServiceClient::new(channel.clone());
        let filesystems = timeout(FILESYSTEMS_LIMIT, images.image_fs_info(ImageFsInfoRequest {}));
        checked(filesystems.await, endpoint, "ImageFsInfo")?;
        let version = ask_version(RuntimeServiceClient::new(channel.clone()), endpoint).await?;
        Ok(Self::new(channel, endpoint, &version))
    }

    /// Connects to the first candidate below the directory that answers. The directory itself may be a link, as
    /// `/var/run` is, but nothing below it may.
    pub async fn detect(run_directory: &Path) -> Result<Self, ConnectError> {
        let mut tried = Vec::new();
        for socket in candidates(&canonical(run_directory)?) {
            match Self::connect(&Endpoint::unix(socket)).await {
                Ok(runtime) => return Ok(runtime),
                Err(error) => tried.push(error),
            }
        }
        Err(ConnectError::NoneFound { directory: run_directory.to_owned(), tried })
    }

    /// All candidates below the directory that answer, in the order in which they are tried; at least one.
    pub async fn all(run_directory: &Path) -> Result<Vec<Self>, ConnectError> {
        let sockets = candidates(&canonical(run_directory)?);
        // All at once: one that hangs holds up the others no longer than its own limit.
        let answers =
            join_all(sockets.into_iter().map(async |socket| Self::connect(&Endpoint::unix(socket)).await));
        let (mut answering, mut tried) = (Vec::new(), Vec::new());
        for answer in answers.await {
            match answer {
                Ok(runtime) => answering.push(runtime),
                Err(error) => tried.push(error),
            }
        }
        if answering.is_empty() {
            return Err(ConnectError::NoneFound { directory: run_directory.to_owned(), tried });
        }
        Ok(answering)
    }
}

fn canonical(run_directory: &Path) -> Result<PathBuf, ConnectError> {
    std::fs::canonicalize(run_directory)
        .map_err(|source| ConnectError::NoDirectory { directory: run_directory.to_owned(), source })
}

async fn ask_version(
    mut client: RuntimeServiceClient<tonic::transport::Channel>,
    endpoint: &Endpoint,
) -> Result<VersionResponse, ConnectError> {
    let request = VersionRequest { version: CRI_VERSION.into() };
    let answer = timeout(VERSION_LIMIT, client.version(request)).await;
    checked(answer, endpoint, "Version").map(tonic::Response::into_inner)
}

fn checked<T>(
    answer: Result<Result<T, Status>, tokio::time::error::Elapsed>,
    endpoint: &Endpoint,
    call: &'static str,
) -> Result<T, ConnectError> {
    let endpoint = endpoint.to_string();
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(status)) if status.code() == Code::Unimplemented => {
            Err(ConnectError::NotCri { endpoint, text: scrub::text(status.message(), &[]) })
        }
        Ok(Err(status)) => Err(ConnectError::NoAnswer { endpoint, call, text: scrub::status(&status, &[]) }),
        Err(_elapsed) => {
            Err(ConnectError::NoAnswer { endpoint, call, text: "it took longer than its limit".into() })
        }
    }
}

/// The errors of all candidates in one sentence.
fn list(tried: &[ConnectError]) -> String {
    let mut text = String::new();
    for (place, error) in tried.iter().enumerate() {
        let separator = if place == 0 { "" } else { "; " };
        write!(text, "{separator}{error}").expect("writing to a string cannot fail");
    }
    text
}
