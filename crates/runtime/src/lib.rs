//! The client of container runtimes: CRI v1, and what containerd offers besides.
//!
//! [`Runtime`] asks, pulls and watches; every answer is a plain value and every failure a [`CallError`] with what the
//! caller has to know: whether the runtime is away, whether the call was interrupted, and the class of the failure. The
//! caller decides what to do about it and when to try again.
//!
//! The runtime may restart at any time. A `Runtime` outlives that: calls fail while it is away and work again
//! afterwards.

#![warn(missing_docs)]

pub use advice::advice;
pub use classify::{classify, is_overload};
pub use connect::{ConnectError, candidates};
pub use content::{Blob, ContentStore, Fitness, Ingest, Lease, Opened, Platform, Target};
pub use endpoint::Endpoint;
pub use error::CallError;
pub use image::Image;
pub use progress::{Progress, Sample};
pub use pull::PullRequest;
pub use runtime::{Kind, Runtime};
pub use socket::SocketError;
pub use tonic::Code;

mod advice;
mod classify;
mod connect;
mod content;
mod endpoint;
mod error;
#[cfg(feature = "fake")]
pub mod fake;
mod image;
mod progress;
mod proto;
mod pull;
mod removals;
mod runtime;
mod scrub;
#[cfg(feature = "serve")]
pub mod serve;
mod socket;
