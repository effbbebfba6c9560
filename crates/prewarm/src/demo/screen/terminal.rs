//! The user's terminal while the live view has it. However the program ends, the terminal is restored.

use std::env;
use std::io::{self, BufWriter, IsTerminal as _, Stdout, stdout};
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crossterm::cursor::{Hide, Show};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Frame;
use ratatui::backend::CrosstermBackend;

/// The size of the write buffer; a frame that fits is written in one piece.
const BUFFER: usize = 64 * 1024;

type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync;

/// A terminal that is drawn on. Dropping it restores it.
pub struct Terminal {
    canvas: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    _taken: Taken,
}

impl Terminal {
    /// Takes the terminal if it can be drawn on and plain lines were not requested.
    pub fn take_if_fitting(is_plain: bool) -> Option<Self> {
        let is_dumb = env::var_os("TERM").is_some_and(|name| name == "dumb");
        if is_plain || is_dumb || !stdout().is_terminal() {
            return None;
        }
        Self::take().ok()
    }

    fn take() -> io::Result<Self> {
        let taken = Taken::take()?;
        let canvas =
            ratatui::Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(BUFFER, stdout())))?;
        Ok(Self { canvas, _taken: taken })
    }

    /// Draws one frame, which becomes visible when it is complete.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(self.canvas.backend_mut(), BeginSynchronizedUpdate)?;
        self.canvas.draw(draw)?;
        execute!(self.canvas.backend_mut(), EndSynchronizedUpdate)
    }
}

/// That the terminal is taken, and its previous settings.
struct Taken {
    hook: Arc<Hook>,
    /// If it were restored twice, the cursor would jump back onto what has been printed since.
    is_ours: Arc<AtomicBool>,
    /// The messages of other threads that panicked, which would be invisible on the screen.
    panics: Arc<Mutex<Vec<String>>>,
}

impl Taken {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        let is_ours = Arc::new(AtomicBool::new(true));
        let taken = Self { hook: Arc::from(panic::take_hook()), is_ours, panics: Arc::default() };
        taken.catch_panics();
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(taken)
    }

    /// Restores the terminal before this thread prints its panic.
    fn catch_panics(&self) {
        let (hook, is_ours, panics) = (self.hook.clone(), self.is_ours.clone(), self.panics.clone());
        let drawing = thread::current().id();
        panic::set_hook(Box::new(move |info| {
            if thread::current().id() == drawing {
                give_back(&is_ours);
                hook(info);
            } else {
                panics.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
            }
        }));
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back(&self.is_ours);
        if !thread::panicking() {
            let hook = self.hook.clone();
            panic::set_hook(Box::new(move |info| hook(info)));
        }
        for words in self.panics.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            eprintln!("{words}");
        }
    }
}

/// An error here means that the terminal is gone, and nothing has to be restored.
fn give_back(is_ours: &AtomicBool) {
    // This runs the second time as well: a frame may have begun in between.
    let _gone = execute!(stdout(), EndSynchronizedUpdate);
    if is_ours.swap(false, Ordering::Relaxed) {
        let _gone = execute!(stdout(), LeaveAlternateScreen, Show);
        let _gone = disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use portable_pty::{CommandBuilder, PtySize, native_pty_system};

    use super::*;

    /// Set when the test runs itself in a terminal.
    const INSIDE: &str = "PREWARM_TEST_INSIDE";

    #[test]
    fn a_panic_is_printed_after_the_terminal_is_restored() {
        if env::var_os(INSIDE).is_some() {
            let mut terminal = Terminal::take().expect("a terminal");
            let _never = terminal.draw(|_| panic!("the brush breaks"));
        }
        let screen = own_screen("a_panic_is_printed_after_the_terminal_is_restored");
        assert!(screen.contents().contains("the brush breaks"), "{}", screen.contents());
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
    }

    /// What a terminal shows after a test has run in it.
    fn own_screen(test: &str) -> vt100::Screen {
        let pair = native_pty_system().openpty(PtySize::default()).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(env::current_exe().expect("this program has a path"));
        let path = format!("{}::{test}", module_path!().trim_start_matches("prewarm::"));
        command.args(["--exact", &path, "--nocapture"]);
        command.env(INSIDE, "yes");
        command.env("RUST_BACKTRACE", "0");
        let mut child = pair.slave.spawn_command(command).expect("it starts");
        let mut reader = pair.master.try_clone_reader().expect("it can be read");
        drop(pair.slave);
        let mut written = Vec::new();
        // On Linux, the end of a pseudo-terminal is an error.
        let _end = reader.read_to_end(&mut written);
        child.wait().expect("it ends");
        let mut parser = vt100::Parser::new(24, 80, 0);
        parser.process(&written);
        parser.screen().clone()
    }
}
