//! `prewarm agent`: the program on every node. This file reads its flags and builds its parts.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Args as ClapArgs, ValueEnum};
use kube::Client;
use prewarm_agent::config::{
    Config, DEFAULT_HOST_DIRECTORY, Fallback, Mirrors, NodeMirrors, RuntimeChoice, Verifiers,
};
use prewarm_agent::secrets::KubeSecrets;
use prewarm_agent::{Agent, run as run_agent};
use prewarm_api::names::DEFAULT_CONFIG_NAMESPACE;
use prewarm_clock::MachineClock;
use prewarm_credentials::plugin::DEFAULT_TIME_LIMIT;
use prewarm_credentials::{Chain, CredentialSource, Plugins};
use prewarm_plan::agent::disk::MinFree;
use prewarm_process::wake::sleep_within;
use prewarm_runtime::Endpoint;
use tokio::runtime::Builder;

use crate::answer::Answer;
use crate::operation::{self, Operation, Parts};

/// The most pulls that may run at once; more would strain disks and registries and finish no earlier.
const MAX_PARALLEL: u64 = 64;
/// What an agent says that ends because of its credential plugins; `prewarm check` looks for it.
pub(crate) const LOADING_PLUGINS: &str = "loading the credential providers";

/// Pull on this node what its NodeImage asks for, and report
///
/// Runs on every node. It watches the NodeImage that has the node's name, pulls through the node's container runtime
/// (CRI v1), and reports in the NodeImage's status.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
A private image that was pulled in advance can be used by any pod of that node, with or without credentials, unless the kubelet
verifies them (imagePullCredentialsVerificationPolicy, Kubernetes 1.33 and newer).

It ends with code 0 after SIGTERM or SIGINT, and with 2 if it could not start.")]
pub struct Args {
    /// The node to work for
    #[arg(long, env = "NODE_NAME", value_name = "NAME", help_heading = "Node")]
    node_name: String,
    /// The runtime's socket, such as `unix:///run/containerd/containerd.sock`; searched for if not given
    #[arg(long, env = "PREWARM_RUNTIME_ENDPOINT", value_name = "SOCKET", help_heading = "Node")]
    runtime_endpoint: Option<String>,
    /// Where the runtime's socket is searched for: containerd, CRI-O, cri-dockerd
    #[arg(
        long,
        env = "PREWARM_RUNTIME_DIRECTORY",
        value_name = "DIR",
        default_value = "/run",
        help_heading = "Node"
    )]
    runtime_directory: PathBuf,

    /// How many pulls run at once; up to two more for registries and namespaces that others would keep waiting
    #[arg(long, env = "PREWARM_MAX_PARALLEL_PULLS", value_name = "N", default_value_t = 2, help_heading = "Pulling",
          value_parser = clap::value_parser!(u64).range(1..=MAX_PARALLEL))]
    max_parallel_pulls: u64,
    /// Space that has to stay free on the images' file system, as a share or an amount, such as 20% or 10GiB
    #[arg(
        long,
        env = "PREWARM_MIN_FREE",
        value_name = "ROOM",
        default_value = "20%",
        help_heading = "Pulling"
    )]
    min_free: MinFree,
    /// How long running pulls may continue after SIGTERM
    #[arg(long, env = "PREWARM_DRAIN", value_name = "TIME", default_value = "10s", help_heading = "Pulling",
          value_parser = operation::duration)]
    drain: Duration,
    /// Wait for a random part of this time before asking the API server for anything: agents of a whole cluster may start at
    /// the same moment
    #[arg(long, env = "PREWARM_START_SPREAD", value_name = "TIME", default_value = "0s", help_heading = "Operation",
          value_parser = operation::duration)]
    start_spread: Duration,

    /// The namespace of the Secrets that the agent may read
    #[arg(long, env = "KRUISE_DAEMON_CONFIG_NS", value_name = "NAMESPACE", default_value = DEFAULT_CONFIG_NAMESPACE,
          help_heading = "Credentials")]
    config_namespace: String,
    /// The kubelet's credential provider configuration
    #[arg(
        long,
        env = "PREWARM_CREDENTIAL_PROVIDER_CONFIG",
        value_name = "FILE",
        help_heading = "Credentials",
        requires = "image_credential_provider_bin_dir"
    )]
    image_credential_provider_config: Option<PathBuf>,
    /// The directory of the credential providers
    #[arg(
        long,
        env = "PREWARM_CREDENTIAL_PROVIDER_BIN_DIR",
        value_name = "DIR",
        help_heading = "Credentials"
    )]
    image_credential_provider_bin_dir: Option<PathBuf>,

    /// The directory of mirrors that containerd's `config_path` names, for images that must come from mirrors alone
    #[arg(long, env = "PREWARM_CONTAINERD_HOST_DIR", value_name = "DIR", default_value = DEFAULT_HOST_DIRECTORY,
          help_heading = "Mirrors")]
    containerd_host_dir: PathBuf,
    /// Whether this node's containerd has image verifiers, which see nothing that comes past a pull: with `present`, images
    /// that must come from mirrors alone are refused
    #[arg(
        long,
        env = "PREWARM_IMAGE_VERIFIERS",
        value_enum,
        value_name = "none|present",
        default_value = "present",
        hide_possible_values = true,
        help_heading = "Mirrors"
    )]
    image_verifiers: ImageVerifiers,
    /// What becomes of images that must come from mirrors alone where that cannot be kept, as on CRI-O: the runtime pulls and
    /// may ask the registry, or they are refused
    #[arg(
        long,
        env = "PREWARM_MIRROR_ONLY_FALLBACK",
        value_enum,
        value_name = "runtime|refuse",
        default_value = "refuse",
        hide_possible_values = true,
        help_heading = "Mirrors"
    )]
    mirror_only_fallback: MirrorOnlyFallback,
    /// The agent runs in the node's network, so that it reaches mirrors on the node's loopback
    #[arg(long, env = "PREWARM_HOST_NETWORK", help_heading = "Mirrors")]
    host_network: bool,

    #[command(flatten)]
    operation: Operation<10_221>,
}

/// Whether the node's containerd has image verifiers.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ImageVerifiers {
    None,
    Present,
}

/// What happens where images cannot come from mirrors alone.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum MirrorOnlyFallback {
    Runtime,
    Refuse,
}

/// Runs until the process is asked to stop.
pub fn run(args: &Args) -> anyhow::Result<Answer> {
    // One thread: the agent waits far more than it works, and every thread costs memory on every node.
    args.operation.run(&mut Builder::new_current_thread(), serve(args))?;
    Ok(Answer::done(String::new()))
}

async fn serve(args: &Args) -> anyhow::Result<()> {
    let client = args.operation.client().await?;
    let credentials = credentials(args, client.clone())?;
    let (agent, writer) = Agent::new(config(args)?, client, credentials, Arc::new(MachineClock));
    let metrics = agent.metrics.clone();
    let parts = Parts {
        health: agent.health.alive(),
        readiness: agent.health.checks(),
        metrics: Arc::new(move || metrics.encode()),
        event_writer: writer.run(),
    };
    let end = args.operation.serve(parts, async |mut stop| {
        tokio::select! {
            () = &mut stop => {}
            () = sleep_within(args.start_spread) => run_agent(agent, stop).await,
        }
        Ok::<(), Infallible>(())
    });
    let Ok(()) = end.await?;
    Ok(())
}

fn config(args: &Args) -> anyhow::Result<Config> {
    let runtime = match &args.runtime_endpoint {
        Some(text) => RuntimeChoice::Given(endpoint(text)?),
        None => RuntimeChoice::In(args.runtime_directory.clone()),
    };
    Ok(Config {
        node: args.node_name.clone(),
        name: name(),
        runtime,
        parallel: usize::try_from(args.max_parallel_pulls)?,
        min_free: args.min_free,
        drain: args.drain,
        mirrors: Mirrors::OfNode(mirrors(args)),
    })
}

fn mirrors(args: &Args) -> NodeMirrors {
    NodeMirrors {
        directory: args.containerd_host_dir.clone(),
        shares_network: args.host_network,
        verifiers: match args.image_verifiers {
            ImageVerifiers::None => Verifiers::None,
            ImageVerifiers::Present => Verifiers::Present,
        },
        fallback: match args.mirror_only_fallback {
            MirrorOnlyFallback::Runtime => Fallback::Runtime,
            MirrorOnlyFallback::Refuse => Fallback::Refuse,
        },
        ..NodeMirrors::default()
    }
}

/// The name of the pod, as its container has it.
fn name() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "prewarm-agent".to_owned())
}

/// Accepts `unix:///path` and plain paths.
fn endpoint(text: &str) -> anyhow::Result<Endpoint> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    if !path.starts_with('/') {
        return Err(anyhow!(
            "--runtime-endpoint {text:?} is not a unix socket; write it like unix:///run/containerd/containerd.sock"
        ));
    }
    Ok(Endpoint::unix(Path::new(path)))
}

fn credentials(args: &Args, client: Client) -> anyhow::Result<Arc<dyn CredentialSource>> {
    let secrets: Arc<dyn CredentialSource> =
        Arc::new(KubeSecrets::new(client, args.config_namespace.clone()));
    let mut sources = vec![secrets];
    if let (Some(config), Some(directory)) =
        (&args.image_credential_provider_config, &args.image_credential_provider_bin_dir)
    {
        let plugins = Plugins::load(config, directory, DEFAULT_TIME_LIMIT).context(LOADING_PLUGINS)?;
        sources.push(Arc::new(plugins));
    }
    Ok(Arc::new(Chain::new(sources)))
}
