//! `prewarm nodes`: what each node is asked to have, has, pulls and could not pull.

mod detail;
mod report;

use clap::Args as ClapArgs;
use jiff::Timestamp;
use kube::Api;
use prewarm_api::kruise::NodeImage;

use crate::answer::{Answer, Exit};
use crate::reach::{Changes, Cluster, Feed, Narrow, Reach};
use crate::show::{self, Look, Output, Watch, follow, render};
use detail::Detail;
use report::Report;

/// Show nodes: images wanted, present, pulling and failed, bytes, free disk, last report
///
/// With one or more names it shows each image of those nodes.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm nodes
  prewarm nodes -l pool=gpu -o wide
  prewarm nodes node-7

Exit codes:
  0  the nodes were shown
  2  wrong usage, no such node, or the cluster could not be asked")]
pub struct Args {
    /// Nodes; all if none is named
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// Only nodes with these labels, such as `pool=gpu`
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "nodes")]
    selector: Option<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    reach: Reach,
}

/// Shows the nodes.
pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let cluster = args.reach.cluster().await?;
    let (format, mut changes) = (args.output.output, args.watch.changes());
    let feed = read(args, &cluster, changes.as_mut()).await?;
    if let Some(changes) = &mut changes {
        return follow(format, changes, || made(args, &feed)).await;
    }
    let page = made(args, &feed)?;
    let stdout = render(&page, format, Look::of(format));
    let stderr = if feed.objects().is_empty() { nothing(args) } else { String::new() };
    Ok(Answer { stdout, stderr, exit: Exit::Success })
}

async fn read(
    args: &Args,
    cluster: &Cluster,
    changes: Option<&mut Changes>,
) -> anyhow::Result<Feed<NodeImage>> {
    let fields = match args.nodes.as_slice() {
        // One node needs no list of all.
        [one] => Some(format!("metadata.name={one}")),
        _ => None,
    };
    let narrow = Narrow { labels: args.selector.clone(), fields };
    cluster.feed(Api::all(cluster.client.clone()), &narrow, changes).await
}

/// Either table.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Page {
    All(Report),
    Some(Detail),
}

impl show::Report for Page {
    fn text(&self, look: Look) -> String {
        match self {
            Self::All(report) => report.text(look),
            Self::Some(detail) => detail.text(look),
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::All(report) => report.names(),
            Self::Some(detail) => detail.names(),
        }
    }
}

fn made(args: &Args, feed: &Feed<NodeImage>) -> anyhow::Result<Page> {
    let (images, now) = (feed.objects(), Timestamp::now());
    if args.nodes.is_empty() {
        return Ok(Page::All(Report::of(images.iter().map(|image| &**image), now)));
    }
    let mut chosen = Vec::new();
    for name in &args.nodes {
        let found = images.iter().find(|image| image.metadata.name.as_ref() == Some(name));
        chosen.push(&**found.ok_or_else(|| unknown(name))?);
    }
    Ok(Page::Some(Detail::of(chosen, now)))
}

fn unknown(name: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "there is no NodeImage {name:?}; `prewarm nodes` lists all, and a node that has just joined gets its own within \
         seconds while the controller runs"
    )
}

fn nothing(args: &Args) -> String {
    match &args.selector {
        Some(selector) => format!("No node has the labels {selector}.\n"),
        None => "No NodeImages found; check that `prewarm controller` is running.\n".to_owned(),
    }
}
