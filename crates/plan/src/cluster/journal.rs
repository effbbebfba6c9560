//! A journal of everything that a kernel observed and decided. Replayed into a fresh kernel, the same inputs give the same
//! commands: nothing that decides is hidden from it.

use jiff::Timestamp;

use super::command::Command;
use super::input::Input;
use super::{Kernel, Settings};

/// One step of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A kernel begins that knows nothing.
    Began,
    /// It observed this at this time.
    Observed(Timestamp, Box<Input>),
    /// It ran a cycle at this time, which gave these commands.
    Cycled(Timestamp, Vec<Command>),
}

/// Replays a journal into a fresh kernel for each that began. Returns the number of commands, or the first cycle that gave others than the
/// journal says, in words.
pub fn replay(settings: &Settings, journal: Vec<Entry>) -> Result<usize, String> {
    let mut kernel = Kernel::new(settings.clone());
    let mut count = 0;
    for (number, entry) in journal.into_iter().enumerate() {
        match entry {
            Entry::Began => kernel = Kernel::new(settings.clone()),
            Entry::Observed(at, input) => kernel.observe(*input, at),
            Entry::Cycled(at, wanted) => {
                let commands = kernel.cycle(at);
                count += commands.len();
                if commands != wanted {
                    return Err(format!("step {number} at {at}: {commands:#?} instead of {wanted:#?}"));
                }
            }
        }
    }
    Ok(count)
}
