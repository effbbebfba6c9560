//! Probes, and the version that the server speaks.

use http::StatusCode;
use serde_json::json;

use crate::dispatch::Answer;
use crate::server::Whole;

/// The minor version of Kubernetes that the contract suite compares with.
const MINOR: &str = "36";

/// The answer to `kubectl version`.
pub fn version() -> Answer {
    let version = json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": format!("v1.{MINOR}.0+prewarm"),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    });
    Answer::json(StatusCode::OK, &version)
}

/// Kubernetes uses Go's names for architectures.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A server that answers is ready: it depends on nothing that could be missing.
pub fn probe(name: &str, request: &Whole) -> Answer {
    let query = request.uri().query().unwrap_or_default();
    let is_verbose = form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "verbose");
    let text = if is_verbose { format!("[+]ping ok\n{name} check passed\n") } else { "ok".to_owned() };
    Answer::text(StatusCode::OK, text.into()).of_type("text/plain; charset=utf-8")
}
