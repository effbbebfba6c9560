//! What the API server's answer to a write means (design 4).

use kube::core::Status;
use prewarm_plan::cluster::Outcome;
use tracing::warn;

use crate::metrics::WriteResult;
use prewarm_process::log::chain;

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
        422 if !has_causes(status) => Meaning::Stale,
        400 | 413 | 422 => Meaning::Refused(status.message.clone()),
        _ => Meaning::Trouble,
    }
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
            Some(Err(_)) | None => Outcome::Failed(None),
        },
        Meaning::Trouble => {
            warn!(object = what, error = %chain(&error), "a write failed; it will be tried again");
            Outcome::Failed(None)
        }
    }
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
