//! What a [`FaultProxy`](super::FaultProxy) can do to a request, and which requests.

use http::{Method, StatusCode};

/// Which requests are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum On {
    Anything,
    /// The question whether this is a registry at all, `/v2/`.
    Ping,
    /// Of tags and digests, also the question whether one exists.
    Manifests,
    /// Layers and configurations.
    Blobs,
    /// Whatever has this text in its path: a name, a tag, a digest.
    Path(String),
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This status, with an error body as registries write it.
    Status(StatusCode),
    /// This status, and the client is told to come back after so many seconds.
    RetryAfter(StatusCode, u32),
    /// The connection stays open and nothing is answered.
    Hang,
    /// The answer stops after so many bytes of its body, and the connection stays open.
    Stall(u64),
    /// The answer stops after so many bytes of its body, and the connection is closed.
    Truncate(u64),
    /// The answer has the right length, but one byte of it is another.
    WrongBytes,
    /// The body comes at so many bytes a second.
    Slow(u64),
    /// The connection is reset before anything is answered.
    Reset,
}

/// A request that the proxy met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub method: Method,
    /// With the query, if there is one.
    pub path: String,
    pub range: Option<String>,
    /// The user whose credentials came along; empty if they could not be read.
    pub user: Option<String>,
    /// What was answered; nothing yet, or never, for a request that hangs or was reset.
    pub status: Option<StatusCode>,
    /// How much of the body was handed out so far.
    pub bytes: u64,
    /// Whether the body was handed out to its end.
    pub is_complete: bool,
}

/// A fault and what it is for.
#[derive(Debug)]
pub(super) struct Rule {
    on: On,
    fault: Fault,
    /// How many requests are still to meet it; without a number all do.
    left: Option<usize>,
}

impl Rule {
    pub(super) fn new(on: On, fault: Fault, times: Option<usize>) -> Self {
        Self { on, fault, left: times }
    }

    /// Takes one of the times that it is for, if it is for this path.
    pub(super) fn take(&mut self, path: &str) -> Option<Fault> {
        if self.left == Some(0) || !self.on.has(path) {
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        Some(self.fault.clone())
    }
}

impl On {
    /// Whether a request for this path is meant.
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
    /// Whether a whole blob or manifest was downloaded by it.
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
    fn a_rule_holds_for_its_paths_and_as_often_as_it_says() {
        let mut rule = Rule::new(On::Manifests, Fault::Hang, Some(2));
        let taken = ["/v2/", "/v2/a/manifests/1", "/v2/a/blobs/x", "/v2/a/manifests/1", "/v2/a/manifests/1"];
        let taken: Vec<bool> = taken.iter().map(|path| rule.take(path).is_some()).collect();
        assert_eq!(taken, [false, true, false, true, false]);
        let mut rule = Rule::new(On::Path("shop/web".to_owned()), Fault::Reset, None);
        assert!((0..9).all(|_| rule.take("/v2/shop/web/manifests/1") == Some(Fault::Reset)));
    }
}
