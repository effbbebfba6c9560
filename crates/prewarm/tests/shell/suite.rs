//! The output of every command on one cluster. The embedded and the real API must give the same transcript.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;

const CLUSTER: &str = include_str!("cluster.yaml");

/// Each line is a command; `#` begins a comment.
const COMMANDS: &str = include_str!("commands.txt");

/// The program and the cluster it asks.
pub struct Shell {
    pub program: PathBuf,
    pub kubeconfig: PathBuf,
}

impl Shell {
    /// Runs the program as a user would, and returns everything it prints.
    pub fn run(&self, line: &str) -> String {
        let mut command = Command::new(&self.program);
        command.args(words(line)).env("KUBECONFIG", &self.kubeconfig).env_remove("NO_COLOR");
        let output = command.output().expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().expect("it ends by itself");
        let end = if code == 0 { String::new() } else { format!("[exit {code}]\n") };
        format!("$ prewarm {line}\n{}{}{end}", text(&output.stdout), text(&output.stderr))
    }

    /// The whole transcript, without what differs between runs.
    pub fn transcript(&self) -> String {
        let lines = COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| masked(&self.run(line)) + "\n").collect()
    }
}

/// Splits a line as a shell does, as far as quotes are concerned.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Times, places and column widths differ between runs.
pub fn masked(text: &str) -> String {
    let masks = [
        (r"https?://[0-9a-z.\[\]:]+", "https://SERVER"),
        (r#"\(context "[^"]*"\)"#, "(context CONTEXT)"),
        (r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)", "TIME"),
        (r"\b\d+[smhd](\d+[smhd])?\b", "AGE"),
        (r#"("secondsLeft": |secondsLeft: |"bytesPerSecond": |bytesPerSecond: )\d+"#, "${1}NUMBER"),
        (r"\b\d+(\.\d)? (bytes|[KMG]iB)/s", "SPEED"),
        (r"KUBECONFIG \([^)]*\)", "KUBECONFIG (FILE)"),
        (r"has no context (.*); there are: .*", "has no context $1; there are: CONTEXTS"),
        // Not at the beginning of a line, where spaces have a meaning in JSON and YAML.
        (r"(\S) {2,}", "$1   "),
    ];
    masks.iter().fold(text.to_owned(), |text, (pattern, mask)| {
        regex::Regex::new(pattern).expect("the patterns are fixed").replace_all(&text, *mask).into_owned()
    })
}

/// Creates the objects of the fixture.
pub async fn furnish(client: &Client) -> anyhow::Result<()> {
    let mut uids = BTreeMap::new();
    for document in prewarm::yaml::documents(CLUSTER) {
        let document = document.map_err(|problem| anyhow::anyhow!("{problem:?}"))?;
        let mut text = document.value.to_string();
        for (name, uid) in &uids {
            for end in ["\"", "/"] {
                text = text.replace(&format!("$uid:{name}{end}"), &format!("{uid}{end}"));
            }
        }
        let (name, uid) = make(client, serde_json::from_str(&text)?).await?;
        uids.entry(name).or_insert(uid);
    }
    Ok(())
}

async fn make(client: &Client, mut object: Value) -> anyhow::Result<(String, String)> {
    let status = object.as_object_mut().and_then(|object| object.remove("status"));
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api: Api<DynamicObject> = match text("/metadata/namespace").as_str() {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let made = api.create(&PostParams::default(), &serde_json::from_value(object)?).await;
    let made = made.with_context(|| format!("making {kind} {name}"))?;
    if let Some(status) = status {
        let patch = Patch::Merge(serde_json::json!({ "status": status }));
        let written = api.patch_status(&name, &PatchParams::default(), &patch).await;
        written.with_context(|| format!("writing the status of {kind} {name}"))?;
    }
    Ok((name, made.metadata.uid.unwrap_or_default()))
}

/// A kubeconfig with another server or token in it.
pub fn altered(kubeconfig: &Path, target: &Path, alter: impl Fn(&mut Value)) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let mut config: Value = serde_saphyr::from_str(&text)?;
    alter(&mut config);
    Ok(std::fs::write(target, config.to_string())?)
}

/// Compares with the transcript that both servers share.
pub fn compare(name: &str, transcript: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shell/snapshots"));
    settings.bind(|| insta::assert_snapshot!(name, transcript));
}
