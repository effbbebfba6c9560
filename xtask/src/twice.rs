//! `cargo xtask image --twice`: builds the same commit once more in another directory, and fails unless both images are
//! the same to the last byte. Whoever gets an image can build it again and compare digests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::image::{self, Platform, Program};
use crate::{cargo, root};

/// Everything that this makes is in a directory of this name, which is made anew each time.
const DIRECTORY: &str = "prewarm-twice";
/// Where the second build takes place. Its path differs in content and length from that of the first.
const ELSEWHERE: &str = "the-same-commit-in-another-directory";

/// Fails if there is more in the tree than in its last commit: only that can be built elsewhere.
pub fn check_tree() -> anyhow::Result<()> {
    let (revision, _) = image::commit()?;
    ensure!(
        !revision.ends_with(image::CHANGED),
        "--twice builds the last commit once more, and the tree differs from it; commit first"
    );
    Ok(())
}

/// Compares the image of these programs with that of a second build.
pub fn run(platforms: &[&'static Platform], programs: &[Program]) -> anyhow::Result<()> {
    let place = cargo::target_directory()?.join(DIRECTORY);
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("removing {}", place.display()))?;
    }
    fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
    let (first, second, clone) = (place.join("first"), place.join("second"), place.join(ELSEWHERE));
    image::pack(image::maker(), "image", programs, &["--output".to_owned(), first.display().to_string()])?;
    println!("building once more in {}", clone.display());
    copy_commit(&clone)?;
    build(&clone, platforms, &second)?;
    compare(&first, &second)?;
    println!("both builds gave the same image");
    Ok(())
}

fn copy_commit(target: &Path) -> anyhow::Result<()> {
    let status = Command::new("git").args(["clone", "--quiet"]).arg(root()).arg(target).status();
    ensure!(status.context("starting git")?.success(), "the commit could not be copied");
    Ok(())
}

/// Builds as a person does who has only this copy: with its own task runner, from nothing.
fn build(tree: &Path, platforms: &[&'static Platform], output: &Path) -> anyhow::Result<()> {
    let mut command = cargo::cargo();
    command.current_dir(tree).env_remove("CARGO_TARGET_DIR").args(["xtask", "image"]);
    for platform in platforms {
        command.args(["--platform", platform.name]);
    }
    let status = command.arg("--output").arg(output).status().context("starting cargo")?;
    ensure!(status.success(), "the second build failed");
    Ok(())
}

/// Fails if two directories differ in any file.
fn compare(first: &Path, second: &Path) -> anyhow::Result<()> {
    let (ours, theirs) = (files(first)?, files(second)?);
    let differs = |path: &&PathBuf| ours.get(*path) != theirs.get(*path);
    let mut different: Vec<String> =
        ours.keys().chain(theirs.keys()).filter(differs).map(|path| path.display().to_string()).collect();
    different.sort();
    different.dedup();
    if different.is_empty() {
        return Ok(());
    }
    bail!(
        "the two builds differ in {}; compare {} with {}, for example by diffoscope",
        different.join(", "),
        first.display(),
        second.display()
    )
}

/// All files below a directory, by their paths in it.
fn files(directory: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            files.insert(path.strip_prefix(directory).unwrap_or(&path).to_owned(), content);
        }
    }
    ensure!(!files.is_empty(), "{} is empty", directory.display());
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A layout with one blob.
    fn layout(directory: &Path, name: &str, content: &str) -> PathBuf {
        let layout = directory.join(name);
        fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
        fs::write(layout.join("index.json"), "{}").unwrap();
        fs::write(layout.join("blobs/sha256/ab"), content).unwrap();
        layout
    }

    #[test]
    fn layouts_with_the_same_files_are_the_same() {
        let place = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| layout(place.path(), name, "program"));
        compare(&one, &other).unwrap();
    }

    #[test]
    fn a_file_that_differs_or_is_missing_is_named() {
        let place = tempfile::tempdir().unwrap();
        let one = layout(place.path(), "one", "program");
        let other = layout(place.path(), "other", "another program");
        let error = compare(&one, &other).unwrap_err().to_string();
        assert!(error.contains("differ in blobs/sha256/ab; compare"), "{error}");
        fs::remove_file(other.join("index.json")).unwrap();
        fs::write(other.join("blobs/sha256/ab"), "program").unwrap();
        let error = compare(&one, &other).unwrap_err().to_string();
        assert!(error.contains("differ in index.json; compare"), "{error}");
    }

    #[test]
    fn a_directory_without_an_image_is_not_the_same_as_another_one() {
        let place = tempfile::tempdir().unwrap();
        let error = compare(place.path(), place.path()).unwrap_err().to_string();
        assert!(error.contains("is empty"), "{error}");
    }
}
