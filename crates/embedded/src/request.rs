//! What a request asks for, read from its path and query. Nothing is compared with the store here.

use http::Method;

use crate::refusal::Refusal;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The API group; empty for the core.
    pub group: String,
    pub version: String,
    /// The resource, in the plural.
    pub plural: String,
    /// The namespace, if the path names one.
    pub namespace: Option<String>,
    /// The object, if the path names one.
    pub name: Option<String>,
    /// The subresource, such as `status`.
    pub subresource: Option<String>,
}

/// The query of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub label_selector: String,
    pub field_selector: String,
    /// 0 means no limit.
    pub limit: usize,
    pub continue_token: String,
    pub resource_version: Option<String>,
    pub resource_version_match: Option<String>,
    pub watch: bool,
    pub allow_watch_bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_seconds: Option<u64>,
    /// Whether nothing is stored (`dryRun`).
    pub dry_run: bool,
    /// What happens to unknown fields.
    pub field_validation: FieldValidation,
    pub propagation_policy: Option<String>,
    pub grace_period_seconds: Option<i64>,
}

/// What happens to fields that a kind does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped silently.
    Ignore,
    /// They are dropped, and the answer has a warning for each.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

impl Target {
    /// Reads a path such as `/apis/apps/v1/namespaces/default/deployments/web/status`; none for paths that name no
    /// resource.
    pub fn parse(path: &str) -> Option<Self> {
        let parts: Vec<String> = path.trim_matches('/').split('/').map(decode).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        // A namespace is both a resource of the core and a part of the path of everything in it.
        let (namespace, rest) = match rest {
            ["namespaces", namespace, plural, rest @ ..]
                if !(group.is_empty() && rest.is_empty() && matches!(*plural, "status" | "finalize")) =>
            {
                (Some((*namespace).to_owned()), [&[*plural], rest].concat())
            }
            rest => (None, rest.to_vec()),
        };
        let (plural, name, subresource) = match rest.as_slice() {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
            _ => return None,
        };
        if plural.is_empty() {
            return None;
        }
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            namespace,
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
        })
    }
}

impl Query {
    /// Reads the query of a request. Unknown parameters are ignored.
    pub fn parse(method: &Method, query: &str) -> Result<Self, Refusal> {
        let mut parsed = Self::default();
        let options = options_of(method);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            match name.as_ref() {
                "labelSelector" => parsed.label_selector = value,
                "fieldSelector" => parsed.field_selector = value,
                "limit" => {
                    // A negative limit means no limit.
                    parsed.limit = number(&value)?.unwrap_or(0).try_into().unwrap_or(0);
                }
                "continue" => parsed.continue_token = value,
                "resourceVersion" => parsed.resource_version = Some(value),
                "resourceVersionMatch" => {
                    parsed.resource_version_match = Some(value).filter(|text| !text.is_empty());
                }
                "watch" => parsed.watch = is_true(&value),
                "allowWatchBookmarks" => parsed.allow_watch_bookmarks = is_true(&value),
                "sendInitialEvents" => parsed.send_initial_events = Some(is_true(&value)),
                "timeoutSeconds" => {
                    parsed.timeout_seconds = number(&value)?.and_then(|seconds| seconds.try_into().ok());
                }
                "dryRun" => parsed.dry_run = dry_run(options, &value)?,
                "fieldValidation" => parsed.field_validation = FieldValidation::parse(options, &value)?,
                "propagationPolicy" => {
                    parsed.propagation_policy = Some(value).filter(|text| !text.is_empty());
                }
                "gracePeriodSeconds" => parsed.grace_period_seconds = number(&value)?,
                _ => {}
            }
        }
        Ok(parsed)
    }
}

impl FieldValidation {
    fn parse(options: &str, text: &str) -> Result<Self, Refusal> {
        match text {
            "Ignore" => Ok(Self::Ignore),
            "" | "Warn" => Ok(Self::Warn),
            "Strict" => Ok(Self::Strict),
            other => Err(Refusal::invalid_option(
                options,
                "fieldValidation",
                other,
                &["", "Ignore", "Strict", "Warn"],
            )),
        }
    }
}

/// What Kubernetes calls the options of a request.
fn options_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => "ListOptions",
    }
}

fn dry_run(options: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "" => Ok(false),
        "All" => Ok(true),
        other => Err(Refusal::invalid_option(options, "dryRun", other, &["All"])),
    }
}

fn is_true(value: &str) -> bool {
    // An empty value counts as given, as in `?watch`, and so does everything except a clear no.
    !(value == "0" || value.eq_ignore_ascii_case("false"))
}

fn number(value: &str) -> Result<Option<i64>, Refusal> {
    if value.is_empty() {
        return Ok(None);
    }
    value
        .parse()
        .map(Some)
        .map_err(|_| Refusal::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax")))
}

fn decode(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &str) -> Option<String> {
        let target = Target::parse(path)?;
        let or_dash = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
        let group = if target.group.is_empty() { "core" } else { &target.group };
        Some(format!(
            "{group} {} {} {} {} {}",
            target.version,
            target.plural,
            or_dash(target.namespace),
            or_dash(target.name),
            or_dash(target.subresource)
        ))
    }

    #[test]
    fn a_path_is_split_into_its_parts() {
        let table = [
            ("/api/v1/pods", Some("core v1 pods - - -")),
            ("/api/v1/namespaces/a/pods/b", Some("core v1 pods a b -")),
            ("/api/v1/namespaces/a/pods/b/status", Some("core v1 pods a b status")),
            ("/api/v1/namespaces", Some("core v1 namespaces - - -")),
            ("/api/v1/namespaces/a", Some("core v1 namespaces - a -")),
            ("/api/v1/namespaces/a/status", Some("core v1 namespaces - a status")),
            ("/apis/apps/v1/namespaces/a/deployments/b", Some("apps v1 deployments a b -")),
            ("/apis/apps.kruise.io/v1beta1/nodeimages/n", Some("apps.kruise.io v1beta1 nodeimages - n -")),
            ("/apis/apps/v1", None),
            ("/version", None),
            ("/api/v1/a/b/c/d", None),
        ];
        for (path, wanted) in table {
            assert_eq!(words(path).as_deref(), wanted, "{path}");
        }
    }
}
