//! AdvancedCronJobs on a real cluster: kube-apiserver, scheduler, garbage collector, job controller, two full nodes
//! (containerd and CRI-O) with kubelets and agents, and the controller as it is shipped, with its role.
//!
//! Schedules of a minute are `@every 5s` here.

#[path = "real_agent/cluster.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod cluster;
#[path = "real_agent/desk.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod desk;
#[path = "real_agent/program.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod program;
#[path = "real_cron/runs.rs"]
mod runs;
#[path = "real_cron/troubles.rs"]
mod troubles;
#[path = "real_cron/world.rs"]
mod world;

use prewarm_testkit::real_tests;
use runs::{
    a_cron_job_makes_broadcast_jobs_that_complete, a_cron_job_makes_jobs_that_complete,
    a_cron_job_pulls_its_images_on_every_node, a_paused_cron_job_makes_no_runs_until_it_goes_on,
    old_runs_go_and_a_deleted_cron_job_takes_all_of_them_along,
};
use troubles::{
    a_run_that_the_server_refuses_is_named_in_its_words, a_schedule_that_cannot_run_is_reported,
    an_image_that_fails_is_named,
};

real_tests! {
    a_cron_job_makes_jobs_that_complete,
    a_cron_job_makes_broadcast_jobs_that_complete,
    a_cron_job_pulls_its_images_on_every_node,
    a_paused_cron_job_makes_no_runs_until_it_goes_on,
    old_runs_go_and_a_deleted_cron_job_takes_all_of_them_along,
    an_image_that_fails_is_named,
    a_run_that_the_server_refuses_is_named_in_its_words,
    a_schedule_that_cannot_run_is_reported,
}
