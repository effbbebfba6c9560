//! Docker configs in Secrets of both types. They are decoded here and never passed on as they are: a runtime that finds
//! a malformed `auth` text repeats it, decoded, in its error.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::SecretText;
use crate::pattern::Pattern;

/// The largest config that is read, in bytes. A Secret cannot hold more.
pub const MAX_CONFIG_BYTES: usize = 1024 * 1024;
/// The most entries of one config.
pub const MAX_CONFIG_ENTRIES: usize = 1024;

/// docker writes padding, other tools leave it out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The credentials of one config by pattern, and what could not be used.
#[derive(Clone, Debug, Default)]
pub struct DockerConfig {
    pub(crate) logins: Vec<(Pattern, Login)>,
    /// Sentences about single entries, without their content.
    pub problems: Vec<String>,
}

/// The content of one entry, not yet tied to a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) username: HiddenName,
    pub(crate) password: SecretText,
    pub(crate) identity_token: SecretText,
    pub(crate) registry_token: SecretText,
}

/// A user name is hidden as well, because some registries use a token as one.
pub(crate) type HiddenName = SecretText;

/// Why a Secret's config cannot be used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Its type is neither of the two that hold docker configs.
    #[error(
        "its type is not {} or {}; create it with `kubectl create secret docker-registry`",
        Layout::Json.secret_type(),
        Layout::Legacy.secret_type()
    )]
    SecretType,
    /// The key that its type requires is missing.
    #[error("it has no key {0}")]
    NoKey(&'static str),
    /// More than [`MAX_CONFIG_BYTES`].
    #[error("its docker config has more than {MAX_CONFIG_BYTES} bytes")]
    Bytes,
    /// More than [`MAX_CONFIG_ENTRIES`].
    #[error("its docker config has more than {MAX_CONFIG_ENTRIES} entries")]
    Entries,
    /// Not JSON. The parser's own message is left out, because it repeats parts of the text.
    #[error("its docker config is not valid JSON at line {line}, column {column}")]
    Json {
        /// The line in which the parser stopped.
        line: usize,
        /// The column in that line.
        column: usize,
    },
}

/// The two forms in which Kubernetes keeps docker configs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `kubernetes.io/dockerconfigjson`: entries under `auths`.
    Json,
    /// `kubernetes.io/dockercfg`: entries at the top.
    Legacy,
}

impl Layout {
    /// The layout for a type of Secret.
    pub fn of_secret_type(secret_type: &str) -> Option<Self> {
        [Self::Json, Self::Legacy].into_iter().find(|layout| layout.secret_type() == secret_type)
    }

    /// The type of Secrets with this layout.
    pub const fn secret_type(self) -> &'static str {
        match self {
            Self::Json => "kubernetes.io/dockerconfigjson",
            Self::Legacy => "kubernetes.io/dockercfg",
        }
    }

    /// The key in the Secret's data.
    pub const fn data_key(self) -> &'static str {
        match self {
            Self::Json => ".dockerconfigjson",
            Self::Legacy => ".dockercfg",
        }
    }
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    auths: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default, alias = "Username")]
    username: Option<String>,
    #[serde(default, alias = "Password")]
    password: Option<String>,
    #[serde(default, alias = "Auth")]
    auth: Option<String>,
    #[serde(default, rename = "identitytoken", alias = "identityToken", alias = "IdentityToken")]
    identity_token: Option<String>,
    #[serde(default, rename = "registrytoken", alias = "registryToken", alias = "RegistryToken")]
    registry_token: Option<String>,
}

impl DockerConfig {
    /// Decodes one config. An entry that cannot be used is a problem and does not affect the others.
    pub fn decode(layout: Layout, bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_CONFIG_BYTES {
            return Err(DecodeError::Bytes);
        }
        let entries = parse(layout, bytes)
            .map_err(|error| DecodeError::Json { line: error.line(), column: error.column() })?;
        Self::from_entries(entries)
    }

    /// Reads entries that are parsed already.
    pub(crate) fn from_entries(entries: BTreeMap<String, Value>) -> Result<Self, DecodeError> {
        if entries.len() > MAX_CONFIG_ENTRIES {
            return Err(DecodeError::Entries);
        }
        let mut config = Self::default();
        for (number, (key, value)) in entries.into_iter().enumerate() {
            config.add(number + 1, &key, value);
        }
        Ok(config)
    }

    fn add(&mut self, number: usize, key: &str, value: Value) {
        let pattern = match Pattern::parse(key) {
            Ok(pattern) => pattern,
            Err(reason) => {
                return self.problems.push(format!("the key of entry {number} is not a registry: {reason}"));
            }
        };
        match Login::decode(value) {
            Ok(login) => self.logins.push((pattern, login)),
            Err(reason) => self.problems.push(format!("the entry for {} {reason}", pattern.text())),
        }
    }
}

fn parse(layout: Layout, bytes: &[u8]) -> serde_json::Result<BTreeMap<String, Value>> {
    match layout {
        Layout::Json => {
            serde_json::from_slice::<Document>(bytes).map(|found| found.auths.unwrap_or_default())
        }
        Layout::Legacy => {
            let mut entries: BTreeMap<String, Value> = serde_json::from_slice(bytes)?;
            // People put the newer form under the older type, and no registry is called `auths` (kruise T4).
            let is_nested =
                |auths: &Value| auths.as_object().is_some_and(|auths| auths.values().all(Value::is_object));
            if entries.get("auths").is_some_and(is_nested)
                && let Some(Value::Object(auths)) = entries.remove("auths")
            {
                entries.extend(auths);
            }
            Ok(entries)
        }
    }
}

impl Login {
    fn decode(value: Value) -> Result<Self, &'static str> {
        let entry: Entry = serde_json::from_value(value).map_err(|_| "is not an object of texts")?;
        let hidden = |text: Option<String>| SecretText::new(text.unwrap_or_default());
        let (username, password) = match entry.auth.filter(|text| !text.is_empty()) {
            // As in docker, `auth` takes precedence over the two plain fields.
            Some(auth) => decode_auth(&Zeroizing::new(auth))?,
            None => (hidden(entry.username), hidden(entry.password)),
        };
        let (identity_token, registry_token) = (hidden(entry.identity_token), hidden(entry.registry_token));
        // Beside an identity token, docker writes a placeholder as the name, and runtimes prefer a name to the token.
        let is_placeholder = password.is_empty() && !identity_token.is_empty();
        let username = if is_placeholder { HiddenName::default() } else { username };
        let login = Self { username, password, identity_token, registry_token };
        if login == Self::default() {
            return Err("is empty: docker keeps such a credential elsewhere, in a credential store");
        }
        Ok(login)
    }
}

/// Parses `user:password`. docker adds line ends within the text and zero bytes around the password.
fn decode_auth(auth: &str) -> Result<(HiddenName, SecretText), &'static str> {
    let compact: Zeroizing<String> =
        Zeroizing::new(auth.chars().filter(|c| !c.is_ascii_whitespace()).collect());
    let bytes = Zeroizing::new(BASE64.decode(&*compact).map_err(|_| "has an `auth` that is not base64")?);
    let text = std::str::from_utf8(&bytes).map_err(|_| "has an `auth` that is not UTF-8")?;
    let (username, password) = text.split_once(':').ok_or("has an `auth` that is not user:password")?;
    let hidden = |text: &str| SecretText::new(text.trim_matches('\0').to_owned());
    Ok((hidden(username), hidden(password)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(entry: &str) -> Result<Login, &'static str> {
        Login::decode(serde_json::from_str(entry).unwrap())
    }

    fn user(username: &str, password: &str) -> Login {
        Login {
            username: SecretText::new(username.into()),
            password: SecretText::new(password.into()),
            ..Login::default()
        }
    }

    /// ofen C82–C84
    #[test]
    fn an_auth_text_is_read_with_and_without_padding_line_ends_and_zero_bytes() {
        for auth in
            ["Zm9vOmJhcg==", "Zm9vOmJhcg", r"Zm9vOm\nJhcg==\n", r"Zm9vOmJhcg==\r\n", "Zm9vOmJhcgAAAA=="]
        {
            assert_eq!(login(&format!(r#"{{"auth":"{auth}"}}"#)), Ok(user("foo", "bar")), "{auth}");
        }
        assert_eq!(
            login(r#"{"auth":"Zm9vOmI6YTpy"}"#),
            Ok(user("foo", "b:a:r")),
            "a password may have colons"
        );
        assert_eq!(login(r#"{"auth":"Zm9vOg=="}"#), Ok(user("foo", "")), "and be empty");
    }

    #[test]
    fn the_newer_form_is_read_under_the_older_type_too() {
        let entry = r#"{"username":"a","password":"b"}"#;
        for text in
            [format!(r#"{{"auths":{{"reg.example":{entry}}}}}"#), format!(r#"{{"reg.example":{entry}}}"#)]
        {
            let config = DockerConfig::decode(Layout::Legacy, text.as_bytes()).unwrap();
            let logins: Vec<&Login> = config.logins.iter().map(|(_, login)| login).collect();
            assert_eq!((logins, config.problems.len()), (vec![&user("a", "b")], 0), "{text}");
        }
    }

    #[test]
    fn the_plain_fields_are_used_only_without_an_auth_text() {
        assert_eq!(login(r#"{"username":"a","password":"b","email":"c"}"#), Ok(user("a", "b")));
        assert_eq!(login(r#"{"username":"a","password":"b","auth":"Zm9vOmJhcg=="}"#), Ok(user("foo", "bar")));
        assert_eq!(login(r#"{"username":"a","password":"b","auth":""}"#), Ok(user("a", "b")));
    }

    #[test]
    fn identity_and_registry_tokens_are_kept() {
        let expected = Login {
            identity_token: SecretText::new("i".into()),
            registry_token: SecretText::new("r".into()),
            ..Login::default()
        };
        assert_eq!(login(r#"{"identitytoken":"i","registrytoken":"r"}"#), Ok(expected.clone()));
        let with_placeholder = r#"{"auth":"MDAwMDAwMDA6","identitytoken":"i","registrytoken":"r"}"#;
        assert_eq!(login(with_placeholder), Ok(expected), "the name beside the token is dropped");
    }

    #[test]
    fn a_problem_names_the_registry_and_nothing_of_the_entry() {
        let config = br#"{"auths":{
            "a.example":{"auth":"hunter2hunter2!"}, "b.example":{"auth":"aHVudGVyMg=="},
            "c.example":{"password":["hunter2"]}, "d.example":"hunter2", "e.example":{},
            "hunter 2":{"auth":"Zm9vOmJhcg=="}, "ok.example":{"auth":"Zm9vOmJhcg=="}}}"#;
        let config = DockerConfig::decode(Layout::Json, config).unwrap();
        assert_eq!(config.logins, [(Pattern::parse("ok.example").unwrap(), user("foo", "bar"))]);
        assert_eq!(
            config.problems,
            [
                "the entry for a.example has an `auth` that is not base64",
                "the entry for b.example has an `auth` that is not user:password",
                "the entry for c.example is not an object of texts",
                "the entry for d.example is not an object of texts",
                "the entry for e.example is empty: docker keeps such a credential elsewhere, in a credential store",
                "the key of entry 6 is not a registry: its host has characters that a host cannot have",
            ]
        );
    }

    #[test]
    fn both_layouts_are_read_and_anything_else_is_refused_with_its_place() {
        let legacy = br#"{"a.example":{"auth":"Zm9vOmJhcg=="}}"#;
        assert_eq!(DockerConfig::decode(Layout::Legacy, legacy).unwrap().logins.len(), 1);
        assert_eq!(DockerConfig::decode(Layout::Json, b"{}").unwrap().logins.len(), 0);
        assert_eq!(DockerConfig::decode(Layout::Json, br#"{"auths":null}"#).unwrap().logins.len(), 0);
        let refused = DockerConfig::decode(Layout::Json, b"{\"auths\":\n\"hunter2\"}").unwrap_err();
        assert_eq!(refused.to_string(), "its docker config is not valid JSON at line 2, column 9");
    }

    #[test]
    fn a_config_has_bounds() {
        let large = vec![b' '; MAX_CONFIG_BYTES + 1];
        assert_eq!(DockerConfig::decode(Layout::Json, &large).unwrap_err(), DecodeError::Bytes);
        let entries: Vec<_> = (0..=MAX_CONFIG_ENTRIES).map(|n| format!(r#""h{n}":{{}}"#)).collect();
        let many = format!("{{{}}}", entries.join(","));
        assert_eq!(DockerConfig::decode(Layout::Legacy, many.as_bytes()).unwrap_err(), DecodeError::Entries);
    }
}
