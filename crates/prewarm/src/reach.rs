//! How commands reach the cluster: the flags that kubectl users know, a client, and a sentence for each error.

mod feed;
mod lease;
mod trouble;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args as ClapArgs;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Config};

pub use feed::{Feed, Narrow, Reader, or_refusal, or_undefined};
pub use lease::{SeenLease, look_twice};
use trouble::cause;
pub use trouble::{Request, sentence};

/// How long to wait for a server that does not answer at all.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The flags that choose a cluster.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Cluster")]
pub struct Reach {
    /// The kubeconfig; by default KUBECONFIG, ~/.kube/config, or the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; by default its current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// The flags that choose a namespace.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Cluster")]
pub struct Scope {
    /// The namespace; by default that of the context
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Look in all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
}

/// A cluster and its client.
#[derive(Clone)]
pub struct Cluster {
    pub client: Client,
    /// The namespace of the context.
    pub namespace: String,
    /// Its address and the context, for messages.
    pub name: String,
}

impl Reach {
    /// Finds the cluster and sends no request yet.
    pub async fn cluster(&self) -> anyhow::Result<Cluster> {
        let (mut config, context) = self.config().await?;
        config.connect_timeout = Some(CONNECT_WITHIN);
        let address = config.cluster_url.to_string();
        let address = address.trim_end_matches('/');
        let name = match context {
            Some(context) => format!("{address} (context {context:?})"),
            None => address.to_owned(),
        };
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config).with_context(|| format!("building a client of {name}"))?;
        Ok(Cluster { client, namespace, name })
    }

    /// The client's configuration and the context that it comes from.
    pub async fn config(&self) -> anyhow::Result<(Config, Option<String>)> {
        let Some(file) = self.kubeconfig()? else {
            if let Some(context) = &self.context {
                bail!("there is no kubeconfig to find the context {context:?} in; give --kubeconfig");
            }
            let config = Config::incluster().map_err(|_| no_cluster())?;
            return Ok((config, None));
        };
        let context = self.choose_context(&file)?;
        let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(file, &options).await;
        let config = config.with_context(|| format!("using the context {context:?} of {}", self.origin()))?;
        Ok((config, Some(context)))
    }

    fn kubeconfig(&self) -> anyhow::Result<Option<Kubeconfig>> {
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        match read {
            Ok(file) => Ok(Some(file)),
            Err(KubeconfigError::ReadConfig(error, _))
                if error.kind() == std::io::ErrorKind::NotFound && !self.is_named() =>
            {
                Ok(None)
            }
            Err(KubeconfigError::FindPath) => Ok(None),
            Err(error) => {
                let (file, cause) = (self.origin(), cause(&error));
                bail!("cannot read the kubeconfig {file}: {cause}; name another with --kubeconfig")
            }
        }
    }

    /// Whether the user has named a file.
    fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty())
    }

    fn choose_context(&self, file: &Kubeconfig) -> anyhow::Result<String> {
        let names: Vec<&str> = file.contexts.iter().map(|context| context.name.as_str()).collect();
        let listed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        match self.context.as_ref().or(file.current_context.as_ref().filter(|name| !name.is_empty())) {
            Some(name) if names.contains(&name.as_str()) => Ok(name.clone()),
            Some(name) => bail!("{} has no context {name:?}; there are: {listed}", self.origin()),
            None => {
                bail!(
                    "{} has no current context; choose one of these with --context: {listed}",
                    self.origin()
                )
            }
        }
    }

    /// Where the kubeconfig comes from, for messages.
    fn origin(&self) -> String {
        match (&self.kubeconfig, std::env::var("KUBECONFIG")) {
            (Some(path), _) => path.display().to_string(),
            (None, Ok(paths)) if !paths.is_empty() => format!("KUBECONFIG ({paths})"),
            (None, _) => "~/.kube/config".to_owned(),
        }
    }
}

fn no_cluster() -> anyhow::Error {
    anyhow!(
        "no cluster is configured: run in a pod with a service account, set KUBECONFIG, or give --kubeconfig"
    )
}

impl Scope {
    /// The namespace to read; `None` means all.
    pub fn of<'a>(&'a self, cluster: &'a Cluster) -> Option<&'a str> {
        (!self.all_namespaces).then(|| self.namespace.as_deref().unwrap_or(&cluster.namespace))
    }
}

impl Cluster {
    /// Objects of a kind in one namespace, or in all namespaces.
    pub fn api<K>(&self, namespace: Option<&str>) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}
