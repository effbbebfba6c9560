//! The name of a job on the command line: `web`, or `imagepulljob/web` if several kinds share the name.

use std::fmt;
use std::str::FromStr;

use prewarm_api::kruise::{ADVANCED_CRON_JOB, IMAGE_LIST_PULL_JOB, IMAGE_PULL_JOB};
use prewarm_api::ofen::{IMAGE_PREFETCH, NODE_IMAGE_SET};

/// Short names: kubectl's of an AdvancedCronJob, and one of our own, because kubectl has none for an ImagePrefetch.
const SHORT: [(&str, &str); 2] = [("acj", ADVANCED_CRON_JOB), ("ip", IMAGE_PREFETCH)];

/// A name, and its kind if one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobName {
    kind: Option<&'static str>,
    name: String,
}

impl FromStr for JobName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (Some(read_kind(kind)?), name),
            None => (None, text),
        };
        if name.is_empty() {
            return Err("write the name of a job, such as web or imagelistpulljob/base".to_owned());
        }
        Ok(Self { kind, name: name.to_owned() })
    }
}

/// Accepts any name that kubectl takes for the kind.
fn read_kind(word: &str) -> Result<&'static str, String> {
    let word = word.split('.').next().unwrap_or_default().to_lowercase();
    let is_meant = |kind: &&&str| {
        let singular = kind.to_lowercase();
        let plural = if singular.ends_with('h') { "es" } else { "s" };
        word == singular || SHORT.contains(&(&*word, **kind)) || word == singular + plural
    };
    let kinds = [IMAGE_PULL_JOB, IMAGE_LIST_PULL_JOB, IMAGE_PREFETCH, ADVANCED_CRON_JOB, NODE_IMAGE_SET];
    kinds.iter().find(is_meant).copied().ok_or_else(|| {
        "a job is an imagepulljob, an imagelistpulljob, an imageprefetch or an advancedcronjob".to_owned()
    })
}

impl JobName {
    /// Whether an object of this kind and name is meant.
    pub fn means(&self, kind: &str, name: &str) -> bool {
        self.name == name && self.kind.is_none_or(|wanted| wanted == kind)
    }

    /// Whether only an object of this kind can be meant.
    pub fn is_of(&self, kind: &str) -> bool {
        self.kind == Some(kind)
    }

    /// Whether an object of this kind can be meant.
    pub fn may_be(&self, kind: &str) -> bool {
        self.kind.is_none_or(|wanted| wanted == kind)
    }

    /// The name alone.
    pub fn bare(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(kind) => write!(formatter, "{}/{}", kind.to_lowercase(), self.name),
            None => formatter.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_taken_by_any_of_its_names() {
        for text in ["ImagePullJob/web", "imagepulljobs/web", "imagepulljobs.apps.kruise.io/web"] {
            assert_eq!(text.parse::<JobName>().unwrap().to_string(), "imagepulljob/web");
        }
        for text in ["AdvancedCronJob/web", "advancedcronjobs.apps.kruise.io/web", "acj/web"] {
            assert_eq!(text.parse::<JobName>().unwrap().to_string(), "advancedcronjob/web");
        }
        for text in ["ImagePrefetch/web", "imageprefetches.ofen.cybozu.io/web", "ip/web"] {
            assert_eq!(text.parse::<JobName>().unwrap().to_string(), "imageprefetch/web");
        }
        assert_eq!("nodeimagesets/web".parse::<JobName>().unwrap().to_string(), "nodeimageset/web");
        assert_eq!("web".parse::<JobName>().unwrap().to_string(), "web");
        assert!("pod/web".parse::<JobName>().unwrap_err().contains("imagelistpulljob"));
        assert!("imagepulljob/".parse::<JobName>().unwrap_err().contains("name of a job"));
    }
}
