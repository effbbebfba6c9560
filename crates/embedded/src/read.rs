//! Everything that only reads: get, list and the start of a watch.

mod check;
mod token;

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::request::{Query, Target};
use crate::resource::Resource;
use crate::selector::Selector;
use crate::state::State;
use crate::store::{Interest, Key, Stored, TooOld};
use crate::watch::Plan;
use token::Token;

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    pub objects: Vec<Arc<Stored>>,
    /// The revision that the list shows.
    pub revision: u64,
    /// Where the next page starts; empty for the last.
    pub continue_token: String,
    /// How many more there are, if that is known.
    pub remaining: Option<usize>,
}

/// Reads one object. A version only sets how recent it must be, and the server always knows the most recent state.
pub fn get(state: &State, resource: &Resource, key: &Key, query: &Query) -> Result<Arc<Stored>, Refusal> {
    let asked = parse_version(query).map_err(Refusal::unexpected)?;
    check_reached(state, asked)?;
    state.object(resource, key)
}

pub fn list(state: &State, resource: &Resource, target: &Target, query: &Query) -> Result<Page, Refusal> {
    let selector = Selector::parse(query, resource, &target.version)?;
    check::list(query)?;
    let namespace = target.namespace.as_deref().filter(|_| resource.namespaced);
    let position = Position::of(state, query, namespace)?;
    let shelf = state.shelf(resource)?;
    let view = if position.revision == state.revision() {
        shelf.present()
    } else {
        shelf.at(position.revision).map_err(|TooOld { .. }| position.too_old())?
    };
    let mut rest = view.objects(namespace, position.after.as_ref());
    let mut meant = rest.by_ref().filter(|object| selector.matches(object)).cloned();
    // A list from version 0 is complete: a real server answers it from its cache, which has no pages.
    let limit = if query.limit == 0 || query.resource_version.as_deref() == Some("0") {
        usize::MAX
    } else {
        query.limit
    };
    let mut objects: Vec<Arc<Stored>> = meant.by_ref().take(limit).collect();
    // The page looks one object ahead, because a page that ends at the last object is the last page.
    let (remaining, has_more) = if objects.len() < limit {
        (None, false)
    } else if selector.is_everything() {
        let count = rest.count();
        (Some(count).filter(|count| *count > 0), count > 0)
    } else {
        // With a selector, a real server does not count the objects that it has not looked at.
        (None, meant.next().is_some())
    };
    objects.shrink_to_fit();
    let last = objects.last().filter(|_| has_more);
    let continue_token = last.map_or_else(String::new, |last| {
        Token { revision: Some(position.revision), after: last.key.clone() }.encode(namespace)
    });
    Ok(Page { objects, revision: position.revision, continue_token, remaining })
}

/// The revision and the key at which a list starts.
struct Position<'a> {
    revision: u64,
    after: Option<Key>,
    namespace: Option<&'a str>,
}

impl<'a> Position<'a> {
    fn of(state: &State, query: &Query, namespace: Option<&'a str>) -> Result<Self, Refusal> {
        let present = state.revision();
        let given = query.resource_version.as_deref().unwrap_or_default();
        if !query.continue_token.is_empty() {
            if !given.is_empty() && given != "0" {
                return Err(Refusal::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = Token::decode(&query.continue_token, namespace)
                .map_err(|why| Refusal::bad_request(format!("invalid continue token: {why}")))?;
            let revision = token.revision.unwrap_or(present);
            check_reached(state, revision)?;
            return Ok(Self { revision, after: Some(token.after), namespace });
        }
        let asked = parse_version(query)
            .map_err(|error| Refusal::bad_request(format!("invalid resource version: {error}")))?;
        check_reached(state, asked)?;
        let is_exact = match query.resource_version_match.as_deref() {
            Some(word) => word == "Exact",
            None => query.limit > 0 && asked > 0,
        };
        Ok(Self { revision: if is_exact { asked } else { present }, after: None, namespace })
    }

    fn too_old(&self) -> Refusal {
        let Some(after) = &self.after else {
            return Refusal::expired("The resourceVersion for the provided list is too old.");
        };
        let token = Token { revision: None, after: after.clone() }.encode(self.namespace);
        let refusal = Refusal::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list \
             without the continue parameter, or use the continue token in this response to retrieve the remainder of \
             the results. Continuing with the provided token results in an inconsistent list - objects that were \
             created, modified, or deleted between the time the first chunk was returned and now may show up in the \
             list.",
        );
        refusal.with_continue(token)
    }
}

/// Refuses a revision that the server has not reached.
fn check_reached(state: &State, asked: u64) -> Result<(), Refusal> {
    let present = state.revision();
    if asked > present { Err(Refusal::version_too_large(asked, present)) } else { Ok(()) }
}

/// Prepares a watch. The inner result is a refusal that a real server sends as an event of the watch.
pub fn watch(
    state: &mut State,
    resource: &Arc<Resource>,
    target: &Target,
    query: &Query,
) -> Result<Result<Plan, Refusal>, Refusal> {
    let selector = Selector::parse(query, resource, &target.version)?;
    check::watch(query)?;
    let present = state.revision();
    let asked = parse_version(query).map_err(Refusal::unexpected)?;
    let streams_list = query.send_initial_events == Some(true);
    if streams_list && let Err(refusal) = check_reached(state, asked) {
        return Ok(Err(refusal));
    }
    // Without a version, a watch starts with all objects.
    let starts_with_all = streams_list || (asked == 0 && query.send_initial_events.is_none());
    let namespace = target.namespace.clone().filter(|_| resource.namespaced);
    let interest = interest(&selector, namespace, resource);
    let initial =
        if starts_with_all { objects_of(state, resource, &interest, &selector)? } else { Vec::new() };
    let after = if starts_with_all || asked == 0 { present } else { asked };
    let (progress, bookmark_interval) = (state.progress(), state.options.bookmark_interval);
    let subscription = match state.shelf_mut(resource)?.watch(interest, after) {
        Ok(subscription) => subscription,
        Err(TooOld { oldest }) => {
            return Ok(Err(Refusal::expired(format!("too old resource version: {asked} ({oldest})"))));
        }
    };
    Ok(Ok(Plan {
        resource: resource.clone(),
        version: target.version.clone(),
        selector,
        initial,
        marks_end_of_initial: starts_with_all && query.allow_watch_bookmarks,
        bookmarks: query.allow_watch_bookmarks.then_some(bookmark_interval),
        timeout: query.timeout_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        revision: after,
        progress,
        subscription,
    }))
}

fn interest(selector: &Selector, namespace: Option<String>, resource: &Resource) -> Interest {
    match (selector.single_name(), namespace) {
        (Some(name), Some(namespace)) => Interest::Object(Key { namespace, name: name.to_owned() }),
        (Some(name), None) if !resource.namespaced => {
            Interest::Object(Key { namespace: String::new(), name: name.to_owned() })
        }
        (_, Some(namespace)) => Interest::Namespace(namespace),
        (_, None) => Interest::All,
    }
}

fn objects_of(
    state: &State,
    resource: &Resource,
    interest: &Interest,
    selector: &Selector,
) -> Result<Vec<Arc<Stored>>, Refusal> {
    let shelf = state.shelf(resource)?;
    let namespace = match interest {
        Interest::Object(key) => {
            let found = shelf.get(key).filter(|object| selector.matches(object));
            return Ok(found.cloned().into_iter().collect());
        }
        Interest::Namespace(namespace) => Some(namespace.as_str()),
        Interest::All => None,
    };
    let objects = shelf.present().objects(namespace, None);
    Ok(objects.filter(|object| selector.matches(object)).cloned().collect())
}

/// A page as JSON, assembled from the texts of its objects.
pub fn list_text(page: &Page, resource: &Resource, version: &str) -> Bytes {
    let api_version = resource.api_version(version);
    let metadata = list_metadata(page, resource.is_custom);
    let size: usize = page.objects.iter().map(|object| object.body.len() + 96).sum();
    let mut text = BytesMut::with_capacity(size + 256);
    let start = format!(
        "{{\"kind\":\"{}List\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":[",
        resource.kind
    );
    text.put_slice(start.as_bytes());
    for (index, object) in page.objects.iter().enumerate() {
        if index > 0 {
            text.put_u8(b',');
        }
        if resource.is_custom {
            object.write(&api_version, &resource.kind, &mut text);
        } else {
            // In lists of built-in kinds, the items have no kind of their own.
            text.put_u8(b'{');
            text.put_slice(&object.body);
        }
    }
    text.put_slice(b"]}");
    text.freeze()
}

/// The metadata of a list. The lists of custom kinds always have a token, even an empty one.
pub fn list_metadata(page: &Page, has_token: bool) -> Value {
    let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
    if has_token || !page.continue_token.is_empty() {
        metadata["continue"] = page.continue_token.clone().into();
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}

fn parse_version(query: &Query) -> Result<u64, String> {
    let text = query.resource_version.as_deref().unwrap_or_default();
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        )
    })
}
