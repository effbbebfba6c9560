//! Which of the runtimes that answer is the node's own: the one whose name and version its kubelet reports, as in
//! `containerd://2.4.2`. A node may have others, for example a distribution's beside the one that the kubelet uses, and what they
//! pull no pod can use.
//!
//! ```text
//! name and version agree                     taken; of two alike, the first
//! only the name, on the socket used before   taken: the runtime was upgraded, and the kubelet has not said so yet
//! anything else                              none is taken
//! ```

use std::fmt;

/// A runtime that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answering {
    /// Its socket.
    pub socket: String,
    /// Its name, as it says.
    pub name: String,
    /// Its version, as it says.
    pub version: String,
}

/// How a runtime compares with what the kubelet reports. Later is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Agreement {
    Other,
    Name,
    /// The kubelet leaves out what follows the numbers of a version that it cannot read whole, such as `1.6.20~ds1`.
    Numbers,
    Whole,
}

/// None of the runtimes that answer is the node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoneAgrees {
    reported: String,
    answering: Vec<Answering>,
}

impl Answering {
    /// Whether this is what the kubelet reports.
    pub fn agrees(&self, reported: &str) -> bool {
        self.agreement(reported) >= Agreement::Numbers
    }

    fn agreement(&self, reported: &str) -> Agreement {
        let (name, version) = reported.split_once("://").unwrap_or((reported, ""));
        let plain = |version: &str| version.strip_prefix('v').unwrap_or(version).to_owned();
        let (theirs, ours) = (plain(version), plain(&self.version));
        if name != self.name {
            Agreement::Other
        } else if theirs == ours {
            Agreement::Whole
        } else if numbers(&theirs) == numbers(&ours) {
            Agreement::Numbers
        } else {
            Agreement::Name
        }
    }
}

/// The numbers in front of a version.
fn numbers(version: &str) -> &str {
    let end = version.find(|character: char| !character.is_ascii_digit() && character != '.');
    version[..end.unwrap_or(version.len())].trim_end_matches('.')
}

/// The place of the node's runtime among those that answer. `used` is the socket that was the node's before.
pub fn choose(reported: &str, answering: &[Answering], used: Option<&str>) -> Result<usize, NoneAgrees> {
    let agreements: Vec<Agreement> = answering.iter().map(|one| one.agreement(reported)).collect();
    let best = agreements.iter().copied().max().unwrap_or(Agreement::Other);
    let is_taken = |one: &Answering, agreement: Agreement| match best {
        Agreement::Whole | Agreement::Numbers => agreement == best,
        Agreement::Name => agreement == best && used == Some(one.socket.as_str()),
        Agreement::Other => false,
    };
    let mut pairs = answering.iter().zip(agreements);
    pairs
        .position(|(one, agreement)| is_taken(one, agreement))
        .ok_or_else(|| NoneAgrees { reported: reported.to_owned(), answering: answering.to_vec() })
}

/// What answers, and what would have to.
impl fmt::Display for NoneAgrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the node's kubelet uses {}, and what answers is ", self.reported)?;
        for (place, one) in self.answering.iter().enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            write!(f, "{separator}{}://{} on {}", one.name, one.version, one.socket)?;
        }
        f.write_str("; if one of them is the kubelet's runtime, say so with --runtime-endpoint")
    }
}

impl std::error::Error for NoneAgrees {}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(socket: &str, said: &str) -> Answering {
        let (name, version) = said.split_once("://").unwrap();
        Answering { socket: socket.to_owned(), name: name.to_owned(), version: version.to_owned() }
    }

    /// The place that is taken, without a socket that was used before.
    fn taken(reported: &str, answering: &[&str]) -> Option<usize> {
        let answering: Vec<Answering> =
            answering.iter().enumerate().map(|(place, said)| on(&format!("/run/{place}"), said)).collect();
        choose(reported, &answering, None).ok()
    }

    #[test]
    fn the_runtime_that_the_kubelet_reports_is_taken_wherever_its_socket_stands() {
        assert_eq!(taken("cri-o://1.34.0", &["containerd://2.4.2", "cri-o://1.34.0"]), Some(1));
        assert_eq!(taken("containerd://2.4.2", &["containerd://1.7.24", "containerd://2.4.2"]), Some(1));
        assert_eq!(
            taken("containerd://2.1.5-k3s1", &["containerd://2.1.5", "containerd://v2.1.5-k3s1"]),
            Some(1)
        );
        assert_eq!(taken("containerd://2.4.2", &["containerd://v2.4.2", "containerd://2.4.2"]), Some(0));
    }

    #[test]
    fn a_version_that_the_kubelet_cuts_off_is_recognised_by_its_numbers() {
        assert_eq!(taken("containerd://1.6.20", &["containerd://1.6.20~ds1"]), Some(0));
        assert_eq!(taken("containerd://1.6.20", &["containerd://1.6.2", "containerd://1.6.200"]), None);
    }

    #[test]
    fn a_runtime_that_is_not_the_nodes_is_not_taken_even_if_nothing_else_answers() {
        assert_eq!(taken("cri-o://1.34.0", &["containerd://2.4.2"]), None);
        assert_eq!(taken("containerd://2.1.5-k3s1", &["containerd://1.7.24"]), None);
        assert_eq!(taken("nonsense", &["containerd://1.7.24"]), None);
        assert_eq!(taken("containerd://2.4.2", &[]), None);
    }

    #[test]
    fn after_an_upgrade_the_same_socket_is_used_although_the_kubelet_has_not_said_so_yet() {
        let answering = [on("/run/a", "containerd://1.7.24"), on("/run/b", "containerd://2.4.3")];
        assert_eq!(choose("containerd://2.4.2", &answering, Some("/run/b")), Ok(1));
        assert!(choose("containerd://2.4.2", &answering, Some("/run/c")).is_err());
        assert!(choose("cri-o://1.34.0", &answering, Some("/run/b")).is_err());
    }

    #[test]
    fn whoever_finds_none_says_what_answers_and_which_flag_decides() {
        let answering = [on("/run/a", "containerd://1.7.24"), on("/run/b", "cri-o://1.34.0")];
        assert_eq!(
            choose("containerd://2.4.2", &answering, None).unwrap_err().to_string(),
            "the node's kubelet uses containerd://2.4.2, and what answers is containerd://1.7.24 on /run/a, \
             cri-o://1.34.0 on /run/b; if one of them is the kubelet's runtime, say so with --runtime-endpoint"
        );
    }
}
