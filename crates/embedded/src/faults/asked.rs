//! What a request asks for, as far as it matters to faults.

use http::Method;
use http::request::Parts;

use crate::request::{Query, Target};

/// How much of a path and query is kept. Continue tokens and selectors can be long.
const MAX_PATH: usize = 256;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many objects.
    List,
    /// Follows objects.
    Watch,
    /// Makes an object.
    Create,
    /// Replaces an object, or its status.
    Update,
    /// Changes an object, or its status.
    Patch,
    /// Removes an object.
    Delete,
    /// Removes many objects.
    DeleteCollection,
    /// Asks for no object: discovery, versions, probes, nonsense.
    Other,
}

/// A request as the fault layer sees it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) verb: Verb,
    /// The resource as RBAC writes it, such as `pods` or `pods/status`; empty if there is none.
    pub(super) resource: String,
    /// The object that the request names, if it names one.
    pub(super) name: Option<String>,
    /// Path and query, shortened.
    pub(super) path: String,
}

impl Asked {
    pub(super) fn read(head: &Parts) -> Self {
        let whole = head.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        let path = whole.chars().take(MAX_PATH).collect();
        let query = Query::parse(&head.method, head.uri.query().unwrap_or_default()).unwrap_or_default();
        let Some(target) = Target::parse(head.uri.path()) else {
            return Self { verb: Verb::Other, resource: String::new(), name: None, path };
        };
        let resource = match &target.subresource {
            Some(part) => format!("{}/{part}", target.plural),
            None => target.plural.clone(),
        };
        let verb = Verb::read(&head.method, &target, &query);
        Self { verb, resource, name: target.name, path }
    }
}

impl Verb {
    fn read(method: &Method, target: &Target, query: &Query) -> Self {
        match (method, target.name.is_some()) {
            (&Method::GET | &Method::HEAD, _) if query.watch => Self::Watch,
            (&Method::GET | &Method::HEAD, true) => Self::Get,
            (&Method::GET | &Method::HEAD, false) => Self::List,
            (&Method::POST, _) => Self::Create,
            (&Method::PUT, _) => Self::Update,
            (&Method::PATCH, _) => Self::Patch,
            (&Method::DELETE, true) => Self::Delete,
            (&Method::DELETE, false) => Self::DeleteCollection,
            _ => Self::Other,
        }
    }

    /// Whether the verb changes something.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection)
    }

    /// The name of the verb in RBAC.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        }
    }
}
