//! Sends bytes at the uplink's pace.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::unfold;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::Shared;

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The bytes of one chunk: few enough that many downloads all progress within a second.
const CHUNK: usize = 16 * 1024;

pub(super) fn paced(bytes: Bytes, shared: &Arc<Shared>) -> Body {
    let chunks = unfold((bytes, Arc::clone(shared)), async |(mut bytes, shared)| {
        if bytes.is_empty() {
            return None;
        }
        let chunk = bytes.split_to(bytes.len().min(CHUNK));
        shared.uplink.pass(chunk.len()).await;
        shared.shelf().sent += chunk.len() as u64;
        Some((Ok(Frame::data(chunk)), (bytes, shared)))
    });
    BodyExt::boxed_unsync(StreamBody::new(chunks))
}
