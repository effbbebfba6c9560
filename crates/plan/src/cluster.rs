//! The controller's decisions: a kernel that knows what is in the cluster, and one folder for each kind.
//!
//! ```text
//! Input ─▶ kernel: observe ▸ records ▸ cycle (each kind in its turn) ─▶ Command ─▶ API server
//!              ▲                                                                                  │
//!              └──────────────────────────── Input::Settled ◀─────────────────────────────────────┘
//! ```
//!
//! `kind` lists the kinds, `interface` is what the kernel asks of each. A kind's folder has all of that kind: `record` (what is remembered), `observe` (how it gets there), `pass` (one look at
//! one object, which ends in commands), `settle` (what follows from the outcome of a command), and its pure decisions.

pub mod advanced_cron_job;
mod agenda;
mod allow_list;
pub mod broadcast_job;
pub mod command;
pub mod demands;
mod fingerprint;
mod guard;
pub mod image_list_pull_job;
pub mod image_prefetch;
pub mod image_pull_job;
pub mod input;
mod interface;
mod intern;
pub mod journal;
pub mod kernel;
pub mod kind;
pub mod measure;
pub mod node_image;
pub mod node_image_set;
mod quarantine;
mod reference;
pub mod secret;
mod settings;
pub mod size;
mod trouble;
pub mod unkept;
#[cfg(test)]
mod wish;

pub use command::{Command, Event, Outcome, Read, Target, Ticket, Verb, Write};
pub use input::Input;
pub use interface::Writes;
pub use kernel::Kernel;
pub use kind::{Kind, Object, Subject};
pub use settings::Settings;
