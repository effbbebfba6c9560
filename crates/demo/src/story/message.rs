//! What a story says while it is played.

/// One thing that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A scene begins: this is what it is about.
    Title(String),
    /// Something happens.
    Said(String),
    /// A scene has ended as announced.
    Ended(String),
}
