//! Sends bytes at the uplink's pace.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::unfold;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::Shared;
use crate::serve::{Body, CHUNK};

pub(super) fn paced(bytes: Bytes, repository: &str, shared: &Arc<Shared>) -> Body {
    let start = (bytes, repository.to_owned(), Arc::clone(shared));
    let chunks = unfold(start, async |(mut bytes, repository, shared)| {
        if bytes.is_empty() {
            return None;
        }
        let chunk = bytes.split_to(bytes.len().min(CHUNK));
        shared.uplink.pass(chunk.len()).await;
        shared.shelf().note_sent(&repository, chunk.len() as u64);
        Some((Ok(Frame::data(chunk)), (bytes, repository, shared)))
    });
    BodyExt::boxed_unsync(StreamBody::new(chunks))
}
