//! `--replicas` and `--all-nodes`: which flags fit, and waiting until every node has the images.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use prewarm_api::ofen::{IMAGE_PREFETCH, ImagePrefetch};
use tokio::time::{Instant, timeout_at};

use super::Args;
use super::wait::{NO_LIMIT, RENEW};
use crate::answer::Answer;
use crate::jobs::JobName;
use crate::operation::stop_signal;
use crate::prefetches::{Prefetches, is_ready, notes, number};
use crate::reach::{Cluster, Reader};
use crate::show::counted;

/// Refuses what does not fit together.
pub fn check_flags(args: &Args) -> anyhow::Result<()> {
    let flag = if args.all_nodes { "--all-nodes" } else { "--replicas" };
    let refused = [
        (
            args.all_nodes && args.replicas.is_some(),
            "--all-nodes takes every node; leave --replicas out, or --all-nodes".to_owned(),
        ),
        (
            !args.node.is_empty(),
            format!(
                "{flag} chooses the nodes; leave --node out, or say by labels which nodes may be chosen: --selector"
            ),
        ),
        (
            args.pods.is_some(),
            format!(
                "{flag} chooses nodes by their own labels and not by pods; use --selector instead of --pods"
            ),
        ),
        (
            args.parallelism.is_some(),
            format!(
                "with {flag} nodes begin in waves, each as large as the nodes that have the images; leave --parallelism out"
            ),
        ),
        (
            args.policy.is_some(),
            format!(
                "with {flag} an image that is there stays as it is; leave --policy out, and give a new tag for a new image"
            ),
        ),
        (
            args.every.is_some(),
            format!(
                "{flag} keeps the images on the nodes until the ImagePrefetch is deleted; leave --every out"
            ),
        ),
    ];
    match refused.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err(anyhow::anyhow!(why)),
        None => Ok(()),
    }
}

enum End {
    Ready(Arc<ImagePrefetch>),
    Gone,
    Late(Option<Arc<ImagePrefetch>>),
    Interrupted,
}

/// Waits until every node has every image, and shows the progress. Nodes that fail try on, so it goes on, too.
pub async fn until_ready(
    cluster: &Cluster,
    made: &DynamicObject,
    limit: Option<Duration>,
) -> anyhow::Result<Answer> {
    let (namespace, name) = (made.namespace().unwrap_or_default(), made.name_any());
    let mut reader = Reader::following(cluster.clone());
    let prefetches = Prefetches::read(&mut reader, Some(&namespace)).await?;
    let stopped = stop_signal()?;
    let end = tokio::select! {
        end = follow(&prefetches, made, &mut reader, limit) => end?,
        () = stopped => End::Interrupted,
    };
    Ok(match end {
        End::Ready(prefetch) => Answer::done(done(&prefetch)),
        End::Gone => Answer::failed(format!(
            "error: the ImagePrefetch {name} was deleted before every node had the images\n"
        )),
        End::Late(prefetch) => {
            let status = prefetch.and_then(|prefetch| prefetch.status.clone()).unwrap_or_default();
            let missing = status.desired_nodes.saturating_sub(status.image_pulled_nodes);
            Answer::failed(format!(
                "error: the time is up and {missing} of {} nodes do not have all images; the ImagePrefetch continues: `prewarm explain \
                 imageprefetch/{name} -n {namespace}` explains why\n",
                status.desired_nodes
            ))
        }
        End::Interrupted => Answer::failed(format!(
            "interrupted; the ImagePrefetch continues: `prewarm status imageprefetch/{name} -n {namespace}` shows it\n"
        )),
    })
}

async fn follow(
    prefetches: &Prefetches,
    made: &DynamicObject,
    reader: &mut Reader,
    limit: Option<Duration>,
) -> anyhow::Result<End> {
    let end = Instant::now() + limit.unwrap_or(NO_LIMIT);
    let name = format!("{}/{}", IMAGE_PREFETCH.to_lowercase(), made.name_any());
    let name: JobName = name.parse().map_err(anyhow::Error::msg)?;
    let (mut said, mut last) = (Said::default(), None);
    loop {
        let found = prefetches.named(&name).into_iter().find(|one| one.metadata.uid == made.metadata.uid);
        let Some(prefetch) = found else { return Ok(End::Gone) };
        if is_ready(&prefetch) {
            return Ok(End::Ready(prefetch));
        }
        said.say(&prefetch);
        last = Some(prefetch).or(last);
        if timeout_at(end, reader.changed_within(RENEW)).await.is_err() {
            return Ok(End::Late(last));
        }
    }
}

/// What was written to standard error, so that nothing is written twice.
#[derive(Default)]
struct Said {
    progress: String,
    notes: BTreeSet<String>,
}

impl Said {
    fn say(&mut self, prefetch: &ImagePrefetch) {
        let line = format!("{}: {}", prefetch.name_any(), counts(prefetch));
        if self.progress != line {
            eprintln!("{line}");
            self.progress = line;
        }
        for note in notes(prefetch).into_iter().filter(|_| prefetch.status.is_some()) {
            if self.notes.insert(note.clone()) {
                eprintln!("{}: {note}", prefetch.name_any());
            }
        }
    }
}

fn counts(prefetch: &ImagePrefetch) -> String {
    let Some(status) = &prefetch.status else { return "waits for the controller".to_owned() };
    let mut parts = vec![format!("{}/{} nodes", status.image_pulled_nodes, status.desired_nodes)];
    if number(status) > 0 {
        parts.push(format!("{} pulling", number(status)));
    }
    if status.image_pull_failed_nodes > 0 {
        parts.push(format!("{} failed and trying on", status.image_pull_failed_nodes));
    }
    parts.join(", ")
}

fn done(prefetch: &ImagePrefetch) -> String {
    let nodes = prefetch.status.as_ref().map_or(0, |status| status.image_pulled_nodes);
    let nodes = counted(usize::try_from(nodes).unwrap_or_default(), "node");
    match prefetch.spec.images.as_slice() {
        [one] => format!("{one} is on {nodes}\n"),
        many => format!("{} are on {nodes}\n", counted(many.len(), "image")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn prefetch(status: &Value) -> ImagePrefetch {
        serde_json::from_value(json!({
            "apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch", "metadata": {"name": "base"},
            "spec": {"images": ["redis:8"], "replicas": 3}, "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn progress_says_who_has_it_who_pulls_and_who_fails() {
        assert_eq!(counts(&prefetch(&json!(null))), "waits for the controller");
        let status = json!({"desiredNodes": 8, "imagePulledNodes": 3, "imagePullingNodes": 3, "imagePullFailedNodes": 1});
        assert_eq!(counts(&prefetch(&status)), "3/8 nodes, 2 pulling, 1 failed and trying on");
        assert_eq!(done(&prefetch(&json!({"imagePulledNodes": 8}))), "redis:8 is on 8 nodes\n");
    }
}
