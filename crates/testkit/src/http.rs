//! Plain HTTP, for registries inside the bed.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// The longest that one request may take; the largest is the upload of a layer.
const LIMIT: Duration = Duration::from_mins(1);

/// A whole answer.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Sends one request.
pub async fn send(request: Request<Vec<u8>>) -> anyhow::Result<Answer> {
    let what = format!("{} {}", request.method(), request.uri());
    let exchange = async {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(request.map(Full::<Bytes>::from)).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        anyhow::Ok(Answer { status: head.status, headers: head.headers, body })
    };
    tokio::time::timeout(LIMIT, exchange)
        .await
        .with_context(|| format!("{what}: no answer in time"))?
        .context(what)
}
