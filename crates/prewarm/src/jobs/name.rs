//! How a job is named on the command line: `web`, or `imagepulljob/web` where both kinds have the name.

use std::fmt;
use std::str::FromStr;

use prewarm_api::kruise::{IMAGE_LIST_PULL_JOB, IMAGE_PULL_JOB};

use super::Job;

/// A name, perhaps with its kind.
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

/// Any name that kubectl takes for the kind.
fn read_kind(word: &str) -> Result<&'static str, String> {
    let word = word.split('.').next().unwrap_or_default().to_lowercase();
    let is_meant = |kind: &&&str| {
        let singular = kind.to_lowercase();
        word == singular || word == singular + "s"
    };
    let found = [IMAGE_PULL_JOB, IMAGE_LIST_PULL_JOB];
    found
        .iter()
        .find(is_meant)
        .copied()
        .ok_or_else(|| "a job is an imagepulljob or an imagelistpulljob".to_owned())
}

impl JobName {
    /// Whether a job has this name.
    pub fn means(&self, job: &Job) -> bool {
        self.name == job.name() && self.kind.is_none_or(|kind| kind == job.kind())
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
        assert_eq!("web".parse::<JobName>().unwrap().to_string(), "web");
        assert!("pod/web".parse::<JobName>().unwrap_err().contains("imagelistpulljob"));
        assert!("imagepulljob/".parse::<JobName>().unwrap_err().contains("name of a job"));
    }
}
