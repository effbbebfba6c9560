//! Plain HTTP, for registries inside the bed.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// How long one request may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Requests a page and returns the status of the answer.
pub async fn get(url: &str) -> anyhow::Result<StatusCode> {
    let what = format!("GET {url}");
    let exchange = async {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let response = client.request(Request::get(url).body(Full::<Bytes>::default())?).await?;
        anyhow::Ok(response.status())
    };
    tokio::time::timeout(LIMIT, exchange)
        .await
        .with_context(|| format!("{what}: no answer in time"))?
        .context(what)
}
