//! The requests and answers of plugins: kubelet's `credentialprovider.kubelet.k8s.io` API.

use std::collections::BTreeMap;
use std::time::Duration;

use prewarm_api::reference::ImageRef;
use serde::Deserialize;
use serde_json::{Value, json};

use super::config::Provider;
use super::duration;
use crate::DockerConfig;

const RESPONSE_KIND: &str = "CredentialProviderResponse";

/// Which images a plugin's answer is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Scope {
    Image,
    Registry,
    Global,
}

/// A key in the cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Image(String),
    Registry(String),
    Global,
}

impl Scope {
    pub(super) fn key(self, image: &ImageRef) -> Key {
        match self {
            Self::Image => Key::Image(bare_name(image)),
            Self::Registry => Key::Registry(image.registry().to_owned()),
            Self::Global => Key::Global,
        }
    }
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) config: DockerConfig,
    pub(super) scope: Scope,
    pub(super) keep: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    api_version: String,
    kind: String,
    cache_key_type: Scope,
    #[serde(default)]
    cache_duration: Option<String>,
    #[serde(default)]
    auth: Option<BTreeMap<String, Value>>,
}

/// Why an answer is not used. Nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("its answer is not a CredentialProviderResponse in JSON, at line {line}, column {column}")]
    Json { line: usize, column: usize },
    #[error("its answer has another apiVersion than the config gives for it")]
    Version,
    #[error("its answer is not a CredentialProviderResponse")]
    Kind,
    #[error("its answer has a cacheDuration that is no duration")]
    Duration,
    #[error("its answer cannot be used: {0}")]
    Config(crate::docker_config::DecodeError),
}

/// The image as plugins are asked for it: with its registry, without tag and digest.
pub(super) fn bare_name(image: &ImageRef) -> String {
    format!("{}/{}", image.registry(), image.repository())
}

pub(super) fn request(provider: &Provider, image: &ImageRef) -> Vec<u8> {
    let request = json!({
        "apiVersion": provider.api_version,
        "kind": "CredentialProviderRequest",
        "image": bare_name(image),
    });
    request.to_string().into_bytes()
}

pub(super) fn decode(provider: &Provider, bytes: &[u8]) -> Result<Answer, AnswerError> {
    let response: Response = serde_json::from_slice(bytes)
        .map_err(|error| AnswerError::Json { line: error.line(), column: error.column() })?;
    if response.kind != RESPONSE_KIND {
        return Err(AnswerError::Kind);
    }
    if response.api_version != provider.api_version {
        return Err(AnswerError::Version);
    }
    let keep = match &response.cache_duration {
        Some(text) => duration::parse(text).ok_or(AnswerError::Duration)?,
        None => provider.default_cache_duration,
    };
    let config =
        DockerConfig::from_entries(response.auth.unwrap_or_default()).map_err(AnswerError::Config)?;
    Ok(Answer { config, scope: response.cache_key_type, keep })
}
