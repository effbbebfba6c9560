//! Which images each namespace may have on nodes (ofen 1.7, without its W9 and W24): a ConfigMap with one entry for each namespace, and one for all.
//! The policy of the chart says the same in CEL, and a test on a real API server holds the two together.
//!
//! ```text
//! _all: |
//!   registry.example.com        every image of that registry
//!   ghcr.io/team                every image below that path, and the image of that name
//! shop: |
//!   nginx                       docker.io/library/nginx, in namespace shop alone
//!   docker.io/team/             every image below that path; without the slash, the official image of that name
//! ```

use std::collections::BTreeMap;

use crate::reference::ImageRef;

/// The entry for all namespaces. No namespace can have this name.
pub const FOR_ALL: &str = "_all";
/// What begins a line that says nothing.
const COMMENT: char = '#';
/// The registry of names without one, and how Docker calls it, too.
const HUB: &str = "docker.io";
const OLD_HUB: &str = "index.docker.io";

/// Which images may be wanted where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: BTreeMap<String, Vec<String>>,
}

impl AllowList {
    /// Reads what a ConfigMap holds: a line for each registry, path or image.
    pub fn read<'a>(data: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let lines = |text: &String| {
            let lines = text.lines().map(str::trim);
            lines.filter(|line| !line.is_empty() && !line.starts_with(COMMENT)).map(pattern).collect()
        };
        Self { entries: data.into_iter().map(|(key, text)| (key.clone(), lines(text))).collect() }
    }

    /// Whether an image may be wanted in a namespace; without one, on behalf of the whole cluster.
    pub fn allows(&self, namespace: &str, image: &ImageRef) -> bool {
        let name = format!("{}/{}", image.registry(), image.repository());
        let is_below = |pattern: &String| {
            let rest = name.strip_prefix(pattern.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let entries = [FOR_ALL, namespace].into_iter().filter_map(|key| self.entries.get(key));
        entries.flatten().any(is_below)
    }
}

/// A line in full: `nginx` is `docker.io/library/nginx`, `ghcr.io` a registry. With a slash at its end it is a path:
/// `docker.io/team/` is everything of that team, where `docker.io/team` would be the official image of that name.
fn pattern(line: &str) -> String {
    let path = line.trim_end_matches('/');
    let is_path = path.len() < line.len();
    let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
    if !is_registry(first) {
        let official = if is_path || rest.is_some() { "" } else { "library/" };
        return format!("{HUB}/{official}{path}");
    }
    let registry = if first == OLD_HUB { HUB } else { first };
    match rest {
        None => registry.to_owned(),
        Some(name) if registry == HUB && !is_path && !name.contains('/') => format!("{HUB}/library/{name}"),
        Some(rest) => format!("{registry}/{rest}"),
    }
}

/// Whether the first part of a name is a registry, as Docker tells.
fn is_registry(first: &str) -> bool {
    first.contains(['.', ':'])
        || first == "localhost"
        || first.chars().any(|letter| letter.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(&str, &str)]) -> AllowList {
        let entries: Vec<(String, String)> =
            entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        AllowList::read(entries.iter().map(|(key, text)| (key, text)))
    }

    fn allows(list: &AllowList, namespace: &str, image: &str) -> bool {
        list.allows(namespace, &ImageRef::parse(image).unwrap())
    }

    #[test]
    fn an_entry_ends_where_a_part_of_the_name_ends() {
        let list = list(&[("_all", "ghcr.io\nquay.io/team/\n\n# a comment\nregistry:5000/app")]);
        for image in
            ["ghcr.io/a/b:1", "quay.io/team/app", "registry:5000/app", "registry:5000/app/part@sha256:1"]
        {
            let image = image.replace("sha256:1", &format!("sha256:{}", "1".repeat(64)));
            assert!(allows(&list, "any", &image), "{image}");
        }
        for image in [
            "ghcr.io.example.com/a",
            "quay.io/teams/app",
            "quay.io/app",
            "registry:5000/apps",
            "nginx",
            "ghcr.io:5000/a/b",
        ] {
            assert!(!allows(&list, "any", image), "{image}");
        }
    }

    #[test]
    fn names_are_compared_in_full() {
        let list = list(&[("_all", "nginx\ndocker.io/redis\nindex.docker.io/team\nbitnami/")]);
        for image in
            ["nginx:1", "docker.io/library/nginx", "index.docker.io/nginx", "redis", "team", "bitnami/app"]
        {
            assert!(allows(&list, "", image), "{image}");
        }
        for image in ["team/app", "nginx/nginx", "ghcr.io/nginx", "localhost/nginx", "library/bitnami"] {
            assert!(!allows(&list, "", image), "{image}");
        }
    }

    #[test]
    fn a_namespace_has_what_is_for_all_and_its_own() {
        let list = list(&[("_all", "ghcr.io"), ("shop", "nginx")]);
        assert!(allows(&list, "shop", "nginx") && allows(&list, "shop", "ghcr.io/a"));
        assert!(!allows(&list, "other", "nginx") && allows(&list, "other", "ghcr.io/a"));
        assert!(!allows(&AllowList::default(), "shop", "nginx"));
    }

    #[test]
    fn the_whole_hub_is_named_by_its_host() {
        let list = list(&[("_all", "docker.io")]);
        assert!(
            allows(&list, "", "nginx") && allows(&list, "", "team/app") && !allows(&list, "", "quay.io/a")
        );
    }
}
