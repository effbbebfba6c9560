//! The person's terminal while the live view has it. Whatever ends the program, it is given back as it was.

use std::env;
use std::io::{self, BufWriter, IsTerminal as _, Stdout, stdout};
use std::panic::{self, PanicHookInfo};
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

/// A frame is written in one piece if it fits.
const BUFFER: usize = 64 * 1024;

type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync;

/// A terminal that is drawn on. Dropping it gives it back.
pub struct Terminal {
    canvas: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    _taken: Taken,
}

impl Terminal {
    /// Takes the terminal if there is one to draw on and nobody wants plain lines.
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

    /// Draws one frame. The terminal shows it when it is complete.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(self.canvas.backend_mut(), BeginSynchronizedUpdate)?;
        self.canvas.draw(draw)?;
        execute!(self.canvas.backend_mut(), EndSynchronizedUpdate)
    }
}

/// That the terminal is taken, and what was there before.
struct Taken {
    hook: Arc<Hook>,
    /// What other threads had to say when they panicked: on the screen it would be lost.
    panics: Arc<Mutex<Vec<String>>>,
}

impl Taken {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        let taken = Self { hook: Arc::from(panic::take_hook()), panics: Arc::default() };
        taken.hear_panics();
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(taken)
    }

    /// Gives the terminal back before this thread says why it panics.
    fn hear_panics(&self) {
        let (hook, panics, drawing) = (self.hook.clone(), self.panics.clone(), thread::current().id());
        panic::set_hook(Box::new(move |info| {
            if thread::current().id() == drawing {
                give_back();
                hook(info);
            } else {
                panics.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
            }
        }));
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
        if !thread::panicking() {
            let hook = self.hook.clone();
            panic::set_hook(Box::new(move |info| hook(info)));
        }
        for words in self.panics.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            eprintln!("{words}");
        }
    }
}

/// What fails here fails because the terminal is gone, and with it the need for this.
fn give_back() {
    let _gone = execute!(stdout(), EndSynchronizedUpdate, LeaveAlternateScreen, Show);
    let _gone = disable_raw_mode();
}
