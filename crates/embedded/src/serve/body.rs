//! The body of an answer on a socket: its request counts as under way until the body ends, and the body ends when the
//! server stops.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tower::BoxError;

use super::connections::UnderWay;
use crate::body::PassedBody;

type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A body with what it keeps open.
pub struct SocketBody {
    body: PassedBody,
    stopped: Option<Stopped>,
    _under_way: UnderWay,
}

impl SocketBody {
    /// A body that ends when `stopped` does. A text of known length is sent completely in any case.
    pub fn new(
        body: PassedBody,
        under_way: UnderWay,
        stopped: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let stopped = body.size_hint().exact().is_none().then(|| Box::pin(stopped) as Stopped);
        Self { body, stopped, _under_way: under_way }
    }
}

impl http_body::Body for SocketBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(stopped) = &mut self.stopped
            && stopped.as_mut().poll(ctx).is_ready()
        {
            self.stopped = None;
            self.body = PassedBody::default();
        }
        Pin::new(&mut self.body).poll_frame(ctx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
