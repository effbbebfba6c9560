//! The demo as a user sees it: the shipped program in a real pseudo-terminal.

#[path = "demo/status.rs"]
mod status;
#[expect(dead_code, reason = "tests of the live view use more of it")]
#[path = "../tests/screen/terminal.rs"]
mod terminal;

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::ensure;
use prewarm_testkit::figure::{Bar, Figures};
use prewarm_testkit::measure::peak_resident_mib;
use terminal::Terminal;

/// Large enough for two hundred nodes.
const SIZE: (u16, u16) = (200, 60);
/// The interval between two checks.
const LOOK: Duration = Duration::from_millis(10);
/// Frames are counted over this time; the worst such time of a run is the figure.
const WINDOW: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let mut figures = Figures::new("demo");
    match all(&mut figures) {
        Ok(()) => figures.close(),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn all(figures: &mut Figures) -> anyhow::Result<()> {
    story(figures)?;
    large(figures)?;
    status::measure(figures)
}

/// The story without any flag.
fn story(figures: &mut Figures) -> anyhow::Result<()> {
    let start = Instant::now();
    let terminal = Terminal::start(SIZE, &[], &[]);
    terminal.wait("first image", |text| text.contains("of 12 nodes have it"));
    let first = start.elapsed().as_secs_f64();
    let mut peak = 0.0;
    while let Ok(memory) = peak_resident_mib(terminal.process()) {
        peak = memory;
        sleep(LOOK);
    }
    let took = start.elapsed().as_secs_f64();
    let ended = terminal.end();
    ensure!(ended.code == 0, "the story did not end as it should:\n{}", ended.shown.text());
    figures.add("start of the process to the first image on the first node", first, "s", Bar::AtMost(3.0));
    figures.add("the default story", took, "s", Bar::AtMost(60.0));
    figures.add("the same: resident memory, peak", peak, "MiB", Bar::AtMost(300.0));
    Ok(())
}

/// Two hundred nodes that all pull at once.
fn large(figures: &mut Figures) -> anyhow::Result<()> {
    let terminal = Terminal::start(SIZE, &["--nodes", "200", "--scenario", "list"], &[]);
    terminal.wait("pull", |text| text.contains(" % "));
    let start = Instant::now();
    terminal.wait("end of the pulls", |text| !text.contains(" % "));
    let end = Instant::now();
    let ended = terminal.end();
    ensure!(ended.code == 0, "the scene did not end as it should:\n{}", ended.shown.text());
    let frames: Vec<Instant> =
        ended.shown.frames.into_iter().filter(|at| (start..end).contains(at)).collect();
    figures.add("200 nodes at once: frames a second, worst 5 s", worst(&frames), "", Bar::AtLeast(5.0));
    Ok(())
}

/// The fewest frames per second in any [`WINDOW`] that begins with a frame.
fn worst(frames: &[Instant]) -> f64 {
    let last = frames.last().copied();
    let windows = frames.iter().filter(|from| last.is_some_and(|last| **from + WINDOW <= last));
    let counts = windows.map(|from| frames.iter().filter(|at| (*from..*from + WINDOW).contains(*at)).count());
    #[expect(clippy::cast_precision_loss, reason = "a few dozen frames")]
    let fewest = counts.min().unwrap_or(0) as f64;
    fewest / WINDOW.as_secs_f64()
}
