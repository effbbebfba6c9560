//! Everything that the live view waits for, as a sequence of inputs.

use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{Event, EventStream, KeyCode, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use futures::future::{Fuse, FutureExt as _, LocalBoxFuture};
use futures::stream::Stream;
use kube::Client;
use prewarm_demo::story::{Trouble, Word};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::state::News;
use super::watch;

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(100);

/// A story while it is played.
pub struct Story<'a> {
    pub told: LocalBoxFuture<'a, Result<(), Trouble>>,
    pub words: mpsc::UnboundedReceiver<Word>,
}

/// The sources of inputs.
pub struct Ears<'a> {
    told: Fuse<LocalBoxFuture<'a, Result<(), Trouble>>>,
    /// The result of the story; it is held back until all its words have been received.
    end: Option<Result<(), Trouble>>,
    words: mpsc::UnboundedReceiver<Word>,
    news: Pin<Box<dyn Stream<Item = News>>>,
    keys: EventStream,
    frames: Interval,
    hung_up: Signal,
    stopped: Pin<Box<dyn Future<Output = ()> + 'a>>,
}

/// What the view reacts to.
pub enum Heard {
    Word(Word),
    /// The story is over and has no more words.
    Told(Result<(), Trouble>),
    News(News),
    /// The next frame is due.
    Frame,
    /// The terminal was resized, or a key without a meaning was pressed.
    Resized,
    /// The user wants to leave.
    Enough,
}

impl<'a> Ears<'a> {
    /// Starts the watches and reads the keyboard.
    pub fn new(
        story: Story<'a>,
        client: &Client,
        stopped: Pin<Box<dyn Future<Output = ()> + 'a>>,
    ) -> anyhow::Result<Self> {
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            told: story.told.fuse(),
            end: None,
            words: story.words,
            news: Box::pin(watch::follow(client)),
            keys: EventStream::new(),
            frames,
            hung_up: signal(SignalKind::hangup()).context("listening for SIGHUP")?,
            stopped,
        })
    }

    /// Waits for the next input.
    pub async fn next(&mut self) -> Heard {
        loop {
            if let Ok(word) = self.words.try_recv() {
                return Heard::Word(word);
            }
            if let Some(told) = self.end.take() {
                return Heard::Told(told);
            }
            tokio::select! {
                told = &mut self.told => self.end = Some(told),
                Some(word) = self.words.recv() => return Heard::Word(word),
                Some(news) = self.news.next() => return Heard::News(news),
                Some(Ok(event)) = self.keys.next() => return key(&event),
                _ = self.frames.tick() => return Heard::Frame,
                _ = self.hung_up.recv() => return Heard::Enough,
                () = &mut self.stopped => return Heard::Enough,
            }
        }
    }
}

/// In raw mode the terminal sends no signals, so Ctrl-C is a key.
fn key(event: &Event) -> Heard {
    let Event::Key(key) = event else { return Heard::Resized };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    if key.kind == KeyEventKind::Press && (is_interrupt || key.code == KeyCode::Char('q')) {
        return Heard::Enough;
    }
    Heard::Resized
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn only_q_and_ctrl_c_are_enough() {
        for (code, modifiers, is_enough) in [
            (KeyCode::Char('q'), KeyModifiers::NONE, true),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, true),
            (KeyCode::Char('c'), KeyModifiers::NONE, false),
            (KeyCode::Enter, KeyModifiers::NONE, false),
        ] {
            let heard = key(&Event::Key(KeyEvent::new(code, modifiers)));
            assert_eq!(matches!(heard, Heard::Enough), is_enough, "{code:?}");
        }
        assert!(matches!(key(&Event::Resize(1, 1)), Heard::Resized));
    }
}
