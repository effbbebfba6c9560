//! One watch: what was there, what was missed, what happens, bookmarks in between, and an end.
//!
//! It lives in the body of an answer and does its work when the client reads. An idle watch wakes up for bookmarks and
//! its end only.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::people::EventView;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::store::{Change, ChangeKind, Stored, Subscription};

/// How often a watch that asked for it hears how far the server is.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// How long a watch lasts if the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(40);

/// What a watch is made from.
#[derive(Debug)]
pub struct Plan {
    /// The kind that is watched.
    pub resource: Arc<Resource>,
    /// The version in which objects are shown.
    pub version: String,
    /// Which objects are shown.
    pub selector: Selector,
    /// The objects that are sent first.
    pub initial: Vec<Arc<Stored>>,
    /// Whether a bookmark says that those were all.
    pub marks_end_of_initial: bool,
    /// Whether bookmarks are sent.
    pub bookmarks: bool,
    /// When it ends, if the client says so.
    pub timeout: Option<Duration>,
    /// The revision up to which everything is known at the start.
    pub revision: u64,
    /// What is told from then on.
    pub subscription: Subscription,
}

/// The lines of a watch.
#[derive(Debug)]
pub struct WatchStream {
    resource: Arc<Resource>,
    api_version: String,
    selector: Selector,
    waiting: VecDeque<Bytes>,
    subscription: Subscription,
    bookmarks: Option<Pin<Box<Sleep>>>,
    end: Pin<Box<Sleep>>,
    revision: u64,
    is_over: bool,
    view: Option<EventView>,
}

impl WatchStream {
    /// Begins to watch.
    pub fn new(plan: Plan) -> Self {
        let Plan {
            resource,
            version,
            selector,
            initial,
            marks_end_of_initial,
            bookmarks,
            timeout,
            revision,
            ..
        } = plan;
        let mut subscription = plan.subscription;
        let missed = std::mem::take(&mut subscription.missed);
        let mut stream = Self {
            api_version: resource.api_version(&version),
            resource,
            selector,
            waiting: VecDeque::new(),
            subscription,
            bookmarks: bookmarks.then(|| Box::pin(sleep_until(Instant::now() + BOOKMARK_INTERVAL))),
            end: Box::pin(sleep_until(Instant::now() + timeout.unwrap_or(DEFAULT_TIMEOUT))),
            revision,
            is_over: false,
            view: None,
        };
        for object in initial {
            let line = stream.object_line(&object);
            stream.waiting.push_back(line);
        }
        if marks_end_of_initial {
            let line = stream.bookmark(true);
            stream.waiting.push_back(line);
        }
        for change in missed {
            stream.take(&change);
        }
        stream
    }

    /// The same watch for a client that wants its objects in another form.
    pub(crate) fn seen_through(self, view: Option<EventView>) -> Self {
        Self { view, ..self }
    }

    /// The next line; none when the watch is over.
    pub fn poll_line(&mut self, ctx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                let line = match &mut self.view {
                    Some(view) => view.line(line),
                    None => line,
                };
                return Poll::Ready(Some(line));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            match self.subscription.changes.poll_recv(ctx) {
                Poll::Ready(Some(change)) => {
                    self.take(&change);
                    continue;
                }
                Poll::Ready(None) => {
                    self.is_over = true;
                    continue;
                }
                Poll::Pending => {}
            }
            if self.end.as_mut().poll(ctx).is_ready() {
                self.is_over = true;
                continue;
            }
            let Some(timer) = &mut self.bookmarks else { return Poll::Pending };
            if timer.as_mut().poll(ctx).is_pending() {
                return Poll::Pending;
            }
            timer.as_mut().reset(Instant::now() + BOOKMARK_INTERVAL);
            let line = self.bookmark(false);
            self.waiting.push_back(line);
        }
    }

    /// Shows a change as this watcher sees it: an object that no longer matches is gone for it.
    fn take(&mut self, change: &Change) {
        self.revision = change.object.revision;
        let is_meant = change.kind != ChangeKind::Deleted && self.selector.matches(&change.object);
        let was_meant = change.previous.as_ref().is_some_and(|previous| self.selector.matches(previous));
        let kind = match (was_meant, is_meant) {
            (false, false) => return,
            (false, true) => ChangeKind::Added,
            (true, true) => ChangeKind::Modified,
            (true, false) => ChangeKind::Deleted,
        };
        self.waiting.push_back(change.line(kind, &self.api_version, &self.resource.kind));
    }

    fn object_line(&self, object: &Stored) -> Bytes {
        let text = object.text(&self.api_version, &self.resource.kind);
        let mut line = Vec::with_capacity(text.len() + 32);
        line.extend_from_slice(b"{\"type\":\"ADDED\",\"object\":");
        line.extend_from_slice(&text);
        line.extend_from_slice(b"}\n");
        line.into()
    }

    fn bookmark(&self, ends_initial: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": self.revision.to_string(), "creationTimestamp": null });
        if ends_initial {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object =
            json!({ "apiVersion": self.api_version, "kind": self.resource.kind, "metadata": metadata });
        let mut line = json!({ "type": "BOOKMARK", "object": object }).to_string();
        line.push('\n');
        line.into()
    }
}
