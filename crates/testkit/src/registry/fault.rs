//! What a [`FaultProxy`](super::FaultProxy) can do to which requests.

use http::{Method, StatusCode};

/// Selects requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum On {
    Anything,
    /// The version check `/v2/`.
    Ping,
    /// Requests for manifests by tag or digest, including HEAD requests.
    Manifests,
    /// Layers and configurations.
    Blobs,
    /// Requests whose path contains this text: a name, a tag, a digest.
    Path(String),
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This status, with an error body as registries write it.
    Status(StatusCode),
    /// This status, with this many seconds in `Retry-After`.
    RetryAfter(StatusCode, u32),
    /// The connection stays open and nothing is answered.
    Hang,
    /// The answer stops after this many bytes of its body, and the connection stays open.
    Stall(u64),
    /// The answer stops after this many bytes of its body, and the connection is closed.
    Truncate(u64),
    /// The answer has the right length, but one byte is wrong.
    WrongBytes,
    /// The body arrives at this many bytes a second.
    Slow(u64),
    /// The connection is reset before anything is answered.
    Reset,
}

/// A request that the proxy received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub method: Method,
    /// The path, with the query if there is one.
    pub path: String,
    pub range: Option<String>,
    /// The user in the credentials; empty if they could not be read.
    pub user: Option<String>,
    /// The status of the answer. None for a request that is not answered yet, hangs or was reset.
    pub status: Option<StatusCode>,
    /// How much of the body has been sent.
    pub bytes: u64,
    /// Whether the body was sent completely.
    pub is_complete: bool,
}

/// A fault and the requests it is for.
#[derive(Debug)]
pub(super) struct Rule {
    on: On,
    fault: Fault,
    /// How many more requests meet the fault; none for all of them.
    left: Option<usize>,
}

impl Rule {
    pub(super) fn new(on: On, fault: Fault, times: Option<usize>) -> Self {
        Self { on, fault, left: times }
    }

    /// Counts a request and returns the fault, if the rule is for this path.
    pub(super) fn take(&mut self, path: &str) -> Option<Fault> {
        if self.left == Some(0) || !self.on.has(path) {
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        Some(self.fault.clone())
    }
}

impl On {
    /// Whether requests for this path are selected.
    pub fn has(&self, path: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Ping => path == "/v2/" || path == "/v2",
            Self::Manifests => path.contains("/manifests/"),
            Self::Blobs => path.contains("/blobs/"),
            Self::Path(part) => path.contains(part),
        }
    }
}

impl Seen {
    /// Whether it downloaded a whole blob or manifest.
    pub fn is_download(&self) -> bool {
        self.method == Method::GET
            && self.is_complete
            && self.status.is_some_and(|status| status.is_success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_applies_to_its_paths_and_as_often_as_it_says() {
        let mut rule = Rule::new(On::Manifests, Fault::Hang, Some(2));
        let taken = ["/v2/", "/v2/a/manifests/1", "/v2/a/blobs/x", "/v2/a/manifests/1", "/v2/a/manifests/1"];
        let taken: Vec<bool> = taken.iter().map(|path| rule.take(path).is_some()).collect();
        assert_eq!(taken, [false, true, false, true, false]);
        let mut rule = Rule::new(On::Path("shop/web".to_owned()), Fault::Reset, None);
        assert!((0..9).all(|_| rule.take("/v2/shop/web/manifests/1") == Some(Fault::Reset)));
    }
}
