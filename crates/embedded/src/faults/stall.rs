//! An answer that stops in the middle while its connection stays open.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use tower::BoxError;

use super::PassedBody;

/// The first half of the first frame, and nothing more, not even an end.
pub(super) fn stall(body: PassedBody) -> PassedBody {
    Stalled { inner: Some(body) }.boxed_unsync()
}

struct Stalled {
    /// None once its half has been sent.
    inner: Option<PassedBody>,
}

impl Body for Stalled {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(inner) = &mut self.inner else { return Poll::Pending };
        let Poll::Ready(frame) = Pin::new(inner).poll_frame(ctx) else { return Poll::Pending };
        self.inner = None;
        match frame {
            Some(Ok(frame)) => {
                let half = |data: Bytes| data.slice(..data.len() / 2);
                Poll::Ready(Some(Ok(frame.map_data(half))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => Poll::Pending,
        }
    }
}
