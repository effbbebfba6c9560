//! What the socket takes, each bound with a name. The size of a body is the server's own limit.

use std::time::Duration;

/// The limits of a socket.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once. With more, the one that has been without a request for longest goes; if all have one, the
    /// newcomer does.
    pub connections: usize,
    /// How long each may be without a request before it has to make way for a newcomer.
    pub making_way: Duration,
    /// From the first byte to an agreed key.
    pub handshake: Duration,
    /// From then to the end of the first request's head, and between the requests of a stranger.
    pub first_request: Duration,
    /// How long a client with the token may stay without another request.
    pub idle: Duration,
    /// From the end of a request's head to the end of its body.
    pub body: Duration,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Requests at once on one HTTP/2 connection.
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
