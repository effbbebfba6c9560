//! What kubectl asks besides objects: which kinds there are, what their fields mean, and objects in forms that fit a
//! terminal.

mod age;
mod built_in;
mod cells;
mod discovery;
mod form;
mod health;
mod json_path;
mod openapi;
mod pod;
mod table;
mod view;

use http::Method;

use crate::dispatch::Answer;
use crate::refusal::Refusal;
use crate::server::{Server, Whole};

pub(crate) use view::{EventView, View};

/// Answers paths that name no resource; none for all others.
pub(crate) fn answer(server: &Server, request: &Whole) -> Option<Result<Answer, Refusal>> {
    let path = request.uri().path().trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let answer = match parts.as_slice() {
        ["version"] => Ok(health::version()),
        [probe @ ("readyz" | "livez" | "healthz")] => Ok(health::probe(probe, request)),
        ["openapi", "v3", rest @ ..] => openapi::answer(server, rest),
        ["api"] => Ok(discovery::core(server, request)),
        ["apis"] => Ok(discovery::groups(server, request)),
        ["api", version] => discovery::resources(server, "", version),
        ["apis", group] => discovery::group(server, group),
        ["apis", group, version] => discovery::resources(server, group, version),
        _ => return None,
    };
    let only_reads = matches!(*request.method(), Method::GET | Method::HEAD);
    Some(if only_reads { answer } else { Err(Refusal::method_not_allowed()) })
}
