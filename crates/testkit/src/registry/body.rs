//! The body of an answer, with a fault applied.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::try_unfold;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};

use super::fault::Fault;

pub(super) type Body = BoxBody<Bytes, io::Error>;

/// Called with how much more was sent, and whether that was everything.
pub(super) type Progress = Arc<dyn Fn(usize, bool) + Send + Sync>;

/// How long a truncated answer waits before it breaks off.
const TRUNCATE_PAUSE: Duration = Duration::from_millis(50);

/// A whole text.
pub(super) fn text(text: String) -> Body {
    Full::from(text).map_err(|never| match never {}).boxed()
}

/// Passes on a body of this length, with a fault.
pub(super) fn spoil(body: Incoming, length: u64, fault: Option<Fault>, progress: Progress) -> Body {
    let source = Source { body, position: 0, length, fault, progress };
    BodyExt::boxed(StreamBody::new(try_unfold(source, next)))
}

struct Source {
    body: Incoming,
    position: u64,
    length: u64,
    fault: Option<Fault>,
    progress: Progress,
}

async fn next(mut source: Source) -> io::Result<Option<(Frame<Bytes>, Source)>> {
    source.hold().await?;
    let Some(frame) = source.body.frame().await else { return Ok(None) };
    let Ok(data) = frame.map_err(io::Error::other)?.into_data() else {
        return Err(io::Error::other("the registry sent trailers"));
    };
    let data = source.change(data).await;
    source.position += data.len() as u64;
    // The server stops asking when it has as much as the header promised.
    (source.progress)(data.len(), source.position == source.length);
    Ok(Some((Frame::data(data), source)))
}

impl Source {
    /// Stops where the fault says so.
    async fn hold(&self) -> io::Result<()> {
        match self.fault {
            Some(Fault::Stall(limit)) if self.position >= limit => std::future::pending().await,
            Some(Fault::Truncate(limit)) if self.position >= limit => {
                // While this waits, the server sends what it has; an error at once would discard that.
                tokio::time::sleep(TRUNCATE_PAUSE).await;
                Err(io::Error::other("truncated on purpose"))
            }
            _ => Ok(()),
        }
    }

    async fn change(&self, data: Bytes) -> Bytes {
        match self.fault {
            Some(Fault::Stall(limit) | Fault::Truncate(limit)) => {
                let room = usize::try_from(limit - self.position).unwrap_or(usize::MAX);
                data.slice(..data.len().min(room))
            }
            Some(Fault::WrongBytes) => self.with_wrong_byte(&data),
            Some(Fault::Slow(rate)) => {
                #[expect(clippy::cast_precision_loss, reason = "a pace need not be exact")]
                let pause = Duration::from_secs_f64(data.len() as f64 / rate as f64);
                tokio::time::sleep(pause).await;
                data
            }
            _ => data,
        }
    }

    /// Changes the byte in the middle of the whole body.
    fn with_wrong_byte(&self, data: &Bytes) -> Bytes {
        let mut data = data.to_vec();
        let place =
            (self.length / 2).checked_sub(self.position).and_then(|place| usize::try_from(place).ok());
        if let Some(byte) = place.and_then(|place| data.get_mut(place)) {
            *byte ^= 0xff;
        }
        data.into()
    }
}
