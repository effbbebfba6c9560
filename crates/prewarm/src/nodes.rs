//! `prewarm nodes`: which images each node is asked to have, has, pulls and could not pull.

mod detail;
mod report;

use clap::Args as ClapArgs;
use jiff::Timestamp;
use prewarm_api::kruise::NodeImage;

use crate::answer::Answer;
use crate::query::Query;
use crate::reach::{Feed, Narrow};
use crate::show::{self, Look};
use detail::Detail;
use report::Report;

/// Show nodes: images wanted, present, pulling and failed, bytes, free disk, last report
///
/// With one or more names, it shows each image of those nodes.
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
    query: Query,
}

pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let mut inquiry = args.query.begin().await?;
    let fields = match args.nodes.as_slice() {
        // For one node there is no need to list all.
        [one] => Some(format!("metadata.name={one}")),
        _ => None,
    };
    let narrow = Narrow { labels: args.selector.clone(), fields };
    let feed: Feed<NodeImage> = inquiry.reader.cluster_wide(&narrow).await?;
    inquiry.answer(|now| page(args, &feed, now)).await
}

/// One of the two tables.
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

    fn remark(&self) -> String {
        match self {
            Self::All(report) => report.remark(),
            Self::Some(detail) => detail.remark(),
        }
    }
}

fn page(args: &Args, feed: &Feed<NodeImage>, now: Timestamp) -> anyhow::Result<Page> {
    let images = feed.objects();
    if args.nodes.is_empty() {
        let report = Report::of(images.iter().map(|image| &**image), args.selector.clone(), now);
        return Ok(Page::All(report));
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
