//! The whole agent, as it is deployed, on a real cluster: kube-apiserver, containerd and CRI-O, and a registry.
//!
//! The tests use the program that is built along with them, or the one that `PREWARM_BINARY` names, such as the
//! shipped one.

#[path = "real_agent/bad.rs"]
mod bad;
#[path = "real_agent/cluster.rs"]
mod cluster;
#[path = "real_agent/crash.rs"]
mod crash;
#[path = "real_agent/desk.rs"]
mod desk;
#[path = "real_agent/disk.rs"]
mod disk;
#[path = "real_agent/eviction.rs"]
mod eviction;
#[path = "real_agent/faults.rs"]
mod faults;
#[path = "real_agent/kills.rs"]
mod kills;
#[path = "real_agent/life.rs"]
mod life;
#[path = "real_agent/link.rs"]
mod link;
#[path = "../../api/tests/real_admission/loosen.rs"]
mod loosen;
#[path = "real_agent/many.rs"]
mod many;
#[path = "real_agent/mirrors.rs"]
mod mirrors;
#[path = "real_agent/program.rs"]
mod program;
#[path = "real_agent/pulling.rs"]
mod pulling;
#[path = "real_agent/secrets.rs"]
mod secrets;

use bad::the_work_goes_on_around_entries_that_make_no_sense;
use crash::an_image_that_kills_containerd_fails_by_itself_and_all_others_are_pulled;
use disk::{
    a_pull_that_crosses_the_floor_is_stopped_before_the_disk_is_full,
    below_the_floor_a_task_waits_and_says_so,
};
use eviction::{
    a_removed_image_is_pulled_again_or_reported_on_containerd,
    a_removed_image_is_pulled_again_or_reported_on_cri_o,
};
use faults::{
    every_fault_has_its_class_its_sentence_and_its_event_on_containerd,
    every_fault_has_its_class_its_sentence_and_its_event_on_cri_o,
    every_fault_that_heals_ends_well_on_containerd, every_fault_that_heals_ends_well_on_cri_o,
};
use kills::{
    an_agent_killed_in_the_middle_of_pulls_loses_nothing,
    containerd_killed_in_the_middle_of_pulls_loses_nothing,
    the_api_server_killed_in_the_middle_of_reports_loses_nothing,
};
use life::{
    a_link_in_the_place_of_the_socket_is_refused_in_a_sentence,
    an_agent_that_comes_before_its_runtime_waits_for_it,
    sigterm_leaves_a_pull_that_takes_too_long_to_the_next_agent,
    sigterm_lets_a_running_pull_end_and_begins_none,
};
use link::{
    a_pull_goes_on_after_a_short_cut, a_slow_pull_tells_how_far_it_is,
    an_attempt_ends_during_a_long_cut_and_the_next_one_arrives,
};
use many::two_hundred_and_fifty_six_names_with_five_tags_each_are_pulled;
use mirrors::{
    an_image_comes_from_mirrors_alone_by_the_flags_of_the_agent,
    cri_o_refuses_images_that_must_come_from_mirrors_alone,
};
use prewarm_testkit::real_tests;
use pulling::{
    an_image_that_is_there_costs_the_registry_nothing_unless_it_is_to_be_asked,
    every_form_of_reference_is_pulled_on_containerd, every_form_of_reference_is_pulled_on_cri_o,
};
use secrets::{
    a_refused_credential_does_not_keep_a_public_image_away, nothing_of_a_malformed_secret_is_seen_anywhere,
    secrets_good_wrong_late_and_rotated_are_used_on_containerd,
    secrets_good_wrong_late_and_rotated_are_used_on_cri_o,
};

real_tests! {
    an_image_comes_from_mirrors_alone_by_the_flags_of_the_agent,
    cri_o_refuses_images_that_must_come_from_mirrors_alone,
    every_form_of_reference_is_pulled_on_containerd,
    every_form_of_reference_is_pulled_on_cri_o,
    an_image_that_is_there_costs_the_registry_nothing_unless_it_is_to_be_asked,
    every_fault_has_its_class_its_sentence_and_its_event_on_containerd,
    every_fault_has_its_class_its_sentence_and_its_event_on_cri_o,
    every_fault_that_heals_ends_well_on_containerd,
    every_fault_that_heals_ends_well_on_cri_o,
    secrets_good_wrong_late_and_rotated_are_used_on_containerd,
    secrets_good_wrong_late_and_rotated_are_used_on_cri_o,
    nothing_of_a_malformed_secret_is_seen_anywhere,
    a_refused_credential_does_not_keep_a_public_image_away,
    an_agent_killed_in_the_middle_of_pulls_loses_nothing,
    containerd_killed_in_the_middle_of_pulls_loses_nothing,
    the_api_server_killed_in_the_middle_of_reports_loses_nothing,
    an_image_that_kills_containerd_fails_by_itself_and_all_others_are_pulled,
    an_agent_that_comes_before_its_runtime_waits_for_it,
    a_link_in_the_place_of_the_socket_is_refused_in_a_sentence,
    sigterm_lets_a_running_pull_end_and_begins_none,
    sigterm_leaves_a_pull_that_takes_too_long_to_the_next_agent,
    below_the_floor_a_task_waits_and_says_so,
    a_pull_that_crosses_the_floor_is_stopped_before_the_disk_is_full,
    a_slow_pull_tells_how_far_it_is,
    a_pull_goes_on_after_a_short_cut,
    an_attempt_ends_during_a_long_cut_and_the_next_one_arrives,
    a_removed_image_is_pulled_again_or_reported_on_containerd,
    a_removed_image_is_pulled_again_or_reported_on_cri_o,
    two_hundred_and_fifty_six_names_with_five_tags_each_are_pulled,
    the_work_goes_on_around_entries_that_make_no_sense,
}
