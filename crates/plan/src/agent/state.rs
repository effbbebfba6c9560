//! How far a task is, in the node's own words. Adapters make statuses of it and read it back from them.

use jiff::Timestamp;
use prewarm_api::kruise::FailureClass;
use prewarm_api::names::message::{NODE_SILENT, TASK_DEADLINE};

use super::message;
use super::wait::WaitReason;
use crate::object::ImageKey;

/// Where a task is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its first attempt has not begun.
    Waiting,
    /// It is being pulled, or waits between two attempts.
    Pulling,
    /// The image is on the node.
    Succeeded,
    /// It was given up.
    Failed,
}

/// How far a pull is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// What has arrived.
    pub done: u64,
    /// What the image has in all.
    pub total: u64,
}

impl Bytes {
    /// Whether everything has arrived, so that what is left of a pull is to unpack it.
    pub fn are_complete(self) -> bool {
        self.done == self.total
    }
}

/// What is said of a task besides its phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Why it waits.
    Wait(WaitReason),
    /// All of it has arrived, and the runtime unpacks it.
    Unpacking,
    /// Its time was used up.
    Deadline,
    /// The controller wrote this while the node did not answer (kruise R16).
    Silence,
    /// How the last attempt failed, or a sentence of an earlier agent.
    Text(String),
}

impl Note {
    /// The note as a status has it.
    pub fn message(&self) -> String {
        match self {
            Self::Wait(reason) => reason.message(),
            Self::Unpacking => "unpacking: all of it has arrived".to_owned(),
            Self::Deadline => TASK_DEADLINE.to_owned(),
            Self::Silence => NODE_SILENT.to_owned(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// How a pull ended for one owner of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerResult {
    /// The owner's UID.
    pub uid: String,
    /// Why the result does not count for it; nothing if it does.
    pub refusal: Option<Refusal>,
}

/// Why a result does not count for an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of failure it was.
    pub class: FailureClass,
    /// A sentence for this owner and nobody else.
    pub message: String,
}

impl Refusal {
    /// The sentence has what the runtime said, what was wrong with credentials on the way, and advice.
    pub fn new(
        reference: &str,
        class: FailureClass,
        text: &str,
        credentials: &[String],
        advice: &str,
    ) -> Self {
        let failure = message::Failure { reference, class, text, begun: 1, allowed: 1, credentials, advice };
        Self { class, message: message::sentence(&failure) }
    }
}

/// How far the task of one entry is.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    /// Its entry.
    pub key: ImageKey,
    /// The round that this is the state of.
    pub version: i64,
    /// Where it is.
    pub phase: Phase,
    /// How much of the image has arrived.
    pub percent: u8,
    /// The same in bytes, if the runtime reports it.
    pub bytes: Option<Bytes>,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Name and id of the image on the node.
    pub image_id: Option<String>,
    /// The digest that the name stands for on the node, if the runtime tells.
    pub digest: Option<String>,
    /// What else is said of it.
    pub note: Option<Note>,
    /// What kind of failure the last one was.
    pub class: Option<FailureClass>,
    /// How many attempts failed.
    pub failed_attempts: u32,
    /// How many times the runtime stopped during an attempt.
    pub interruptions: u32,
    /// When the image was found removed from the node.
    pub lost_at: Option<Timestamp>,
    /// How it ended for each owner, if it did not end alike for whoever asks.
    pub results: Option<Vec<OwnerResult>>,
}

impl TaskState {
    /// The state of a task of which nothing is known but where it is.
    pub fn new(key: ImageKey, version: i64, phase: Phase) -> Self {
        Self {
            key,
            version,
            phase,
            percent: 0,
            bytes: None,
            started_at: None,
            completed_at: None,
            image_id: None,
            digest: None,
            note: None,
            class: None,
            failed_attempts: 0,
            interruptions: 0,
            lost_at: None,
            results: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_has_the_text_that_clients_look_for() {
        assert_eq!(Note::Deadline.message(), "pulling exceeds the activeDeadlineSeconds");
        assert_eq!(Note::Unpacking.message(), "unpacking: all of it has arrived");
        assert_eq!(Note::Silence.message(), NODE_SILENT);
        assert_eq!(Note::Wait(WaitReason::RuntimeGone).message(), WaitReason::RuntimeGone.message());
    }
}
