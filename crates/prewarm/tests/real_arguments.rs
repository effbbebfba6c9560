//! What the chart starts the programs with, read by the programs' own parser: a flag that is misspelt in a template would stop every
//! pod.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use prewarm::Cli;
use prewarm_testkit::{helm, real_tests};
use serde_json::Value;

real_tests! {
    the_program_takes_the_arguments_of_every_example_of_the_chart,
    the_program_takes_the_arguments_that_no_example_has,
}

/// What the pod's own fields say in environment variables, and the parser insists on.
const OF_THE_POD: [&str; 1] = ["--node-name=node-1"];

/// Values that no example sets, and an argument that each brings.
const FURTHER: [(&[&str], &str); 4] = [
    (&["mirrors.onlyFallback=runtime"], "--mirror-only-fallback=runtime"),
    (&["mirrors.hostDirectory=/etc/containerd/certs.d", "agent.hostNetwork=true"], "--host-network"),
    (&["imageAllowList.enabled=true"], "--image-allow-list=prewarm-image-allow-list"),
    (&["mirrors.imageVerifiers=none"], "--image-verifiers=none"),
];

async fn the_program_takes_the_arguments_of_every_example_of_the_chart() -> anyhow::Result<()> {
    let mut examples = vec![chart().join("values.yaml")];
    for entry in fs::read_dir(chart().join("examples"))? {
        examples.push(entry?.path());
    }
    for example in examples {
        let example = example.display().to_string();
        taken(&["--values", &example]).with_context(|| format!("with {example}"))?;
    }
    Ok(())
}

async fn the_program_takes_the_arguments_that_no_example_has() -> anyhow::Result<()> {
    for (values, brought) in FURTHER {
        let flags: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
        let arguments = taken(&flags).with_context(|| format!("with {values:?}"))?;
        ensure!(arguments.iter().any(|argument| argument == brought), "{values:?}: {arguments:?}");
    }
    Ok(())
}

/// Renders the chart and has the program read what it would be started with, which is returned.
fn taken(flags: &[&str]) -> anyhow::Result<Vec<String>> {
    let chart = chart().display().to_string();
    let template =
        ["template", "prewarm", &chart, "--namespace", "prewarm-system", "--kube-version", "1.30.0"];
    let rendered = helm::run(&[&template, flags].concat())?;
    let (mut started, mut all) = (Vec::new(), Vec::new());
    for document in rendered.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(document).context("reading what helm rendered")?;
        let containers = object["spec"]["template"]["spec"]["containers"].as_array();
        for container in containers.into_iter().flatten() {
            let arguments: Vec<String> = serde_json::from_value(container["args"].clone())?;
            parse(&arguments).with_context(|| format!("{} {arguments:?}", container["name"]))?;
            started.extend(arguments.first().cloned());
            all.extend(arguments);
        }
    }
    started.sort();
    ensure!(started == ["agent", "controller"], "the chart starts {started:?}");
    Ok(all)
}

fn parse(arguments: &[String]) -> anyhow::Result<()> {
    let of_the_pod = if arguments[0] == "agent" { &OF_THE_POD[..] } else { &[] };
    let line = ["prewarm"].into_iter().chain(arguments.iter().map(String::as_str));
    Cli::try_parse_from(line.chain(of_the_pod.iter().copied()))?;
    Ok(())
}

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart")
}
