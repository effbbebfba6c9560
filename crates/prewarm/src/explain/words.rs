//! The sentence for each reason.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{ImageTagStatus, PullPhase};
use prewarm_plan::cluster::image_pull_job::Hold;
use prewarm_plan::cluster::image_pull_job::explain::{Wait, Why};
use prewarm_plan::cluster::node_image::room::Crowd;
use serde::Serialize;

use crate::jobs::FORGOTTEN;
use crate::show::{Tone, ago, bytes, counted};

/// The state of a node in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// It has the image.
    Present,
    /// It pulls.
    Pulling,
    /// It will be granted the pull, or was and has not begun.
    Waiting,
    /// It was granted the pull and does not answer.
    Silent,
    /// It could not pull.
    Failed,
    /// The image was removed from it.
    Lost,
    /// The job does not select it.
    NotSelected,
    /// No such node exists, or nothing is known of it.
    Unknown,
}

impl State {
    pub fn tone(self) -> Tone {
        match self {
            Self::Present => Tone::Good,
            Self::Pulling => Tone::Busy,
            Self::Failed | Self::Silent | Self::Unknown => Tone::Bad,
            Self::Waiting | Self::Lost | Self::NotSelected => Tone::Plain,
        }
    }
}

/// State and sentence of a node of an unfinished job.
pub fn sentence(why: &Why, status: Option<&ImageTagStatus>, now: Timestamp) -> (State, String) {
    match why {
        Why::Present => (State::Present, present(status, now)),
        Why::Lost(at) if *at > now => {
            let since = status.and_then(|status| status.lost_at.as_ref()).map(|Time(at)| ago(*at, now));
            let since = since.map(|since| format!(" {since} ago")).unwrap_or_default();
            (
                State::Lost,
                format!("the image was removed{since}, repeatedly; it is pulled again in {}", ago(now, *at)),
            )
        }
        Why::Lost(_) => (
            State::Lost,
            "the image was removed; it is pulled again as soon as parallelism allows".to_owned(),
        ),
        Why::Telling => (State::Waiting, "the pull is being granted".to_owned()),
        Why::Unanswered(since) => unanswered(*since, now),
        Why::Reported { has_started } => reported(*has_started, status, now),
        Why::Failed => (State::Failed, failed(status)),
        Why::Again => (
            State::Waiting,
            format!("is tried again because the Secret exists now; before: {}", failed(status)),
        ),
        Why::Waiting(wait) => (State::Waiting, waiting(wait)),
        Why::Leaving => {
            (State::NotSelected, "the job no longer selects it; a pull that has begun continues".to_owned())
        }
    }
}

/// State and sentence of a node of a finished job.
pub fn over(status: Option<&ImageTagStatus>, has_failed: bool, now: Timestamp) -> (State, String) {
    match status {
        Some(status) if status.phase == PullPhase::Succeeded => (State::Present, present(Some(status), now)),
        _ if has_failed => (State::Failed, failed(status)),
        Some(status) => reported(status.start_time.is_some(), Some(status), now),
        None => (State::Unknown, "the node no longer reports the image".to_owned()),
    }
}

pub(super) fn present(status: Option<&ImageTagStatus>, now: Timestamp) -> String {
    let end = status.and_then(|status| status.completion_time.as_ref());
    end.map_or("the image is present".to_owned(), |Time(end)| {
        format!("the image has been present since {end} ({} ago)", ago(*end, now))
    })
}

pub(super) fn unanswered(since: Timestamp, now: Timestamp) -> (State, String) {
    let time = ago(since, now);
    if now.duration_since(since).as_secs() < ANSWER_SECONDS {
        return (State::Waiting, format!("was granted the pull {time} ago and may still answer"));
    }
    (State::Silent, format!("has not answered for {time}; check that its agent is running and ready"))
}

/// Agents usually answer within a second.
const ANSWER_SECONDS: i64 = 10;

pub(super) fn reported(
    has_started: bool,
    status: Option<&ImageTagStatus>,
    now: Timestamp,
) -> (State, String) {
    let message = status.and_then(|status| status.message.clone()).filter(|message| !message.is_empty());
    if !has_started || status.is_some_and(|status| status.phase == PullPhase::Waiting) {
        let words = message.unwrap_or_else(|| "waits on the node for earlier pulls".to_owned());
        return (State::Waiting, words);
    }
    let since = status.and_then(|status| status.start_time.as_ref()).map(|Time(start)| ago(*start, now));
    let since = since.map(|since| format!(" for {since}")).unwrap_or_default();
    let far = match status {
        Some(status) if status.bytes_total.is_some() => {
            format!("pulling{since}, {} of {}", bytes(status.bytes_done), bytes(status.bytes_total))
        }
        Some(status) if status.progress > 0 => format!("pulling{since}, {} %", status.progress),
        _ => format!("pulling{since}"),
    };
    (State::Pulling, message.map_or(far.clone(), |message| format!("{far}; {message}")))
}

fn failed(status: Option<&ImageTagStatus>) -> String {
    let message = status.and_then(|status| status.message.clone());
    let message = message.unwrap_or_else(|| FORGOTTEN.to_owned());
    match status.and_then(|status| status.failure_class) {
        Some(class) => format!("{class:?}: {message}"),
        None => message,
    }
}

fn waiting(wait: &Wait) -> String {
    match wait {
        Wait::Held(Hold::Image) => "the job's image cannot be read; correct spec.image".to_owned(),
        Wait::Held(Hold::NotAllowed(why) | Hold::Secrets(why)) => why.clone(),
        Wait::Held(Hold::Siblings) => "waits until the other jobs of the list are made".to_owned(),
        Wait::Paused => "the job is paused: parallelism is 0; raise it to continue".to_owned(),
        Wait::Parallelism { limit, ahead } => {
            let ahead = if *ahead == 0 {
                "next in line".to_owned()
            } else {
                format!("{} ahead", counted(*ahead, "node"))
            };
            format!("parallelism {limit} reached, {ahead}")
        }
        Wait::Room(crowd) => no_room(*crowd).to_owned(),
        Wait::Turn => NEXT_PASS.to_owned(),
    }
}

/// For what there is a place, and nobody has given it.
pub(super) const NEXT_PASS: &str =
    "waits for the controller's next pass; if this lasts, check that the controller runs";

pub(super) fn no_room(crowd: Crowd) -> &'static str {
    match crowd {
        Crowd::Share => {
            "no room in the NodeImage: the jobs of this namespace have their share of it; delete some of them, or wait until their \
             entries leave"
        }
        Crowd::Full => "no room in the NodeImage: it is full; the job goes on when entries leave",
        Crowd::TooLarge => {
            "its entry is larger than a NodeImage may be; shorten sandboxConfig or pullSecrets"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn words(why: &Why, status: Option<&ImageTagStatus>) -> String {
        let (state, words) = sentence(why, status, at(1000));
        format!("{state:?}: {words}")
    }

    #[test]
    fn every_reason_has_its_sentence() {
        let status = ImageTagStatus {
            phase: PullPhase::Pulling,
            start_time: Some(Time(at(980))),
            bytes_done: Some(1 << 20),
            bytes_total: Some(4 << 20),
            ..ImageTagStatus::default()
        };
        let waits = [
            Why::Waiting(Wait::Parallelism { limit: 10, ahead: 34 }),
            Why::Waiting(Wait::Parallelism { limit: 1, ahead: 0 }),
            Why::Waiting(Wait::Paused),
            Why::Waiting(Wait::Turn),
            Why::Waiting(Wait::Held(Hold::Image)),
            Why::Waiting(Wait::Room(Crowd::Share)),
            Why::Waiting(Wait::Room(Crowd::Full)),
            Why::Waiting(Wait::Room(Crowd::TooLarge)),
            Why::Unanswered(at(760)),
            Why::Unanswered(at(999)),
            Why::Reported { has_started: true },
            Why::Reported { has_started: false },
            Why::Lost(at(1600)),
            Why::Lost(at(10)),
            Why::Leaving,
            Why::Telling,
            Why::Again,
            Why::Present,
        ];
        let lines: Vec<String> = waits.iter().map(|why| words(why, Some(&status))).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
