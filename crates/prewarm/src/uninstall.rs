//! `prewarm uninstall`: removes what a controller that is gone has left behind and nobody else cleans up.
//!
//! Jobs with pull secrets carry a finalizer until the copies of those Secrets are gone. Without a controller nobody
//! removes it, so the jobs, their namespaces and finally the definitions stay Terminating, and the copies stay for
//! ever.

use anyhow::{anyhow, bail};
use clap::Args as ClapArgs;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt as _};
use prewarm_api::kruise::ImagePullJob;
use prewarm_api::names::{DEFAULT_CONFIG_NAMESPACE, DELETION_PROTECTION_FINALIZER, SECRET_SOURCE_ANNOTATION};
use prewarm_api::permission::{CONTROLLER, LEASE, SYSTEM_NAMESPACE};
use serde_json::json;

use crate::answer::{Answer, Exit};
use crate::reach::{Cluster, Reach, Request, look_twice, sentence};

/// Show or remove what is left after the controller is gone
///
/// Delete the jobs first, then the controller, and nothing is left. If the controller was deleted first, this
/// removes the finalizers of jobs that have copies of Secrets, and deletes those copies.
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

struct Left {
    /// Jobs with the finalizer.
    jobs: Vec<ImagePullJob>,
    /// Copies of Secrets.
    copies: Vec<Secret>,
}

pub async fn run(args: &Args) -> anyhow::Result<Answer> {
    let cluster = args.reach.cluster().await?;
    if args.finish {
        nobody_leads(&cluster, &args.namespace).await?;
    }
    let left = look(&cluster, &args.config_namespace).await?;
    if left.jobs.is_empty() && left.copies.is_empty() {
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

async fn look(cluster: &Cluster, config_namespace: &str) -> anyhow::Result<Left> {
    let jobs: Api<ImagePullJob> = cluster.api(None);
    let is_protected =
        |job: &ImagePullJob| job.finalizers().iter().any(|it| it == DELETION_PROTECTION_FINALIZER);
    let jobs = match jobs.list(&ListParams::default()).await {
        Ok(list) => list.items.into_iter().filter(is_protected).collect(),
        // Without the definition there are no jobs either.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => bail!(sentence(&error, &Request::of::<ImagePullJob>("list", None), &cluster.name)),
    };
    let secrets: Api<Secret> = cluster.api(Some(config_namespace));
    let copies = match secrets.list(&ListParams::default()).await {
        Ok(list) => list.items.into_iter().filter(is_copy).collect(),
        Err(error) => {
            bail!(sentence(&error, &Request::of::<Secret>("list", Some(config_namespace)), &cluster.name))
        }
    };
    Ok(Left { jobs, copies })
}

fn is_copy(secret: &Secret) -> bool {
    secret.annotations().contains_key(SECRET_SOURCE_ANNOTATION)
}

/// One line for each object, worded like kubectl.
fn lines(left: &Left, is_done: bool) -> String {
    let (taken_off, deleted) =
        if is_done { ("finalizer removed", "deleted") } else { ("has a finalizer", "is a copy") };
    let jobs = left.jobs.iter().map(|job| {
        let (name, namespace) = (job.name_any(), job.namespace().unwrap_or_default());
        format!("imagepulljob.apps.kruise.io/{name} {taken_off} (namespace {namespace})\n")
    });
    let copies = left.copies.iter().map(|copy| {
        let (name, namespace) = (copy.name_any(), copy.namespace().unwrap_or_default());
        format!("secret/{name} {deleted} (namespace {namespace})\n")
    });
    jobs.chain(copies).collect()
}

async fn finish(cluster: &Cluster, left: &Left, config_namespace: &str) -> anyhow::Result<()> {
    for job in &left.jobs {
        let namespace = job.namespace().unwrap_or_default();
        let jobs: Api<ImagePullJob> = cluster.api(Some(&namespace));
        let others: Vec<&String> =
            job.finalizers().iter().filter(|it| *it != DELETION_PROTECTION_FINALIZER).collect();
        // The version makes sure that no other finalizer is removed.
        let metadata = json!({"finalizers": others, "resourceVersion": job.resource_version()});
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        if let Err(error) = jobs.patch(&job.name_any(), &PatchParams::default(), &patch).await
            && !is_gone(&error)
        {
            bail!(sentence(&error, &Request::of::<ImagePullJob>("patch", Some(&namespace)), &cluster.name));
        }
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

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
