//! One request to a [`FaultProxy`](super::FaultProxy), from its arrival to its answer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;

use super::body::{Body, Progress, spoil, text};
use super::fault::{Fault, Rule, Seen};
use super::login::{Shown, TOKEN_PATH};
use super::proxy::Script;

/// What happens to a request.
enum Outcome {
    Token(String),
    Challenge(String),
    Fault(Fault),
    Pass,
}

pub(super) async fn serve(
    request: Request<Incoming>,
    script: Arc<Script>,
    reset: Arc<AtomicBool>,
) -> io::Result<Response<Body>> {
    let (number, outcome) = note(&request, &script);
    let answer = match outcome {
        Outcome::Token(token) => Ok(json_answer(StatusCode::OK, json!({ "token": token }).to_string())),
        Outcome::Challenge(challenge) => challenged(&challenge),
        Outcome::Fault(Fault::Status(status)) => Ok(refused(status)),
        Outcome::Fault(Fault::RetryAfter(status, seconds)) => {
            let mut answer = refused(status);
            answer.headers_mut().insert(RETRY_AFTER, seconds.into());
            Ok(answer)
        }
        Outcome::Fault(Fault::Hang) => std::future::pending().await,
        Outcome::Fault(Fault::Reset) => {
            reset.store(true, Ordering::Relaxed);
            Err(io::Error::other("reset on purpose"))
        }
        Outcome::Fault(fault) => hand_on(request, &script, Some(fault), number).await,
        Outcome::Pass => hand_on(request, &script, None, number).await,
    };
    if let (Ok(answer), Some(seen)) = (&answer, script.state().noted(number)) {
        seen.status = Some(answer.status());
    }
    answer
}

/// Records the request and decides what happens to it. Faults come first, because a broken registry does not
/// authenticate.
fn note(request: &Request<Incoming>, script: &Script) -> (usize, Outcome) {
    let path = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let shown = Shown::of(request.headers());
    let range = request.headers().get(RANGE).and_then(|range| range.to_str().ok()).map(ToOwned::to_owned);
    let mut state = script.state();
    let fault = state.rules.iter_mut().find_map(|rule: &mut Rule| rule.take(&path));
    let outcome = match (fault, &state.login) {
        (Some(fault), _) => Outcome::Fault(fault),
        (None, Some(login)) if path.starts_with(TOKEN_PATH) => match login.token(&shown) {
            Some(token) => Outcome::Token(token),
            None => Outcome::Fault(Fault::Status(StatusCode::UNAUTHORIZED)),
        },
        (None, Some(login)) if !login.lets_in(&shown) => Outcome::Challenge(login.challenge(&script.url)),
        (None, _) => Outcome::Pass,
    };
    let number = state.note(Seen {
        method: request.method().clone(),
        path,
        range,
        user: shown.user(),
        status: None,
        bytes: 0,
        is_complete: false,
    });
    (number, outcome)
}

/// Forwards the request with all headers unchanged: some clients send a line for each type that they accept.
async fn hand_on(
    mut request: Request<Incoming>,
    script: &Arc<Script>,
    fault: Option<Fault>,
    number: usize,
) -> io::Result<Response<Body>> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = format!("{}{path}", script.upstream);
    *request.uri_mut() = uri.parse::<Uri>().map_err(io::Error::other)?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request).await.map_err(io::Error::other)?;
    let length = answer.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let progress = progress(script, number);
    Ok(answer.map(|body| spoil(body, length.unwrap_or_default(), fault, progress)))
}

/// Updates the record of a request while its answer is sent.
fn progress(script: &Arc<Script>, number: usize) -> Progress {
    let script = Arc::clone(script);
    Arc::new(move |bytes, is_complete| {
        if let Some(seen) = script.state().noted(number) {
            seen.bytes += bytes as u64;
            seen.is_complete = is_complete;
        }
    })
}

fn challenged(challenge: &str) -> io::Result<Response<Body>> {
    let mut answer = refused(StatusCode::UNAUTHORIZED);
    answer.headers_mut().insert(WWW_AUTHENTICATE, challenge.parse().map_err(io::Error::other)?);
    Ok(answer)
}

/// An error in the form of registries.
fn refused(status: StatusCode) -> Response<Body> {
    let code = match status {
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "DENIED",
        StatusCode::NOT_FOUND => "MANIFEST_UNKNOWN",
        StatusCode::TOO_MANY_REQUESTS => "TOOMANYREQUESTS",
        _ => "UNKNOWN",
    };
    let message = format!("the bed answers {status}");
    json_answer(status, json!({"errors": [{"code": code, "message": message}]}).to_string())
}

fn json_answer(status: StatusCode, body: String) -> Response<Body> {
    let mut answer = Response::new(text(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    answer
}
