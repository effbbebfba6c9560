//! The sentence for an error of a cluster: what failed, on which objects, and what to try.

use kube::Resource;
use kube::core::Status;

#[derive(Clone, Debug)]
pub struct Request {
    /// The verb as in a role: `list`, `create`.
    pub verb: &'static str,
    /// The kind, for messages.
    pub kind: String,
    /// The resource as in a role: `imagepulljobs.apps.kruise.io`.
    pub resource: String,
    /// `None` for all namespaces, and for objects outside of namespaces.
    pub namespace: Option<String>,
}

impl Request {
    pub fn of<K: Resource<DynamicType = ()>>(verb: &'static str, namespace: Option<&str>) -> Self {
        let (plural, group) = (K::plural(&()), K::group(&()));
        let resource = if group.is_empty() { plural.to_string() } else { format!("{plural}.{group}") };
        let kind = K::kind(&()).into_owned();
        Self { verb, kind, resource, namespace: namespace.map(str::to_owned) }
    }
}

/// The sentence for a failed request to a cluster of this name.
pub fn sentence(error: &kube::Error, request: &Request, cluster: &str) -> String {
    let Request { verb, kind, resource, namespace } = request;
    let place = namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
    let kube::Error::Api(status) = error else {
        let cause = cause(error);
        return format!(
            "cannot reach {cluster}: {cause}; check that the cluster is up and that this is the context you mean \
             (kubectl config get-contexts)"
        );
    };
    match status.code {
        404 if !is_about_object(status) => format!(
            "{cluster} has no {}: install the definitions with `prewarm crds | kubectl apply --server-side -f -`",
            many(kind)
        ),
        403 => {
            let flag = namespace.as_ref().map_or(" -A".to_owned(), |namespace| format!(" -n {namespace}"));
            format!(
                "you may not {verb} {resource}{place}: {}; ask for a role that allows it, and check with `kubectl auth can-i {verb} {resource}{flag}`",
                status.message
            )
        }
        409 => format!("cannot {verb} {resource}{place}: {}; choose another name", status.message),
        401 => {
            format!(
                "{cluster} does not accept your credentials: log in again, or choose another context with --context"
            )
        }
        _ => format!("cannot {verb} {resource}{place}: {}", status.message),
    }
}

/// Several objects of a kind.
fn many(kind: &str) -> String {
    let ending = if kind.ends_with('h') { "es" } else { "s" };
    format!("{kind}{ending}")
}

/// The answer about a missing object contains its name, the one about a missing kind does not.
fn is_about_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

/// The innermost reason; the ones around it only say that something went wrong.
pub fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
