//! `prewarm images`: on how many nodes each image is, and where it is missing.

mod report;

use clap::Args as ClapArgs;
use kube::Api;
use prewarm_api::kruise::NodeImage;

use crate::answer::{Answer, Exit};
use crate::reach::{Feed, Narrow, Reach};
use crate::show::{Look, Output, Watch, follow, render};
use report::Report;

/// Show images: on how many nodes each is, and where it is missing
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm images
  prewarm images registry.example/shop/web:1.0
  prewarm images -l pool=gpu -o json

Exit codes:
  0  the images were shown
  1  an image that was named is missing on some node
  2  wrong usage, no such image, or the cluster could not be asked")]
pub struct Args {
    /// Images, with or without tag; all that nodes are asked to have if none is named
    #[arg(value_name = "IMAGE")]
    images: Vec<String>,
    /// Only nodes with these labels, such as `pool=gpu`
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    reach: Reach,
}

/// Shows the images.
pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let cluster = args.reach.cluster().await?;
    let narrow = Narrow { labels: args.selector.clone(), fields: None };
    let (format, mut changes) = (args.output.output, args.watch.changes());
    let feed: Feed<NodeImage> =
        cluster.feed(Api::all(cluster.client.clone()), &narrow, changes.as_mut()).await?;
    if let Some(changes) = &mut changes {
        return follow(format, changes, || Report::of(&feed.objects(), &args.images)).await;
    }
    let report = Report::of(&feed.objects(), &args.images)?;
    let is_missing = !args.images.is_empty() && report.is_missing_somewhere();
    let exit = if is_missing { Exit::Findings } else { Exit::Success };
    let stderr =
        if report.is_empty() { "No node is asked to have any image.\n".to_owned() } else { String::new() };
    Ok(Answer { stdout: render(&report, format, Look::of(format)), stderr, exit })
}
