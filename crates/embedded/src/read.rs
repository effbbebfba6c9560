//! Everything that only looks: get, list and the beginning of a watch.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::request::{Query, Target};
use crate::resource::Resource;
use crate::selector::Selector;
use crate::state::State;
use crate::store::{Interest, Key, Stored, TooOld};
use crate::watch::Plan;

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    /// The objects on it.
    pub objects: Vec<Arc<Stored>>,
    /// The revision that the list shows.
    pub revision: u64,
    /// Where the next page starts; empty for the last.
    pub continue_token: String,
    /// How many more there are, if that is known.
    pub remaining: Option<usize>,
}

/// What a request selects.
pub fn selector(resource: &Resource, target: &Target, query: &Query) -> Result<Selector, Refusal> {
    let mut fields = query.field_selector.clone();
    if let Some(name) = &target.name {
        // Watching a single object by its path is an old way of naming it.
        fields = format!("metadata.name={name}");
    }
    Selector::parse(&query.label_selector, &fields, resource)
}

/// Lists objects.
pub fn list(state: &State, resource: &Resource, target: &Target, query: &Query) -> Result<Page, Refusal> {
    let selector = selector(resource, target, query)?;
    let shelf = state.shelf(resource)?;
    let position = Position::of(state, query)?;
    let at = shelf.at(position.revision).map_err(|too_old| position.too_old(query, too_old))?;
    let namespace = target.namespace.as_deref().filter(|_| resource.namespaced);
    let mut meant = at.into_values().filter(|object| {
        namespace.is_none_or(|namespace| object.key.namespace == namespace)
            && position.after.as_ref().is_none_or(|after| object.key > *after)
            && selector.matches(object)
    });
    if query.limit == 0 {
        let objects = meant.collect();
        return Ok(Page {
            objects,
            revision: position.revision,
            continue_token: String::new(),
            remaining: None,
        });
    }
    let objects: Vec<Arc<Stored>> = meant.by_ref().take(query.limit).collect();
    let rest = meant.count();
    let token = match objects.last().filter(|_| rest > 0) {
        Some(last) => encode_token(position.revision, &last.key),
        None => String::new(),
    };
    // With a selector a real server does not count what it has not looked at.
    let remaining = (rest > 0 && selector.is_everything()).then_some(rest);
    Ok(Page { objects, revision: position.revision, continue_token: token, remaining })
}

/// Where in time and in the list a request starts.
struct Position {
    revision: u64,
    after: Option<Key>,
}

impl Position {
    fn of(state: &State, query: &Query) -> Result<Self, Refusal> {
        let present = state.revision();
        let given = query.resource_version.as_deref().unwrap_or_default();
        if !query.continue_token.is_empty() {
            if !given.is_empty() && given != "0" {
                return Err(Refusal::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let (revision, after) = decode_token(&query.continue_token)?;
            return Ok(Self { revision, after: Some(after) });
        }
        let asked = parse_version(given)?;
        let is_exact = match query.resource_version_match.as_deref() {
            Some("Exact") => true,
            Some("NotOlderThan") => false,
            None => query.limit > 0 && asked > 0,
            Some(other) => {
                return Err(Refusal::bad_request(format!(
                    "resourceVersionMatch: Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\""
                )));
            }
        };
        if query.resource_version_match.is_some() && given.is_empty() {
            return Err(Refusal::bad_request(
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if is_exact && given == "0" {
            return Err(Refusal::bad_request(
                "resourceVersionMatch: Forbidden: resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
        if asked > present {
            return Err(Refusal::version_too_large(asked, present));
        }
        Ok(Self { revision: if is_exact { asked } else { present }, after: None })
    }

    fn too_old(&self, query: &Query, too_old: TooOld) -> Refusal {
        if query.continue_token.is_empty() {
            return Refusal::expired(format!(
                "too old resource version: {} ({})",
                self.revision, too_old.oldest
            ));
        }
        Refusal::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start \
                          a new list without the continue parameter.",
        )
    }
}

/// Prepares a watch.
pub fn watch(
    state: &mut State,
    resource: &Arc<Resource>,
    target: &Target,
    query: &Query,
) -> Result<Plan, Refusal> {
    let selector = selector(resource, target, query)?;
    check_watch(query)?;
    let present = state.revision();
    let asked = parse_version(query.resource_version.as_deref().unwrap_or_default())?;
    if asked > present {
        return Err(Refusal::version_too_large(asked, present));
    }
    let streams_list = query.send_initial_events == Some(true);
    // Without a version, a watch starts with everything there is.
    let starts_with_all = streams_list || (asked == 0 && query.send_initial_events.is_none());
    let namespace = target.namespace.clone().filter(|_| resource.namespaced);
    let interest = match (selector.single_name(), &namespace) {
        (Some(name), Some(namespace)) => {
            Interest::Object(Key { namespace: namespace.clone(), name: name.to_owned() })
        }
        (Some(name), None) if !resource.namespaced => {
            Interest::Object(Key { namespace: String::new(), name: name.to_owned() })
        }
        (_, Some(namespace)) => Interest::Namespace(namespace.clone()),
        (_, None) => Interest::All,
    };
    let initial =
        if starts_with_all { objects_of(state, resource, &interest, &selector)? } else { Vec::new() };
    let after = if starts_with_all || asked == 0 { present } else { asked };
    let subscription = state.shelf_mut(resource)?.watch(interest, after).map_err(|too_old| {
        Refusal::expired(format!("too old resource version: {asked} ({})", too_old.oldest))
    })?;
    Ok(Plan {
        resource: resource.clone(),
        version: target.version.clone(),
        selector,
        initial,
        marks_end_of_initial: streams_list && query.allow_watch_bookmarks,
        bookmarks: query.allow_watch_bookmarks,
        timeout: query.timeout_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        revision: after,
        subscription,
    })
}

fn check_watch(query: &Query) -> Result<(), Refusal> {
    let forbidden = |message: &str| Err(Refusal::bad_request(message));
    match (query.send_initial_events, query.resource_version_match.as_deref()) {
        (Some(_), None) => forbidden(
            "sendInitialEvents: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (Some(_), Some("NotOlderThan")) if !query.allow_watch_bookmarks => forbidden(
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden unless allowWatchBookmarks is set",
        ),
        (None, Some(_)) => forbidden(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        _ => Ok(()),
    }
}

fn objects_of(
    state: &State,
    resource: &Resource,
    interest: &Interest,
    selector: &Selector,
) -> Result<Vec<Arc<Stored>>, Refusal> {
    let shelf = state.shelf(resource)?;
    Ok(match interest {
        Interest::Object(key) => {
            shelf.get(key).filter(|object| selector.matches(object)).cloned().into_iter().collect()
        }
        Interest::Namespace(namespace) => shelf
            .objects()
            .filter(|object| object.key.namespace == *namespace && selector.matches(object))
            .cloned()
            .collect(),
        Interest::All => shelf.objects().filter(|object| selector.matches(object)).cloned().collect(),
    })
}

/// A page as JSON, from the texts of its objects.
pub fn list_text(page: &Page, resource: &Resource, version: &str) -> Bytes {
    let api_version = resource.api_version(version);
    let metadata = list_metadata(page);
    let size: usize = page.objects.iter().map(|object| object.body.len() + 96).sum();
    let mut text = BytesMut::with_capacity(size + 256);
    let start = format!(
        "{{\"apiVersion\":\"{api_version}\",\"kind\":\"{}List\",\"metadata\":{metadata},\"items\":[",
        resource.kind
    );
    text.put_slice(start.as_bytes());
    for (index, object) in page.objects.iter().enumerate() {
        if index > 0 {
            text.put_u8(b',');
        }
        object.write(&api_version, &resource.kind, &mut text);
    }
    text.put_slice(b"]}");
    text.freeze()
}

/// What a list says about itself.
pub fn list_metadata(page: &Page) -> Value {
    let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
    if !page.continue_token.is_empty() {
        metadata["continue"] = page.continue_token.clone().into();
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}

fn parse_version(text: &str) -> Result<u64, Refusal> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        Refusal::bad_request(format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

fn encode_token(revision: u64, key: &Key) -> String {
    let token =
        json!({ "v": "meta.k8s.io/v1", "rv": revision, "namespace": key.namespace, "name": key.name });
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token.to_string())
}

fn decode_token(token: &str) -> Result<(u64, Key), Refusal> {
    let fault = || Refusal::bad_request("continue key is not valid: expected a token of an earlier list");
    let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token).map_err(|_| fault())?;
    let value: Value = serde_json::from_slice(&text).map_err(|_| fault())?;
    let part = |name: &str| value[name].as_str().map(str::to_owned);
    let revision = value["rv"].as_u64().ok_or_else(fault)?;
    let key = Key { namespace: part("namespace").ok_or_else(fault)?, name: part("name").ok_or_else(fault)? };
    Ok((revision, key))
}
