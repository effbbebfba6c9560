//! The chart in one file, as `helm install` takes it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use prewarm_image::{File, of_files};

/// The folder that all of it is in, as Helm wants it: the name of the chart.
const FOLDER: &str = "prewarm";

/// The name of the file.
pub fn file_name() -> String {
    format!("{FOLDER}-{}.tgz", env!("CARGO_PKG_VERSION"))
}

/// Packs a chart, the same bytes for the same files and the same time.
pub fn pack(chart: &Path, time: u64) -> anyhow::Result<Vec<u8>> {
    let mut files = Vec::new();
    gather(chart, FOLDER, &mut files).with_context(|| format!("reading {}", chart.display()))?;
    // Helm reads it first, and other tools only so far.
    files.sort_by_key(|file| (file.path != format!("{FOLDER}/Chart.yaml"), file.path.clone()));
    ensure!(
        files.first().is_some_and(|first| first.path.ends_with("Chart.yaml")),
        "{} is no chart",
        chart.display()
    );
    Ok(of_files(&files, time).blob.bytes)
}

fn gather(folder: &Path, name: &str, files: &mut Vec<File>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{name}/{}", entry.file_name().display());
        if entry.file_type()?.is_dir() {
            gather(&entry.path(), &path, files)?;
        } else {
            files.push(File { path, content: fs::read(entry.path())?, is_executable: false });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;

    use super::*;

    fn chart() -> std::path::PathBuf {
        crate::root().join("deploy/chart")
    }

    #[test]
    fn a_chart_begins_with_its_name_and_has_every_file_once() {
        let packed = pack(&chart(), 1_800_000_000).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(packed.as_slice()));
        let entries = archive.entries().unwrap();
        let mut paths: Vec<String> =
            entries.map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
        assert_eq!(paths[0], "prewarm/Chart.yaml");
        assert!(paths.contains(&"prewarm/templates/crds/apps.kruise.io_imagepulljobs.yaml".to_owned()));
        let all = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), all);
    }

    #[test]
    fn the_same_chart_gives_the_same_bytes() {
        assert_eq!(pack(&chart(), 7).unwrap(), pack(&chart(), 7).unwrap());
    }

    #[test]
    fn a_folder_without_a_chart_is_refused() {
        let error = pack(Path::new(env!("CARGO_MANIFEST_DIR")), 7).unwrap_err().to_string();
        assert!(error.contains("is no chart"), "{error}");
    }
}
