//! One question to one mirror and its answer, through redirects.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, HOST, LOCATION, RANGE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Patience;
use super::failure::Failure;
use super::location::Place;
use super::wire::{self, Limits, connect};
use crate::hosts::{Mirror, Scheme, Tls, Upstream};

/// How often an answer may redirect.
const MAX_REDIRECTS: usize = 5;
const PROGRAM: &str = concat!("prewarm/", env!("CARGO_PKG_VERSION"));

/// A question, and whom it goes to.
pub(super) struct Ask<'a> {
    pub mirror: &'a Mirror,
    pub upstream: &'a Upstream,
    pub patience: &'a Patience,
    pub accept: &'static str,
    /// The first byte that is wanted.
    pub offset: u64,
}

/// An answer whose body is still to be read.
pub(super) struct Answer {
    pub status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    stall: Duration,
    /// Ends with the answer.
    _connection: Connection,
}

struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Ask<'_> {
    /// Asks for a path at the mirror. An answer that is not about content is a failure.
    pub async fn send(&self, target: String) -> Result<Answer, Failure> {
        let mut place = Place { address: self.mirror.address.clone(), target };
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send_to(&place).await?;
            let Some(location) = answer.redirect()? else { return answer.accepted() };
            let next = place.follow(location).ok_or(Failure::Odd("a redirect to nowhere"))?;
            if self.upstream.is(&next.address.host, next.address.port) {
                return Err(Failure::ToUpstream(next.address.to_string()));
            }
            place = next;
        }
        Err(Failure::TooManyRedirects(MAX_REDIRECTS))
    }

    async fn send_to(&self, place: &Place) -> Result<Answer, Failure> {
        let handshake = self.patience.connect;
        let limits = Limits { dial: self.mirror.table.dial_timeout.unwrap_or(handshake), handshake };
        let wire = connect(&place.address, &self.tls(place)?, limits).await?;
        let lost = |error: &hyper::Error| wire::failure(error, Failure::Unreached(wire::shown(error)));
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(wire)).await.map_err(|error| lost(&error))?;
        let connection = Connection(tokio::spawn(async move {
            // Whoever reads the answer meets the same error.
            let _met_by_reader = connection.await;
        }));
        let sent = timeout(self.patience.answer, sender.send_request(self.request(place)?)).await;
        let response = sent.map_err(|_| Failure::NoAnswer(self.patience.answer))?;
        let (head, body) = response.map_err(|error| lost(&error))?.into_parts();
        let stall = self.patience.stall;
        Ok(Answer { status: head.status, headers: head.headers, body, stall, _connection: connection })
    }

    /// How a place is spoken to. The mirror's certificate of ours is for the mirror only.
    fn tls(&self, place: &Place) -> Result<Tls, Failure> {
        if place.address.is_same_origin(&self.mirror.address) {
            return Ok(self.mirror.tls.clone());
        }
        match place.address.scheme {
            Scheme::Http => Ok(Tls::Without),
            Scheme::Https => Tls::of_stranger(&self.mirror.table).map_err(Failure::Setup),
        }
    }

    fn request(&self, place: &Place) -> Result<Request<Empty<Bytes>>, Failure> {
        const UNFIT: Failure = Failure::Odd("an address that cannot be asked for");
        let uri = place.target.parse().map_err(|_| UNFIT)?;
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        // Headers of the file are secrets of this mirror, and nobody else's.
        if place.address.is_same_origin(&self.mirror.address)
            && let Ok(own) = &self.mirror.table.headers.0
        {
            *headers = own.clone();
        }
        let authority = HeaderValue::try_from(place.address.authority()).map_err(|_| UNFIT)?;
        headers.insert(HOST, authority);
        headers.insert(USER_AGENT, HeaderValue::from_static(PROGRAM));
        headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        if self.offset > 0 {
            let range = HeaderValue::try_from(format!("bytes={}-", self.offset));
            headers.insert(RANGE, range.expect("digits are visible"));
        }
        Ok(request)
    }
}

impl Answer {
    /// The next bytes of the body. `at` is where that is, for the failure.
    pub async fn chunk(&mut self, at: u64) -> Result<Option<Bytes>, Failure> {
        loop {
            let frame = timeout(self.stall, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| Failure::Stalled { at, limit: self.stall })? else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| wire::failure(&error, Failure::BrokenOff { at }))?;
            // Trailers say nothing that is needed here.
            match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                _ => {}
            }
        }
    }

    /// The length of the body, if it was announced.
    pub fn length(&self) -> Option<u64> {
        self.text(CONTENT_LENGTH.as_str())?.parse().ok()
    }

    /// A header as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn redirect(&self) -> Result<Option<&str>, Failure> {
        match self.status.as_u16() {
            301 | 302 | 303 | 307 | 308 => {
                self.text(LOCATION.as_str()).map(Some).ok_or(Failure::Odd("a redirect to nowhere"))
            }
            _ => Ok(None),
        }
    }

    fn accepted(self) -> Result<Self, Failure> {
        match self.status.as_u16() {
            200 | 206 if self.headers.contains_key(http::header::CONTENT_ENCODING) => {
                Err(Failure::Odd("content in an encoding that nobody asked for"))
            }
            200 | 206 => Ok(self),
            404 => Err(Failure::NotThere),
            status @ (401 | 403) => Err(Failure::Unauthorized(status)),
            429 => Err(Failure::RateLimited),
            status => Err(Failure::Refused(status)),
        }
    }
}
