//! What is recorded of each pull.

use std::collections::BTreeMap;

use tokio::time::Instant;

use crate::serve::PullCall;

/// One call of `PullImage`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The image, as it was requested.
    pub reference: String,
    /// The user name of the credential, if there was one.
    pub username: Option<String>,
    /// The host that the credential is for, if there was one.
    pub server_address: Option<String>,
    /// The labels of the sandbox.
    pub labels: BTreeMap<String, String>,
    /// The annotations of the sandbox.
    pub annotations: BTreeMap<String, String>,
    /// When the request arrived.
    pub started: Instant,
    /// When it ended, if it has.
    pub ended: Option<Instant>,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a pull ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has not ended.
    Running,
    /// The image is on the node.
    Succeeded,
    /// It was answered with an error.
    Failed,
    /// The caller left, or the runtime was stopped.
    Cancelled,
}

impl Call {
    pub(super) fn of(call: &PullCall) -> Self {
        Self {
            reference: call.name.clone(),
            username: call.credential.as_ref().map(|credential| credential.username.clone()),
            server_address: call.credential.as_ref().map(|credential| credential.server_address.clone()),
            labels: call.labels.clone(),
            annotations: call.annotations.clone(),
            started: Instant::now(),
            ended: None,
            outcome: Outcome::Running,
        }
    }
}
