//! The live view: what happens is heard and seen into the [`state`], the [`view`] of it is settled ten times a second, and
//! [`draw`] puts it on the [`terminal`].

mod draw;
mod ears;
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
pub use ears::Story;
use ears::{Ears, Heard};
use state::{Sight, State};
pub use terminal::Terminal;

/// The time between two frames, at most: the clock goes on.
const STILL: Duration = Duration::from_secs(1);

/// Where the cluster is looked into.
pub struct Windows {
    pub client: Client,
    pub seats: channel::Receiver<Vec<Seat>>,
}

/// Shows the story until its end, and the cluster after it if it stays. Then the terminal has a summary.
pub async fn follow(
    mut terminal: Terminal,
    windows: Windows,
    about: About,
    story: Story<'_>,
    stopped: impl Future<Output = ()>,
) -> anyhow::Result<Ending> {
    let ears = Ears::new(story, &windows.client, Box::pin(stopped))?;
    let mut show = Show::new(about, windows);
    let ended = show.run(&mut terminal, ears).await;
    drop(terminal);
    let ending = ended?;
    print!("{}", show.summary(&ending));
    Ok(ending)
}

/// What goes on while the terminal is drawn on.
struct Show {
    about: About,
    windows: Windows,
    palette: Palette,
    start: Instant,
    state: State,
    /// When the last frame was drawn.
    drawn: Option<Instant>,
    /// Whether something has been heard since then.
    has_news: bool,
}

impl Show {
    fn new(about: About, windows: Windows) -> Self {
        let (state, palette) = (State::default(), Palette::of_environment());
        Self { about, windows, palette, start: Instant::now(), state, drawn: None, has_news: false }
    }

    async fn run(&mut self, terminal: &mut Terminal, mut ears: Ears<'_>) -> anyhow::Result<Ending> {
        loop {
            let heard = ears.next().await;
            let now = self.start.elapsed();
            match heard {
                Heard::Frame => {
                    self.draw(terminal).context("drawing on the terminal")?;
                    continue;
                }
                Heard::Word(word) => self.state.hear_word(word, now),
                Heard::News(news) => self.state.hear(news, now),
                Heard::Told(Ok(())) if self.about.stays => self.state.stay(&self.about.kubeconfig),
                Heard::Told(told) => return Ok(Ending::Told(told)),
                Heard::Resized => {}
                Heard::Enough => return Ok(Ending::Stopped),
            }
            self.has_news = true;
        }
    }

    /// Draws a frame if there is anything new, and now and then anyway.
    fn draw(&mut self, terminal: &mut Terminal) -> std::io::Result<()> {
        let now = self.start.elapsed();
        let has_moved = self.state.see(gather(&self.windows.seats), now);
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= STILL);
        if !(has_moved || self.has_news || is_due) {
            return Ok(());
        }
        self.has_news = false;
        self.drawn = Some(Instant::now());
        let view = view::view(&self.state, &self.about.kubeconfig, now);
        terminal.draw(|frame| draw::draw(frame, &view, &self.palette))
    }

    /// What a person keeps: how each scene ended.
    fn summary(&self, ending: &Ending) -> String {
        let mut text = String::new();
        for (at, word) in &self.state.summary {
            text += &line(word, *at);
        }
        if matches!(ending, Ending::Told(Ok(()))) {
            text += &self.about.closing();
        }
        text
    }
}

/// Looks at every node.
fn gather(seats: &channel::Receiver<Vec<Seat>>) -> Vec<Sight> {
    let seats = seats.borrow();
    let look = |Seat { name, zone, store }: &Seat| Sight {
        name: name.clone(),
        zone: zone.clone(),
        pulls: store.pulls(),
        received: store.received(),
        room: store.room(),
    };
    seats.iter().map(look).collect()
}
