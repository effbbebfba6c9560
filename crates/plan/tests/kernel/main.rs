//! Properties of the kernel in a small world, in which everything happens in any order: jobs and nodes come and go,
//! agents answer when they like, watches lag, answers are lost, and the controller starts anew.
//!
//! `PROPTEST_CASES` asks for more cases than the few that every test run tries.

use proptest::collection::vec;
use proptest::prelude::*;

mod chaos;
mod check;
mod draft;
mod order;
#[path = "../support/mod.rs"]
mod support;

use chaos::Chaos;
use draft::steps;

/// As many cases as the variable asks for, or so few that nobody waits.
#[expect(clippy::disallowed_methods, reason = "a test may be told by its caller how long to go on")]
fn config(cases: u32) -> ProptestConfig {
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    ProptestConfig { cases: if is_asked { default.cases } else { cases }, ..default }
}

proptest! {
    #![proptest_config(config(64))]

    /// What `check` demands of every write holds at every step; when trouble ends, everything comes to rest; at rest
    /// neither another cycle nor a fresh kernel has anything to do.
    #[test]
    fn whatever_happens_limits_hold_and_everything_comes_to_rest(steps in vec(steps(), 0..150)) {
        let mut chaos = Chaos::new(4);
        for step in steps {
            chaos.take(step);
        }
        chaos.come_to_rest();
    }

    #[test]
    fn the_order_of_events_does_not_matter(
        drafts in vec(draft::jobs(), 1..5),
        one in vec(order::choices(), 0..120),
        other in vec(order::choices(), 0..120),
    ) {
        prop_assert_eq!(order::end(&drafts, &one), order::end(&drafts, &other));
    }
}
