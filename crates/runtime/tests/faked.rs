//! What other tests may expect of the fake, beyond the contract suite.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use prewarm_api::kruise::FailureClass;
use prewarm_api::names::{PULLING_BY, PULLING_BY_ANNOTATION};
use prewarm_api::reference::ImageRef;
use prewarm_credentials::{Credential, SecretText};
use prewarm_runtime::fake::{Fake, Outcome};
use prewarm_runtime::{Code, Progress, PullRequest, Runtime, Sample};
use tokio::time::{Instant, sleep, timeout};

fn reference(text: &str) -> ImageRef {
    ImageRef::parse(text).expect("a test gives valid references")
}

fn request(text: &str) -> PullRequest {
    PullRequest {
        reference: reference(text),
        credential: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
    }
}

fn as_robot(text: &str, password: &str) -> PullRequest {
    let credential = Credential {
        username: "robot".into(),
        password: SecretText::new(password.into()),
        server_address: "reg.example".into(),
        ..Credential::default()
    };
    PullRequest { credential: Some(credential), ..request(text) }
}

async fn connect(fake: &Fake) -> Runtime {
    Runtime::connect(&fake.endpoint()).await.expect("the fake answers")
}

#[tokio::test(start_paused = true)]
async fn a_pull_takes_the_time_that_was_set() {
    let fake = Fake::new();
    let _image =
        fake.image("reg.example/a:1").takes(Duration::from_secs(90)).unpacks_for(Duration::from_secs(5));
    let runtime = connect(&fake).await;
    let start = Instant::now();
    runtime.pull(&request("reg.example/a:1")).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 95);
    assert!(fake.has("reg.example/a:1"));
}

#[tokio::test(start_paused = true)]
async fn every_pull_is_recorded_with_its_request() {
    let fake = Fake::new();
    fake.image("reg.example/a:1");
    let runtime = connect(&fake).await;
    let mut asked = as_robot("reg.example/a:1", "open sesame");
    asked.labels.insert("app".into(), "shop".into());
    asked.annotations.insert("why".into(), "test".into());
    // No caller can pretend to be another one.
    asked.annotations.insert(PULLING_BY_ANNOTATION.into(), "another".into());
    runtime.pull(&asked).await.unwrap();
    let calls = fake.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].reference, "reg.example/a:1");
    assert_eq!(calls[0].username.as_deref(), Some("robot"));
    assert_eq!(calls[0].server_address.as_deref(), Some("https://reg.example"));
    assert_eq!(calls[0].labels, BTreeMap::from([("app".into(), "shop".into())]));
    let annotations =
        BTreeMap::from([("why".into(), "test".into()), (PULLING_BY_ANNOTATION.into(), PULLING_BY.into())]);
    assert_eq!(calls[0].annotations, annotations);
    assert_eq!(calls[0].outcome, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn failures_come_in_order_and_end() {
    let fake = Fake::new();
    fake.image("reg.example/a:1").fails(2, Code::Unknown, "429 Too Many Requests").fails(
        1,
        Code::Unknown,
        "no space left on device",
    );
    let runtime = connect(&fake).await;
    let mut classes = Vec::new();
    while let Err(error) = runtime.pull(&request("reg.example/a:1")).await {
        classes.push((error.class(), error.is_registry_overloaded()));
    }
    let limited = (FailureClass::RateLimited, true);
    assert_eq!(classes, [limited, limited, (FailureClass::NoSpace, false)]);
    assert_eq!(fake.calls_of("reg.example/a:1").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_locked_image_is_given_to_the_right_account_only() {
    let fake = Fake::new();
    fake.image("reg.example/a:1").needs("robot", "open sesame");
    let runtime = connect(&fake).await;
    for wrong in [request("reg.example/a:1"), as_robot("reg.example/a:1", "abracadabra")] {
        let error = runtime.pull(&wrong).await.err().unwrap();
        assert_eq!(error.class(), FailureClass::Unauthorized, "{error}");
    }
    runtime.pull(&as_robot("reg.example/a:1", "open sesame")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_pull_is_recorded_with_its_time() {
    let fake = Fake::new();
    fake.image("reg.example/a:1").hangs();
    let runtime = connect(&fake).await;
    let asked = request("reg.example/a:1");
    assert!(timeout(Duration::from_secs(7), runtime.pull(&asked)).await.is_err());
    fake.ended(1).await;
    let calls = fake.calls();
    assert_eq!(calls[0].outcome, Outcome::Cancelled);
    assert_eq!((calls[0].ended.unwrap() - calls[0].started).as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn pulls_under_way_at_one_moment_are_counted() {
    let fake = Fake::new();
    let runtime = connect(&fake).await;
    let pulls = (1..=3).map(|number| {
        let name = format!("reg.example/a:{number}");
        fake.image(&name).takes(Duration::from_secs(number));
        let runtime = runtime.clone();
        async move { runtime.pull(&request(&name)).await.unwrap() }
    });
    futures::stream::iter(pulls).buffer_unordered(2).collect::<Vec<()>>().await;
    assert_eq!(fake.most_at_once(), 2);
}

#[tokio::test(start_paused = true)]
async fn progress_follows_the_clock_and_ends_with_unpacking() {
    let fake = Fake::new();
    fake.image("reg.example/a:1")
        .layers(&[600, 400])
        .takes(Duration::from_secs(10))
        .unpacks_for(Duration::from_secs(10));
    let runtime = connect(&fake).await;
    let pull = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.pull(&request("reg.example/a:1")).await }
    });
    fake.started("reg.example/a:1").await;
    let image = reference("reg.example/a:1");
    let mut samples = Vec::new();
    for _ in 0..3 {
        sleep(Duration::from_millis(3500)).await;
        samples.push(runtime.progress(&image).await.unwrap().unwrap());
    }
    let sample = |done, is_unpacking| Progress { done, total: 1100, is_unpacking };
    assert_eq!(samples, [sample(450, false), sample(800, false), sample(1100, true)]);
    pull.await.unwrap().unwrap();
    // The manifest is looked for and read once, however often the pull is sampled.
    assert_eq!(fake.requests("Read"), 1);
    assert_eq!(fake.requests("List"), 4);
    assert_eq!(fake.requests("ListStatuses"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_runtime_counts_as_away_after_ten_seconds_and_goes_on() {
    let fake = Fake::new();
    fake.image("reg.example/a:1").present();
    let runtime = connect(&fake).await;
    fake.freeze();
    let start = Instant::now();
    let error = runtime.image(&reference("reg.example/a:1")).await.err().unwrap();
    assert!(error.is_runtime_away(), "{error}");
    assert_eq!(start.elapsed().as_secs(), 10);
    fake.thaw();
    assert!(runtime.image(&reference("reg.example/a:1")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_runtime_loses_its_pulls_and_keeps_its_images() {
    let fake = Fake::new();
    fake.image("reg.example/kept:1").present();
    fake.image("reg.example/lost:1").hangs();
    let runtime = connect(&fake).await;
    let mut removals = runtime.removals();
    let asked = request("reg.example/lost:1");
    let lost = runtime.pull(&asked);
    let stop = async {
        fake.started("reg.example/lost:1").await;
        fake.stop();
    };
    let (error, ()) = tokio::join!(lost, stop);
    let error = error.err().unwrap();
    assert!(error.is_runtime_away() && error.is_cut_off() && !error.is_unavailable(), "{error}");
    let error = runtime.pull(&asked).await.err().unwrap();
    assert!(error.is_runtime_away() && !error.is_cut_off(), "nothing was asked of anybody: {error}");
    assert_eq!(removals.next().await, None, "a subscription ends with its connection");
    fake.start();
    assert!(runtime.image(&reference("reg.example/kept:1")).await.unwrap().is_some());
    assert_eq!(fake.calls()[0].outcome, Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_answers_that_it_is_unavailable_differs_from_one_that_stops() {
    let fake = Fake::new();
    fake.image("reg.example/a:1").fails(1, Code::Unavailable, "the content store is not ready");
    fake.image("reg.example/bad:1").stops_the_runtime(Duration::from_secs(3));
    let runtime = connect(&fake).await;
    let error = runtime.pull(&request("reg.example/a:1")).await.err().unwrap();
    assert!(error.is_runtime_away() && error.is_unavailable() && !error.is_cut_off(), "{error}");
    let error = runtime.pull(&request("reg.example/bad:1")).await.err().unwrap();
    assert!(error.is_cut_off() && !error.is_unavailable(), "{error}");
    assert!(runtime.images().await.is_err(), "it is down");
    sleep(Duration::from_secs(4)).await;
    assert!(runtime.images().await.is_ok(), "it is there again");
}

#[tokio::test(start_paused = true)]
async fn a_pull_of_which_nothing_has_arrived_differs_from_one_that_nobody_knows_about() {
    let fake = Fake::new();
    fake.image("reg.example/a:1").hangs();
    let runtime = connect(&fake).await;
    let image = reference("reg.example/a:1");
    assert_eq!(runtime.sample(&image).await.unwrap(), Sample::Unknown, "it is not pulled");
    let asked = request("reg.example/a:1");
    let pull = runtime.pull(&asked);
    let look = async {
        fake.started("reg.example/a:1").await;
        runtime.sample(&image).await.unwrap()
    };
    tokio::select! {
        pulled = pull => panic!("it hangs: {pulled:?}"),
        sample = look => assert_eq!(sample, Sample::Nothing),
    }
}

#[tokio::test(start_paused = true)]
async fn a_tag_that_moved_is_pulled_again_and_the_old_image_loses_it() {
    let fake = Fake::new();
    let image = fake.image("reg.example/a:1").present();
    let (old, tagged) = (image.by_digest(), reference("reg.example/a:1"));
    let new = image.moves().by_digest();
    assert_ne!(old, new);
    let runtime = connect(&fake).await;
    runtime.pull(&request("reg.example/a:1")).await.unwrap();
    let image = runtime.image(&tagged).await.unwrap().unwrap();
    assert!(image.is(&reference(&new)) && !image.is(&reference(&old)), "{image:?}");
    let before = runtime.image(&reference(&old)).await.unwrap().unwrap();
    assert!(!before.is(&tagged), "{before:?}");
}

#[tokio::test(start_paused = true)]
async fn two_names_of_one_image_are_one_image() {
    let fake = Fake::new();
    let one = fake.image("reg.example/a:1").present();
    fake.image("reg.example/a:stable").same_as(&one).present();
    let runtime = connect(&fake).await;
    let images = runtime.images().await.unwrap();
    assert_eq!(images.len(), 1);
    assert!(images[0].is(&reference("reg.example/a:1")) && images[0].is(&reference("reg.example/a:stable")));
}

/// ofen C25, C26
#[tokio::test(start_paused = true)]
async fn a_removal_wakes_once_for_each_name_and_a_pull_never() {
    let fake = Fake::new();
    fake.image("reg.example/a:1");
    let runtime = connect(&fake).await;
    let mut removals = runtime.removals();
    let quiet = Duration::from_secs(2);
    assert!(timeout(quiet, removals.next()).await.is_err(), "nothing has happened");
    runtime.pull(&request("reg.example/a:1")).await.unwrap();
    assert!(timeout(quiet, removals.next()).await.is_err(), "an image has come");
    assert!(fake.remove("reg.example/a:1"));
    let mut woken = 0;
    while timeout(quiet, removals.next()).await.is_ok() {
        woken += 1;
    }
    assert_eq!(woken, 2, "its tag and its digest");
}
