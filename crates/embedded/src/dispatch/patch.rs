//! Bodies and patches.

mod bounds;
mod strategic;

use serde_json::Value;

use bounds::Failure;

use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::server::Whole;

/// A patch, read from a request.
pub(super) enum Change {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
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
            "application/strategic-merge-patch+json" => Ok(Self::Strategic(json(request)?)),
            other => Err(Refusal::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json; got {other:?}"
            ))),
        }
    }

    pub(super) fn apply(&self, resource: &Resource, name: &str, mut object: Value) -> Result<Value, Refusal> {
        match self {
            Self::Merge(patch) | Self::Strategic(patch) => {
                if matches!(self, Self::Strategic(_)) {
                    strategic::check(resource, patch)?;
                }
                if !patch.is_object() {
                    return Err(Refusal::bad_request("a merge patch is an object"));
                }
                json_patch::merge(&mut object, patch);
            }
            Self::Json(patch) => bounds::apply(patch, &mut object).map_err(|failure| match failure {
                Failure::Refused(refusal) => refusal,
                Failure::Unfit(error) => Refusal::unprocessable(resource, name, error),
            })?,
        }
        Ok(object)
    }
}

/// The body of a request as JSON.
pub(super) fn json(request: &Whole) -> Result<Value, Refusal> {
    let value = serde_json::from_slice(request.body()).map_err(|error| {
        if error.to_string().contains("recursion limit") {
            return bounds::too_deep();
        }
        Refusal::bad_request(format!("the body of the request is not JSON: {error}"))
    })?;
    if bounds::is_deeper_than(&value, bounds::MAX_DEPTH) { Err(bounds::too_deep()) } else { Ok(value) }
}
