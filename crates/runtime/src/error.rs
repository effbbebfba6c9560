//! What a call to the runtime ended with, when it did not end well.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_credentials::Credential;
use tonic::{Code, Status};

use crate::classify::{classify, is_overload};
use crate::scrub;

/// A failed call. Its text is the runtime's own, without anything that looks like a credential, and short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    ending: Ending,
    class: FailureClass,
    is_overload: bool,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// There was no runtime to answer.
    Away,
    /// The runtime gave up a call that nobody here gave up.
    Interrupted,
    /// The runtime says no.
    Answered,
}

impl CallError {
    pub(crate) fn from_status(status: &Status) -> Self {
        Self::of_pull(status, &[])
    }

    /// A failed pull. The runtime may repeat the credentials that it was given.
    pub(crate) fn of_pull(status: &Status, given: &[Credential]) -> Self {
        Self {
            ending: ending(status),
            class: classify(status.code(), status.message()),
            is_overload: is_overload(status.message()),
            text: scrub::status(status, given),
        }
    }

    /// A call other than a pull that took too long: whoever answers nothing is as good as not there.
    pub(crate) fn no_answer(call: &str, limit: Duration) -> Self {
        Self::away(format!("the container runtime did not answer {call} within {} s", limit.as_secs()))
    }

    pub(crate) fn away(text: String) -> Self {
        Self { ending: Ending::Away, class: FailureClass::Unknown, is_overload: false, text }
    }

    /// An answer that has not what it should have.
    pub(crate) fn odd_answer(text: &str) -> Self {
        Self {
            ending: Ending::Answered,
            class: FailureClass::Unknown,
            is_overload: false,
            text: text.to_owned(),
        }
    }

    /// Whether there is no runtime at the moment. This says nothing about the image: wait and ask again.
    pub fn is_runtime_away(&self) -> bool {
        self.ending == Ending::Away
    }

    /// Whether the call was ended by somebody else, as CRI-O does to all who wait for one pull when the first of them
    /// goes away. It may be repeated at once.
    pub fn is_interrupted(&self) -> bool {
        self.ending == Ending::Interrupted
    }

    /// Whether the registry asked for fewer requests or failed by itself, so that others should slow down too.
    pub fn is_registry_overloaded(&self) -> bool {
        self.is_overload
    }

    /// What kind of failure it is.
    pub fn class(&self) -> FailureClass {
        self.class
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for CallError {}

fn ending(status: &Status) -> Ending {
    // Only a status that was made on this side has a source.
    let is_local = status.source().is_some();
    match status.code() {
        Code::Cancelled | Code::DeadlineExceeded if !is_local || is_reset(status) => Ending::Interrupted,
        _ if is_local || status.message().starts_with(CUT_OFF) => Ending::Away,
        // A registry's own 503 is an answer, whatever code a runtime gives it.
        Code::Unavailable if !is_overload(status.message()) => Ending::Away,
        _ => Ending::Answered,
    }
}

/// Whether the runtime ended this one call and kept the connection.
fn is_reset(status: &Status) -> bool {
    scrub::whole(status).contains("stream error received")
}

/// How this side words a stream that ended without a status: the runtime went away in the middle.
const CUT_OFF: &str = "protocol error: missing grpc-status trailer";
