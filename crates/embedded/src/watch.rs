//! One watch: the initial objects, missed changes, further changes, bookmarks in between, and an end.
//!
//! It lives in the body of an answer and works when the client reads. An idle watch wakes up only for bookmarks and for
//! its end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::kubectl::EventView;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::store::{Change, ChangeKind, Stored, Subscription, line};

/// The last bookmark comes this long before the end, so that the client knows from where to resume.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// How long a watch lasts if the client sets no timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(40);

#[derive(Debug)]
pub struct Plan {
    pub resource: Arc<Resource>,
    /// The version in which objects are shown.
    pub version: String,
    pub selector: Selector,
    /// The objects that are sent first.
    pub initial: Vec<Arc<Stored>>,
    /// Whether a bookmark follows the initial objects.
    pub marks_end_of_initial: bool,
    /// How often bookmarks are sent, if at all.
    pub bookmarks: Option<Duration>,
    /// When the watch ends, if the client sets it.
    pub timeout: Option<Duration>,
    /// The revision that the initial objects show.
    pub revision: u64,
    /// The last revision that every watcher has been sent.
    pub progress: Arc<AtomicU64>,
    pub subscription: Subscription,
}

/// The lines of a watch.
#[derive(Debug)]
pub struct WatchStream {
    api_version: String,
    kind: String,
    selector: Selector,
    waiting: VecDeque<Waiting>,
    changes: Option<mpsc::Receiver<Arc<Change>>>,
    bookmarks: Option<Bookmarks>,
    end: Pin<Box<Sleep>>,
    /// Changes up to this revision are not sent.
    after: u64,
    progress: Arc<AtomicU64>,
    view: Option<EventView>,
}

/// What is sent before further changes. Lines are rendered when they are read, so that a long list is not in memory
/// twice.
#[derive(Debug)]
enum Waiting {
    Object(Arc<Stored>),
    EndOfInitial,
    Change(Arc<Change>),
    Line(Bytes),
}

impl WatchStream {
    pub fn new(plan: Plan) -> Self {
        let Subscription { missed, changes } = plan.subscription;
        let mut waiting: VecDeque<Waiting> = plan.initial.into_iter().map(Waiting::Object).collect();
        waiting.extend(plan.marks_end_of_initial.then_some(Waiting::EndOfInitial));
        waiting.extend(missed.into_iter().map(Waiting::Change));
        let end = Instant::now() + plan.timeout.unwrap_or(DEFAULT_TIMEOUT);
        Self {
            api_version: plan.resource.api_version(&plan.version),
            kind: plan.resource.kind.clone(),
            selector: plan.selector,
            waiting,
            changes: Some(changes),
            bookmarks: plan.bookmarks.map(|interval| Bookmarks::new(interval, end)),
            end: Box::pin(sleep_until(end)),
            after: plan.revision,
            progress: plan.progress,
            view: None,
        }
    }

    /// A watch that consists of one refusal. Clients expect it here and not as the code of the answer.
    pub fn refused(refusal: &Refusal) -> Self {
        let event = json!({ "type": "ERROR", "object": refusal.to_status() });
        Self {
            api_version: String::new(),
            kind: String::new(),
            selector: Selector::default(),
            waiting: [Waiting::Line(format!("{event}\n").into())].into(),
            changes: None,
            bookmarks: None,
            end: Box::pin(sleep_until(Instant::now())),
            after: 0,
            progress: Arc::default(),
            view: None,
        }
    }

    /// The same watch for a client that wants its objects in another form.
    pub(crate) fn seen_through(self, view: Option<EventView>) -> Self {
        Self { view, ..self }
    }

    /// The next line; none when the watch is over.
    pub fn poll_line(&mut self, ctx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.poll_plain_line(ctx).map(|line| match (&mut self.view, line) {
            (Some(view), Some(line)) => Some(view.line(line)),
            (_, line) => line,
        })
    }

    fn poll_plain_line(&mut self, ctx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while let Some(waiting) = self.waiting.pop_front() {
            if let Some(line) = self.line(waiting) {
                return Poll::Ready(Some(line));
            }
        }
        loop {
            // Checked first: a watch that always has something to send would never end.
            if self.end.as_mut().poll(ctx).is_ready() {
                self.changes = None;
            }
            // Read before the changes, so that everything it counts is already among them.
            let progress = self.progress.load(Ordering::Acquire);
            let Some(changes) = &mut self.changes else { return Poll::Ready(None) };
            match changes.poll_recv(ctx) {
                Poll::Ready(Some(change)) => {
                    if let Some(line) = self.change_line(&change) {
                        return Poll::Ready(Some(line));
                    }
                    continue;
                }
                Poll::Ready(None) => {
                    self.changes = None;
                    return Poll::Ready(None);
                }
                Poll::Pending => {}
            }
            let Some(bookmarks) = &mut self.bookmarks else { return Poll::Pending };
            if bookmarks.poll_due(ctx, self.end.deadline()).is_pending() {
                return Poll::Pending;
            }
            return Poll::Ready(Some(self.bookmark(progress.max(self.after), false)));
        }
    }

    fn line(&self, waiting: Waiting) -> Option<Bytes> {
        match waiting {
            Waiting::Object(object) => Some(line(ChangeKind::Added, &object, &self.api_version, &self.kind)),
            Waiting::EndOfInitial => Some(self.bookmark(self.after, true)),
            Waiting::Change(change) => self.change_line(&change),
            Waiting::Line(line) => Some(line),
        }
    }

    /// The line for a change as this watcher sees it. An object that stops matching the selector is deleted in its
    /// view.
    fn change_line(&self, change: &Change) -> Option<Bytes> {
        if change.object.revision <= self.after {
            return None;
        }
        let is_meant = change.kind != ChangeKind::Deleted && self.selector.matches(&change.object);
        let was_meant = change.previous.as_ref().is_some_and(|previous| self.selector.matches(previous));
        let kind = match (was_meant, is_meant) {
            (false, false) => return None,
            (false, true) => ChangeKind::Added,
            (true, true) => ChangeKind::Modified,
            (true, false) => ChangeKind::Deleted,
        };
        Some(change.line(kind, &self.api_version, &self.kind))
    }

    /// Rendered directly as text: in simulated months, most of what is sent are bookmarks.
    fn bookmark(&self, revision: u64, ends_initial: bool) -> Bytes {
        let (kind, api_version) = (json!(self.kind), json!(self.api_version));
        let annotations =
            if ends_initial { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
        let metadata = format!(r#"{{"resourceVersion":"{revision}"{annotations}}}"#);
        let object = format!(r#"{{"kind":{kind},"apiVersion":{api_version},"metadata":{metadata}}}"#);
        format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").into()
    }
}

#[derive(Debug)]
struct Bookmarks {
    interval: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Bookmarks {
    fn new(interval: Duration, end: Instant) -> Self {
        Self { interval, timer: Box::pin(sleep_until(next_bookmark(interval, end))) }
    }

    /// Ready when a bookmark is due; the next one is scheduled then.
    fn poll_due(&mut self, ctx: &mut Context<'_>, end: Instant) -> Poll<()> {
        ready!(self.timer.as_mut().poll(ctx));
        self.timer.as_mut().reset(next_bookmark(self.interval, end));
        Poll::Ready(())
    }
}

fn next_bookmark(interval: Duration, end: Instant) -> Instant {
    let now = Instant::now();
    let regular = now + interval;
    match end.checked_sub(LAST_BOOKMARK) {
        Some(last) if last > now => regular.min(last),
        _ => regular,
    }
}
