//! Controller and agents, as they are deployed, on a real cluster: kube-apiserver with the garbage collector, three nodes
//! with containerd, a registry, and the roles and policies of `deploy`.
//!
//! The tests use the program that is built along with them, or the one that `PREWARM_BINARY` names, such as the
//! shipped one.

#[path = "real_agent/cluster.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod cluster;
#[path = "real_controller/definitions.rs"]
mod definitions;
#[path = "real_agent/desk.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod desk;
#[path = "real_controller/jobs.rs"]
mod jobs;
#[path = "real_controller/lists.rs"]
mod lists;
#[path = "real_agent/program.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod program;
#[path = "real_controller/races.rs"]
mod races;
#[path = "real_controller/roles.rs"]
mod roles;
#[path = "real_controller/shell.rs"]
mod shell;
#[path = "real_controller/world.rs"]
mod world;

use definitions::definitions_that_drop_our_fields_cause_no_flood;
use jobs::{
    a_changed_secret_reaches_its_copy, a_job_for_one_named_node_leaves_with_its_entry,
    a_job_that_never_ends_counts_the_fake_node_too, a_job_with_a_secret_leaves_nothing_behind,
    a_second_job_for_the_same_image_succeeds_as_well, a_secret_of_the_old_type_in_the_new_format_works,
    results_outlive_a_job_without_ttl_and_its_secret_does_not,
};
use lists::{
    a_list_goes_by_its_ttl_and_its_children_with_it, a_list_that_never_ends_tells_of_its_failed_image,
    a_list_with_a_failed_image_completes, children_go_with_their_list,
};
use prewarm_testkit::real_tests;
use races::{
    a_controller_that_was_frozen_too_long_ends_itself, another_controller_takes_over_after_a_clean_stop,
    another_controller_takes_over_after_a_kill,
    controller_and_agent_notice_that_their_connections_died_without_a_word,
};
use roles::the_shipped_roles_suffice_and_nothing_in_them_is_unused;
use shell::a_person_pulls_waits_and_learns_why_an_image_is_missing;

real_tests! {
    a_job_with_a_secret_leaves_nothing_behind,
    results_outlive_a_job_without_ttl_and_its_secret_does_not,
    a_changed_secret_reaches_its_copy,
    a_secret_of_the_old_type_in_the_new_format_works,
    a_job_for_one_named_node_leaves_with_its_entry,
    a_job_that_never_ends_counts_the_fake_node_too,
    a_second_job_for_the_same_image_succeeds_as_well,
    a_person_pulls_waits_and_learns_why_an_image_is_missing,
    a_list_goes_by_its_ttl_and_its_children_with_it,
    children_go_with_their_list,
    a_list_with_a_failed_image_completes,
    a_list_that_never_ends_tells_of_its_failed_image,
    another_controller_takes_over_after_a_kill,
    another_controller_takes_over_after_a_clean_stop,
    a_controller_that_was_frozen_too_long_ends_itself,
    definitions_that_drop_our_fields_cause_no_flood,
    controller_and_agent_notice_that_their_connections_died_without_a_word,
    the_shipped_roles_suffice_and_nothing_in_them_is_unused,
}
