//! The live view: observations go into the [`state`], a [`view`] of it is made ten times a second, and [`draw`]
//! puts that on the [`terminal`].

mod draw;
mod inputs;
mod name;
mod report;
mod speed;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod view;
mod watch;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::Client;
use prewarm_demo::cluster::Seat;
use tokio::sync::watch as channel;

use super::Ending;
use super::lines::{About, line};
use draw::Palette;
pub use inputs::Story;
use inputs::{Input, Inputs};
use state::{Snapshot, State};
pub use terminal::Terminal;

/// The longest time between two frames, because the clock moves on.
const STILL: Duration = Duration::from_secs(1);

/// The parts of the cluster that the view observes.
pub struct Windows {
    pub client: Client,
    pub seats: channel::Receiver<Vec<Seat>>,
}

/// Shows the story until its end, and then the cluster if it stays. At last it prints a summary.
pub async fn follow(
    mut terminal: Terminal,
    windows: Windows,
    about: About,
    story: Story<'_>,
    stopped: impl Future<Output = ()>,
) -> anyhow::Result<Ending> {
    let inputs = Inputs::new(story, &windows.client, Box::pin(stopped))?;
    let mut show = Show::new(about, windows);
    let ended = show.run(&mut terminal, inputs).await;
    drop(terminal);
    let ending = ended?;
    print!("{}", show.summary(&ending));
    Ok(ending)
}

/// The view while the terminal is drawn on.
struct Show {
    about: About,
    windows: Windows,
    palette: Palette,
    start: Instant,
    state: State,
    drawn: Option<Instant>,
    /// Whether something was observed since then.
    has_changed: bool,
}

impl Show {
    fn new(about: About, windows: Windows) -> Self {
        let (state, palette) = (State::default(), Palette::of_environment());
        Self { about, windows, palette, start: Instant::now(), state, drawn: None, has_changed: false }
    }

    async fn run(&mut self, terminal: &mut Terminal, mut inputs: Inputs<'_>) -> anyhow::Result<Ending> {
        loop {
            let input = inputs.next().await;
            let now = self.start.elapsed();
            match input {
                Input::Frame => {
                    self.draw(terminal).context("drawing on the terminal")?;
                    continue;
                }
                Input::Message(word) => self.state.observe_message(word, now),
                Input::Change(change) => self.state.observe(change, now),
                Input::Over(Ok(())) if self.about.stays => self.state.stay(&self.about.kubeconfig),
                Input::Over(result) => return Ok(Ending::Over(result)),
                Input::Resized => {}
                Input::Enough => return Ok(Ending::Stopped),
            }
            self.has_changed = true;
        }
    }

    /// Draws a frame if something has changed, and from time to time anyway.
    fn draw(&mut self, terminal: &mut Terminal) -> std::io::Result<()> {
        let now = self.start.elapsed();
        let has_moved = self.state.observe_nodes(gather(&self.windows.seats), now);
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= STILL);
        if !(has_moved || self.has_changed || is_due) {
            return Ok(());
        }
        self.has_changed = false;
        self.drawn = Some(Instant::now());
        let view = view::view(&self.state, &self.about.kubeconfig, now);
        terminal.draw(|frame| draw::draw(frame, &view, &self.palette))
    }

    /// The summary: how each scene ended.
    fn summary(&self, ending: &Ending) -> String {
        let mut text = String::new();
        for (at, word) in &self.state.summary {
            text += &line(word, *at);
        }
        if matches!(ending, Ending::Over(Ok(()))) {
            text += &self.about.closing();
        }
        text
    }
}

/// Reads the state of every node.
fn gather(seats: &channel::Receiver<Vec<Seat>>) -> Vec<Snapshot> {
    let seats = seats.borrow();
    let look = |Seat { name, zone, store }: &Seat| Snapshot {
        name: name.clone(),
        zone: zone.clone(),
        pulls: store.pulls(),
        received: store.received(),
        room: store.room(),
    };
    seats.iter().map(look).collect()
}
