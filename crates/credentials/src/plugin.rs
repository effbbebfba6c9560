//! Kubelet's credential provider plugins: programs that answer with credentials for an image, as cloud registries need
//! them. The same config file and the same programs serve kubelet and the agent.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};

use crate::Keyring;
use crate::source::{CredentialRequest, CredentialSource, Found};
use config::MAX_FILE_BYTES;
use flight::Plugin;

mod cache;
mod config;
mod duration;
mod exec;
mod fields;
mod flight;
mod response;

/// A plugin that has not answered after this time is stopped, unless another limit is set.
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(30);

/// All plugins of a config, as a source of credentials.
pub struct Plugins {
    plugins: Vec<Plugin>,
}

/// Why plugins cannot be used. Each error says which file to look at.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The config file cannot be read.
    #[error("cannot read the credential provider config {}", file.display())]
    ReadConfig {
        /// The config file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The config file has invalid contents.
    #[error("cannot use the credential provider config {}: {}", file.display(), complaints.join("; "))]
    InvalidConfig {
        /// The config file.
        file: PathBuf,
        /// What is wrong, each with the path of its field.
        complaints: Vec<String>,
    },
    /// A plugin of the config is not in the folder.
    #[error("cannot find the credential plugin {}, which the config names", program.display())]
    FindPlugin {
        /// The file that was expected.
        program: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A plugin of the config cannot be run.
    #[error("the credential plugin {} is not an executable file", program.display())]
    NotExecutable {
        /// The file that cannot be run.
        program: PathBuf,
    },
}

impl Plugins {
    /// Reads the config and finds its plugins in the folder. Nothing is run before the first image needs it.
    pub fn load(config_file: &Path, folder: &Path, time_limit: Duration) -> Result<Self, LoadError> {
        let text = read_bounded(config_file)
            .map_err(|source| LoadError::ReadConfig { file: config_file.to_owned(), source })?;
        let providers = config::parse(&text)
            .map_err(|complaints| LoadError::InvalidConfig { file: config_file.to_owned(), complaints })?;
        let mut plugins = Vec::new();
        for provider in providers {
            let program = folder.join(&provider.name);
            check_program(&program)?;
            plugins.push(Plugin::new(provider, program, time_limit));
        }
        Ok(Self { plugins })
    }
}

impl CredentialSource for Plugins {
    /// The fingerprint stays the same: tokens of plugins change with every run, and that is not a change of the
    /// credentials.
    fn credentials<'a>(&'a self, request: &'a CredentialRequest) -> BoxFuture<'a, Found> {
        let fitting = self.plugins.iter().filter(|plugin| plugin.is_for(&request.image));
        let answers = join_all(fitting.map(|plugin| plugin.answer(&request.image)));
        answers.map(|answers| join(answers, request)).boxed()
    }

    fn name(&self) -> &'static str {
        "plugins"
    }
}

fn join(answers: Vec<Result<Arc<response::Answer>, Arc<str>>>, request: &CredentialRequest) -> Found {
    let (mut keyring, mut problems) = (Keyring::default(), Vec::new());
    for answer in answers {
        match answer {
            Ok(answer) => problems.extend(keyring.add(answer.config.clone())),
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    Found { credentials: keyring.matching(&request.image), problems, ..Found::default() }
}

fn read_bounded(file: &Path) -> std::io::Result<String> {
    let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
    let mut text = String::new();
    std::fs::File::open(file)?.take(limit + 1).read_to_string(&mut text)?;
    if text.len() > MAX_FILE_BYTES {
        return Err(std::io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

fn check_program(program: &Path) -> Result<(), LoadError> {
    const ANY_EXECUTE: u32 = 0o111;
    let found = std::fs::metadata(program)
        .map_err(|source| LoadError::FindPlugin { program: program.to_owned(), source })?;
    if found.is_file() && found.permissions().mode() & ANY_EXECUTE != 0 {
        return Ok(());
    }
    Err(LoadError::NotExecutable { program: program.to_owned() })
}
