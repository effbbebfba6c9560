//! The error of a call to the runtime.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_credentials::Credential;
use tonic::{Code, ConnectError, Status};

use crate::classify::{classify, is_overload};
use crate::scrub;

/// A failed call. Its text is the runtime's own, shortened and without anything that looks like a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    ending: Ending,
    class: FailureClass,
    is_overload: bool,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// No runtime was reached, or none answered.
    Unreached,
    /// The runtime answered that it is unavailable.
    Unavailable,
    /// The connection broke off in the middle of the call.
    CutOff,
    /// The runtime cancelled a call that nobody here cancelled.
    Interrupted,
    /// The runtime answered with an error.
    Answered,
}

impl CallError {
    pub(crate) fn from_status(status: &Status) -> Self {
        Self::of_pull(status, &[])
    }

    /// The error of a pull. Its text may repeat the credentials that the runtime was given.
    pub(crate) fn of_pull(status: &Status, given: &[Credential]) -> Self {
        Self {
            ending: ending(status),
            class: classify(status.code(), status.message()),
            is_overload: is_overload(status.message()),
            text: scrub::status(status, given),
        }
    }

    /// A call other than a pull took too long. A runtime that does not answer counts as away.
    pub(crate) fn no_answer(call: &str, limit: Duration) -> Self {
        Self::away(format!("the container runtime did not answer {call} within {} s", limit.as_secs()))
    }

    pub(crate) fn away(text: String) -> Self {
        Self { ending: Ending::Unreached, class: FailureClass::Unknown, is_overload: false, text }
    }

    /// An answer that lacks something.
    pub(crate) fn odd_answer(text: &str) -> Self {
        Self {
            ending: Ending::Answered,
            class: FailureClass::Unknown,
            is_overload: false,
            text: text.to_owned(),
        }
    }

    /// Whether the runtime is away at the moment. This says nothing about the image: wait and ask again.
    pub fn is_runtime_away(&self) -> bool {
        matches!(self.ending, Ending::Unreached | Ending::Unavailable | Ending::CutOff)
    }

    /// Whether the runtime itself answered that it is unavailable: asking again at once gets the same answer.
    pub fn is_unavailable(&self) -> bool {
        self.ending == Ending::Unavailable
    }

    /// Whether the runtime went away in the middle of the call, as one does that crashes.
    pub fn is_cut_off(&self) -> bool {
        self.ending == Ending::CutOff
    }

    /// Whether somebody else ended the call, as CRI-O does to all callers that share a pull when the first of them
    /// leaves. It may be repeated at once.
    pub fn is_interrupted(&self) -> bool {
        self.ending == Ending::Interrupted
    }

    /// Whether the registry asked for fewer requests or failed by itself, so that other pulls should slow down too.
    pub fn is_registry_overloaded(&self) -> bool {
        self.is_overload
    }

    /// The class of the failure.
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
        _ if is_local && was_not_reached(status) => Ending::Unreached,
        _ if is_local || status.message().starts_with(CUT_OFF) => Ending::CutOff,
        // A registry's own 503 is an answer, whatever code the runtime gives it.
        Code::Unavailable if !is_overload(status.message()) => Ending::Unavailable,
        _ => Ending::Answered,
    }
}

/// Whether there was no connection to send the call on.
fn was_not_reached(status: &Status) -> bool {
    let causes = std::iter::successors(status.source(), |error| (*error).source());
    causes.into_iter().any(<dyn std::error::Error>::is::<ConnectError>)
}

/// Whether the runtime ended this one call and kept the connection.
fn is_reset(status: &Status) -> bool {
    scrub::whole(status).contains("stream error received")
}

/// The message on this side for a stream that ended without a status: the runtime went away in the middle.
const CUT_OFF: &str = "protocol error: missing grpc-status trailer";
