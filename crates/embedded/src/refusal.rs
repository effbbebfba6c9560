//! Every refusal of the server: the Status object with the code, reason and words of a real server.

use serde_json::{Value, json};

use crate::resource::Resource;

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub code: u16,
    /// The machine-readable reason.
    pub reason: &'static str,
    /// The sentence for people.
    pub message: String,
    /// What the refusal is about.
    pub details: Value,
    /// The token with which a list may go on nevertheless, or empty.
    pub continue_token: String,
}

/// One wrong field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The kind of mistake, such as `FieldValueInvalid`.
    pub reason: String,
    /// The sentence, without the path.
    pub message: String,
    pub field: String,
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null, continue_token: String::new() }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = json!({ "name": name, "group": resource.group, "kind": resource.plural });
        self.without_blanks()
    }

    fn without_blanks(mut self) -> Self {
        if let Some(details) = self.details.as_object_mut() {
            details.retain(|_, value| value != "");
        }
        self
    }

    /// 400: the request itself is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: no token, or a wrong one.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: not allowed at the moment, or never.
    pub fn forbidden(resource: &Resource, name: &str, why: impl std::fmt::Display) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", resource.qualified());
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// 403 with a message of the caller's own.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message)
    }

    /// 409 with a message of the caller's own.
    pub fn collision(message: impl Into<String>) -> Self {
        Self::new(409, "Conflict", message)
    }

    /// 404: no such path.
    pub fn no_such_path() -> Self {
        let mut refusal = Self::new(404, "NotFound", "the server could not find the requested resource");
        refusal.details = json!({});
        refusal
    }

    /// 404: no such object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", resource.qualified()))
            .about(resource, name)
    }

    /// 405: the resource exists, but not with this verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut refusal = Self::new(405, "MethodNotAllowed", message);
        refusal.details = json!({});
        refusal
    }

    /// 408: the rest of the request did not arrive in time.
    pub fn too_slow(limit: std::time::Duration) -> Self {
        let seconds = limit.as_secs_f64();
        Self::new(408, "Timeout", format!("the body of the request took longer than {seconds} s"))
    }

    /// 409: the name is taken.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", resource.qualified()))
            .about(resource, name)
    }

    /// 409: every generated name is taken.
    pub fn no_unique_name(resource: &Resource, name: &str) -> Self {
        let message = format!(
            "{} {name:?} already exists, the server was not able to generate a unique name for the object",
            resource.qualified()
        );
        let mut refusal = Self::new(409, "AlreadyExists", message).about(resource, name);
        refusal.details["retryAfterSeconds"] = 1.into();
        refusal
    }

    /// 409: somebody else has changed the object.
    pub fn conflict(resource: &Resource, name: &str, why: impl std::fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 409: the object to delete is not the one that the client means.
    pub fn other_object(resource: &Resource, name: &str, why: impl std::fmt::Display) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified_kind());
        let mut refusal = Self::new(409, "Conflict", message).about(resource, name);
        refusal.details["kind"] = resource.kind.clone().into();
        refusal
    }

    /// 410: the history does not go back that far.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The same refusal with a token to continue.
    #[must_use]
    pub fn with_continue(mut self, token: String) -> Self {
        self.continue_token = token;
        self
    }

    /// 413: the body or the object is too large.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: an unsupported form of body or patch.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 406: no supported form that the client accepts.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 422: the object breaks rules.
    pub fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        let list = sentence(causes);
        let qualified = resource.qualified_kind();
        let mut refusal = Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {list}"));
        refusal.details =
            json!({ "name": name, "group": resource.group, "kind": resource.kind, "causes": listed(causes) });
        refusal.without_blanks()
    }

    /// 422: an option of the request has an unsupported value.
    pub fn invalid_option(options: &str, field: &str, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let message = format!("Unsupported value: {value:?}: supported values: {}", supported.join(", "));
        let mut refusal =
            Self::new(422, "Invalid", format!("{options}.meta.k8s.io \"\" is invalid: {field}: {message}"));
        let cause = json!({ "reason": "FieldValueNotSupported", "message": message, "field": field });
        refusal.details = json!({ "group": "meta.k8s.io", "kind": options, "causes": [cause] });
        refusal
    }

    /// 422: options of a request contradict each other.
    pub fn invalid_options(kind: &str, causes: &[Cause]) -> Self {
        let mut refusal = Self::new(422, "Invalid", String::new());
        refusal.message = format!("{kind}.meta.k8s.io \"\" is invalid: {}", sentence(causes));
        refusal.details = json!({ "group": "meta.k8s.io", "kind": kind, "causes": listed(causes) });
        refusal
    }

    /// 422: a strict patch has fields that the kind does not have.
    pub fn invalid_patch(patch: &str, error: &str) -> Self {
        let message = format!("Invalid value: {patch:?}: {error}");
        let mut refusal = Self::new(422, "Invalid", format!(" \"\" is invalid: patch: {message}"));
        refusal.details =
            json!({ "causes": [{ "reason": "FieldValueInvalid", "message": message, "field": "patch" }] });
        refusal
    }

    /// 422: the patch does not fit the object. A real server does not say why.
    pub fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut refusal = Self::new(422, "Invalid", message);
        refusal.details = json!({});
        refusal
    }

    /// 429: the client should try again later.
    pub fn too_many_requests(seconds: u64) -> Self {
        let mut refusal = Self::new(429, "TooManyRequests", "too many requests, please try again later");
        refusal.details = json!({ "retryAfterSeconds": seconds });
        refusal
    }

    /// 500: an error of the server itself.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
    }

    /// 500 without a reason, as a real server answers errors that its handlers did not expect.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 504: the requested version lies in the future.
    pub fn version_too_large(asked: u64, present: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {present}");
        let mut refusal = Self::new(504, "Timeout", message);
        refusal.details = json!({
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        });
        refusal
    }

    /// The Status object of the answer.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.continue_token.is_empty() {
            status["metadata"]["continue"] = self.continue_token.clone().into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

fn sentence(causes: &[Cause]) -> String {
    let sentences: Vec<String> =
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    match sentences.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

fn listed(causes: &[Cause]) -> Vec<Value> {
    let listed =
        |cause: &Cause| json!({ "reason": cause.reason, "message": cause.message, "field": cause.field });
    causes.iter().map(listed).collect()
}
