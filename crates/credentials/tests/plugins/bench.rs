//! A folder with one plugin. The plugin is the shell with a script as its argument, because a file that has just been
//! written cannot always be run: another test may be starting a process at that moment.

use std::path::PathBuf;
use std::time::Duration;

use prewarm_credentials::{CredentialRequest, CredentialSource, Found, Plugins};
use tempfile::TempDir;

/// An answer that is valid for the registry for an hour.
pub const RESPONSE: &str = r#"{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse","cacheKeyType":"Registry","cacheDuration":"1h","auth":{"reg.example":{"username":"robot","password":"hunter2"}}}"#;

pub struct Bench {
    folder: TempDir,
}

impl Bench {
    /// A plugin that runs `script` in the folder.
    pub fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.path().join("plugin")).unwrap();
        let script = serde_json::json!(format!("cd {}; {script}", folder.path().display()));
        let config = format!(
            "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: plugin\n  \
             matchImages: [reg.example, reg2.example]\n  defaultCacheDuration: 10m\n  \
             apiVersion: credentialprovider.kubelet.k8s.io/v1\n  args: ['-c', {script}]\n  \
             env: [{{name: GREETING, value: hello world}}]\n"
        );
        std::fs::write(folder.path().join("config.yaml"), config).unwrap();
        Self { folder }
    }

    pub fn plugins(&self) -> Plugins {
        self.plugins_within(Duration::from_mins(1))
    }

    pub fn plugins_within(&self, time_limit: Duration) -> Plugins {
        Plugins::load(&self.path("config.yaml"), &self.path(""), time_limit).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn lines(&self, name: &str) -> usize {
        self.read(name).lines().count()
    }
}

pub async fn ask(source: &dyn CredentialSource, image: &str) -> Found {
    let request = CredentialRequest {
        image: image.parse().unwrap(),
        secrets: vec![],
        beneficiaries: vec![prewarm_credentials::Beneficiary::Person],
    };
    source.credentials(&request).await
}
