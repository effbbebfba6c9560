//! `prewarm pull`: makes a job for one image or for a list and waits for it on request; with a schedule, it makes a
//! cron job instead, and with a number of nodes an ImagePrefetch.

mod every;
mod manifest;
mod prefetch;
mod progress;
mod wait;

use std::time::Duration;

use anyhow::Context as _;
use clap::{Args as ClapArgs, ValueEnum};
use jiff::Timestamp;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt as _};
use prewarm_api::kruise::{
    self, ADVANCED_CRON_JOB, AdvancedCronJob, IMAGE_LIST_PULL_JOB, ImageListPullJob, ImagePullJob,
};
use prewarm_api::ofen::{self, IMAGE_PREFETCH, ImagePrefetch};

use crate::answer::Answer;
use crate::operation;
use crate::reach::{Cluster, Reach, Request, Scope};
use crate::show::{Format, Output, json, yaml};

/// How many nodes pull at once if nothing is said.
const PARALLELISM: i32 = 10;

/// Put images on nodes
///
/// One image makes an ImagePullJob, several make an ImageListPullJob. Without --node, --selector or --pods, every
/// node is selected. With --every it makes an AdvancedCronJob, which pulls the images as a list whenever its
/// schedule is due.
///
/// With --replicas or --all-nodes it makes an ImagePrefetch: a few nodes ask the registry, the others take the images
/// from mirrors, and the images are kept there until it is deleted.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm pull registry.example/shop/web:1.0 --wait
  prewarm pull nginx:1.29 redis:8 --selector pool=big --parallelism 20
  prewarm pull registry.example/bank/ledger:3.2 --secret regcred -n bank
  prewarm pull nginx:1.29 --name nginx --dry-run > job.yaml
  prewarm pull nginx:1.29 redis:8 --every '0 2 * * *' --zone Europe/Berlin --policy always
  prewarm pull registry.example/shop/web:1.0 --replicas 3 --wait

Exit codes:
  0  the job was made; with --wait, every node has every image
  1  with --wait: some node does not have an image, or the time was up
  2  wrong usage, or the cluster refused the job")]
pub struct Args {
    /// The images to pull
    #[arg(value_name = "IMAGE", required = true)]
    pub images: Vec<String>,
    /// A node to pull on; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = "Nodes",
          conflicts_with_all = ["selector", "pods"])]
    pub node: Vec<String>,
    /// Pull on nodes with these labels, such as `pool=big,zone in (a, b)`
    #[arg(short = 'l', long, value_name = "LABELS", help_heading = "Nodes", conflicts_with = "pods")]
    pub selector: Option<String>,
    /// Pull on nodes that run pods of the namespace with these labels
    #[arg(long, value_name = "LABELS", help_heading = "Nodes")]
    pub pods: Option<String>,
    /// Keep the images on so many of the nodes, few of which ask the registry
    #[arg(long, value_name = "N", help_heading = "Nodes", value_parser = replicas)]
    pub replicas: Option<i32>,
    /// Keep the images on all of the nodes, few of which ask the registry
    #[arg(long, help_heading = "Nodes")]
    pub all_nodes: bool,
    /// How many nodes pull at once [default: 10]
    #[arg(long, value_name = "N", value_parser = parallelism)]
    pub parallelism: Option<i32>,
    /// A Secret of the namespace with credentials; may be given more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub secret: Vec<String>,
    /// Whether to ask the registry for an image that is present; the cluster's default is if-not-present
    #[arg(long, value_enum, value_name = "POLICY")]
    pub policy: Option<Policy>,
    /// The job's name; by default it is made from the image
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Pull again and again on this schedule, such as '0 2 * * *' or '@every 90m'; `prewarm schedule` shows its times
    #[arg(long, value_name = "LINE", help_heading = "Schedule", allow_hyphen_values = true)]
    pub every: Option<String>,
    /// The time zone of the schedule by its IANA name, such as Europe/Berlin; UTC by default
    #[arg(long, value_name = "ZONE", help_heading = "Schedule", requires = "every")]
    pub zone: Option<String>,
    /// Wait until every node has finished, and show the progress
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
    /// How long to wait at most, such as 10m
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = operation::duration)]
    timeout: Option<Duration>,
    /// Only print what would be sent
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Policy {
    /// Ask the registry even if the image is present
    Always,
    /// Do nothing if the image is present
    IfNotPresent,
}

fn parallelism(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| "write a number of nodes, such as 10; 0 pauses the job".to_owned())
}

fn replicas(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number >= 1);
    number.ok_or_else(|| "write a number of nodes, such as 3, or give --all-nodes".to_owned())
}

impl Args {
    /// Whether an ImagePrefetch is meant.
    fn is_prefetch(&self) -> bool {
        self.replicas.is_some() || self.all_nodes
    }

    fn parallelism(&self) -> i32 {
        self.parallelism.unwrap_or(PARALLELISM)
    }
}

pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    anyhow::ensure!(
        !args.scope.all_namespaces,
        "a job is made in one namespace; choose it with -n instead of -A"
    );
    if args.is_prefetch() {
        prefetch::check_flags(args)?;
    }
    let timetable = every::timetable(args)?;
    let mut object = match &timetable {
        _ if args.is_prefetch() => manifest::prefetch(args)?,
        None => manifest::job(args)?,
        Some(_) => manifest::cron(args)?,
    };
    if args.dry_run {
        if let Some(namespace) = &args.scope.namespace {
            object["metadata"]["namespace"] = namespace.clone().into();
        }
        let stdout = if args.output.output == Format::Json { json(&object) } else { yaml(&object) };
        return Ok(Answer::done(stdout));
    }
    let cluster = args.reach.cluster().await?;
    let namespace = args.scope.of(&cluster).unwrap_or(&cluster.namespace);
    let made = create(&cluster, namespace, &object).await?;
    let mut answer = Answer::done(said(&made, args.output.output));
    if let Some(timetable) = timetable.filter(|_| is_table(args.output.output)) {
        answer.stderr = every::first_run(&timetable, &made, Timestamp::now());
    }
    if !args.wait {
        return Ok(answer);
    }
    answer.print().context("cannot write the answer")?;
    if args.is_prefetch() {
        return prefetch::until_ready(&cluster, &made, args.timeout).await;
    }
    wait::until_over(&cluster, &made, args.timeout).await
}

fn said(made: &DynamicObject, format: Format) -> String {
    match format {
        Format::Table | Format::Wide => format!("{} created\n", short_name(made)),
        Format::Name => short_name(made) + "\n",
        Format::Json => json(made),
        Format::Yaml => yaml(made),
    }
}

fn is_table(format: Format) -> bool {
    matches!(format, Format::Table | Format::Wide)
}

async fn create(
    cluster: &Cluster,
    namespace: &str,
    object: &serde_json::Value,
) -> anyhow::Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(object.clone()).context("reading the job again")?;
    let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
    let resource = match kind.as_str() {
        IMAGE_PREFETCH => ApiResource::erase::<ImagePrefetch>(&()),
        kind => resource(kind),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespace, &resource);
    let request = match kind.as_str() {
        ADVANCED_CRON_JOB => Request::of::<AdvancedCronJob>("create", Some(namespace)),
        IMAGE_LIST_PULL_JOB => Request::of::<ImageListPullJob>("create", Some(namespace)),
        IMAGE_PREFETCH => Request::of::<ImagePrefetch>("create", Some(namespace)),
        _ => Request::of::<ImagePullJob>("create", Some(namespace)),
    };
    let mut made = api
        .create(&PostParams::default(), &object)
        .await
        .map_err(|error| cluster.trouble(&error, &request))?;
    made.types = object.types;
    Ok(made)
}

fn resource(kind: &str) -> ApiResource {
    let (group, version) = kruise::API_VERSION.split_once('/').unwrap_or_default();
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// The name under which kubectl reports what it has made.
fn short_name(object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default();
    let group = if kind == IMAGE_PREFETCH { ofen::GROUP } else { kruise::GROUP };
    format!("{}.{group}/{}", kind.to_lowercase(), object.name_any())
}
