//! Bodies and patches.

mod bounds;
mod merge;
mod strategic;

use serde_json::Value;

use bounds::Failure;

use super::decode::{self, Decoded};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::server::Whole;

/// A patch, read from a request.
pub(super) struct Change {
    form: Form,
    complaints: Vec<String>,
}

enum Form {
    Json(Vec<Value>),
    Merge(Value),
    Strategic(Value),
}

impl Change {
    pub(super) fn parse(request: &Whole) -> Result<Self, Refusal> {
        let content_type =
            request.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let form: fn(Value) -> Result<Form, Refusal> = match content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
        {
            "application/json-patch+json" => steps,
            "application/merge-patch+json" => |patch| object(patch).map(Form::Merge),
            "application/strategic-merge-patch+json" => |patch| object(patch).map(Form::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                return Err(Refusal::unsupported_media_type(
                    "server-side apply is not part of the embedded API yet: use a merge patch or a JSON patch",
                ));
            }
            other => {
                return Err(Refusal::unsupported_media_type(format!(
                    "the body of the request was in an unknown format - accepted media types include: \
                         application/json-patch+json, application/merge-patch+json; got {other:?}"
                )));
            }
        };
        let Decoded { value, complaints } = json(request)?;
        Ok(Self { form: form(value)?, complaints })
    }

    /// Applies the patch to an object. The result includes the complaints from reading the patch.
    pub(super) fn apply(self, resource: &Resource, mut object: Value) -> Result<Decoded, Refusal> {
        match self.form {
            Form::Merge(patch) => merge::merge(&mut object, patch),
            Form::Strategic(patch) => {
                strategic::check(resource, &patch)?;
                merge::merge(&mut object, patch);
            }
            Form::Json(steps) => bounds::apply(&steps, &mut object).map_err(|failure| match failure {
                Failure::Refused(refusal) => refusal,
                Failure::Unfit => Refusal::unprocessable(),
            })?,
        }
        if !object.is_object() {
            return Err(Refusal::unprocessable());
        }
        Ok(Decoded { value: object, complaints: self.complaints })
    }
}

fn steps(patch: Value) -> Result<Form, Refusal> {
    match patch {
        Value::Array(steps) => Ok(Form::Json(steps)),
        _ => Err(Refusal::bad_request("error decoding patch: a JSON patch is a list of operations")),
    }
}

fn object(patch: Value) -> Result<Value, Refusal> {
    if patch.is_object() { Ok(patch) } else { Err(Refusal::bad_request("a merge patch is an object")) }
}

/// The body of a request as JSON.
pub(super) fn json(request: &Whole) -> Result<Decoded, Refusal> {
    let decoded = decode::decode(request.body()).map_err(|error| {
        if error.to_string().contains("recursion limit") {
            return bounds::too_deep();
        }
        Refusal::bad_request(format!("the body of the request is not JSON: {error}"))
    })?;
    let is_too_deep = bounds::is_deeper_than(&decoded.value, bounds::MAX_DEPTH);
    if is_too_deep { Err(bounds::too_deep()) } else { Ok(decoded) }
}
