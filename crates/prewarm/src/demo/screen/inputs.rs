//! Everything that the live view waits for, as a sequence of inputs.

use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{Event, EventStream, KeyCode, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use futures::future::{Fuse, FutureExt as _, LocalBoxFuture};
use futures::stream::Stream;
use kube::Client;
use prewarm_demo::story::{Message, Trouble};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::state::Change;
use super::watch;

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(100);

/// A story while it is played.
pub struct Story<'a> {
    pub played: LocalBoxFuture<'a, Result<(), Trouble>>,
    pub words: mpsc::UnboundedReceiver<Message>,
}

/// The sources of inputs.
pub struct Inputs<'a> {
    played: Fuse<LocalBoxFuture<'a, Result<(), Trouble>>>,
    /// The result of the story; it is held back until all its words have been received.
    end: Option<Result<(), Trouble>>,
    words: mpsc::UnboundedReceiver<Message>,
    changes: Pin<Box<dyn Stream<Item = Change>>>,
    keys: EventStream,
    frames: Interval,
    hung_up: Signal,
    stopped: Pin<Box<dyn Future<Output = ()> + 'a>>,
}

/// What the view reacts to.
pub enum Input {
    Message(Message),
    /// The story is over and has no more words.
    Over(Result<(), Trouble>),
    Change(Change),
    /// The next frame is due.
    Frame,
    /// The terminal was resized, or a key without a meaning was pressed.
    Resized,
    /// The user wants to leave.
    Enough,
}

impl<'a> Inputs<'a> {
    /// Starts the watches and reads the keyboard.
    pub fn new(
        story: Story<'a>,
        client: &Client,
        stopped: Pin<Box<dyn Future<Output = ()> + 'a>>,
    ) -> anyhow::Result<Self> {
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            played: story.played.fuse(),
            end: None,
            words: story.words,
            changes: Box::pin(watch::follow(client)),
            keys: EventStream::new(),
            frames,
            hung_up: signal(SignalKind::hangup()).context("listening for SIGHUP")?,
            stopped,
        })
    }

    /// Waits for the next input.
    pub async fn next(&mut self) -> Input {
        loop {
            if let Ok(word) = self.words.try_recv() {
                return Input::Message(word);
            }
            if let Some(result) = self.end.take() {
                return Input::Over(result);
            }
            tokio::select! {
                result = &mut self.played => self.end = Some(result),
                Some(word) = self.words.recv() => return Input::Message(word),
                Some(change) = self.changes.next() => return Input::Change(change),
                Some(Ok(event)) = self.keys.next() => return key(&event),
                _ = self.frames.tick() => return Input::Frame,
                _ = self.hung_up.recv() => return Input::Enough,
                () = &mut self.stopped => return Input::Enough,
            }
        }
    }
}

/// In raw mode the terminal sends no signals, so Ctrl-C is a key.
fn key(event: &Event) -> Input {
    let Event::Key(key) = event else { return Input::Resized };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    if key.kind == KeyEventKind::Press && (is_interrupt || key.code == KeyCode::Char('q')) {
        return Input::Enough;
    }
    Input::Resized
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn only_q_and_ctrl_c_end_the_view() {
        for (code, modifiers, is_enough) in [
            (KeyCode::Char('q'), KeyModifiers::NONE, true),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, true),
            (KeyCode::Char('c'), KeyModifiers::NONE, false),
            (KeyCode::Enter, KeyModifiers::NONE, false),
        ] {
            let input = key(&Event::Key(KeyEvent::new(code, modifiers)));
            assert_eq!(matches!(input, Input::Enough), is_enough, "{code:?}");
        }
        assert!(matches!(key(&Event::Resize(1, 1)), Input::Resized));
    }
}
