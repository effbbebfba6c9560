//! Kubelet's `CredentialProviderConfig`: which plugins there are, for which images, and how they are started.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::duration;
use super::fields::Fields;
use crate::SecretText;
use crate::pattern::Pattern;

/// The largest config file, in bytes.
pub(super) const MAX_FILE_BYTES: usize = 1024 * 1024;
/// The most plugins.
const MAX_PROVIDERS: usize = 32;
/// The most patterns of one plugin.
const MAX_PATTERNS: usize = 256;
/// The most complaints that are reported together.
const MAX_COMPLAINTS: usize = 16;

const KIND: &str = "CredentialProviderConfig";
const CONFIG_VERSIONS: [&str; 3] =
    ["kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1"];
const PLUGIN_VERSIONS: [&str; 3] = [
    "credentialprovider.kubelet.k8s.io/v1",
    "credentialprovider.kubelet.k8s.io/v1beta1",
    "credentialprovider.kubelet.k8s.io/v1alpha1",
];

const TOKENS_REFUSED: &str = "asks for tokens of a pod's service account, but images are pulled here before \
                              there is a pod; leave this plugin out, or give it another way to log in";

/// One plugin, as the config describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) match_images: Vec<Pattern>,
    pub(super) default_cache_duration: Duration,
    pub(super) api_version: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, SecretText)>,
}

/// Reads the config, in YAML or JSON, or returns everything that is wrong with it. Each complaint starts with a field's
/// path.
pub(super) fn parse(text: &str) -> Result<Vec<Provider>, Vec<String>> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| {
        // The parser's own message repeats parts of the text.
        let place = error.location().map_or(String::new(), |at| format!(" at line {}", at.line()));
        vec![format!("it is neither YAML nor JSON{place}")]
    })?;
    let mut complaints = Vec::new();
    let providers = read_document(value, &mut complaints);
    if complaints.is_empty() {
        return Ok(providers);
    }
    complaints.truncate(MAX_COMPLAINTS);
    Err(complaints)
}

fn read_document(value: Value, complaints: &mut Vec<String>) -> Vec<Provider> {
    let mut document = Fields::new(value, "", complaints);
    expect_one_of(&mut document, "apiVersion", &CONFIG_VERSIONS);
    expect_one_of(&mut document, "kind", &[KIND]);
    let list = document.list("providers");
    if list.is_empty() || list.len() > MAX_PROVIDERS {
        document.complain("providers", &format!("must name 1 to {MAX_PROVIDERS} plugins"));
    }
    let (mut providers, mut names) = (Vec::new(), BTreeSet::new());
    for (index, value) in list.into_iter().take(MAX_PROVIDERS).enumerate() {
        let mut fields = document.item("providers", index, value);
        let provider = read_provider(&mut fields);
        if !provider.name.is_empty() && !names.insert(provider.name.clone()) {
            fields.complain("name", "is the name of an earlier plugin");
        }
        fields.finish();
        providers.push(provider);
    }
    document.finish();
    providers
}

fn read_provider(fields: &mut Fields<'_>) -> Provider {
    fields.refuse("tokenAttributes", TOKENS_REFUSED);
    Provider {
        name: read_name(fields),
        match_images: read_patterns(fields),
        default_cache_duration: read_duration(fields),
        api_version: expect_one_of(fields, "apiVersion", &PLUGIN_VERSIONS),
        args: fields.texts("args"),
        env: read_env(fields),
    }
}

/// A name is joined with the plugins' folder, so it must not lead out of it.
fn read_name(fields: &mut Fields<'_>) -> String {
    let name = fields.text("name");
    let is_path = name.contains(['/', '\\', '\0']) || name == "." || name == "..";
    if is_path || name.contains(char::is_whitespace) {
        fields
            .complain("name", "must be the name of a file in the plugin folder, without slashes and spaces");
    }
    name
}

fn read_patterns(fields: &mut Fields<'_>) -> Vec<Pattern> {
    let texts = fields.texts("matchImages");
    if texts.is_empty() || texts.len() > MAX_PATTERNS {
        fields.complain(
            "matchImages",
            &format!("must have 1 to {MAX_PATTERNS} patterns, such as *.example.com"),
        );
    }
    let mut patterns = Vec::new();
    for (index, text) in texts.iter().take(MAX_PATTERNS).enumerate() {
        match Pattern::parse(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(reason) => {
                fields.complain(&format!("matchImages[{index}]"), &format!("is not a registry: {reason}"));
            }
        }
    }
    patterns
}

fn read_duration(fields: &mut Fields<'_>) -> Duration {
    let text = fields.text("defaultCacheDuration");
    duration::parse(&text).unwrap_or_else(|| {
        if !text.is_empty() {
            fields.complain("defaultCacheDuration", "must be a duration such as 12h, 30m or 0s");
        }
        Duration::ZERO
    })
}

fn read_env(fields: &mut Fields<'_>) -> Vec<(String, SecretText)> {
    let mut env = Vec::new();
    for (index, value) in fields.list("env").into_iter().enumerate() {
        let mut variable = fields.item("env", index, value);
        let name = variable.text("name");
        if name.contains(['=', '\0']) {
            variable.complain("name", "must not have an equals sign");
        }
        env.push((name, SecretText::new(variable.optional_text("value"))));
        variable.finish();
    }
    env
}

fn expect_one_of(fields: &mut Fields<'_>, name: &str, allowed: &[&str]) -> String {
    let text = fields.text(name);
    if !text.is_empty() && !allowed.contains(&text.as_str()) {
        fields.complain(name, &format!("must be {}", allowed.join(" or ")));
    }
    text
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
