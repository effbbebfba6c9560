//! `prewarm controller`: the program that grants jobs to nodes. This file reads its flags and builds its parts.

use std::num::NonZero;
use std::sync::Arc;

use clap::{ArgAction, Args as ClapArgs};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_api::permission::{CONTROLLER, LEASE, SYSTEM_NAMESPACE};
use prewarm_clock::MachineClock;
use prewarm_controller::config::Config;
use prewarm_controller::lease::{Lease, Loss, Place, identity};
use prewarm_controller::{Controller, run as run_controller};
use prewarm_plan::cluster::Settings;
use prewarm_plan::cluster::image_prefetch::wave::Limits;
use prewarm_plan::demand::selection::Requirements;
use prewarm_plan::object::ObjectKey;
use tokio::runtime::Builder;

use crate::answer::Answer;
use crate::operation::{Operation, Parts};

/// The most NodeImages that may be written at once; with more, the API server only lets them wait.
const MAX_CONCURRENT_WRITES: u64 = 256;
/// The most writes per second, and the largest burst.
const MAX_REQUESTS: i64 = 100_000;
/// The most nodes of an ImagePrefetch that ask the registry, or begin first.
const MAX_WAVE: u64 = 10_000;
/// Threads besides that of the loop.
const MIN_WORKERS: usize = 2;
/// Results are kept for at most 31 days.
const MAX_TTL_SECONDS: i64 = 2_678_400;

/// Grant jobs to nodes and sum up what the nodes report
///
/// Runs as a Deployment. It watches nodes, NodeImages and pull jobs, writes into each NodeImage what the node has
/// to pull, and writes the progress of each job into its status. Of several processes, one works at a time.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
It ends with code 0 after SIGTERM or SIGINT, with 1 if it lost its lease, and with 2 if it could not start.")]
pub struct Args {
    /// Work only while holding the lease; required with more than one process
    #[arg(long, env = "PREWARM_LEADER_ELECT", value_name = "BOOL", default_value_t = true, action = ArgAction::Set,
          help_heading = "Leader election")]
    leader_elect: bool,
    /// The namespace of the lease
    #[arg(
        long,
        env = "POD_NAMESPACE",
        value_name = "NAMESPACE",
        default_value = SYSTEM_NAMESPACE,
        help_heading = "Leader election"
    )]
    lease_namespace: String,
    /// The name of the lease
    #[arg(
        long,
        env = "PREWARM_LEASE_NAME",
        value_name = "NAME",
        default_value = LEASE,
        help_heading = "Leader election"
    )]
    lease_name: String,
    /// The name of this process, for the lease and for events
    #[arg(long, env = "POD_NAME", value_name = "NAME", default_value = CONTROLLER.name, help_heading = "Leader election")]
    process_name: String,

    /// Seconds for which results in a NodeImage outlive an Always job, at least
    #[arg(long, env = "PREWARM_DEFAULT_TTLSECONDS_FOR_ALWAYS_NODEIMAGE", value_name = "SECONDS", default_value_t = 300,
          help_heading = "Jobs", value_parser = clap::value_parser!(i32).range(0..=MAX_TTL_SECONDS))]
    default_ttlseconds_for_always_nodeimage: i32,
    /// The namespace to which Secrets named by jobs are copied for the agents
    #[arg(long, env = "KRUISE_DAEMON_CONFIG_NS", value_name = "NAMESPACE", default_value = DEFAULT_CONFIG_NAMESPACE,
          help_heading = "Jobs")]
    config_namespace: String,
    /// The labels of the nodes that agents run on, as in the selector of their DaemonSet; no job counts other nodes
    #[arg(long, env = "PREWARM_AGENT_NODE_SELECTOR", value_name = "KEY=VALUE,…", default_value = "",
          help_heading = "Jobs", value_parser = Requirements::parse)]
    agent_node_selector: Requirements,
    /// The ConfigMap beside the lease that says which images each namespace may have; without, all are allowed
    #[arg(long, env = "PREWARM_IMAGE_ALLOW_LIST", value_name = "NAME", help_heading = "Jobs")]
    image_allow_list: Option<String>,
    /// Let the scheduler place the pods of BroadcastJobs; otherwise they are bound to their nodes directly
    #[arg(long, env = "PREWARM_ASSIGN_BCJ_PODS_BY_SCHEDULER", value_name = "BOOL", default_value_t = true,
          help_heading = "Jobs", action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true",
          require_equals = true)]
    assign_bcj_pods_by_scheduler: bool,

    /// How many nodes of an ImagePrefetch ask the registry; all others ask mirrors alone
    #[arg(long, env = "PREWARM_IMAGE_PULL_NODE_LIMIT", value_name = "N", default_value_t = 1,
          help_heading = "ImagePrefetches", value_parser = clap::value_parser!(u64).range(1..=MAX_WAVE))]
    image_pull_node_limit: u64,
    /// How many nodes of an ImagePrefetch begin first; further waves are as large as the nodes that have the images
    #[arg(long, env = "PREWARM_MAX_CONCURRENT_NODEIMAGESET_CREATIONS", value_name = "N", default_value_t = 1,
          help_heading = "ImagePrefetches", value_parser = clap::value_parser!(u64).range(1..=MAX_WAVE))]
    max_concurrent_nodeimageset_creations: u64,

    /// How many writes are sent per second in the long run
    #[arg(long, env = "PREWARM_KUBE_API_QPS", value_name = "N", default_value_t = Config::default().requests_per_second,
          help_heading = "Load", value_parser = clap::value_parser!(u32).range(1..=MAX_REQUESTS))]
    kube_api_qps: u32,
    /// How many writes may be sent at once after a pause
    #[arg(long, env = "PREWARM_KUBE_API_BURST", value_name = "N", default_value_t = Config::default().burst,
          help_heading = "Load", value_parser = clap::value_parser!(u32).range(1..=MAX_REQUESTS))]
    kube_api_burst: u32,
    /// How many NodeImages and pods are written at the same time
    #[arg(long, env = "PREWARM_CONCURRENT_WRITES", value_name = "N", default_value_t = 32, help_heading = "Load",
          value_parser = clap::value_parser!(u64).range(1..=MAX_CONCURRENT_WRITES))]
    concurrent_writes: u64,

    #[command(flatten)]
    operation: Operation<10_220>,
}

/// Runs until the process is asked to stop, or has lost its lease.
pub fn run(args: &Args) -> anyhow::Result<Answer> {
    let end = args.operation.run(Builder::new_multi_thread().worker_threads(workers()), serve(args))?;
    Ok(match end {
        Ok(()) => Answer::done(String::new()),
        Err(loss) => Answer::failed(format!("error: {loss}; another process leads now or soon\n")),
    })
}

/// The loop has the main thread for itself. Beside it, one thread alone would let the renewal of the Lease and the answers to
/// probes wait for every page of a list that is being read.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get).max(MIN_WORKERS)
}

async fn serve(args: &Args) -> anyhow::Result<Result<(), Loss>> {
    let client = args.operation.client().await?;
    let clock = Arc::new(MachineClock);
    let (controller, writer) =
        Controller::new(&args.process_name, config(args)?, client.clone(), clock.clone());
    let metrics = controller.metrics.clone();
    let parts = Parts {
        health: controller.health.alive(),
        readiness: controller.health.checks(),
        metrics: Arc::new(move || metrics.encode()),
        event_writer: writer.run(),
    };
    let lease = args.leader_elect.then(|| {
        let place = Place { namespace: args.lease_namespace.clone(), name: args.lease_name.clone() };
        let identity = identity(&args.process_name);
        Lease::new(client, place, identity, clock, controller.metrics.clone())
    });
    args.operation.serve(parts, |stop| run_controller(controller, lease, stop)).await
}

fn config(args: &Args) -> anyhow::Result<Config> {
    Ok(Config {
        settings: Settings {
            config_namespace: args.config_namespace.clone(),
            always_ttl: args.default_ttlseconds_for_always_nodeimage,
            assigns_by_scheduler: args.assign_bcj_pods_by_scheduler,
            waves: Limits {
                seeds: usize::try_from(args.image_pull_node_limit)?,
                first: usize::try_from(args.max_concurrent_nodeimageset_creations)?,
            },
            allow_list: args
                .image_allow_list
                .clone()
                .map(|name| ObjectKey { namespace: args.lease_namespace.clone(), name }),
            agent_nodes: args.agent_node_selector.clone(),
        },
        concurrent_writes: usize::try_from(args.concurrent_writes)?,
        requests_per_second: args.kube_api_qps,
        burst: args.kube_api_burst,
    })
}
