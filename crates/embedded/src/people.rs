//! What people and their tools ask besides objects: discovery, versions, tables.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::dispatch::Answer;
use crate::read::Page;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::server::{Server, Whole};
use crate::store::Stored;
use crate::watch::WatchStream;

/// In which form a client wants objects.
pub(crate) struct Form {
    is_table: bool,
}

impl Form {
    pub(crate) fn of(request: &Whole) -> Self {
        let accept =
            request.headers().get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
        Self { is_table: accept.split(',').next().is_some_and(|first| first.contains("as=Table")) }
    }

    pub(crate) fn is_table(&self) -> bool {
        self.is_table
    }
}

/// Answers paths that name no resource; none for all others.
pub(crate) fn answer(_server: &Server, request: &Whole) -> Option<Result<Answer, Refusal>> {
    if request.method() != Method::GET {
        return None;
    }
    match request.uri().path().trim_end_matches('/') {
        "/readyz" | "/livez" | "/healthz" => Some(Ok(Answer::text(StatusCode::OK, "ok".into()))),
        "/version" => Some(Ok(Answer::json(
            StatusCode::OK,
            &json!({ "major": "1", "minor": "34", "gitVersion": "v1.34.4+prewarm", "platform": "linux/amd64" }),
        ))),
        _ => None,
    }
}

pub(crate) fn object_table(_: &Server, _: &Resource, _: &str, _: &[&Stored], _: &Form) -> Value {
    json!({})
}

pub(crate) fn list_table(_: &Server, _: &Resource, _: &str, _: &Page, _: &Form) -> Value {
    json!({})
}

pub(crate) fn watch(_: &Server, _: &Whole, stream: WatchStream) -> WatchStream {
    stream
}
