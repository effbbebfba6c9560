//! The directory of a release: everything that people install, and sums to check it by.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

use crate::{chart, sbom};

/// The archive of the image.
pub const IMAGE: &str = "prewarm-image.tar";
/// The chart rendered with its default values, for people without Helm.
pub const INSTALL: &str = "install.yaml";
/// The licences of the parts.
pub const NOTICES: &str = "NOTICES.txt";
/// In the format of `sha256sum --check`.
pub const SUMS: &str = "SHA256SUMS";

/// One of its files.
pub struct File {
    pub name: String,
    pub content: Vec<u8>,
    pub is_executable: bool,
}

/// What is made elsewhere.
pub struct Content {
    pub image: Vec<u8>,
    pub parts: Vec<u8>,
    pub notices: String,
    /// By the processor that they are for.
    pub programs: Vec<(String, Vec<u8>)>,
    /// Of the commit, in seconds since 1970.
    pub time: u64,
}

/// The name of a program in it.
pub fn program_name(architecture: &str) -> String {
    format!("prewarm-linux-{architecture}")
}

/// All files of a release, with what lies in the tree below `root`.
pub fn gather(root: &Path, content: Content) -> anyhow::Result<Vec<File>> {
    let install = root.join("deploy").join(INSTALL);
    let install = fs::read(&install).with_context(|| format!("reading {}", install.display()))?;
    let data = |name: &str, content| File { name: name.to_owned(), content, is_executable: false };
    let mut files = vec![
        data(IMAGE, content.image),
        data(sbom::FILE_NAME, content.parts),
        data(NOTICES, content.notices.into_bytes()),
        data(INSTALL, install),
        data(&chart::file_name(), chart::pack(&root.join("deploy/chart"), content.time)?),
    ];
    files.extend(content.programs.into_iter().map(|(architecture, content)| File {
        name: program_name(&architecture),
        content,
        is_executable: true,
    }));
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let sums = sums(&files);
    files.push(data(SUMS, sums.into_bytes()));
    Ok(files)
}

fn sums(files: &[File]) -> String {
    let line = |file: &File| format!("{:x}  {}", Sha256::digest(&file.content), file.name);
    files.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// Writes them. An older release in the same place goes; anything else there is left alone.
pub fn write(directory: &Path, files: &[File]) -> anyhow::Result<()> {
    let is_free = fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none());
    ensure!(
        is_free || directory.join(SUMS).exists(),
        "{} has other files in it; name an empty directory",
        directory.display()
    );
    // Complete or not there: it takes its place as a whole.
    let unfinished = beside(directory);
    for old in [&unfinished, directory] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("removing {}", old.display()))?;
        }
    }
    fs::create_dir_all(&unfinished).with_context(|| format!("making {}", unfinished.display()))?;
    for file in files {
        write_file(&unfinished.join(&file.name), file)?;
    }
    fs::rename(&unfinished, directory).with_context(|| format!("making {}", directory.display()))
}

fn beside(directory: &Path) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    directory.with_file_name(name)
}

fn write_file(path: &Path, file: &File) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, &file.content).with_context(|| format!("writing {}", path.display()))?;
    if file.is_executable {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<File> {
        let content = Content {
            image: b"image".to_vec(),
            parts: b"{}".to_vec(),
            notices: "licences".to_owned(),
            programs: vec![("amd64".to_owned(), b"program".to_vec())],
            time: 1_800_000_000,
        };
        gather(&crate::root(), content).unwrap()
    }

    #[test]
    fn a_release_has_everything_to_install_and_a_sum_of_each() {
        let files = files();
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        let chart = chart::file_name();
        let wanted = [NOTICES, INSTALL, &chart, IMAGE, "prewarm-linux-amd64", sbom::FILE_NAME, SUMS];
        assert_eq!(names, wanted);
        let sums = String::from_utf8(files.last().unwrap().content.clone()).unwrap();
        let summed: Vec<&str> = sums.lines().filter_map(|line| Some(line.split_once("  ")?.1)).collect();
        assert_eq!(summed, wanted[..wanted.len() - 1]);
    }

    #[test]
    fn an_older_release_is_replaced_and_anything_else_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("release");
        write(&directory, &files()).unwrap();
        fs::write(directory.join("prewarm-linux-s390x"), "old").unwrap();
        write(&directory, &files()).unwrap();
        assert!(!directory.join("prewarm-linux-s390x").exists());
        let error = write(place.path(), &files()).unwrap_err().to_string();
        assert!(error.contains("has other files in it"), "{error}");
    }
}
