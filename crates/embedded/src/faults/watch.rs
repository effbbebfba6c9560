//! A watch under way: its lines are late, lack bookmarks, or end early.
//!
//! Lines are taken from the server as they come, wait here until they are due, and leave in order. As many wait as the
//! server itself would hold for a slow client; beyond that the server sees a slow client.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

use super::asked::Asked;
use super::fate::{WatchFate, within};
use super::journal::Happened;
use super::layer::{Passage, broken};
use super::network::Connection;
use super::script::Cut;
use super::{Faults, PassedBody};

/// At most this many lines wait.
const MAX_WAITING: usize = 1024;
/// The annotation of the one bookmark that a client cannot do without.
const END_OF_INITIAL: &str = "k8s.io/initial-events-end";

/// The body of a watch, with its faults.
pub(super) struct WatchBody {
    /// None once the watch is cut, so that the server sees its client leave.
    inner: Option<PassedBody>,
    partial: BytesMut,
    waiting: VecDeque<(Instant, Bytes)>,
    due: Pin<Box<Sleep>>,
    cut_at: Option<Pin<Box<Sleep>>>,
    sent: u64,
    last_frames: VecDeque<Result<Bytes, BoxError>>,
    /// Nothing arrives any more, not even an end.
    is_silent: bool,
    fate: WatchFate,
    faults: Faults,
    number: u64,
    asked: Arc<Asked>,
    connection: Connection,
}

impl WatchBody {
    pub(super) fn new(inner: PassedBody, passage: Passage) -> Self {
        let Passage { faults, number, asked, fate, connection } = passage;
        let fate = fate.watch;
        let now = Instant::now();
        let cut_after = fate.cut.and_then(|cut| cut.after);
        Self {
            inner: Some(inner),
            partial: BytesMut::new(),
            waiting: VecDeque::new(),
            due: Box::pin(sleep_until(now)),
            cut_at: cut_after.map(|after| Box::pin(sleep_until(now + after))),
            sent: 0,
            last_frames: VecDeque::new(),
            is_silent: false,
            fate,
            faults,
            number,
            asked,
            connection,
        }
    }

    /// The next line; none at the end.
    fn poll_line(&mut self, ctx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.faults.is_silent(self.connection) {
            return Poll::Pending;
        }
        if self.cut_at.as_mut().is_some_and(|timer| timer.as_mut().poll(ctx).is_ready()) {
            self.cut_at = None;
            self.cut();
        }
        self.take(ctx);
        let Some((due, _)) = self.waiting.front() else {
            return match self.last_frames.pop_front() {
                Some(last) => Poll::Ready(Some(last)),
                None if self.inner.is_none() && !self.is_silent => Poll::Ready(None),
                None => Poll::Pending,
            };
        };
        if self.due.deadline() != *due {
            self.due.as_mut().reset(*due);
        }
        ready!(self.due.as_mut().poll(ctx));
        if self.fate.cut.is_some_and(|cut| self.sent >= cut.events) && self.cut() {
            let last = self.last_frames.pop_front();
            return if self.is_silent { Poll::Pending } else { Poll::Ready(last) };
        }
        self.sent += 1;
        Poll::Ready(self.waiting.pop_front().map(|(_, line)| Ok(line)))
    }

    /// Takes lines from the server, as long as there is room.
    fn take(&mut self, ctx: &mut Context<'_>) {
        while self.waiting.len() < MAX_WAITING
            && let Some(inner) = &mut self.inner
            && let Poll::Ready(frame) = Pin::new(inner).poll_frame(ctx)
        {
            match frame {
                Some(Ok(frame)) => self.take_frame(frame),
                Some(Err(error)) => {
                    self.inner = None;
                    self.last_frames.push_back(Err(error));
                }
                None => {
                    self.inner = None;
                    // A line that the server itself did not finish reaches the client as it is.
                    let rest = std::mem::take(&mut self.partial).freeze();
                    self.last_frames.extend((!rest.is_empty()).then_some(Ok(rest)));
                }
            }
        }
    }

    fn take_frame(&mut self, frame: Frame<Bytes>) {
        let Ok(data) = frame.into_data() else { return };
        self.partial.extend_from_slice(&data);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line = self.partial.split_to(end + 1).freeze();
            self.take_line(line);
        }
    }

    fn take_line(&mut self, line: Bytes) {
        if self.fate.withholds_bookmarks && is_idle_bookmark(&line) && self.is_active() {
            self.note(Happened::BookmarkWithheld);
            return;
        }
        let now = Instant::now();
        let last = self.waiting.back().map_or(now, |(due, _)| *due);
        let due = last.max(now + self.delay());
        if due > now {
            self.note(Happened::EventDelayed(due - now));
        }
        self.waiting.push_back((due, line));
    }

    fn delay(&mut self) -> Duration {
        match &self.fate.delay {
            // Drawn in any case, so that a quiet period does not change what comes after it.
            Some(delay) => {
                let delay = within(&mut self.fate.random, delay);
                if self.is_active() { delay } else { Duration::ZERO }
            }
            None => Duration::ZERO,
        }
    }

    /// Ends the watch, unless the period is quiet. Returns whether it ended.
    fn cut(&mut self) -> bool {
        let (Some(cut), true) = (self.fate.cut.take(), self.is_active()) else { return false };
        self.note(Happened::WatchCut(cut.how));
        self.inner = None;
        let next = self.waiting.pop_front();
        self.waiting.clear();
        match (cut.how, next) {
            (Cut::Broken, _) => {
                self.last_frames.push_back(Err(broken(io::ErrorKind::ConnectionReset)));
            }
            (Cut::Torn, Some((_, line))) => {
                self.last_frames.push_back(Ok(line.slice(..line.len() / 2)));
            }
            (Cut::Silent, _) => self.is_silent = true,
            (Cut::Clean | Cut::Torn, _) => {}
        }
        true
    }

    fn is_active(&self) -> bool {
        self.fate.is_scripted || self.faults.is_active()
    }

    fn note(&self, happened: Happened) {
        self.faults.note(self.number, &self.asked, happened);
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.poll_line(ctx).map(|line| line.map(|line| line.map(Frame::data)))
    }
}

fn is_idle_bookmark(line: &[u8]) -> bool {
    let line: Value = serde_json::from_slice(line).unwrap_or_default();
    line["type"] == "BOOKMARK" && line["object"]["metadata"]["annotations"][END_OF_INITIAL].is_null()
}
