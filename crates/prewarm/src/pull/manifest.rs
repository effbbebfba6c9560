//! The job, cron job or ImagePrefetch for the given flags. Pure.

use prewarm_api::kruise::{ADVANCED_CRON_JOB, API_VERSION, IMAGE_LIST_PULL_JOB, IMAGE_PULL_JOB};
use prewarm_api::ofen::{self, IMAGE_PREFETCH};
use prewarm_api::reference::ImageRef;
use prewarm_api::selector::LabelSelector;
use prewarm_api::validate::{Inspection, inspect};
use serde_json::{Map, Value, json};

use super::{Args, Policy};

/// The longest name that is made from an image: the server adds five letters, a cron job adds eleven for the time
/// of a run, and lists name their jobs after themselves.
const MOST_OF_NAME: usize = 40;

/// The job as one would write it by hand, with nothing but what the flags say.
pub fn job(args: &Args) -> anyhow::Result<Value> {
    let (kind, images) = match args.images.as_slice() {
        [image] => (IMAGE_PULL_JOB, ("image", json!(image))),
        images => (IMAGE_LIST_PULL_JOB, ("images", json!(images))),
    };
    checked(args, (API_VERSION, kind), &json!(spec(args, images)?))
}

/// The cron job that makes such a job whenever it is due. A run is a list even for one image, because there is no
/// template for a single ImagePullJob.
pub fn cron(args: &Args) -> anyhow::Result<Value> {
    let list = spec(args, ("images", json!(args.images)))?;
    let mut spec = Map::new();
    spec.insert("schedule".to_owned(), json!(args.every));
    if let Some(zone) = &args.zone {
        spec.insert("timeZone".to_owned(), json!(zone));
    }
    spec.insert("template".to_owned(), json!({"imageListPullJobTemplate": {"spec": list}}));
    checked(args, (API_VERSION, ADVANCED_CRON_JOB), &json!(spec))
}

/// The ImagePrefetch that keeps the images on a number of nodes.
pub fn prefetch(args: &Args) -> anyhow::Result<Value> {
    let mut spec = Map::new();
    spec.insert("images".to_owned(), json!(args.images));
    if let Some((_, labels)) = choice_of_nodes(args)? {
        spec.insert("nodeSelector".to_owned(), labels);
    }
    match args.replicas {
        Some(replicas) => spec.insert("replicas".to_owned(), json!(replicas)),
        None => spec.insert("allNodes".to_owned(), json!(true)),
    };
    if !args.secret.is_empty() {
        let secrets: Vec<Value> = args.secret.iter().map(|name| json!({"name": name})).collect();
        spec.insert("imagePullSecrets".to_owned(), json!(secrets));
    }
    checked(args, (ofen::API_VERSION, IMAGE_PREFETCH), &json!(spec))
}

fn spec(args: &Args, (field, images): (&str, Value)) -> anyhow::Result<Map<String, Value>> {
    let mut spec = Map::new();
    spec.insert(field.to_owned(), images);
    spec.extend(choice_of_nodes(args)?);
    spec.insert("parallelism".to_owned(), json!(args.parallelism()));
    if !args.secret.is_empty() {
        spec.insert("pullSecrets".to_owned(), json!(args.secret));
    }
    if let Some(policy) = args.policy {
        let policy = match policy {
            Policy::Always => "Always",
            Policy::IfNotPresent => "IfNotPresent",
        };
        spec.insert("imagePullPolicy".to_owned(), json!(policy));
    }
    Ok(spec)
}

fn checked(args: &Args, (version, kind): (&str, &str), spec: &Value) -> anyhow::Result<Value> {
    let metadata = match &args.name {
        Some(name) => json!({"name": name}),
        None => json!({"generateName": format!("{}-", base_name(&args.images))}),
    };
    let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
    check(&object)?;
    Ok(object)
}

fn choice_of_nodes(args: &Args) -> anyhow::Result<Option<(String, Value)>> {
    let read = |flag: &str, text: &str| match LabelSelector::parse(text) {
        Ok(selector) if selector == LabelSelector::default() => {
            Err(anyhow::anyhow!("--{flag} is empty; leave it out to select every node"))
        }
        Ok(selector) => Ok(json!(selector)),
        Err(error) => Err(anyhow::anyhow!("--{flag} {text:?}: {error}")),
    };
    Ok(match (args.node.as_slice(), &args.selector, &args.pods) {
        ([], None, None) => None,
        ([], Some(labels), _) => Some(("selector".to_owned(), read("selector", labels)?)),
        ([], None, Some(labels)) => Some(("podSelector".to_owned(), read("pods", labels)?)),
        (names, _, _) => Some(("selector".to_owned(), json!({"names": names}))),
    })
}

/// Applies the cluster's own rules, so that a mistake is reported before anything is sent.
fn check(object: &Value) -> anyhow::Result<()> {
    let Inspection::Ours(violations) = inspect(object) else { return Ok(()) };
    let Some(first) = violations.first() else { return Ok(()) };
    anyhow::bail!("{}: {}", first.path, first.message)
}

/// A name that shows the image: the last part of its repository, and its tag.
fn base_name(images: &[String]) -> String {
    let word = match images {
        [image] => ImageRef::parse(image).map_or("pull".to_owned(), |reference| {
            let last = reference.repository().rsplit('/').next().unwrap_or("pull").to_owned();
            if reference.is_digest() { last } else { format!("{last}-{}", reference.tag()) }
        }),
        _ => "images".to_owned(),
    };
    let plain: String =
        word.to_lowercase().chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).collect();
    let cut: String = plain.chars().take(MOST_OF_NAME).collect();
    let name = cut.trim_matches('-');
    if name.is_empty() { "pull".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run is named after its cron job, with a dash and ten digits, and may have at most 63 characters (kruise V40).
    #[test]
    fn names_from_images_leave_room_for_the_names_of_runs() {
        let long = format!("registry.example/{}:{}", "team-".repeat(30), "1".repeat(60));
        for images in
            [vec![long], vec!["redis:8".to_owned(), "nginx".to_owned()], vec!["no image".to_owned()]]
        {
            let generated = format!("{}-abcde", base_name(&images));
            assert!(generated.len() + "-1794877200".len() <= 63, "{generated}");
        }
    }
}
