//! The body of an answer, which may neither stop for long nor, unless it is a watch, go on for ever.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Frame, SizeHint};
use hyper::body::Bytes;
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

use super::limited::Silence;

pub(super) struct Bounded {
    inner: Body,
    /// How long nothing may come.
    silence: Duration,
    /// When it has to be over, if it has to.
    end: Option<Instant>,
    /// How long its end is kept back.
    lingers: Duration,
    has_ended: bool,
    timer: Pin<Box<Sleep>>,
}

impl Bounded {
    /// An answer that has to be over by `end`.
    pub(super) fn whole(inner: Body, silence: Duration, end: Instant) -> Self {
        let timer = Box::pin(sleep_until(next(silence, Some(end))));
        Self { inner, silence, end: Some(end), lingers: Duration::ZERO, has_ended: false, timer }
    }

    /// A watch, which goes on for as long as something comes. Its end is kept back for as long as it `lingers`.
    pub(super) fn watch(inner: Body, silence: Duration, lingers: Duration) -> Self {
        let timer = Box::pin(sleep_until(next(silence, None)));
        Self { inner, silence, end: None, lingers, has_ended: false, timer }
    }
}

fn next(silence: Duration, end: Option<Instant>) -> Instant {
    let at = Instant::now() + silence;
    end.map_or(at, |end| end.min(at))
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while !self.has_ended {
            let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(ctx) else {
                ready!(self.timer.as_mut().poll(ctx));
                return Poll::Ready(Some(Err(Silence::Stopped(self.silence).into())));
            };
            self.has_ended = frame.is_none();
            let wait = if self.has_ended { self.lingers } else { self.silence };
            let at = next(wait, self.end);
            self.timer.as_mut().reset(at);
            if let Some(frame) = frame {
                return Poll::Ready(Some(frame.map_err(Into::into)));
            }
        }
        if !self.lingers.is_zero() {
            ready!(self.timer.as_mut().poll(ctx));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.lingers.is_zero() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
