//! Bodies and patches.

use serde_json::Value;

use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::server::Whole;

/// How deep a body may be nested; a parser without a limit could be made to run out of stack.
const MAX_DEPTH_SENTENCE: &str = "the body of the request is nested too deeply";

/// A patch, read from a request.
pub(super) enum Change {
    Json(json_patch::Patch),
    Merge(Value),
}

impl Change {
    pub(super) fn parse(request: &Whole) -> Result<Self, Refusal> {
        let content_type =
            request.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => {
                let value = json(request)?;
                let patch = serde_json::from_value(value)
                    .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))?;
                Ok(Self::Json(patch))
            }
            "application/merge-patch+json" => Ok(Self::Merge(json(request)?)),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                Err(Refusal::unsupported_media_type(
                    "server-side apply is not part of the embedded API yet: use a merge patch or a JSON patch",
                ))
            }
            "application/strategic-merge-patch+json" => Err(Refusal::unsupported_media_type(
                "strategic merge patches are not part of the embedded API yet: use a merge patch or a JSON patch",
            )),
            other => Err(Refusal::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json; got {other:?}"
            ))),
        }
    }

    pub(super) fn apply(&self, resource: &Resource, name: &str, mut object: Value) -> Result<Value, Refusal> {
        match self {
            Self::Merge(patch) => {
                if !patch.is_object() {
                    return Err(Refusal::bad_request("a merge patch is an object"));
                }
                json_patch::merge(&mut object, patch);
            }
            Self::Json(patch) => json_patch::patch(&mut object, patch)
                .map_err(|error| Refusal::unprocessable(resource, name, error))?,
        }
        Ok(object)
    }
}

/// The body of a request as JSON.
pub(super) fn json(request: &Whole) -> Result<Value, Refusal> {
    serde_json::from_slice(request.body()).map_err(|error| {
        if error.to_string().contains("recursion limit") {
            return Refusal::bad_request(MAX_DEPTH_SENTENCE);
        }
        Refusal::bad_request(format!("the body of the request is not JSON: {error}"))
    })
}
