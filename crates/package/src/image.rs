//! The image: the program, what it needs to look up names and to check certificates, and nothing else.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use prewarm_credentials::interpreter;
use prewarm_image::{Artifact, File, assemble, index_of, of_files};
use serde_json::{Value, json};

use crate::roots;

/// Whoever runs in it, as the manifests have it.
const USER: u32 = 65532;
const REPOSITORY: &str = "ghcr.io/prewarm/prewarm";
/// Where the Go and Rust libraries of this field look first.
const ROOTS: &str = "etc/ssl/certs/ca-certificates.crt";

/// A program that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The processor that it is for, in Go's words.
    pub architecture: String,
    /// The same in those of the compiler.
    pub target: String,
    pub path: PathBuf,
}

/// Where it comes from.
pub struct Origin {
    pub revision: String,
    /// In seconds since 1970.
    pub time: u64,
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '=');
        let (Some(architecture), Some(target), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(format!("{text:?} is no ARCHITECTURE=TARGET=PATH"));
        };
        Ok(Self { architecture: architecture.to_owned(), target: target.to_owned(), path: path.into() })
    }
}

impl Origin {
    /// The time as labels and documents have it.
    pub fn created(&self) -> anyhow::Result<String> {
        let seconds = i64::try_from(self.time).context("a time of a commit")?;
        Ok(Timestamp::from_second(seconds).context("a time of a commit")?.to_string())
    }
}

/// The name of this version's image, by default.
pub fn reference() -> String {
    format!("{REPOSITORY}:{}", env!("CARGO_PKG_VERSION"))
}

/// Makes the index of an image for each program.
pub fn build(programs: &[Program], origin: &Origin) -> anyhow::Result<Artifact> {
    let created = origin.created()?;
    let image = |program: &Program| {
        let path = &program.path;
        let content = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let needed = interpreter::of_file(path).with_context(|| format!("reading {}", path.display()))?;
        ensure!(needed.is_none(), "{} needs {needed:?}; the image has no libraries", path.display());
        let layer = of_files(&files(content), origin.time);
        let config = config(origin, &created);
        anyhow::Ok((
            program.architecture.clone(),
            assemble(&program.architecture, Some(&created), &config, vec![layer]),
        ))
    };
    Ok(index_of(programs.iter().map(image).collect::<Result<_, _>>()?))
}

fn files(program: Vec<u8>) -> Vec<File> {
    let text = |path: &str, content: String| File {
        path: path.to_owned(),
        content: content.into_bytes(),
        is_executable: false,
    };
    vec![
        text("etc/group", format!("root:x:0:\nprewarm:x:{USER}:\n")),
        // The C library asks it where to look a name up.
        text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
        text(
            "etc/passwd",
            format!("root:x:0:0::/:/sbin/nologin\nprewarm:x:{USER}:{USER}::/:/sbin/nologin\n"),
        ),
        text(ROOTS, roots::to_pem()),
        File { path: "prewarm".to_owned(), content: program, is_executable: true },
    ]
}

fn config(origin: &Origin, created: &str) -> Value {
    json!({
        "Entrypoint": ["/prewarm"],
        "Labels": {
            "org.opencontainers.image.created": created,
            "org.opencontainers.image.description": "Puts container images on Kubernetes nodes before the pods that need them arrive",
            "org.opencontainers.image.documentation": concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/install.md"),
            "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
            "org.opencontainers.image.revision": origin.revision,
            "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
            "org.opencontainers.image.title": "prewarm",
            "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
        },
        "User": format!("{USER}:{USER}"),
        "WorkingDir": "/",
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    /// Any file that needs no other one.
    fn program() -> Program {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into();
        Program { architecture: "amd64".to_owned(), target: "x86_64-unknown-linux-gnu".to_owned(), path }
    }

    fn origin() -> Origin {
        Origin { revision: "12ab".to_owned(), time: 1_800_000_000 }
    }

    #[test]
    fn the_same_program_gives_the_same_image() {
        let digest = || build(&[program()], &origin()).unwrap().digest().to_owned();
        assert_eq!(digest(), digest());
    }

    #[test]
    fn the_image_has_the_program_and_what_it_needs_and_nothing_else() {
        let image = build(&[program()], &origin()).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(image.blobs[1].bytes.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header();
            let facts = (header.mode().unwrap(), header.uid().unwrap(), header.mtime().unwrap());
            let path = entry.path().unwrap().display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            if path == "etc/passwd" {
                assert!(String::from_utf8_lossy(&content).contains("x:65532:65532:"));
            }
            found.push((path, facts));
        }
        let plain = (0o644, 0, 1_800_000_000);
        let wanted = [
            ("etc/group", plain),
            ("etc/nsswitch.conf", plain),
            ("etc/passwd", plain),
            (ROOTS, plain),
            ("prewarm", (0o755, 0, 1_800_000_000)),
        ];
        assert_eq!(found, wanted.map(|(path, facts)| (path.to_owned(), facts)));
    }

    #[test]
    fn the_image_says_what_it_is_and_runs_as_nobody_in_particular() {
        let image = build(&[program()], &origin()).unwrap();
        let whole: Value = serde_json::from_slice(&image.blobs[0].bytes).unwrap();
        assert_eq!(whole["created"], "2027-01-15T08:00:00Z");
        assert_eq!(whole["config"]["User"], "65532:65532");
        assert_eq!(whole["config"]["Entrypoint"], json!(["/prewarm"]));
        let labels = &whole["config"]["Labels"];
        assert_eq!(labels["org.opencontainers.image.revision"], "12ab");
        assert_eq!(labels["org.opencontainers.image.version"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn a_program_that_needs_libraries_is_refused() {
        // Tests are linked dynamically.
        let path = std::env::current_exe().unwrap();
        let error = build(&[Program { path, ..program() }], &origin()).unwrap_err().to_string();
        assert!(error.contains("the image has no libraries"), "{error}");
    }

    #[test]
    fn programs_for_two_processors_make_one_index() {
        let arm = Program { architecture: "arm64".to_owned(), ..program() };
        let image = build(&[program(), arm], &origin()).unwrap();
        let index: Value = serde_json::from_slice(&image.root().blob.bytes).unwrap();
        let platforms = [0, 1].map(|place| index["manifests"][place]["platform"]["architecture"].clone());
        assert_eq!(platforms, ["amd64", "arm64"]);
    }
}
