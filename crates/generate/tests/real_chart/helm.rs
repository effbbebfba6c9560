//! Runs Helm on the chart of the tree.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use prewarm_testkit::ApiServer;
pub use prewarm_testkit::helm::run;
use serde_json::Value;

pub fn chart() -> PathBuf {
    prewarm_generate::root().join("deploy/chart")
}

/// Every example of the chart, by its name.
pub fn examples() -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(chart().join("examples"))? {
        paths.push(entry?.path());
    }
    paths.sort();
    ensure!(paths.len() >= 10, "{} examples", paths.len());
    Ok(paths)
}

/// Runs it against a server.
pub fn run_on(server: &ApiServer, arguments: &[&str]) -> anyhow::Result<String> {
    let kubeconfig = server.kubeconfig().display().to_string();
    run(&[&["--kubeconfig", &kubeconfig], arguments].concat())
}

/// Renders the chart as this release, with further flags.
pub fn render(release: &str, namespace: &str, flags: &[&str]) -> anyhow::Result<String> {
    let chart = chart().display().to_string();
    run(&[&["template", release, &chart, "--namespace", namespace, "--kube-version", "1.30.0"], flags]
        .concat())
}

/// All objects of a rendering.
pub fn objects(rendered: &str) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for document in rendered.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(document).context("reading what helm rendered")?;
        if !object.is_null() {
            objects.push(object);
        }
    }
    Ok(objects)
}

/// Applies a rendering as an administrator does, or only asks whether it would be taken.
pub async fn apply(server: &ApiServer, rendered: &str, flags: &[&str]) -> anyhow::Result<()> {
    let path = server.kubeconfig().with_file_name("rendered.yaml");
    fs::write(&path, rendered)?;
    let path = path.display().to_string();
    let mut arguments = vec!["apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", &path];
    arguments.extend(flags);
    server.kubectl(arguments).await.map(drop)
}

/// Makes a namespace.
pub async fn namespace(server: &ApiServer, name: &str) -> anyhow::Result<()> {
    server.kubectl(["create", "namespace", name]).await.map(drop)
}
