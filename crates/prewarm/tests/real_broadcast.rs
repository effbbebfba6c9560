//! BroadcastJobs on a real cluster: kube-apiserver, scheduler, garbage collector, two full nodes (containerd and CRI-O)
//! with real pods, and the controller as it is shipped, with its role.
//!
//! Pods run the program `workload` of the test bed, which waits or ends as its arguments say.

#[path = "real_agent/cluster.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod cluster;
#[path = "real_agent/desk.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod desk;
#[path = "real_broadcast/ends.rs"]
mod ends;
#[path = "real_broadcast/hindrances.rs"]
mod hindrances;
#[path = "real_broadcast/nodes.rs"]
mod nodes;
#[path = "real_agent/program.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod program;
#[path = "real_broadcast/world.rs"]
mod world;

use ends::{
    a_failed_pod_fails_the_job, a_job_goes_by_its_ttl_and_its_pods_with_it,
    a_job_over_its_deadline_fails_and_its_pods_go, a_job_that_continues_completes_with_its_failures,
    a_job_that_pauses_goes_on_when_it_is_resumed, a_pod_that_restarts_too_often_counts_as_failed,
    every_node_runs_the_pod_once,
};
use hindrances::{a_pod_without_room_is_named, a_refused_pod_is_named};
use nodes::a_node_that_joins_late_gets_its_pod_unless_it_is_tainted;
use prewarm_testkit::real_tests;

real_tests! {
    every_node_runs_the_pod_once,
    a_job_goes_by_its_ttl_and_its_pods_with_it,
    a_failed_pod_fails_the_job,
    a_job_that_continues_completes_with_its_failures,
    a_job_that_pauses_goes_on_when_it_is_resumed,
    a_job_over_its_deadline_fails_and_its_pods_go,
    a_pod_that_restarts_too_often_counts_as_failed,
    a_refused_pod_is_named,
    a_pod_without_room_is_named,
    a_node_that_joins_late_gets_its_pod_unless_it_is_tainted,
}
