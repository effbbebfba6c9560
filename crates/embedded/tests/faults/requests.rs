//! What can happen to a request.

use std::collections::BTreeMap;
use std::time::Duration;

use prewarm_embedded::faults::{Action, Faults, Happened, ScriptedFault};
use tokio::time::Instant;

use super::steps::{always, code, create, io_kind, maps, names, server};
#[tokio::test(start_paused = true)]
async fn latency_takes_virtual_time_only() {
    let server = server();
    let hour = Duration::from_hours(1);
    let slow = maps(always(|rates| rates.latency = hour..=hour).client(&server));
    let (start, real) = (Instant::now(), std::time::Instant::now());
    create(&slow, "one").await.unwrap();
    // Each direction may be rounded up to a millisecond.
    assert!((hour..hour + Duration::from_millis(5)).contains(&start.elapsed()));
    assert!(real.elapsed() < Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_429_says_when_to_come_back_and_nothing_is_stored() {
    let server = server();
    let faults = Faults::scripted(vec![ScriptedFault::at(1, Action::TooManyRequests(30))]);
    let api = maps(faults.client(&server));
    let error = create(&api, "one").await.unwrap_err();
    let kube::Error::Api(status) = &error else { panic!("{error}") };
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(status.details.as_ref().unwrap().retry_after_seconds, 30);
    assert!(maps(server.client()).get_opt("one").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_retrying_client_waits_as_long_as_retry_after_says() {
    let server = server();
    let faults = Faults::scripted(vec![
        ScriptedFault::at(1, Action::TooManyRequests(30)),
        ScriptedFault::at(2, Action::TooManyRequests(60)),
    ]);
    let start = Instant::now();
    create(&maps(faults.retrying_client(&server)), "one").await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 90);
    assert_eq!(faults.tally(), BTreeMap::from([("answered", 1), ("too-many-requests", 2)]));
}

#[tokio::test(start_paused = true)]
async fn a_500_means_not_stored() {
    let server = server();
    let api = maps(always(|rates| rates.internal_error = 1.0).client(&server));
    assert_eq!(code(&create(&api, "one").await.unwrap_err()), 500);
    assert!(names(&maps(server.client())).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn refused_means_not_stored() {
    let server = server();
    let api = maps(always(|rates| rates.refused = 1.0).client(&server));
    let error = create(&api, "one").await.unwrap_err();
    assert_eq!(io_kind(&error), std::io::ErrorKind::ConnectionRefused);
    assert!(names(&maps(server.client())).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_means_stored() {
    let server = server();
    let faults = always(|rates| rates.answer_lost = 1.0);
    let error = create(&maps(faults.client(&server)), "one").await.unwrap_err();
    assert_eq!(io_kind(&error), std::io::ErrorKind::ConnectionReset);
    assert_eq!(names(&maps(server.client())).await, ["one"]);
    assert_eq!(faults.writes(), 1);
    assert_eq!(faults.journal()[0].happened, Happened::AnswerLost(201));
}
