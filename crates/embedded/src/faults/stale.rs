//! Reads from the past, as a lagging replica answers them. The server itself is asked for its state at an earlier
//! revision (`resourceVersionMatch=Exact`), so the answer is old but consistent. If the server has forgotten that
//! revision, or the read does not allow an old answer, the answer is a fresh one.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::{BoxError, Service as _, ServiceExt as _};

use super::PassedBody;
use super::asked::Verb;
use super::fate::Staleness;
use super::layer::{Upstream, refuse};
use crate::refusal::Refusal;
use crate::request::{Query, Target};

/// A stale answer and its revision; none if the answer has to be fresh.
pub(super) async fn answer(
    server: &mut Upstream,
    head: &Parts,
    verb: Verb,
    staleness: Staleness,
) -> Result<Option<(Response<PassedBody>, u64)>, BoxError> {
    let Some(read) = Read::of(head, staleness) else { return Ok(None) };
    let Some(present) = read.present(server).await? else { return Ok(None) };
    let revision = present.saturating_sub(staleness.by).max(read.not_before).max(1);
    if revision >= present {
        return Ok(None);
    }
    let answer = match verb {
        Verb::List => read.list_at(server, revision).await?,
        Verb::Get => read.get_at(server, revision).await?,
        Verb::Watch => read.watch_from(server, revision).await?,
        _ => None,
    };
    Ok(answer.map(|answer| (answer, revision)))
}

/// A read that may be answered from the past.
struct Read<'a> {
    head: &'a Parts,
    target: Target,
    query: Query,
    /// The oldest revision that the client accepts.
    not_before: u64,
}

impl<'a> Read<'a> {
    fn of(head: &'a Parts, staleness: Staleness) -> Option<Self> {
        let target = Target::parse(head.uri.path())?;
        let query = Query::parse(&head.method, head.uri.query().unwrap_or_default()).ok()?;
        let accepts = head.headers.get("accept").and_then(|accept| accept.to_str().ok());
        // Tables are for people, who look at them once.
        let is_table = accepts.is_some_and(|accept| accept.contains("as=Table"));
        if is_table || head.method != Method::GET || !query.continue_token.is_empty() {
            return None;
        }
        if query.resource_version_match.as_deref() == Some("Exact") {
            return None;
        }
        let asked = query.resource_version.as_deref().unwrap_or_default();
        let not_before = match asked {
            "" if staleness.even_quorum => 0,
            "" => return None,
            number => number.parse().ok()?,
        };
        // A watch from a version has no initial state, and a limited list from a version is exact already.
        let is_exact = not_before > 0 && query.limit > 0 && query.resource_version_match.is_none();
        let is_resumed = query.watch && (not_before > 0 || query.send_initial_events == Some(false));
        (!is_exact && !is_resumed).then_some(Self { head, target, query, not_before })
    }

    /// The current revision of the server.
    async fn present(&self, server: &mut Upstream) -> Result<Option<u64>, BoxError> {
        let (code, list) = self.ask(server, &self.collection(), &[("limit", "1")]).await?;
        let revision = list["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        Ok(revision.filter(|_| code.is_success()))
    }

    async fn list_at(
        &self,
        server: &mut Upstream,
        revision: u64,
    ) -> Result<Option<Response<PassedBody>>, BoxError> {
        let limit = self.query.limit.to_string();
        let (code, list) = self.objects_at(server, revision, Some(&limit)).await?;
        Ok(code.is_success().then(|| whole(&list)))
    }

    async fn get_at(
        &self,
        server: &mut Upstream,
        revision: u64,
    ) -> Result<Option<Response<PassedBody>>, BoxError> {
        let (code, list) = self.objects_at(server, revision, None).await?;
        if !code.is_success() || self.target.subresource.is_some() {
            return Ok(None);
        }
        Ok(Some(match objects(&list).next() {
            Some(object) => whole(&object),
            None => refuse(&self.not_found()),
        }))
    }

    /// The state at a revision as initial events, followed by what has happened since.
    async fn watch_from(
        &self,
        server: &mut Upstream,
        revision: u64,
    ) -> Result<Option<Response<PassedBody>>, BoxError> {
        let (code, list) = self.objects_at(server, revision, None).await?;
        if !code.is_success() {
            return Ok(None);
        }
        let version = revision.to_string();
        let changed = ["resourceVersion", "resourceVersionMatch", "sendInitialEvents"];
        let uri = self.uri(self.head.uri.path(), &changed, &[("resourceVersion", &version)])?;
        let watch = server.ready().await?.call(self.request_for(uri)?).await?;
        if !watch.status().is_success() {
            return Ok(None);
        }
        let added = objects(&list).map(|object| json!({ "type": "ADDED", "object": object }));
        let end = self.query.allow_watch_bookmarks.then(|| end_of_initial(&list, &version));
        let lines: Vec<String> = added.chain(end).map(|line| format!("{line}\n")).collect();
        Ok(Some(watch.map(|rest| Continued { first: Some(lines.concat().into()), rest }.boxed_unsync())))
    }

    /// The selected objects at a revision.
    async fn objects_at(
        &self,
        server: &mut Upstream,
        revision: u64,
        limit: Option<&str>,
    ) -> Result<(StatusCode, Value), BoxError> {
        let revision = revision.to_string();
        let name = self.target.name.as_ref().map(|name| format!("metadata.name={name}"));
        let mut added = vec![("resourceVersion", revision.as_str()), ("resourceVersionMatch", "Exact")];
        added.extend(limit.filter(|limit| *limit != "0").map(|limit| ("limit", limit)));
        added.extend(self.selectors(name.as_deref()));
        self.ask(server, &self.collection(), &added).await
    }

    fn selectors<'b>(&'b self, name: Option<&'b str>) -> impl Iterator<Item = (&'static str, &'b str)> {
        let fields = name.unwrap_or(&self.query.field_selector);
        let selectors = [("labelSelector", self.query.label_selector.as_str()), ("fieldSelector", fields)];
        selectors.into_iter().filter(|(_, selector)| !selector.is_empty())
    }

    /// Sends the server another request than the client's.
    async fn ask(
        &self,
        server: &mut Upstream,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<(StatusCode, Value), BoxError> {
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        let request = self.request_for(format!("{path}?{query}").parse()?)?;
        let answer = server.ready().await?.call(request).await?;
        let code = answer.status();
        let text = answer.into_body().collect().await?.to_bytes();
        Ok((code, serde_json::from_slice(&text).unwrap_or_default()))
    }

    /// The client's query, with some parameters replaced.
    fn uri(&self, path: &str, without: &[&str], with: &[(&str, &str)]) -> Result<Uri, BoxError> {
        let given = form_urlencoded::parse(self.head.uri.query().unwrap_or_default().as_bytes());
        let kept = given.filter(|(name, _)| !without.contains(&name.as_ref()));
        let query = Serializer::new(String::new()).extend_pairs(kept).extend_pairs(with).finish();
        Ok(format!("{path}?{query}").parse()?)
    }

    fn request_for(&self, uri: Uri) -> Result<Request<PassedBody>, BoxError> {
        let mut request = Request::get(uri);
        if let Some(headers) = request.headers_mut() {
            headers.clone_from(&self.head.headers);
        }
        let nothing = Full::new(Bytes::new()).map_err(|never| match never {});
        Ok(request.body(nothing.boxed_unsync())?)
    }

    /// The path of the collection that the named object is in.
    fn collection(&self) -> String {
        let path = self.head.uri.path().trim_end_matches('/');
        match &self.target.name {
            Some(_) => path.rsplit_once('/').map_or(path, |(all, _)| all).to_owned(),
            None => path.to_owned(),
        }
    }

    fn not_found(&self) -> Refusal {
        let Target { group, plural, .. } = &self.target;
        let name = self.target.name.as_deref().unwrap_or_default();
        let qualified = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
        let mut details = json!({ "name": name, "kind": plural });
        if !group.is_empty() {
            details["group"] = group.as_str().into();
        }
        Refusal {
            code: 404,
            reason: "NotFound",
            message: format!("{qualified} {name:?} not found"),
            details,
            continue_token: String::new(),
        }
    }
}

/// A body with something in front of it.
struct Continued {
    first: Option<Bytes>,
    rest: PassedBody,
}

impl Body for Continued {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Pin::new(&mut self.rest).poll_frame(ctx),
        }
    }
}

/// The objects of a list, each with its kind, which real servers leave out.
fn objects(list: &Value) -> impl Iterator<Item = Value> {
    let items = list["items"].as_array().into_iter().flatten().cloned();
    items.map(|mut object| {
        if object["kind"].is_null() {
            object["kind"] = kind(list).into();
            object["apiVersion"] = list["apiVersion"].clone();
        }
        object
    })
}

fn kind(list: &Value) -> &str {
    let kind = list["kind"].as_str().unwrap_or_default();
    kind.strip_suffix("List").unwrap_or(kind)
}

fn end_of_initial(list: &Value, version: &str) -> Value {
    let annotations = json!({ "k8s.io/initial-events-end": "true" });
    json!({ "type": "BOOKMARK", "object": {
        "apiVersion": list["apiVersion"], "kind": kind(list),
        "metadata": { "resourceVersion": version, "creationTimestamp": null, "annotations": annotations },
    }})
}

fn whole(value: &Value) -> Response<PassedBody> {
    let text = Full::new(Bytes::from(value.to_string())).map_err(|never| match never {});
    let mut answer = Response::new(text.boxed_unsync());
    answer.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    answer
}
