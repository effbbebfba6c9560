//! Clients of the API server that notice when a connection dies without a word: behind a failed load balancer or a cut cable
//! nothing fails by itself, and whoever waits for an answer waits for ever.
//!
//! ```text
//! request ─▶ limited: an answer within 20 s, no silence longer than that, an end within a minute
//!              │      a watch: events or bookmarks at least every two minutes
//!              └─▶ connect: keepalive finds dead connections within 25 s, idle ones too
//! ```

use std::time::Duration;

use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use kube::client::retry::RetryPolicy;
use kube::{Client, Config, Error};
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

mod body;
mod limited;

pub use limited::limited;

/// How long the server may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A connection on which nothing has moved for so long is asked whether it is alive. An idle connection costs a packet
/// each way in that time.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
/// How long each such question waits for its answer.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// How many questions without an answer end the connection.
const KEEPALIVE_QUESTIONS: u32 = 3;
/// What was sent and is not acknowledged for so long ends the connection: as long as keepalive takes, since it does not ask
/// while something is on its way.
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(25);

/// A client of the cluster that this configuration names: what the library builds, with connections that are known to be
/// dead soon after they are.
pub fn connect(config: Config) -> Result<Client, Error> {
    if config.proxy_url.is_some() {
        // The library says which proxies it cannot use.
        return Client::try_from(config);
    }
    let connector = config.rustls_https_connector_with_connector(connector())?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry())))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(HttpClient::builder(TokioExecutor::new()).build(connector));
    Ok(Client::new(service, config.default_namespace))
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(CONNECT_LIMIT));
    connector.set_keepalive(Some(KEEPALIVE_AFTER));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_QUESTIONS));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED_LIMIT));
    connector
}

#[cfg(test)]
mod tests;
