//! `prewarm uninstall`: removes what a controller that is gone has left behind and nobody else cleans up.
//!
//! Jobs with pull secrets carry a finalizer until the copies of those Secrets are gone. Without a controller nobody
//! removes it, so the jobs, their namespaces and finally the definitions stay Terminating, and the copies stay for
//! ever. ImagePrefetches and NodeImageSets that ofen made have finalizers of ofen, which Prewarm's controller removes, and without
//! either program nobody does.

use anyhow::{anyhow, bail};
use clap::Args as ClapArgs;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Resource, ResourceExt as _};
use prewarm_api::kruise::ImagePullJob;
use prewarm_api::names::{
    DEFAULT_CONFIG_NAMESPACE, DELETION_PROTECTION_FINALIZER, IMAGE_PREFETCH_FINALIZER,
    NODE_IMAGE_SET_FINALIZER, SECRET_SOURCE_ANNOTATION,
};
use prewarm_api::ofen::{ImagePrefetch, NodeImageSet};
use prewarm_api::permission::{CONTROLLER, LEASE, SYSTEM_NAMESPACE};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::answer::{Answer, Exit};
use crate::reach::{Cluster, Reach, Request, look_twice, sentence};

/// Show or remove what is left after the controller is gone
///
/// Delete the jobs first, then the controller, and nothing is left. If the controller was deleted first, this
/// removes the finalizers of jobs that have copies of Secrets, and those that ofen left on ImagePrefetches and NodeImageSets, and
/// deletes the copies.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm uninstall            # what is left; nothing is changed
  prewarm uninstall --finish

Exit codes:
  0  nothing is left
  1  something is left; --finish removes it
  2  wrong usage, a controller still leads, or the cluster could not be asked")]
pub struct Args {
    /// Remove the finalizers and delete the copies
    #[arg(long)]
    finish: bool,
    /// The namespace in which the controller ran
    #[arg(short, long, value_name = "NAME", default_value = SYSTEM_NAMESPACE)]
    namespace: String,
    /// The namespace of the copied Secrets
    #[arg(long, value_name = "NAME", default_value = DEFAULT_CONFIG_NAMESPACE)]
    config_namespace: String,
    #[command(flatten)]
    reach: Reach,
}

/// A kind whose objects can have finalizers that only a controller removes.
trait Kind: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned {}

impl<K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned> Kind for K {}

struct Left {
    /// Jobs with the finalizer.
    jobs: Vec<ImagePullJob>,
    /// ImagePrefetches with ofen's finalizer.
    prefetches: Vec<ImagePrefetch>,
    /// NodeImageSets with ofen's finalizer.
    sets: Vec<NodeImageSet>,
    /// Copies of Secrets.
    copies: Vec<Secret>,
}

pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let cluster = args.reach.cluster().await?;
    if args.finish {
        nobody_leads(&cluster, &args.namespace).await?;
    }
    let left = look(&cluster, &args.config_namespace).await?;
    if left.is_empty() {
        let stderr = "Nothing is left.\n".to_owned();
        return Ok(Answer { stdout: String::new(), stderr, exit: Exit::Success });
    }
    let stdout = lines(&left, args.finish);
    if args.finish {
        finish(&cluster, &left, &args.config_namespace).await?;
        return Ok(Answer::done(stdout));
    }
    let stderr = "If the controller is gone for good, `prewarm uninstall --finish` removes all of this. A running controller does so itself when the jobs are deleted.\n";
    Ok(Answer { stdout, stderr: stderr.to_owned(), exit: Exit::Findings })
}

/// A leading controller would put the finalizers and copies back.
async fn nobody_leads(cluster: &Cluster, namespace: &str) -> anyhow::Result<()> {
    let [lease] = look_twice(cluster, [(namespace, LEASE)]).await;
    let lease = lease.map_err(|why| anyhow!(why))?;
    if lease.has_changed {
        bail!(
            "the controller {} leads, and would put everything back; delete the jobs and let it clean up, or stop it first with \
             `kubectl -n {namespace} delete deployments -l app.kubernetes.io/name={}`",
            lease.holder(),
            CONTROLLER.name
        );
    }
    Ok(())
}

impl Left {
    fn is_empty(&self) -> bool {
        let Self { jobs, prefetches, sets, copies } = self;
        jobs.is_empty() && prefetches.is_empty() && sets.is_empty() && copies.is_empty()
    }
}

async fn look(cluster: &Cluster, config_namespace: &str) -> anyhow::Result<Left> {
    let secrets: Api<Secret> = cluster.api(Some(config_namespace));
    let copies = match secrets.list(&ListParams::default()).await {
        Ok(list) => list.items.into_iter().filter(is_copy).collect(),
        Err(error) => {
            bail!(sentence(&error, &Request::of::<Secret>("list", Some(config_namespace)), &cluster.name))
        }
    };
    Ok(Left {
        jobs: held(cluster, DELETION_PROTECTION_FINALIZER).await?,
        prefetches: held(cluster, IMAGE_PREFETCH_FINALIZER).await?,
        sets: held(cluster, NODE_IMAGE_SET_FINALIZER).await?,
        copies,
    })
}

/// The objects of a kind with a finalizer. Without the definition there are none.
async fn held<K: Kind>(cluster: &Cluster, finalizer: &str) -> anyhow::Result<Vec<K>> {
    let all: Api<K> = Api::all(cluster.client.clone());
    let is_held = |object: &K| object.finalizers().iter().any(|it| it == finalizer);
    match all.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items.into_iter().filter(is_held).collect()),
        Err(error) if is_gone(&error) => Ok(Vec::new()),
        Err(error) => bail!(sentence(&error, &Request::of::<K>("list", None), &cluster.name)),
    }
}

fn is_copy(secret: &Secret) -> bool {
    secret.annotations().contains_key(SECRET_SOURCE_ANNOTATION)
}

/// One line for each object, worded like kubectl.
fn lines(left: &Left, is_done: bool) -> String {
    let (taken_off, deleted) =
        if is_done { ("finalizer removed", "deleted") } else { ("has a finalizer", "is a copy") };
    let mut lines = lines_of(&left.jobs, taken_off);
    lines.extend(lines_of(&left.prefetches, taken_off));
    lines.extend(lines_of(&left.sets, taken_off));
    lines.extend(lines_of(&left.copies, deleted));
    lines.concat()
}

fn lines_of<K: Resource<DynamicType = ()>>(objects: &[K], what: &str) -> Vec<String> {
    let (kind, group) = (K::kind(&()).to_lowercase(), K::group(&()));
    let kind = if group.is_empty() { kind } else { format!("{kind}.{group}") };
    let line = |object: &K| {
        let place = object.namespace().map(|namespace| format!(" (namespace {namespace})"));
        format!("{kind}/{} {what}{}\n", object.name_any(), place.unwrap_or_default())
    };
    objects.iter().map(line).collect()
}

async fn finish(cluster: &Cluster, left: &Left, config_namespace: &str) -> anyhow::Result<()> {
    for job in &left.jobs {
        release(cluster, &in_namespace(cluster, job), job, DELETION_PROTECTION_FINALIZER).await?;
    }
    for prefetch in &left.prefetches {
        release(cluster, &in_namespace(cluster, prefetch), prefetch, IMAGE_PREFETCH_FINALIZER).await?;
    }
    for set in &left.sets {
        release(cluster, &Api::all(cluster.client.clone()), set, NODE_IMAGE_SET_FINALIZER).await?;
    }
    let secrets: Api<Secret> = cluster.api(Some(config_namespace));
    for copy in &left.copies {
        let same = Preconditions { uid: copy.uid(), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
        if let Err(error) = secrets.delete(&copy.name_any(), &params).await
            && !is_gone(&error)
        {
            bail!(sentence(&error, &Request::of::<Secret>("delete", Some(config_namespace)), &cluster.name));
        }
    }
    Ok(())
}

fn in_namespace<K: Kind + Resource<Scope = NamespaceResourceScope>>(cluster: &Cluster, object: &K) -> Api<K> {
    cluster.api(object.namespace().as_deref())
}

/// Removes a finalizer, and no other: the version sees to that.
async fn release<K: Kind>(
    cluster: &Cluster,
    api: &Api<K>,
    object: &K,
    finalizer: &str,
) -> anyhow::Result<()> {
    let others: Vec<&String> = object.finalizers().iter().filter(|it| *it != finalizer).collect();
    let metadata = json!({"finalizers": others, "resourceVersion": object.resource_version()});
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    match api.patch(&object.name_any(), &PatchParams::default(), &patch).await {
        Err(error) if !is_gone(&error) => {
            let request = Request::of::<K>("patch", object.namespace().as_deref());
            bail!(sentence(&error, &request, &cluster.name))
        }
        _ => Ok(()),
    }
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
