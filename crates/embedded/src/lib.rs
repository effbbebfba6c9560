//! An in-process Kubernetes API for trying, testing and simulating. Production is always the user's own cluster.
//!
//! [`Server`] is a `tower` service: [`Server::client`] plugs it into a `kube::Client` with no socket in between. It is
//! only worth having if our clients cannot tell it from the real one, so one contract suite runs on both.
//!
//! The path of a request: `server` reads the body, `dispatch` finds the verb, `read` or `write` does the work under one
//! lock, `store` holds objects as text and notifies watchers. `kubectl` answers what kubectl asks besides objects.

#![expect(
    clippy::missing_panics_doc,
    reason = "each `expect` states an invariant, so no caller can meet the panic"
)]

mod body;
mod dispatch;
pub mod faults;
mod kubectl;
mod options;
mod read;
mod refusal;
mod request;
mod resource;
mod selector;
mod serve;
mod server;
mod state;
mod store;
mod watch;
mod write;

pub use body::{Body, PassedBody};
pub use options::Options;
pub use prewarm_clock::{Clock, TokioClock};
pub use refusal::{Cause, Refusal};
pub use serve::{Limits, ServeError, Serving, serve};
pub use server::Server;
