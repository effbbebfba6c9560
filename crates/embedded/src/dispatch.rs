//! Finds the verb of a request, and turns the verb's result into an answer.

mod decode;
mod identity;
mod options;
mod patch;
mod protobuf;
mod verbs;
mod yaml;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::Value;

use crate::body::Body;
use crate::refusal::Refusal;
use crate::request::{FieldValidation, Query, Target};
use crate::server::{Server, Whole};
use crate::watch::WatchStream;
use crate::write::{Manner, Writer};

/// The result of a verb, before it becomes an HTTP answer.
pub(crate) struct Answer {
    code: StatusCode,
    content_type: &'static str,
    body: Body,
    warnings: Vec<String>,
    is_dry_run: bool,
}

/// Marks the answers to dry runs, which store nothing. A deletion has the option in its body, which nothing between
/// client and server reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DryRun;

impl Answer {
    pub(crate) fn text(code: StatusCode, text: Bytes) -> Self {
        let (body, warnings) = (Body::from(text), Vec::new());
        Self { code, content_type: "application/json", body, warnings, is_dry_run: false }
    }

    /// The same answer with another content type than JSON.
    pub(crate) fn of_type(self, content_type: &'static str) -> Self {
        Self { content_type, ..self }
    }

    fn watch(stream: WatchStream) -> Self {
        Self { body: Body::Watch(Box::new(stream)), ..Self::text(StatusCode::OK, Bytes::new()) }
    }

    pub(crate) fn json(code: StatusCode, value: &Value) -> Self {
        Self::text(code, value.to_string().into())
    }
}

pub(crate) fn answer(server: &Server, request: &Whole) -> Response<Body> {
    match route(server, request) {
        Ok(answer) => {
            let mut response =
                Response::builder().status(answer.code).header("content-type", answer.content_type);
            for warning in &answer.warnings {
                // kubectl looks for the code 299 and an empty agent.
                let text = format!("299 - {:?}", warning.replace(|c: char| !(' '..='~').contains(&c), "?"));
                response = response.header("warning", text);
            }
            if answer.is_dry_run {
                response = response.extension(DryRun);
            }
            response.body(answer.body).unwrap_or_else(|error| refuse(&Refusal::internal(error)))
        }
        Err(refusal) => refuse(&refusal),
    }
}

/// The answer to a request that is refused.
pub(crate) fn refuse(refusal: &Refusal) -> Response<Body> {
    let text = refusal.to_status().to_string();
    let mut response = Response::new(Body::from(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    if let Some(seconds) = refusal.details["retryAfterSeconds"].as_u64() {
        response.headers_mut().insert("retry-after", http::HeaderValue::from(seconds));
    }
    response
}

fn route(server: &Server, request: &Whole) -> Result<Answer, Refusal> {
    let path = request.uri().path();
    if let Some(answer) = crate::kubectl::answer(server, request) {
        return answer;
    }
    let target = Target::parse(path).ok_or_else(Refusal::no_such_path)?;
    let query = Query::parse(request.method(), request.uri().query().unwrap_or_default())?;
    let verbs = verbs::Verbs::new(server, request, target, query)?;
    match *request.method() {
        Method::GET | Method::HEAD => verbs.read(),
        Method::POST => verbs.create(),
        Method::PUT => verbs.update(),
        Method::PATCH => verbs.patch(),
        Method::DELETE => verbs.delete(),
        _ => Err(Refusal::method_not_allowed()),
    }
}

/// Stores an object without a request.
pub(crate) fn install(server: &Server, object: &Value) -> Result<(), Refusal> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let now = server.clock.now();
    let mut state = server.lock();
    let resource = state.resources.find_kind(group, text("kind")).cloned();
    let resource =
        resource.ok_or_else(|| Refusal::bad_request(format!("there is no kind {}", text("kind"))))?;
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    let manner = Manner {
        version,
        dry_run: false,
        field_validation: FieldValidation::Strict,
        complaints: &[],
        patch: None,
    };
    Writer::new(&mut state, now).create(&resource, &namespace, object.clone(), &manner).map(drop)
}
