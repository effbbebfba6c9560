//! Turns a request and the shelf into an answer whose body is still in one piece.

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT,
    WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::json;

use super::route::{Part, Route, part, route, shown};
use super::shelf::{Repository, Shelf};

const VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");
const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

pub(super) fn answer(request: &Parts, shelf: &mut Shelf) -> Response<Bytes> {
    if let Some(repository) = route(request.uri.path()).and_then(Route::repository) {
        shelf.note_client(repository, client(request));
    }
    let mut answer = match settle(request, shelf) {
        Ok(answer) => answer,
        Err(refusal) => refusal.answer(),
    };
    let headers = answer.headers_mut();
    headers.insert(VERSION, HeaderValue::from_static("registry/2.0"));
    if request.method == Method::HEAD {
        *answer.body_mut() = Bytes::new();
    }
    answer
}

/// The name that a client gives itself.
fn client(request: &Parts) -> &str {
    request.headers.get(USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or_default()
}

fn settle(request: &Parts, shelf: &mut Shelf) -> Result<Response<Bytes>, Refusal> {
    if request.method != Method::GET && request.method != Method::HEAD {
        return Err(Refusal::Method);
    }
    match route(request.uri.path()).ok_or(Refusal::Path)? {
        Route::Ping => Ok(whole("application/json", Bytes::from_static(b"{}"))),
        Route::Manifest { repository, reference } => {
            let found = shelf.manifest(admitted(request, shelf, repository)?, reference);
            let found = found.ok_or_else(|| Refusal::Manifest(reference.to_owned()))?;
            Ok(named(whole(found.media_type, found.bytes), &found.digest))
        }
        Route::Blob { repository, digest } => {
            let found = shelf.blob(admitted(request, shelf, repository)?, digest);
            let bytes = found.ok_or_else(|| Refusal::Blob(digest.to_owned()))?;
            if request.method == Method::GET {
                shelf.note_download(digest);
            }
            Ok(named(blob(request, bytes)?, digest))
        }
    }
}

/// The repository, if it exists and the client may read it.
fn admitted<'a>(request: &Parts, shelf: &'a Shelf, name: &str) -> Result<&'a Repository, Refusal> {
    let repository = shelf.repository(name).ok_or_else(|| Refusal::Name(name.to_owned()))?;
    if !repository.admits(shown(&request.headers).as_ref()) {
        return Err(Refusal::Unauthorized);
    }
    Ok(repository)
}

fn blob(request: &Parts, bytes: Bytes) -> Result<Response<Bytes>, Refusal> {
    const TYPE: &str = "application/octet-stream";
    let length = bytes.len();
    let mut answer = match part(&request.headers, length) {
        Part::Outside => return Err(Refusal::Range { length }),
        Part::Whole => whole(TYPE, bytes),
        Part::Bytes(range) => {
            let sent = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            let mut answer = whole(TYPE, bytes.slice(range));
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
            answer.headers_mut().insert(CONTENT_RANGE, text(&sent));
            answer
        }
    };
    answer.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    Ok(answer)
}

fn whole(media_type: &'static str, bytes: Bytes) -> Response<Bytes> {
    let mut answer = Response::new(bytes);
    let length = answer.body().len();
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    answer
}

fn named(mut answer: Response<Bytes>, digest: &str) -> Response<Bytes> {
    answer.headers_mut().insert(DIGEST, text(digest));
    answer
}

fn text(text: &str) -> HeaderValue {
    text.parse().expect("digests and numbers have no line breaks")
}

/// Why there is nothing to send.
enum Refusal {
    Method,
    Path,
    Name(String),
    Manifest(String),
    Blob(String),
    Range { length: usize },
    Unauthorized,
}

impl Refusal {
    /// The error as the specification defines it.
    fn answer(&self) -> Response<Bytes> {
        let (status, code, message, detail) = match self {
            Self::Method => {
                (StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", "the operation is unsupported", json!({}))
            }
            Self::Path => {
                (StatusCode::NOT_FOUND, "UNSUPPORTED", "there is nothing under this path", json!({}))
            }
            Self::Name(name) => (
                StatusCode::NOT_FOUND,
                "NAME_UNKNOWN",
                "repository name not known to registry",
                json!({ "name": name }),
            ),
            Self::Manifest(reference) => (
                StatusCode::NOT_FOUND,
                "MANIFEST_UNKNOWN",
                "manifest unknown",
                json!({ "reference": reference }),
            ),
            Self::Blob(digest) => (
                StatusCode::NOT_FOUND,
                "BLOB_UNKNOWN",
                "blob unknown to registry",
                json!({ "digest": digest }),
            ),
            Self::Range { .. } => (
                StatusCode::RANGE_NOT_SATISFIABLE,
                "SIZE_INVALID",
                "the range lies outside the blob",
                json!({}),
            ),
            Self::Unauthorized => {
                (StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "authentication required", json!({}))
            }
        };
        let errors = json!({ "errors": [{ "code": code, "message": message, "detail": detail }] });
        let mut answer = whole("application/json", errors.to_string().into());
        *answer.status_mut() = status;
        self.explain(&mut answer);
        answer
    }

    /// Adds the headers that a client needs.
    fn explain(&self, answer: &mut Response<Bytes>) {
        let (header, value) = match self {
            Self::Method => (ALLOW, HeaderValue::from_static("GET, HEAD")),
            Self::Range { length } => (CONTENT_RANGE, text(&format!("bytes */{length}"))),
            Self::Unauthorized => {
                (WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"prewarm demo\""))
            }
            _ => return,
        };
        answer.headers_mut().insert(header, value);
    }
}
