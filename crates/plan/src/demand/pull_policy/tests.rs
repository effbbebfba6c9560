use serde_json::{Value, json};

use super::*;
use crate::cluster::image_pull_job::demand;

/// The default of the setting for entries of `Always` jobs.
const ALWAYS_TTL: i32 = 300;
/// The largest number below 1.
const ALMOST_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

fn job(pull_policy: &Value, completion_policy: &Value) -> Demand {
    let spec = json!({
        "image": "nginx:1.25",
        "pullPolicy": pull_policy,
        "completionPolicy": completion_policy,
    });
    demand(&serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap())
}

fn ttl(pull_policy: &Value, completion_policy: &Value, jitter: f64) -> i32 {
    tag_policy(&job(pull_policy, completion_policy), ALWAYS_TTL, jitter).ttl_seconds_after_finished
}

/// kruise R54
#[test]
fn timeout_and_retries_are_the_jobs() {
    let policy =
        tag_policy(&job(&json!({"timeoutSeconds": 50, "backoffLimit": 2}), &json!({})), ALWAYS_TTL, 0.0);
    assert_eq!((policy.timeout_seconds, policy.backoff_limit), (50, 2));
}

/// kruise R54
#[test]
fn the_entry_of_a_never_job_lives_a_day_give_or_take_ten_minutes() {
    let never = json!({"type": "Never"});
    let lives = [0.0, 0.5, ALMOST_ONE].map(|jitter| ttl(&json!({}), &never, jitter));
    assert_eq!(lives, [85_800, 86_400, 86_999]);
}

/// kruise T57
#[test]
fn a_never_job_grants_half_an_hour_or_one_attempt_if_that_is_longer() {
    let deadline = |pull_policy: &Value| {
        tag_policy(&job(pull_policy, &json!({"type": "Never"})), ALWAYS_TTL, 0.0).active_deadline_seconds
    };
    assert_eq!(deadline(&json!({})), Some(1800));
    assert_eq!(deadline(&json!({"timeoutSeconds": 1799})), Some(1800));
    assert_eq!(deadline(&json!({"timeoutSeconds": 1801})), Some(1801));
}

/// kruise R54
#[test]
fn the_entry_of_an_always_job_outlives_the_jobs_ttl() {
    let completion = json!({"ttlSecondsAfterFinished": 20, "activeDeadlineSeconds": 9000});
    let lives = [0.0, 0.5, ALMOST_ONE].map(|jitter| ttl(&json!({}), &completion, jitter));
    assert_eq!(lives, [320, 470, 619]);
}

/// kruise R54
#[test]
fn without_a_ttl_the_deadline_counts_and_without_that_the_attempts() {
    assert_eq!(ttl(&json!({}), &json!({"activeDeadlineSeconds": 1000}), 0.0), 1300);
    assert_eq!(ttl(&json!({"timeoutSeconds": 600, "backoffLimit": 3}), &json!({}), 0.0), 2100);
}

/// kruise R54
#[test]
fn the_deadline_of_an_always_job_is_copied() {
    let deadline = |completion: &Value| {
        tag_policy(&job(&json!({}), completion), ALWAYS_TTL, 0.0).active_deadline_seconds
    };
    assert_eq!(deadline(&json!({"activeDeadlineSeconds": 5_000_000_000_i64})), Some(5_000_000_000));
    assert_eq!(deadline(&json!({})), None);
}

#[test]
fn what_does_not_fit_is_the_longest_that_does() {
    let longest_attempts = json!({"timeoutSeconds": i32::MAX, "backoffLimit": i32::MAX});
    assert_eq!(ttl(&longest_attempts, &json!({}), ALMOST_ONE), i32::MAX);
    assert_eq!(ttl(&json!({}), &json!({"activeDeadlineSeconds": i64::MAX}), ALMOST_ONE), i32::MAX);
}

#[test]
fn a_jitter_out_of_bounds_stays_within_the_spread() {
    for jitter in [f64::NEG_INFINITY, -1.0, 1.0, 2.0, f64::INFINITY, f64::NAN] {
        let life = ttl(&json!({}), &json!({"type": "Never"}), jitter);
        assert!((85_800..87_000).contains(&life), "{jitter}: {life}");
    }
}

#[test]
fn the_longest_of_two_policies_cuts_neither_short() {
    let policy = |timeout_seconds, backoff_limit, ttl_seconds_after_finished, active_deadline_seconds| {
        ImageTagPullPolicy {
            timeout_seconds,
            backoff_limit,
            ttl_seconds_after_finished,
            active_deadline_seconds,
        }
    };
    assert_eq!(
        longest(&policy(600, 1, 320, Some(50)), &policy(50, 3, 86_400, Some(1800))),
        policy(600, 3, 86_400, Some(1800))
    );
    assert_eq!(longest(&policy(1, 1, 1, None), &policy(1, 1, 1, Some(50))), policy(1, 1, 1, None));
}
