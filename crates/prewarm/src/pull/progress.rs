//! The progress of a job while the command waits: one bar per image on a terminal, otherwise lines.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::Timestamp;
use prewarm_api::kruise::ImagePullJob;
use prewarm_plan::cluster::image_pull_job::estimate::Progress;

use crate::jobs::Job;
use crate::show::{duration, speed};

/// Writes to standard error.
pub struct Bars {
    all: Option<MultiProgress>,
    by_image: BTreeMap<String, ProgressBar>,
    lines: BTreeMap<String, String>,
}

impl Default for Bars {
    fn default() -> Self {
        let all = std::io::stderr().is_terminal().then(MultiProgress::new);
        Self { all, by_image: BTreeMap::new(), lines: BTreeMap::new() }
    }
}

impl Bars {
    pub fn show(&mut self, job: &Job, now: Timestamp) {
        for part in job.parts() {
            let image = &part.spec.image;
            match &self.all {
                Some(all) => {
                    let bar = self.by_image.entry(image.clone()).or_insert_with(|| all.add(bar(image)));
                    draw(bar, part, now);
                }
                None => self.say(part, now),
            }
        }
    }

    /// Leaves the bars as they are.
    pub fn close(&self) {
        for bar in self.by_image.values() {
            bar.abandon();
        }
    }

    fn say(&mut self, part: &ImagePullJob, now: Timestamp) {
        let line = format!("{}: {}", part.spec.image, counts(part));
        if self.lines.get(&part.spec.image) != Some(&line) {
            eprintln!("{line}{}", pace(part, now));
            self.lines.insert(part.spec.image.clone(), line);
        }
    }
}

fn bar(image: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{prefix} [{bar:24}] {msg}").expect("the template is a fixed text");
    ProgressBar::new(0).with_style(style.progress_chars("=> ")).with_prefix(image.to_owned())
}

fn draw(bar: &ProgressBar, part: &ImagePullJob, now: Timestamp) {
    let status = part.status.clone().unwrap_or_default();
    let number = |count: i32| u64::try_from(count).unwrap_or_default();
    bar.set_length(number(status.desired));
    bar.set_position(number(status.succeeded.saturating_add(status.failed)));
    bar.set_message(format!("{}{}", counts(part), pace(part, now)));
}

fn counts(part: &ImagePullJob) -> String {
    let Some(status) = &part.status else { return "waits for the controller".to_owned() };
    let mut parts = vec![format!("{}/{} nodes", status.succeeded, status.desired)];
    if status.active > 0 {
        parts.push(format!("{} pulling", status.active));
    }
    if status.failed > 0 {
        parts.push(format!("{} failed", status.failed));
    }
    parts.join(", ")
}

fn pace(part: &ImagePullJob, now: Timestamp) -> String {
    let progress = part.status.as_ref().and_then(|status| Progress::of(status, now));
    let Some(progress) = progress.filter(|progress| progress.done < progress.desired) else {
        return String::new();
    };
    let left = progress.left().map(|left| format!(", {} left", duration(left))).unwrap_or_default();
    match progress.speed() {
        Some(bytes) => format!(", {}{left}", speed(Some(bytes))),
        None => left,
    }
}
