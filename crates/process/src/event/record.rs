//! An event as the program records it: on which object, for which reason, in which words.

use k8s_openapi::api::core::v1::ObjectReference;

/// Something that happened on an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub about: ObjectReference,
    pub reason: Reason,
    /// A sentence for people.
    pub note: String,
}

/// Why an event is recorded. Events on one object are written together only if they agree in all of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    pub severity: Severity,
    /// The reason on the wire, from `prewarm_api::names::event`.
    pub text: &'static str,
    /// What separates events with the same reason, such as the class of a failure. It is not written.
    pub class: Option<&'static str>,
}

/// The type of an event: whether somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Normal,
    Warning,
}

impl Reason {
    /// The reason of an event that needs no attention.
    pub const fn normal(text: &'static str) -> Self {
        Self { severity: Severity::Normal, text, class: None }
    }

    /// The reason of an event that somebody should look at.
    pub const fn warning(text: &'static str) -> Self {
        Self { severity: Severity::Warning, text, class: None }
    }

    /// The same reason, kept separate from those of other classes.
    #[must_use]
    pub const fn of_class(self, class: &'static str) -> Self {
        Self { class: Some(class), ..self }
    }
}

impl Severity {
    /// The name of the type on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
