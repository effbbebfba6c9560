//! What containerd offers besides CRI: content under way, and events.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::broadcast;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::backend::{Backend, Content as Piece, Ingest as Part};
use crate::progress;
use crate::proto::content::content_server::Content;
use crate::proto::content::{
    AbortRequest, Info, InfoRequest, InfoResponse, ListContentRequest, ListContentResponse,
    ListStatusesRequest, ListStatusesResponse, ReadContentRequest, ReadContentResponse, Status as Ingest,
    WriteContentRequest, WriteContentResponse,
};
use crate::proto::events::SubscribeRequest;
use crate::proto::events::events_server::Events;
use crate::proto::types::Envelope;

pub(super) struct Containerd<B>(pub Arc<B>);

type Parts<T> = BoxStream<'static, Result<T, Status>>;

#[async_trait]
impl<B: Backend> Content for Containerd<B> {
    type ListStream = Parts<ListContentResponse>;
    type ReadStream = Parts<ReadContentResponse>;
    type WriteStream = Parts<WriteContentResponse>;

    async fn list(&self, request: Request<ListContentRequest>) -> Result<Response<Self::ListStream>, Status> {
        check_namespace(&request)?;
        self.0.enter("List").await;
        let filters = request.into_inner().filters;
        let asked = self.0.content().into_iter().filter(|piece| is_asked(piece, &filters));
        let info = asked.map(info).collect();
        Ok(Response::new(stream::iter([Ok(ListContentResponse { info })]).boxed()))
    }

    async fn read(&self, request: Request<ReadContentRequest>) -> Result<Response<Self::ReadStream>, Status> {
        check_namespace(&request)?;
        self.0.enter("Read").await;
        let digest = request.into_inner().digest;
        let data = self.0.manifest(&digest);
        let data = data.ok_or_else(|| Status::not_found(format!("content {digest}: not found")))?;
        let part = ReadContentResponse { offset: 0, data };
        Ok(Response::new(stream::iter([Ok(part)]).boxed()))
    }

    async fn list_statuses(
        &self,
        request: Request<ListStatusesRequest>,
    ) -> Result<Response<ListStatusesResponse>, Status> {
        check_namespace(&request)?;
        self.0.enter("ListStatuses").await;
        let statuses = self.0.ingests().iter().map(ingest).collect();
        Ok(Response::new(ListStatusesResponse { statuses }))
    }

    // Nothing can be written here: a simulated node gets from simulated mirrors what it does not pull.

    async fn info(&self, _request: Request<InfoRequest>) -> Result<Response<InfoResponse>, Status> {
        Err(Status::unimplemented("Info"))
    }

    async fn write(
        &self,
        _request: Request<Streaming<WriteContentRequest>>,
    ) -> Result<Response<Self::WriteStream>, Status> {
        Err(Status::unimplemented("Write"))
    }

    async fn abort(&self, _request: Request<AbortRequest>) -> Result<Response<()>, Status> {
        Err(Status::unimplemented("Abort"))
    }
}

#[async_trait]
impl<B: Backend> Events for Containerd<B> {
    type SubscribeStream = Parts<Envelope>;

    async fn subscribe(
        &self,
        request: Request<SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        check_namespace(&request)?;
        let removals = self.0.removals();
        self.0.enter("Subscribe").await;
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

/// Whether one of the filters selects it. Only the filters that this client sends are understood.
fn is_asked(piece: &Piece, filters: &[String]) -> bool {
    let by_image = piece.manifest_of.iter().map(progress::manifest_filter);
    by_image.chain([format!("digest=={}", piece.digest)]).any(|wanted| filters.contains(&wanted))
}

fn info(piece: Piece) -> Info {
    let (size, updated_at) = (signed(piece.size), Some(piece.touched.into()));
    Info { digest: piece.digest, size, updated_at, ..Info::default() }
}

fn ingest(part: &Part) -> Ingest {
    Ingest { r#ref: format!("layer-{}", part.digest), offset: signed(part.offset), total: signed(part.total) }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
