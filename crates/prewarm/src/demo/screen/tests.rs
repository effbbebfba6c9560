//! From observations to the view, and from the view to the picture.

use std::time::Duration;

use prewarm_agent::disk::Room;
use prewarm_api::kruise::{ImagePullJob, NodeImage};
use prewarm_api::ofen::ImagePrefetch;
use prewarm_api::reference::ImageRef;
use prewarm_demo::store::Pulling;
use prewarm_demo::story::{Counts, Message};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::draw::{Palette, draw};
use super::state::{Change, Kind, Observed, Snapshot, State};
use super::view::{Activity, Mood, Node, Time, View, fitting, view};

const MIB: u64 = 1 << 20;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A job with these numbers of nodes in total, pulling, done and failed.
fn job(name: &str, [desired, active, succeeded, failed]: [i32; 4], is_over: bool) -> Change {
    let completion = is_over.then_some("2026-01-01T00:00:10Z");
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"image": format!("registry.demo/shop/{name}:1.0")},
        "status": {
            "desired": desired, "active": active, "succeeded": succeeded, "failed": failed,
            "completionTime": completion,
        },
    });
    let job: ImagePullJob = serde_json::from_value(job).expect("a job");
    Change::Job(Observed::from(&job))
}

/// An ImagePrefetch with these numbers of nodes that must have the images, that have them, and that fail.
fn prefetch(name: &str, images: &[&str], [desired, pulled, failed]: [i32; 3]) -> Change {
    let prefetch = json!({
        "apiVersion": "ofen.cybozu.io/v1", "kind": "ImagePrefetch",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"images": images, "replicas": desired},
        "status": {
            "desiredNodes": desired, "imagePulledNodes": pulled, "imagePullingNodes": desired - pulled,
            "imagePullFailedNodes": failed,
        },
    });
    let prefetch: ImagePrefetch = serde_json::from_value(prefetch).expect("an ImagePrefetch");
    Change::Job(Observed::from(&prefetch))
}

/// A node that has given up on an image.
fn failing(name: &str) -> Change {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": {"name": name},
        "spec": {},
        "status": {"desired": 1, "failed": 1, "imageStatuses": {"registry.demo/shop/web": {"tags": [
            {"tag": "1.O", "phase": "Failed", "failureClass": "NotFound", "message": "not found"},
        ]}}},
    });
    let object: NodeImage = serde_json::from_value(object).expect("a NodeImage");
    Change::Node(Box::new(object))
}

fn sight(number: usize, percent: Option<u64>, received: u64) -> Snapshot {
    let pulling = |percent| Pulling {
        reference: ImageRef::parse("registry.demo/shop/web:1.0").expect("a reference"),
        done: percent * MIB,
        total: 100 * MIB,
    };
    Snapshot {
        name: format!("node-{number:02}"),
        zone: format!("zone-{}", ["a", "b", "c"][number % 3]),
        pulls: percent.map(pulling).into_iter().collect(),
        received,
        room: Room { free: 1000 * MIB, capacity: 2000 * MIB },
    }
}

/// The middle of a story with this many nodes.
fn moment(nodes: usize) -> View {
    let mut state = State::default();
    state.observe_message(
        Message::Title("shop/web:1.0 (24 MiB) on all nodes, 4 at a time".to_owned()),
        seconds(1),
    );
    state.observe(job("web", [12, 4, 6, 0], false), seconds(1));
    state.observe(job("cart", [12, 0, 11, 1], false), seconds(1));
    state.observe(job("cart", [12, 0, 11, 1], true), seconds(4));
    state.observe_message(Message::Said("web: 6 of 12 nodes have it, 4 pulling".to_owned()), seconds(5));
    state.observe(failing("node-03"), seconds(6));
    let is_pulling = |number: usize| number % 3 == 1;
    for at in [10, 11] {
        let received = |number| if is_pulling(number) { at * 8 * MIB } else { 0 };
        let percent = |number: usize| is_pulling(number).then_some(number as u64 % 100);
        state.observe_nodes(
            (1..=nodes).map(|number| sight(number, percent(number), received(number))).collect(),
            seconds(at),
        );
    }
    view(&state, "/tmp/prewarm-demo-x/kubeconfig", seconds(71))
}

fn picture(view: &View, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory");
    terminal.draw(|frame| draw(frame, view, &Palette::plain())).expect("it takes everything");
    terminal.backend().clone()
}

fn time_of(counts: [i32; 4], elapsed: u64) -> Time {
    let mut state = State::default();
    state.observe(job("web", counts, false), seconds(2));
    view(&state, "", seconds(2 + elapsed)).jobs[0].time
}

#[test]
fn the_estimate_assumes_the_pace_of_the_finished_nodes() {
    assert_eq!(time_of([12, 4, 4, 0], 10), Time::Left(seconds(20)));
    assert_eq!(time_of([12, 4, 3, 1], 10), Time::Left(seconds(20)));
}

#[test]
fn there_is_no_estimate_before_the_first_node_or_after_the_last() {
    assert_eq!(time_of([12, 4, 0, 0], 10), Time::Unknown);
    assert_eq!(time_of([12, 0, 12, 0], 10), Time::Unknown);
    assert_eq!(time_of([0, 0, 0, 0], 10), Time::Unknown);
}

#[test]
fn jobs_that_run_come_first_and_then_the_one_that_ended_last() {
    let mut state = State::default();
    for name in ["a", "b", "c", "d"] {
        state.observe(job(name, [1, 1, 0, 0], false), seconds(1));
    }
    state.observe(job("a", [1, 0, 1, 0], true), seconds(2));
    state.observe(job("c", [1, 0, 1, 0], true), seconds(3));
    let jobs = view(&state, "", seconds(9)).jobs;
    let shown: Vec<_> = jobs.iter().map(|job| (job.name.as_str(), job.time)).collect();
    let (unknown, took) = (Time::Unknown, |time| Time::Took(seconds(time)));
    assert_eq!(shown, [("b", unknown), ("d", unknown), ("c", took(2)), ("a", took(1))]);
}

#[test]
fn a_job_that_a_new_listing_does_not_name_is_gone() {
    let mut state = State::default();
    state.observe(job("web", [1, 1, 0, 0], false), seconds(1));
    state.observe(job("cart", [1, 1, 0, 0], false), seconds(1));
    state.observe(prefetch("web", &["web:1.0"], [1, 0, 0]), seconds(1));
    state.observe(Change::JobsBegin(Kind::ImagePullJob), seconds(2));
    state.observe(job("cart", [1, 1, 0, 0], false), seconds(2));
    state.observe(Change::JobsEnd(Kind::ImagePullJob), seconds(2));
    let shown = |state: &State| {
        let jobs = view(state, "", seconds(3)).jobs;
        jobs.into_iter().map(|job| (job.name, job.image)).collect::<Vec<_>>()
    };
    let named = |name: &str, image: &str| (name.to_owned(), image.to_owned());
    assert_eq!(shown(&state), [named("cart", "shop/cart:1.0"), named("web", "web:1.0")]);
    state.observe(Change::JobsBegin(Kind::ImagePrefetch), seconds(2));
    state.observe(Change::JobsEnd(Kind::ImagePrefetch), seconds(2));
    assert_eq!(shown(&state), [named("cart", "shop/cart:1.0")]);
}

#[test]
fn an_image_prefetch_is_shown_like_a_job_that_is_never_over() {
    let mut state = State::default();
    let images = ["registry.demo/ml/model:7.1", "registry.demo/ml/tools:2"];
    state.observe(prefetch("model", &images, [8, 3, 1]), seconds(1));
    let jobs = view(&state, "", seconds(2)).jobs;
    let counts = Counts { desired: 8, active: 4, succeeded: 3, failed: 1 };
    assert_eq!((jobs[0].image.as_str(), jobs[0].counts), ("ml/model:7.1 and 1 more", counts));
    state.observe(prefetch("model", &images, [8, 8, 0]), seconds(3));
    let shown = view(&state, "", seconds(4));
    assert_eq!((shown.jobs[0].time, shown.events), (Time::Unknown, Vec::new()));
}

#[test]
fn a_finished_job_and_nodes_with_the_same_failure_are_one_event_each() {
    let mut state = State::default();
    state.observe(job("web", [3, 3, 0, 0], false), seconds(1));
    for node in ["node-01", "node-02", "node-03", "node-03"] {
        state.observe(failing(node), seconds(2));
    }
    for _ in 0..2 {
        state.observe(job("web", [3, 0, 0, 3], true), seconds(3));
    }
    let events = view(&state, "", seconds(4)).events;
    let shown: Vec<_> = events.iter().map(|event| (event.text.as_str(), event.mood)).collect();
    let failed = ("node-01 and 2 more nodes could not pull shop/web:1.O (NotFound)", Mood::Bad);
    let over = ("the job web is over: 0 of 3 nodes have it, 0 pulling, 3 failed", Mood::Bad);
    assert_eq!(shown, [failed, over]);
}

#[test]
fn a_node_shows_its_image_speed_and_free_space() {
    let mut state = State::default();
    assert!(state.observe_nodes(vec![sight(1, Some(43), 0)], seconds(1)), "a node has come");
    assert!(state.observe_nodes(vec![sight(1, Some(43), 8 * MIB)], seconds(2)), "bytes have come");
    assert!(!state.observe_nodes(vec![sight(1, Some(43), 8 * MIB)], seconds(2)), "all is as before");
    let activity = Activity::Pulling { image: "shop/web:1.0".to_owned(), percent: 43, others: 0 };
    let (name, zone) = ("node-01".to_owned(), "zone-b".to_owned());
    let node = Node { name, zone, activity, speed: 8 * MIB, free: 1000 * MIB };
    assert_eq!(view(&state, "", seconds(2)).nodes, [node]);
}

#[test]
fn nodes_stay_in_their_order_as_long_as_all_fit() {
    let nodes = moment(6).nodes;
    let (shown, left_out) = fitting(&nodes, 6);
    assert_eq!((shown, left_out), (nodes.iter().collect(), 0));
}

#[test]
fn those_that_pull_come_first_when_not_all_fit() {
    let nodes = moment(6).nodes;
    let (shown, left_out) = fitting(&nodes, 3);
    let names: Vec<_> = shown.iter().map(|node| node.name.as_str()).collect();
    assert_eq!((names, left_out), (vec!["node-01", "node-04", "node-02"], 3));
}

#[test]
fn twelve_nodes_fit_on_a_small_screen() {
    insta::assert_snapshot!(picture(&moment(12), 80, 24));
}

#[test]
fn a_large_screen_has_room_for_bars() {
    insta::assert_snapshot!(picture(&moment(12), 200, 60));
}

#[test]
fn of_two_hundred_nodes_a_small_screen_shows_those_that_pull() {
    insta::assert_snapshot!(picture(&moment(200), 80, 24));
}

#[test]
fn two_hundred_nodes_fit_on_a_large_screen() {
    let shown = picture(&moment(200), 200, 60).to_string();
    let missing: Vec<_> = (1..=200).filter(|number| !shown.contains(&format!("node-{number:02} "))).collect();
    assert!(missing.is_empty(), "{missing:?} are missing:\n{shown}");
}

#[test]
fn no_screen_is_too_small() {
    let views = [View::default(), moment(1), moment(200)];
    for (width, height) in (0..30).flat_map(|width| (0..30).map(move |height| (width, height))) {
        for view in &views {
            picture(view, width * 3, height);
        }
    }
}

#[test]
fn a_job_with_extreme_numbers_is_drawn() {
    let mut view = moment(1);
    view.jobs[0].counts = Counts { desired: 2, active: 7, succeeded: -1, failed: i32::MAX };
    picture(&view, 80, 24);
}
