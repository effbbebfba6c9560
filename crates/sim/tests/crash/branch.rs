//! Plays that go on in two ways from one moment: the process is copied there (`fork`), so that what came before is not
//! played again.
//!
//! ```text
//! trunk ──┬─────┬─────┬──────▶ its end
//!         │     │     └─ branch 3 ─▶ its end, told through a pipe
//!         │     └─ branch 2 ─▶ …
//!         └─ branch 1 ─▶ …
//! ```
//!
//! A copy has only the thread that made it, and whatever another one had locked would stay locked in it. So a process with
//! branches has a single thread; what runs at once are branches, one for each processor.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{process, thread};

use fork::Fork;

/// So many bytes of an end are told: a pipe holds them while nobody reads.
const MAX_TOLD: usize = 60_000;

/// How branches ended, by their number: with a text, or with the message of a panic.
pub type Ends = BTreeMap<u64, Result<String, String>>;

/// A play and its branches. Clones are the same.
#[derive(Clone, Default)]
pub struct Branches {
    side: Arc<Mutex<Side>>,
}

/// On which side of the last copy this process is.
enum Side {
    Trunk(Trunk),
    Branch(PipeWriter),
}

#[derive(Default)]
struct Trunk {
    /// By the number of the process: the number of the branch, and what it tells.
    under_way: BTreeMap<i32, (u64, PipeReader)>,
    ends: Ends,
}

impl Default for Side {
    fn default() -> Self {
        Self::Trunk(Trunk::default())
    }
}

impl Branches {
    /// Plays to the end, and waits for all branches that have begun meanwhile. Only the trunk returns.
    pub fn play(&self, play: impl FnOnce() -> String) -> (String, Ends) {
        let end = catch_unwind(AssertUnwindSafe(play));
        let ends = match &mut *self.side() {
            Side::Branch(pipe) => leave(pipe, end),
            Side::Trunk(trunk) => trunk.finish(),
        };
        (end.unwrap_or_else(|panic| resume_unwind(panic)), ends)
    }

    /// Ends this process if it is a branch; the trunk goes on. What the play leaves behind goes with the process, which is
    /// quicker than to take it apart.
    pub fn end(&self, end: &str) {
        if let Side::Branch(pipe) = &mut *self.side() {
            leave(pipe, Ok(end.to_owned()));
        }
    }

    /// Begins a branch of this number, unless this is one already. Returns twice: whether this is the branch.
    pub fn begin(&self, number: u64) -> bool {
        let mut side = self.side();
        let Side::Trunk(trunk) = &mut *side else { return false };
        trunk.make_room();
        let (reader, writer) = io::pipe().expect("a process may have a few pipes");
        // Otherwise the branch would print it once more.
        io::stdout().flush().expect("somebody reads what tests print");
        match fork::fork().expect("a process may have a few children") {
            Fork::Parent(process) => {
                trunk.under_way.insert(process, (number, reader));
                false
            }
            Fork::Child => {
                *side = Side::Branch(writer);
                true
            }
        }
    }

    fn side(&self) -> MutexGuard<'_, Side> {
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trunk {
    fn make_room(&mut self) {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        while self.under_way.len() >= processors {
            self.wait_for_one();
        }
    }

    fn finish(&mut self) -> Ends {
        while !self.under_way.is_empty() {
            self.wait_for_one();
        }
        std::mem::take(&mut self.ends)
    }

    fn wait_for_one(&mut self) {
        let (process, status) = fork::wait_any().expect("a branch is under way");
        let (number, mut pipe) = self.under_way.remove(&process).expect("all children are branches");
        let mut told = Vec::new();
        pipe.read_to_end(&mut told).expect("a pipe can be read");
        let told = String::from_utf8_lossy(&told).into_owned();
        let end = if status == 0 { Ok(told) } else { Err(format!("{told} (status {status})")) };
        self.ends.insert(number, end);
    }
}

/// The end of a branch's process.
fn leave(pipe: &mut PipeWriter, end: Result<String, Box<dyn Any + Send>>) -> ! {
    let code = i32::from(end.is_err());
    let text = end.unwrap_or_else(|panic| message(&*panic));
    let told = &text.as_bytes()[..text.len().min(MAX_TOLD)];
    pipe.write_all(told).expect("the trunk waits for every branch");
    process::exit(code)
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
