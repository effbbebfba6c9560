//! The chart, rendered by Helm and taken by a real API server.

#[path = "real_chart/allow_list.rs"]
mod allow_list;
#[path = "real_chart/helm.rs"]
mod helm;
#[path = "real_chart/release.rs"]
mod release;
#[path = "real_chart/rendering.rs"]
mod rendering;
#[path = "real_chart/takeover.rs"]
mod takeover;

use allow_list::{
    every_kind_obeys_the_list_and_nothing_that_goes_is_held_up,
    the_policy_of_allowed_images_says_what_the_controller_says,
};
use prewarm_testkit::real_tests;
use release::{
    a_kind_that_is_left_out_brings_neither_its_definition_nor_its_rights,
    an_upgrade_leaves_the_leader_and_an_uninstallation_leaves_the_objects,
    definitions_of_others_are_taken_over_on_request_only,
    under_another_name_each_agent_is_still_kept_to_its_node,
};
use rendering::{
    a_value_that_nobody_knows_is_refused, every_definition_is_kept_when_the_release_goes,
    every_example_is_taken_strictly_by_the_api_server,
    helm_finds_nothing_wrong_with_the_chart_and_its_examples,
    install_yaml_is_taken_at_once_by_an_empty_cluster, install_yaml_is_what_the_chart_gives,
    no_object_names_a_priority_class_of_the_system, the_controller_has_the_selector_of_the_agents,
};
use takeover::a_marked_definition_stays_only_if_its_release_was_set_to_leave_it;

real_tests! {
    install_yaml_is_what_the_chart_gives,
    install_yaml_is_taken_at_once_by_an_empty_cluster,
    helm_finds_nothing_wrong_with_the_chart_and_its_examples,
    a_value_that_nobody_knows_is_refused,
    every_definition_is_kept_when_the_release_goes,
    no_object_names_a_priority_class_of_the_system,
    the_controller_has_the_selector_of_the_agents,
    every_example_is_taken_strictly_by_the_api_server,
    under_another_name_each_agent_is_still_kept_to_its_node,
    a_kind_that_is_left_out_brings_neither_its_definition_nor_its_rights,
    definitions_of_others_are_taken_over_on_request_only,
    an_upgrade_leaves_the_leader_and_an_uninstallation_leaves_the_objects,
    a_marked_definition_stays_only_if_its_release_was_set_to_leave_it,
    the_policy_of_allowed_images_says_what_the_controller_says,
    every_kind_obeys_the_list_and_nothing_that_goes_is_held_up,
}
