//! What containerd offers besides CRI: content under way, and events.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::broadcast;
use tokio::time::Instant;
use tonic::{Request, Response, Status, async_trait};

use super::world::{Download, Shared};
use crate::progress;
use crate::proto::content::content_server::Content;
use crate::proto::content::{
    Info, ListContentRequest, ListContentResponse, ListStatusesRequest, ListStatusesResponse,
    ReadContentRequest, ReadContentResponse, Status as Ingest,
};
use crate::proto::events::SubscribeRequest;
use crate::proto::events::events_server::Events;
use crate::proto::types::Envelope;

/// The size of every config.
const CONFIG_SIZE: u64 = 100;

#[derive(Clone)]
pub(super) struct Containerd(pub Arc<Shared>);

type Parts<T> = BoxStream<'static, Result<T, Status>>;

#[async_trait]
impl Content for Containerd {
    type ListStream = Parts<ListContentResponse>;
    type ReadStream = Parts<ReadContentResponse>;

    async fn list(&self, request: Request<ListContentRequest>) -> Result<Response<Self::ListStream>, Status> {
        check_namespace(&request)?;
        self.0.enter("List").await;
        let filters = request.into_inner().filters;
        let info =
            self.0.world().downloads.values().flat_map(|download| listed(download, &filters)).collect();
        Ok(Response::new(stream::iter([Ok(ListContentResponse { info })]).boxed()))
    }

    async fn read(&self, request: Request<ReadContentRequest>) -> Result<Response<Self::ReadStream>, Status> {
        check_namespace(&request)?;
        self.0.enter("Read").await;
        let digest = request.into_inner().digest;
        let world = self.0.world();
        let download = world.downloads.values().find(|download| download.plot.manifest() == digest);
        let download = download.ok_or_else(|| Status::not_found(format!("content {digest}: not found")))?;
        let part = ReadContentResponse { offset: 0, data: manifest(download).into_bytes() };
        Ok(Response::new(stream::iter([Ok(part)]).boxed()))
    }

    async fn list_statuses(
        &self,
        request: Request<ListStatusesRequest>,
    ) -> Result<Response<ListStatusesResponse>, Status> {
        check_namespace(&request)?;
        self.0.enter("ListStatuses").await;
        let statuses = self.0.world().downloads.values().flat_map(ingests).collect();
        Ok(Response::new(ListStatusesResponse { statuses }))
    }
}

#[async_trait]
impl Events for Containerd {
    type SubscribeStream = Parts<Envelope>;

    async fn subscribe(
        &self,
        request: Request<SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        check_namespace(&request)?;
        let removals = self.0.removals();
        self.0.enter("Subscribe").await;
        self.0.changed();
        let events = stream::unfold(removals, async |mut removals| {
            loop {
                match removals.recv().await {
                    Ok(_name) => {
                        let envelope =
                            Envelope { namespace: "k8s.io".into(), topic: "/images/delete".into() };
                        return Some((Ok(envelope), removals));
                    }
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        });
        Ok(Response::new(events.boxed()))
    }
}

fn check_namespace<T>(request: &Request<T>) -> Result<(), Status> {
    match request.metadata().get(progress::NAMESPACE_HEADER) {
        Some(namespace) if namespace == progress::NAMESPACE => Ok(()),
        _ => Err(Status::failed_precondition("namespace is required: failed precondition")),
    }
}

/// The content of a download that one of the filters asks for.
fn listed(download: &Download, filters: &[String]) -> Vec<Info> {
    let is_asked = |wanted: String| filters.contains(&wanted);
    let mut listed = Vec::new();
    if is_asked(progress::manifest_filter(&download.reference)) {
        listed.push(Info {
            digest: download.plot.manifest(),
            size: i64::try_from(manifest(download).len()).unwrap_or(i64::MAX),
            updated_at: Some(download.touched.into()),
        });
    }
    let arrived = parts(download).into_iter().filter(|part| part.arrived == part.size);
    for part in arrived.filter(|part| is_asked(format!("digest=={}", part.digest))) {
        listed.push(Info {
            digest: part.digest,
            size: i64::try_from(part.size).unwrap_or(i64::MAX),
            updated_at: Some(download.touched.into()),
        });
    }
    listed
}

fn ingests(download: &Download) -> Vec<Ingest> {
    parts(download)
        .into_iter()
        .filter(|part| part.arrived > 0 && part.arrived < part.size)
        .map(|part| Ingest {
            r#ref: format!("layer-{}", part.digest),
            offset: i64::try_from(part.arrived).unwrap_or(i64::MAX),
            total: i64::try_from(part.size).unwrap_or(i64::MAX),
        })
        .collect()
}

struct Part {
    digest: String,
    size: u64,
    arrived: u64,
}

/// The config, which is there at once, and the layers, which arrive one after the other and evenly over time.
fn parts(download: &Download) -> Vec<Part> {
    let plot = &download.plot;
    let mut left = arrived(download);
    let config = Part { digest: plot.config(), size: CONFIG_SIZE, arrived: CONFIG_SIZE };
    let layers = plot.layers.iter().enumerate().map(|(place, size)| {
        let arrived = left.min(*size);
        left -= arrived;
        Part { digest: plot.layer(place), size: *size, arrived }
    });
    std::iter::once(config).chain(layers).collect()
}

fn arrived(download: &Download) -> u64 {
    let (takes, passed) = (download.plot.takes, Instant::now() - download.began);
    if passed >= takes {
        return download.plot.total();
    }
    let bytes = u128::from(download.plot.total()) * passed.as_micros() / takes.as_micros().max(1);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn manifest(download: &Download) -> String {
    let parts = parts(download);
    let descriptor = |part: &Part| format!(r#"{{"digest":"{}","size":{}}}"#, part.digest, part.size);
    let layers: Vec<String> = parts[1..].iter().map(descriptor).collect();
    format!(r#"{{"config":{},"layers":[{}]}}"#, descriptor(&parts[0]), layers.join(","))
}
