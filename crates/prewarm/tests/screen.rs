//! The demo's live view in a real pseudo-terminal.

#[path = "screen/terminal.rs"]
mod terminal;

use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use prewarm_api::kruise::ImagePullJob;
use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use terminal::{Ended, Terminal};

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 60);
/// A story that is over soon, on a cluster that stays.
const STAYING: [&str; 7] = ["--forever", "--nodes", "2", "--speed", "4", "--scenario", "join"];
/// A story that is interrupted before it is over.
const LONG: [&str; 4] = ["--nodes", "2", "--speed", "0.1"];
const OVER: &str = "The cluster stays until q or Ctrl-C";

/// Waits until the story is over and nothing changes any more.
fn settled(terminal: &Terminal) -> String {
    let moving = Regex::new(r"\d[BKM](/s)? +[\d.]+[MG]").expect("a pattern");
    terminal.wait("end of the story", |text| text.contains(OVER) && !moving.is_match(text))
}

/// The screen without what differs between runs. How often a story reports the progress of a job depends on timing.
fn masked(text: &str) -> String {
    let kept = text.lines().map(str::trim_end).filter(|line| !line.contains("nodes have it"));
    let text = kept.collect::<Vec<_>>().join("\n");
    [
        (r"/tmp/screen-\w+/prewarm-demo-\w+/", "[DIRECTORY]/"),
        (r"\d\d:\d\d", "[TIME]"),
        (r"(?m)^ *\d+\.\d s", "[TIME]"),
        (r"\(\d+\.\d s\)", "([TIME])"),
    ]
    .iter()
    .fold(text, |text, (pattern, mask)| {
        Regex::new(pattern).expect("a pattern").replace_all(&text, *mask).into_owned()
    })
}

/// Asserts that the terminal is restored and nothing is left of the cluster.
fn assert_clean(ended: &Ended) {
    let screen = ended.shown.screen();
    assert!(!screen.alternate_screen(), "the screen is still taken");
    assert!(!screen.hide_cursor(), "the cursor is still hidden");
    assert_eq!(ended.left_behind, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_small_screen_shows_everything_that_matters() {
    let mut terminal = Terminal::start(SMALL, &STAYING, &[]);
    insta::assert_snapshot!(masked(&settled(&terminal)));
    terminal.press("q");
    assert_clean(&terminal.end());
}

#[test]
fn a_large_screen_shows_more() {
    let mut terminal = Terminal::start(LARGE, &STAYING, &[]);
    insta::assert_snapshot!(masked(&settled(&terminal)));
    terminal.press("q");
    assert_clean(&terminal.end());
}

#[test]
fn the_view_follows_the_size_of_the_terminal() {
    let mut terminal = Terminal::start(SMALL, &LONG, &[]);
    let reaches = |width: usize| {
        move |text: &str| {
            let title = text.lines().next().unwrap_or_default();
            title.ends_with("q ends it") && title.chars().count() == width
        }
    };
    terminal.wait("title", reaches(80));
    for size in [(120, 30), (1, 1), (200, 60), (60, 10)] {
        terminal.resize(size);
        if size.0 > 1 {
            terminal.wait("title as wide as the terminal", reaches(size.0.into()));
        }
    }
    terminal.press("q");
    assert_clean(&terminal.end());
}

#[test]
fn ctrl_c_ends_a_story_and_gives_the_terminal_back() {
    let mut terminal = Terminal::start(SMALL, &LONG, &[]);
    terminal.wait("pull", |text| text.contains(" % "));
    terminal.press("\x03");
    let ended = terminal.end();
    assert_clean(&ended);
    assert_eq!(ended.code, 1);
    assert!(ended.shown.text().contains("interrupted; the cluster is gone"), "{}", ended.shown.text());
}

#[test]
fn sigterm_gives_the_terminal_back_too() {
    let terminal = Terminal::start(SMALL, &LONG, &[]);
    terminal.wait("pull", |text| text.contains(" % "));
    let process = i32::try_from(terminal.process()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(process, Signal::TERM).expect("it runs");
    let ended = terminal.end();
    assert_clean(&ended);
    assert_eq!(ended.code, 1);
}

#[test]
fn q_ends_a_cluster_that_stays_and_leaves_the_summary() {
    let mut terminal = Terminal::start(SMALL, &STAYING, &[]);
    settled(&terminal);
    terminal.press("q");
    let ended = terminal.end();
    assert_clean(&ended);
    assert_eq!(ended.code, 0);
    assert!(ended.shown.text().contains("✓ node-03 has the image"), "{}", ended.shown.text());
}

#[test]
fn the_whole_story_ends_well_and_leaves_the_summary() {
    let terminal = Terminal::start(LARGE, &["--nodes", "4", "--speed", "4", "--seed", "7"], &[]);
    let ended = terminal.end();
    assert_clean(&ended);
    let text = ended.shown.text();
    assert_eq!(ended.code, 0, "{text}");
    assert_eq!(text.matches('✓').count(), 8, "{text}");
    assert!(text.contains("nothing is left behind"), "{text}");
    assert!(ended.shown.frames.len() > 1, "nothing was drawn again");
}

/// Whether any character has a colour.
fn has_colours(terminal: &Terminal) -> bool {
    let shown = terminal.shown();
    let (height, width) = shown.screen().size();
    let mut cells = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
    cells.any(|(row, column)| {
        let colour = |cell: &vt100::Cell| (cell.fgcolor(), cell.bgcolor());
        let plain = (vt100::Color::Default, vt100::Color::Default);
        shown.screen().cell(row, column).is_some_and(|cell| colour(cell) != plain)
    })
}

#[test]
fn colours_are_for_those_who_want_them() {
    for (variables, is_coloured) in [(vec![], true), (vec![("NO_COLOR", "1")], false)] {
        let mut terminal = Terminal::start(SMALL, &STAYING, &variables);
        settled(&terminal);
        assert_eq!(has_colours(&terminal), is_coloured, "{variables:?}");
        terminal.press("q");
        assert_clean(&terminal.end());
    }
}

#[test]
fn plain_lines_are_printed_on_request() {
    let short = ["--nodes", "2", "--speed", "4", "--scenario", "private"];
    let with_ci: Vec<&str> = short.iter().copied().chain(["--ci"]).collect();
    for (arguments, variables) in [(with_ci, vec![]), (short.to_vec(), vec![("TERM", "dumb")])] {
        let ended = Terminal::start(LARGE, &arguments, &variables).end();
        assert_eq!(ended.code, 0, "{}", ended.shown.text());
        assert!(!ended.shown.written.contains(&b'\x1b'), "{}", ended.shown.text());
        assert!(ended.shown.text().contains("✓ pulled"), "{}", ended.shown.text());
    }
}

#[tokio::test]
async fn a_users_own_job_is_shown_like_any_other() {
    let mut terminal = Terminal::start(SMALL, &STAYING, &[]);
    settled(&terminal);
    let read = Kubeconfig::read_from(terminal.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.expect("a config");
    let jobs: Api<ImagePullJob> = Api::namespaced(Client::try_from(config).expect("a client"), "default");
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": "my-own"},
        "spec": {"image": "registry.demo/shop/cart:1.0", "parallelism": 3},
    });
    let job = serde_json::from_value(job).expect("a job");
    jobs.create(&PostParams::default(), &job).await.expect("the API takes it");
    terminal.wait("job", |text| text.contains("the job my-own is over: 3 of 3 nodes have it"));
    terminal.press("q");
    let ended = terminal.end();
    assert_clean(&ended);
    assert_eq!(ended.code, 0);
}

/// A demo that stays, and the path of its kubeconfig.
fn staying() -> (Terminal, String) {
    let terminal = Terminal::start(SMALL, &STAYING, &[]);
    settled(&terminal);
    let kubeconfig = terminal.kubeconfig().display().to_string();
    (terminal, kubeconfig)
}

/// Everything that a command writes to a terminal until it ends.
fn written(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let ended = Terminal::run(LARGE, arguments, variables).end();
    String::from_utf8(ended.shown.written).expect("text")
}

#[test]
fn tables_are_coloured_on_a_terminal_unless_that_is_not_wanted() {
    let (mut demo, kubeconfig) = staying();
    let status = ["status", "--kubeconfig", &kubeconfig];
    let coloured = written(&status, &[]);
    assert!(coloured.contains("Settled") && coloured.contains("\u{1b}["), "{coloured:?}");
    for plain in [[("NO_COLOR", "1")], [("TERM", "dumb")]] {
        let text = written(&status, &plain);
        assert!(text.contains("Settled") && !text.contains('\u{1b}'), "{text:?}");
    }
    demo.press("q");
    assert_clean(&demo.end());
}

#[test]
fn waiting_on_a_terminal_shows_a_bar_for_each_image() {
    let (mut demo, kubeconfig) = staying();
    let images = ["registry.demo/shop/cart:1.0", "registry.demo/shop/cart:0.0"];
    let text = written(&["pull", images[0], images[1], "--wait", "--kubeconfig", &kubeconfig], &[]);
    assert!(text.contains(&format!("{} [=====", images[0])), "{text}");
    assert!(text.contains(&format!("{} [", images[1])) && text.contains("NotFound"), "{text}");
    demo.press("q");
    assert_clean(&demo.end());
}

#[test]
fn a_watched_status_is_drawn_in_place_until_it_is_interrupted() {
    let (mut demo, kubeconfig) = staying();
    let mut status = Terminal::run(SMALL, &["status", "--watch", "--kubeconfig", &kubeconfig], &[]);
    status.wait_written("imagepulljob/cart");
    status.press("\u{3}");
    let ended = status.end();
    let text = String::from_utf8_lossy(&ended.shown.written).into_owned();
    assert!(text.starts_with("\u{1b}[2J\u{1b}[H"), "{text:?}");
    demo.press("q");
    assert_clean(&demo.end());
}
