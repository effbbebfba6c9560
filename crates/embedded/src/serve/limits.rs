//! The limits of a socket. The size of a body is the server's own limit.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Limits {
    /// The most open connections. One more replaces the connection that has been idle for longest; if none is idle, the
    /// newcomer is turned away.
    pub connections: usize,
    /// How long each connection may be idle before it has to make way for a newcomer.
    pub making_way: Duration,
    /// How long the TLS handshake may take.
    pub handshake: Duration,
    /// How long the head of the first request may take, and how long a stranger may be idle between requests.
    pub first_request: Duration,
    /// How long a client with the token may be idle.
    pub idle: Duration,
    /// How long the body of a request may take after its head.
    pub body: Duration,
    /// The largest head of a request, in bytes.
    pub head_bytes: usize,
    /// The most headers of a request.
    pub headers: usize,
    /// The most concurrent requests on one HTTP/2 connection.
    pub streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1000,
            making_way: Duration::from_millis(500),
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(10),
            idle: Duration::from_mins(3),
            body: Duration::from_mins(1),
            head_bytes: 64 * 1024,
            headers: 100,
            streams: 250,
        }
    }
}
