//! One credential for one registry, in types that keep it out of texts: nothing here prints a secret, and memory is
//! wiped when a secret is dropped. Code that sends one over the wire has to call [`SecretText::reveal`].

use std::fmt;

use zeroize::Zeroizing;

/// What a registry accepts as proof of an account. Fields that do not apply are empty.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Credential {
    /// The name of the account.
    pub username: String,
    /// The password, or a token that the registry accepts in its place.
    pub password: SecretText,
    /// A token that the registry's token server exchanges for an access token.
    pub identity_token: SecretText,
    /// A token that is sent to the registry as it is.
    pub registry_token: SecretText,
    /// The host, with its port, that the credential is for. It is never sent to another host.
    pub server_address: String,
}

impl Credential {
    /// Whether it holds nothing that a registry could check.
    pub fn is_empty(&self) -> bool {
        self.username.is_empty() && self.secrets().all(SecretText::is_empty)
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretText> {
        [&self.password, &self.identity_token, &self.registry_token].into_iter()
    }
}

/// Shows the registry that the credential is for, and nothing of its content.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("server_address", &self.server_address).finish_non_exhaustive()
    }
}

/// A text that is never shown: not by `Debug`, not by `Display`, not even its length.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes the text over; its memory is wiped on drop.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself, for code that sends it to its registry.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_credential_shows_its_registry_only() {
        let credential = Credential {
            username: "robot".into(),
            password: SecretText::new("hunter2".into()),
            identity_token: SecretText::new("identity".into()),
            registry_token: SecretText::new("registry".into()),
            server_address: "ghcr.io".into(),
        };
        assert_eq!(format!("{credential:?}"), r#"Credential { server_address: "ghcr.io", .. }"#);
    }

    #[test]
    fn a_secret_text_looks_the_same_whatever_its_content() {
        for text in ["", "hunter2", "a much longer password"] {
            let secret = SecretText::new(text.into());
            assert_eq!(format!("{secret} {secret:?} {secret:#?}"), "[hidden] [hidden] [hidden]");
        }
    }
}
