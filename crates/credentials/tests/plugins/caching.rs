//! How often a plugin runs. The clock is advanced between runs, never during one: a paused clock jumps to the next
//! timer while a test waits for a process.

use std::time::Duration;

use prewarm_credentials::Plugins;

use super::bench::{self, Bench, RESPONSE};

async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn counting(answer: &str) -> Bench {
    Bench::new(&format!("echo run >>runs; echo '{answer}'"))
}

async fn runs_after(bench: &Bench, plugins: &Plugins, image: &str) -> usize {
    bench::ask(plugins, image).await;
    bench.lines("runs")
}

#[tokio::test]
async fn an_answer_is_used_for_its_key_type_until_its_time_is_over() {
    for (scope, runs) in [("Image", [1, 1, 2, 3]), ("Registry", [1, 1, 1, 2]), ("Global", [1, 1, 1, 1])] {
        let bench = counting(&RESPONSE.replace("Registry", scope));
        let plugins = bench.plugins();
        let images = ["reg.example/a:v1", "reg.example/a:v2", "reg.example/b", "reg2.example/a"];
        for (image, runs) in images.into_iter().zip(runs) {
            assert_eq!(runs_after(&bench, &plugins, image).await, runs, "{scope} {image}");
        }
        pass(Duration::from_secs(3600 - 30)).await;
        assert_eq!(runs_after(&bench, &plugins, images[0]).await, runs[3], "{scope}");
        pass(Duration::from_secs(30)).await;
        assert_eq!(runs_after(&bench, &plugins, images[0]).await, runs[3] + 1, "{scope}");
    }
}

#[tokio::test]
async fn an_answer_without_duration_is_used_as_long_as_the_config_says() {
    let bench = counting(&RESPONSE.replace(r#""cacheDuration":"1h","#, ""));
    let plugins = bench.plugins();
    assert_eq!(runs_after(&bench, &plugins, "reg.example/a").await, 1);
    pass(Duration::from_secs(570)).await;
    assert_eq!(runs_after(&bench, &plugins, "reg.example/a").await, 1);
    pass(Duration::from_secs(30)).await;
    assert_eq!(runs_after(&bench, &plugins, "reg.example/a").await, 2);
}

#[tokio::test]
async fn an_answer_without_a_validity_and_a_failure_are_not_kept() {
    let bench = counting(&RESPONSE.replace("1h", "0s"));
    let plugins = bench.plugins();
    assert_eq!(runs_after(&bench, &plugins, "reg.example/a").await, 1);
    assert_eq!(runs_after(&bench, &plugins, "reg.example/a").await, 2);

    let bench = Bench::new("echo run >>runs; exit 1");
    let plugins = bench.plugins();
    assert_eq!(runs_after(&bench, &plugins, "reg.example/a").await, 1);
    assert_eq!(runs_after(&bench, &plugins, "reg.example/a").await, 2);
}

#[tokio::test]
async fn requests_at_the_same_time_share_one_run_even_if_nothing_is_kept() {
    let bench = counting(&RESPONSE.replace("1h", "0s"));
    let plugins = bench.plugins();
    let asked = (0..8).map(|number| {
        let (plugins, image) = (&plugins, format!("reg.example/a:v{number}"));
        async move { bench::ask(plugins, &image).await.credentials.len() }
    });
    assert_eq!(futures::future::join_all(asked).await, [1; 8]);
    assert_eq!(bench.lines("runs"), 1);
}

#[tokio::test]
async fn requests_for_different_images_share_a_run_within_the_scope_of_its_answer() {
    for (scope, runs) in [("Image", 4), ("Registry", 2), ("Global", 1)] {
        let bench = counting(&RESPONSE.replace("Registry", scope));
        let plugins = bench.plugins();
        let images = ["reg.example/a", "reg.example/b", "reg2.example/a", "reg2.example/b"];
        futures::future::join_all(images.map(|image| bench::ask(&plugins, image))).await;
        assert_eq!(bench.lines("runs"), runs, "{scope}");
    }
}

#[tokio::test]
async fn a_failure_for_one_image_is_not_another_images_failure() {
    let bench = Bench::new(&format!("grep -q team/bad && exit 1; echo '{RESPONSE}'"));
    let plugins = bench.plugins();
    let (bad, good) =
        tokio::join!(bench::ask(&plugins, "reg.example/team/bad"), bench::ask(&plugins, "reg.example/good"));
    assert_eq!((bad.credentials.len(), good.credentials.len()), (0, 1));
}
