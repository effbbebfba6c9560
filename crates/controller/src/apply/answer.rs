//! What the API server's answer to a write means (design 4).

use kube::core::Status;
use prewarm_plan::cluster::Outcome;
use tracing::warn;

use crate::metrics::WriteResult;
use prewarm_process::log::chain;

/// So many characters of a trouble are kept. A webhook may answer with a page.
const LONGEST_TROUBLE: usize = 500;

/// What an answer means before the object has been read again.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The object does not exist.
    Gone,
    /// The object is not what it was thought to be.
    Stale,
    /// The write will never be taken.
    Refused(String),
    /// Something outside is wrong.
    Trouble,
}

/// Reads an error.
pub fn meaning(error: &kube::Error) -> Meaning {
    let kube::Error::Api(status) = error else { return Meaning::Trouble };
    match status.code {
        404 => Meaning::Gone,
        409 => Meaning::Stale,
        _ if is_too_large(status) => Meaning::Refused(status.message.clone()),
        422 if !has_causes(status) => Meaning::Stale,
        400 | 413 | 422 => Meaning::Refused(status.message.clone()),
        _ => Meaning::Trouble,
    }
}

/// What servers say when an object does not fit into the store: etcd's limit on requests, that of its connection, and the
/// API server's own on bodies. The first two come as a 500, which any other trouble is, too.
const TOO_LARGE: [&str; 4] = [
    "etcdserver: request is too large",
    "trying to send message larger than max",
    "received message larger than max",
    "request entity too large",
];

/// Whether a write is too large for the server, whichever code it says so with. It will never be taken as it is.
fn is_too_large(status: &Status) -> bool {
    let message = status.message.to_lowercase();
    status.code == 413 || TOO_LARGE.iter().any(|words| message.contains(words))
}

/// A failed test of a JSON patch is a 422 without causes; a refused object has them.
fn has_causes(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.causes.is_empty())
}

/// The outcome of a write; `reread` asks for the object as it is.
pub async fn outcome<T, R>(what: &str, answer: Option<Result<T, kube::Error>>, reread: R) -> Outcome<T>
where
    R: AsyncFnOnce() -> Option<Result<Option<T>, kube::Error>>,
{
    let error = match answer {
        Some(Ok(object)) => return Outcome::Written(object),
        Some(Err(error)) => error,
        None => {
            warn!(
                object = what,
                "no answer to a write in time, or the lease was lost meanwhile; it will be looked at again"
            );
            return Outcome::Failed(None);
        }
    };
    match meaning(&error) {
        Meaning::Gone => Outcome::Gone,
        Meaning::Refused(reason) => {
            warn!(object = what, %reason, "the API server refuses a write");
            Outcome::Refused(reason)
        }
        Meaning::Stale => match reread().await {
            Some(Ok(Some(object))) => Outcome::Collided(object),
            Some(Ok(None)) => Outcome::Gone,
            Some(Err(error)) => Outcome::Failed(in_words(&error)),
            None => Outcome::Failed(None),
        },
        Meaning::Trouble => {
            warn!(object = what, error = %chain(&error), "a write failed; it will be tried again");
            Outcome::Failed(in_words(&error))
        }
    }
}

/// What the API server answered, in its own words, if it did.
pub fn in_words(error: &kube::Error) -> Option<String> {
    let kube::Error::Api(status) = error else { return None };
    Some(status.message.chars().take(LONGEST_TROUBLE).collect())
}

/// How a write is counted.
pub fn result<T>(answer: Option<&Result<T, kube::Error>>) -> WriteResult {
    match answer {
        Some(Ok(_)) => WriteResult::Ok,
        None => WriteResult::Failed,
        Some(Err(error)) => match meaning(error) {
            Meaning::Gone | Meaning::Stale => WriteResult::Conflict,
            Meaning::Refused(_) => WriteResult::Refused,
            Meaning::Trouble => WriteResult::Failed,
        },
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn answer(code: u16, message: &str) -> Meaning {
        meaning(&kube::Error::Api(Box::new(Status::failure(message, "").with_code(code))))
    }

    #[test]
    fn a_write_that_is_too_large_is_refused_whatever_the_code() {
        let answers = [
            (500, "etcdserver: request is too large"),
            (
                500,
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097200 vs. 2097152)",
            ),
            (
                500,
                "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (3 vs. 2)",
            ),
            (413, "Request entity too large: limit is 3145728"),
            (413, "Payload Too Large"),
            (422, "etcdserver: request is too large"),
        ];
        for (code, message) in answers {
            assert_eq!(answer(code, message), Meaning::Refused(message.to_owned()), "{code}");
        }
    }

    #[test]
    fn any_other_trouble_of_the_server_is_no_refusal() {
        for (code, message) in
            [(500, "etcdserver: request timed out"), (503, "apiserver not ready"), (429, "too many requests")]
        {
            assert_eq!(answer(code, message), Meaning::Trouble, "{code} {message}");
        }
        assert_eq!(answer(409, "the object has been modified"), Meaning::Stale);
        assert_eq!(answer(404, "not found"), Meaning::Gone);
    }
}
