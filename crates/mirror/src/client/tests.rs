//! Mirrors on loopback, with real sockets. Time stands still unless a test moves it, so nothing depends on speed.

use std::collections::BTreeSet;
use std::fs;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use futures::{join, poll};
use prewarm_api::kruise::FailureClass;

use super::*;
use crate::hosts::Settings;
use mirror::{Mirror, Reply, Seen};

mod blobs;
mod manifests;
mod mirror;
mod redirects;
mod secure;

const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(10),
    answer: Duration::from_secs(30),
    stall: Duration::from_secs(20),
    manifest: Duration::from_mins(1),
};

/// The mirrors of a node, and time that stands still while it exists.
struct Node {
    directory: tempfile::TempDir,
    _still: Sender<()>,
}

impl Node {
    fn new() -> Self {
        tokio::time::pause();
        // tokio moves paused time by itself when nothing but sockets is waited for, unless a blocking task runs.
        let (still, end) = mpsc::channel();
        tokio::task::spawn_blocking(move || end.recv());
        Self { directory: tempfile::tempdir().unwrap(), _still: still }
    }

    /// Mirrors for `docker.io` with a file of these tables.
    fn mirrors(&self, tables: &str) -> Mirrors {
        let directory = self.directory.path().join("docker.io");
        fs::create_dir_all(&directory).unwrap();
        let server = "server = \"https://registry-1.docker.io\"";
        fs::write(directory.join("hosts.toml"), format!("{server}\n{tables}")).unwrap();
        let roots = vec![self.directory.path().to_owned()];
        let hosts = Hosts::read(&Settings { roots, shares_network: true }, "docker.io");
        assert_eq!(hosts.problems, [], "{}", hosts.why_none());
        Mirrors::new(hosts, PATIENCE)
    }

    /// Mirrors without anything special.
    fn plain(&self, mirrors: &[&Mirror]) -> Mirrors {
        let tables: Vec<String> = mirrors.iter().map(|mirror| table(mirror, "")).collect();
        self.mirrors(&tables.concat())
    }
}

fn table(mirror: &Mirror, lines: &str) -> String {
    format!("[host.\"{}\"]\n{lines}\n", mirror.http())
}

/// Asks for a tag, after each of these mirrors was asked and took too long to answer.
async fn past_silence(mirrors: &Mirrors, silent: &[&Mirror]) -> Result<Found, FetchError> {
    let passing = async {
        for mirror in silent {
            mirror.asked().await;
            tokio::time::advance(PATIENCE.answer + Duration::from_millis(1)).await;
        }
    };
    join!(mirrors.manifest("library/nginx", Wanted::Tag("v1")), passing).0
}

fn failures(error: &FetchError) -> Vec<Failure> {
    match error {
        FetchError::Failed { tried, .. } => tried.iter().map(|one| one.failure.clone()).collect(),
        other => panic!("{other}"),
    }
}

/// Content that differs everywhere, so that nothing is right by accident.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()[0]).collect()
}

fn descriptor(content: &[u8]) -> Descriptor {
    Descriptor {
        media_type: "application/vnd.oci.image.layer.v1.tar".into(),
        digest: Digest::of(content),
        size: content.len() as u64,
        platform: None,
    }
}
