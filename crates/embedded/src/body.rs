//! The body of an answer: a whole text, or a watch that goes on.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use tower::BoxError;

use crate::watch::WatchStream;

/// A body of any origin, as requests and answers have on their way through the fault layer or a socket.
pub type PassedBody = UnsyncBoxBody<Bytes, BoxError>;

/// Erases the type of a body.
pub(crate) fn pass<B>(body: B) -> PassedBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// A text, or none once it has been read.
    Whole(Option<Bytes>),
    /// The events of a watch.
    Watch(Box<WatchStream>),
}

impl From<Bytes> for Body {
    fn from(text: Bytes) -> Self {
        Self::Whole(Some(text))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Watch(stream) => stream.poll_line(ctx).map(|line| line.map(|line| Ok(Frame::data(line)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::Watch(_) => SizeHint::default(),
        }
    }
}
