//! What can be told: on which object, of what kind, in which words.

use k8s_openapi::api::core::v1::ObjectReference;

/// Something that happened on an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// The object.
    pub about: ObjectReference,
    /// Of what kind it is.
    pub reason: Reason,
    /// A sentence for people.
    pub note: String,
}

/// Of what kind a happening is. Happenings on one object that differ in this are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    /// Whether somebody should look.
    pub severity: Severity,
    /// The event's reason, from `prewarm_api::names::event`.
    pub text: &'static str,
    /// What tells happenings with the same reason apart, such as the class of a failure. It is not in the event.
    pub class: Option<&'static str>,
}

/// Whether somebody should look: the type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// All is as it should be.
    Normal,
    /// Something is wrong.
    Warning,
}

impl Reason {
    /// A reason that worries nobody.
    pub const fn normal(text: &'static str) -> Self {
        Self { severity: Severity::Normal, text, class: None }
    }

    /// A reason to look.
    pub const fn warning(text: &'static str) -> Self {
        Self { severity: Severity::Warning, text, class: None }
    }

    /// The same reason, told apart from those of other classes.
    #[must_use]
    pub const fn of_class(self, class: &'static str) -> Self {
        Self { class: Some(class), ..self }
    }
}

impl Severity {
    /// The event's type, as the API has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
