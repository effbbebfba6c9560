//! `prewarm demo`: a cluster in one process. This version only says that it is not there yet.

use crate::answer::{Answer, Exit};

const NOT_YET: &str = "\
The demo is not part of this version yet. What works today:
  prewarm lint FILE|DIR|-   check manifests offline
  prewarm crds              print the CRDs, ready for `kubectl apply -f -`
  cargo xtask test          run every test of the project
";

/// Says what works instead. Scripts see from the exit code that nothing was shown.
pub fn run() -> Answer {
    Answer { stdout: String::new(), stderr: NOT_YET.to_owned(), exit: Exit::Unusable }
}
