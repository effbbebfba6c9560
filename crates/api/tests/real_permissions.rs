//! The shipped roles and the shipped policy on a real API server: what each program may do, and that it may do nothing
//! else.

#[path = "real_permissions/cluster.rs"]
mod cluster;
#[path = "real_permissions/policy.rs"]
mod policy;
#[path = "real_permissions/roles.rs"]
mod roles;

use policy::{
    a_token_that_names_no_node_writes_no_status, an_agent_writes_events_as_its_own_node_only,
    an_agent_writes_the_status_of_its_own_node_only, an_agent_writes_to_no_namesake_of_its_node,
};
use prewarm_testkit::real_tests;
use roles::{
    the_agent_may_do_what_the_table_says_and_nothing_else,
    the_agent_reads_secrets_of_the_config_namespace_only, the_controller_may_change_its_own_lease_only,
    the_controller_may_do_what_the_table_says_and_nothing_else, the_daemon_set_is_taken_with_its_settings,
    the_deployment_is_taken_where_only_restricted_pods_are,
};

real_tests! {
    the_agent_may_do_what_the_table_says_and_nothing_else,
    the_agent_reads_secrets_of_the_config_namespace_only,
    the_daemon_set_is_taken_with_its_settings,
    the_controller_may_do_what_the_table_says_and_nothing_else,
    the_controller_may_change_its_own_lease_only,
    the_deployment_is_taken_where_only_restricted_pods_are,
    an_agent_writes_the_status_of_its_own_node_only,
    a_token_that_names_no_node_writes_no_status,
    an_agent_writes_to_no_namesake_of_its_node,
    an_agent_writes_events_as_its_own_node_only,
}
