//! Prepares a runtime's text for a message: no credentials, one line, not too long.
//!
//! Runtimes repeat what registries and proxies answered, including headers and signed addresses, and some repeat what
//! they were given. Credentials are removed before the text is cut: half a password would not be recognised.

use std::error::Error as _;

use prewarm_api::text::{cut, plain, with_causes};
use prewarm_credentials::Credential;
use prewarm_credentials::scrub::scrub;
use tonic::Status;

/// The longest text that is kept of one failure, in bytes.
pub const MAX_TEXT: usize = 1024;

/// One line of at most [`MAX_TEXT`] bytes, without these credentials and without anything that looks like one.
pub fn text(text: &str, credentials: &[Credential]) -> String {
    cut(&plain(&scrub(text, credentials)), MAX_TEXT)
}

/// The text of a status. If this side made it, the cause is in its sources.
pub fn status(status: &Status, credentials: &[Credential]) -> String {
    text(&whole(status), credentials)
}

/// The message and the causes, each once.
pub fn whole(status: &Status) -> String {
    with_causes(status.message(), status.source())
}

#[cfg(test)]
mod tests {
    use prewarm_credentials::SecretText;

    use super::*;

    #[test]
    fn credentials_are_removed_by_value_and_by_shape() {
        let credential = Credential {
            username: "robot".into(),
            password: SecretText::new("hunter2-correct-horse".into()),
            ..Credential::default()
        };
        let answer = "auth hunter2-correct-horse: Get \"https://ann:battery-staple@reg.example/v2/\": EOF";
        let kept = text(answer, &[credential]);
        assert!(!kept.contains("hunter2") && !kept.contains("battery"), "{kept}");
        assert!(kept.contains("reg.example/v2/") && kept.ends_with("EOF"), "{kept}");
    }

    #[test]
    fn an_ordinary_text_stays_as_it_is() {
        for answer in [
            "failed to pull and unpack image \"reg.example:5000/a/b:v1\": not found",
            "failed to authorize: failed to fetch anonymous token: unexpected status: 403 Forbidden",
            "unauthorized: authentication required",
        ] {
            assert_eq!(text(answer, &[]), answer);
        }
    }

    #[test]
    fn a_long_text_keeps_its_start_and_its_cause() {
        let long = format!("start{}cause", "ü".repeat(5000));
        let kept = text(&long, &[]);
        assert!(kept.len() <= MAX_TEXT, "{}", kept.len());
        assert!(kept.starts_with("start") && kept.ends_with("cause"));
    }
}
