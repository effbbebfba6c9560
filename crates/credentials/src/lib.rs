//! Registry credentials: where they come from, which image they are for, and how they are kept out of texts.

#![warn(missing_docs)]

pub mod credential;
pub mod docker_config;
pub mod excerpt;
pub mod interpreter;
pub mod keyring;
mod pattern;
pub mod plugin;
pub mod scrub;
pub mod source;

pub use credential::{Credential, SecretText};
pub use docker_config::DockerConfig;
pub use keyring::Keyring;
pub use plugin::Plugins;
pub use source::{Beneficiary, Chain, CredentialRequest, CredentialSource, Found, Party};
