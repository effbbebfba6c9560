//! `prewarm images`: how many nodes have each image, and where it is missing.

mod report;

use clap::Args as ClapArgs;
use prewarm_api::kruise::NodeImage;

use crate::answer::Answer;
use crate::query::Query;
use crate::reach::{Feed, Narrow};
use report::Report;

/// Show images: how many nodes have each one, and where it is missing
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
    /// Images, with or without a tag; without any, all images that nodes are asked to have
    #[arg(value_name = "IMAGE")]
    images: Vec<String>,
    /// Only nodes with these labels, such as `pool=gpu`
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    #[command(flatten)]
    query: Query,
}

pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let mut inquiry = args.query.begin().await?;
    let narrow = Narrow { labels: args.selector.clone(), fields: None };
    let feed: Feed<NodeImage> = inquiry.reader.cluster_wide(&narrow).await?;
    inquiry.answer(|_| Report::of(&feed.objects(), &args.images)).await
}
