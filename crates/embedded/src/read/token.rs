//! Continue tokens: where the next page starts. They look like those of a real server, which are opaque to clients too.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::store::Key;

/// The only version of tokens.
const VERSION: &str = "meta.k8s.io/v1";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The revision that all pages show; none for a client that lost it and accepts the current state.
    pub revision: Option<u64>,
    /// The last object of the page before.
    pub after: Key,
}

impl Token {
    pub(super) fn encode(&self, namespace: Option<&str>) -> String {
        let Key { namespace: own, name } = &self.after;
        let start = match namespace {
            _ if own.is_empty() => format!("{name}\0"),
            Some(_) => format!("/{name}\0"),
            None => format!("/{own}/{name}\0"),
        };
        let revision = self.revision.map_or(json!(-1), |revision| json!(revision));
        URL_SAFE_NO_PAD.encode(json!({ "v": VERSION, "rv": revision, "start": start }).to_string())
    }

    pub(super) fn decode(token: &str, namespace: Option<&str>) -> Result<Self, String> {
        let fault = |why: &str| format!("continue key is not valid: {why}");
        let text =
            URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).map_err(|error| fault(&error.to_string()))?;
        let value: Value = serde_json::from_slice(&text).map_err(|error| fault(&error.to_string()))?;
        let version = value["v"].as_str().unwrap_or_default();
        if version != VERSION {
            return Err(fault(&format!("server does not recognize this encoded version {version}")));
        }
        let revision = match value["rv"].as_i64() {
            None | Some(0) => {
                return Err(fault(&format!("incorrect encoded start resourceVersion (version {VERSION})")));
            }
            Some(revision) => u64::try_from(revision).ok(),
        };
        let start = value["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(fault(&format!("empty start key (version {VERSION})")));
        }
        let start = start.trim_start_matches('/').trim_end_matches('\0');
        let after = match (namespace, start.split_once('/')) {
            (Some(namespace), _) => Key { namespace: namespace.to_owned(), name: start.to_owned() },
            (None, Some((namespace, name))) => Key { namespace: namespace.to_owned(), name: name.to_owned() },
            (None, None) => Key { namespace: String::new(), name: start.to_owned() },
        };
        Ok(Self { revision, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_encoding_and_decoding() {
        let key =
            |namespace: &str, name: &str| Key { namespace: namespace.to_owned(), name: name.to_owned() };
        for (namespace, after) in
            [(Some("a"), key("a", "x.y")), (None, key("a", "x")), (None, key("", "node"))]
        {
            let token = Token { revision: Some(7), after };
            assert_eq!(Token::decode(&token.encode(namespace), namespace).as_ref(), Ok(&token));
        }
    }
}
