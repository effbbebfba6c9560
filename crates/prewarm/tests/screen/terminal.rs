//! A real pseudo-terminal that runs the demo, and what it shows.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use prewarm_testkit::binary::given_or;
use tempfile::TempDir;

/// The beginning and the end of a frame.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
/// The time limit for everything that a test waits for.
const PATIENCE: Duration = Duration::from_mins(5);

/// A demo on a terminal, with its own directory for temporary files.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    shown: Arc<Mutex<Shown>>,
    reader: JoinHandle<()>,
    directory: TempDir,
}

/// What has been shown so far, in whole frames.
pub struct Shown {
    parser: vt100::Parser,
    waiting: Vec<u8>,
    /// Everything that was written.
    pub written: Vec<u8>,
    /// When each frame came.
    pub frames: Vec<Instant>,
}

/// How a demo ended.
pub struct Ended {
    pub code: u32,
    pub shown: Shown,
    /// The temporary files that are left.
    pub left_behind: Vec<PathBuf>,
}

impl Terminal {
    /// Starts the demo on a terminal of this size, with these additional variables.
    pub fn start(size: (u16, u16), arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::run(size, &[&["demo"], arguments].concat(), variables)
    }

    /// The same with any command.
    pub fn run(size: (u16, u16), arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        // A path of the same length everywhere, because the picture depends on it.
        let directory = tempfile::Builder::new().prefix("screen-").tempdir_in("/tmp").expect("a directory");
        let pair = native_pty_system().openpty(pty_size(size)).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(given_or(env!("CARGO_BIN_EXE_prewarm")));
        command.args(arguments);
        command.env_remove("NO_COLOR");
        command.env("TERM", "xterm-256color");
        command.env("TMPDIR", directory.path());
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("the program starts");
        let shown = Arc::new(Mutex::new(Shown::new(size)));
        let source = pair.master.try_clone_reader().expect("it can be read");
        let reader = thread::spawn({
            let shown = Arc::clone(&shown);
            move || read(source, &shown)
        });
        let keyboard = pair.master.take_writer().expect("it can be typed on");
        Self { child, master: pair.master, keyboard, shown, reader, directory }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).and_then(|()| self.keyboard.flush()).expect("it takes keys");
    }

    /// Changes the size, as a user does with a window.
    pub fn resize(&self, size: (u16, u16)) {
        self.shown().parser.screen_mut().set_size(size.1, size.0);
        self.master.resize(pty_size(size)).expect("it takes the size");
    }

    /// Waits until the screen meets a condition, and returns it.
    pub fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        self.until(what, Shown::text, is_so)
    }

    /// Waits for output of a program that marks no frames.
    pub fn wait_written(&self, part: &str) {
        let written = |shown: &Shown| String::from_utf8_lossy(&shown.written).into_owned();
        self.until(part, written, |text| text.contains(part));
    }

    fn until(&self, what: &str, look: impl Fn(&Shown) -> String, is_so: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = look(&self.shown());
            if is_so(&text) {
                return text;
            }
            assert!(Instant::now() < end && !self.reader.is_finished(), "no {what}:\n{text}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What has been shown so far.
    pub fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kubeconfig of the demo, once it runs.
    pub fn kubeconfig(&self) -> PathBuf {
        let entry = self.directory.path().read_dir().expect("a directory").next();
        entry.expect("the demo has a directory").expect("it can be read").path().join("kubeconfig")
    }

    /// The process of the demo.
    pub fn process(&self) -> u32 {
        self.child.process_id().expect("it has started")
    }

    /// Waits for the end.
    pub fn end(self) -> Ended {
        let Self { mut child, master, keyboard, shown, reader, directory } = self;
        let code = child.wait().expect("it ends").exit_code();
        drop((keyboard, master));
        reader.join().expect("what was read is text");
        let shown = Arc::into_inner(shown).expect("the reader has ended").into_inner().expect("it is sound");
        let left = directory.path().read_dir().expect("a directory");
        let left_behind = left.map(|entry| entry.expect("it can be read").path()).collect();
        Ended { code, shown, left_behind }
    }
}

impl Shown {
    fn new((width, height): (u16, u16)) -> Self {
        let parser = vt100::Parser::new(height, width, 0);
        Self { parser, waiting: Vec::new(), written: Vec::new(), frames: Vec::new() }
    }

    /// The text of the screen.
    pub fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// The screen with colours and cursor.
    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    fn take(&mut self, bytes: &[u8]) {
        // A mark may arrive in two pieces.
        let from = self.written.len().saturating_sub(BEGIN.len() - 1);
        self.written.extend(bytes);
        let marks = self.written[from..].windows(BEGIN.len()).filter(|window| *window == BEGIN).count();
        self.frames.extend(vec![Instant::now(); marks]);
        self.waiting.extend(bytes);
        if let Some(last) = self.waiting.windows(END.len()).rposition(|window| window == END) {
            self.show(last + END.len());
        }
    }

    fn show(&mut self, count: usize) {
        let complete: Vec<u8> = self.waiting.drain(..count).collect();
        self.parser.process(&complete);
    }
}

fn read(mut source: Box<dyn Read + Send>, shown: &Mutex<Shown>) {
    let mut buffer = vec![0; 64 * 1024];
    let lock = || shown.lock().unwrap_or_else(PoisonError::into_inner);
    // On Linux, the end of a pseudo-terminal is an error.
    while let Ok(count @ 1..) = source.read(&mut buffer) {
        lock().take(&buffer[..count]);
    }
    let mut shown = lock();
    let rest = shown.waiting.len();
    shown.show(rest);
}

fn pty_size((width, height): (u16, u16)) -> PtySize {
    PtySize { rows: height, cols: width, pixel_width: 0, pixel_height: 0 }
}
