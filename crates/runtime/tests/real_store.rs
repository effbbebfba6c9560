//! What bringing images past a pull depends on, on the real containerds of three releases: names, leases, labels, waiting, and going
//! on with what was begun. Little of it is documented there.

#[path = "real_store/bed.rs"]
mod bed;
#[path = "real_store/brought.rs"]
mod brought;
#[path = "real_store/pulls.rs"]
mod pulls;
#[path = "real_store/trial.rs"]
mod trial;

use std::process::ExitCode;

use prewarm_testkit::Containerd;
use prewarm_testkit::real::{run, test};

/// Each test on each release.
macro_rules! on_every_containerd {
    ($($module:ident::$case:ident),+ $(,)?) => {
        fn main() -> ExitCode {
            run(vec![$(
                test(concat!("newest::", stringify!($case)), || $module::$case(Containerd::Newest)),
                test(concat!("v2_2::", stringify!($case)), || $module::$case(Containerd::V2_2)),
                test(concat!("v1_7::", stringify!($case)), || $module::$case(Containerd::V1_7)),
            )+])
        }
    };
}

on_every_containerd! {
    brought::content_that_is_written_becomes_an_image_without_asking_the_registry,
    brought::an_index_keeps_its_digest_and_lacks_other_platforms,
    brought::a_name_moves_to_another_image,
    brought::wrong_bytes_never_enter_and_a_pull_of_the_same_layer_works,
    brought::what_was_written_under_a_lease_is_gone_on_with,
    brought::two_writers_of_one_layer_come_one_after_the_other,
    brought::what_somebody_else_completes_first_stays_under_the_lease,
    brought::a_removed_image_leaves_nothing_after_its_lease,
    brought::of_containerds_events_removals_alone_arrive,
    pulls::a_pull_of_what_is_written_asks_with_one_head,
    pulls::a_registry_that_refuses_stays_the_authority_on_what_is_written,
    pulls::a_pull_goes_on_where_another_writer_of_a_layer_stops,
    pulls::a_pull_waits_for_another_writer_of_a_layer_and_takes_it,
    pulls::a_pull_waits_at_a_lock_while_the_layer_comes_under_another_name,
    pulls::a_removed_image_is_unpacked_no_more_while_the_lease_lasts,
    pulls::what_was_begun_goes_with_its_lease,
    trial::a_trial_succeeds_and_leaves_nothing,
    trial::what_a_killed_trial_left_goes_with_the_next_one,
    trial::a_trial_that_nobody_waits_for_leaves_nothing,
    trial::without_a_transfer_service_the_trial_fails_and_says_so,
    trial::a_snapshotter_without_unpack_config_is_named,
}
