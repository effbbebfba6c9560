//! Properties of ImagePrefetches in a small world, in which everything happens in any order: objects and nodes come, change and go,
//! agents succeed, fail and are silent, writes are lost, and the controller starts anew (ofen R6, R7, W2, W3, W25).
//!
//! `PROPTEST_CASES` asks for more cases than the few that every test run tries.

use proptest::collection::vec;
use proptest::prelude::*;

mod check;
mod play;
#[path = "../support/mod.rs"]
mod support;

use play::{Play, steps};

/// As many cases as the variable asks for, or so few that nobody waits.
#[expect(clippy::disallowed_methods, reason = "a test may be told by its caller how long to go on")]
fn config(cases: u32) -> ProptestConfig {
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    ProptestConfig { cases: if is_asked { default.cases } else { cases }, ..default }
}

proptest! {
    #![proptest_config(config(48))]

    /// No more nodes ask the registry than may, and none is sent to mirrors before the registry has answered; when trouble ends,
    /// all nodes have the images, and neither another cycle nor a fresh kernel has anything to do.
    #[test]
    fn whatever_happens_the_registry_is_asked_by_few_and_first(limit in 1..3_usize, steps in vec(steps(), 0..80)) {
        let mut play = Play::new(limit);
        for step in steps {
            play.take(step);
        }
        play.come_to_rest();
    }
}
