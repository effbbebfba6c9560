//! What was measured on the way: how long nodes take, how grants end, what becomes of cron jobs' runs.

use prewarm_api::kruise::{FailureClass, SkipReason};
use prewarm_plan::cluster::advanced_cron_job::runs::{Fate, Runs};
use prewarm_plan::cluster::measure::Measured;
use prewarm_plan::cluster::measure::{End, Phase};
use prewarm_process::metrics::Two;

use super::Metrics;

const FATES: [Fate; 12] = [
    Fate::OnTime,
    Fate::Late,
    Fate::Succeeded,
    Fate::Failed,
    Fate::Replaced,
    Fate::Deleted,
    Fate::Skipped(SkipReason::Paused),
    Fate::Skipped(SkipReason::Forbidden),
    Fate::Skipped(SkipReason::TooMany),
    Fate::Skipped(SkipReason::Refused),
    Fate::Skipped(SkipReason::TooLate),
    Fate::Skipped(SkipReason::Missed),
];

impl Metrics {
    /// Everything that can be measured, at zero.
    pub(super) fn begin_measuring(&self) {
        for phase in Phase::ALL {
            drop(self.families.grant_durations.get_or_create(&[("phase", phase.as_str())]));
        }
        for end in FailureClass::ALL.map(End::Failed).into_iter().chain([End::Succeeded, End::Silent]) {
            drop(self.families.grants_ended.get_or_create(&end_labels(end)));
        }
        self.ran(&FATES.map(|fate| (fate, 0)).into());
    }

    /// What the kernel measured since the last cycle.
    pub fn measured(&self, measured: Vec<Measured>) {
        for one in measured {
            match one {
                Measured::Took(phase, time) => {
                    let durations = self.families.grant_durations.get_or_create(&[("phase", phase.as_str())]);
                    durations.observe(time.as_secs_f64());
                }
                Measured::Ended(end, bytes) => {
                    self.families.grants_ended.get_or_create(&end_labels(end)).inc();
                    self.families.bytes.inc_by(bytes);
                }
            }
        }
    }

    /// What became of cron jobs' runs since the last turn.
    pub fn ran(&self, runs: &Runs) {
        let families = &self.families;
        for (fate, count) in runs {
            let (family, label) = match fate {
                Fate::OnTime => (&families.runs_started, ("timing", "on_time")),
                Fate::Late => (&families.runs_started, ("timing", "late")),
                Fate::Succeeded => (&families.runs_ended, ("result", "succeeded")),
                Fate::Failed => (&families.runs_ended, ("result", "failed")),
                Fate::Replaced => (&families.runs_ended, ("result", "replaced")),
                Fate::Deleted => (&families.runs_ended, ("result", "deleted")),
                Fate::Skipped(reason) => (&families.runs_skipped, ("reason", skip_word(*reason))),
            };
            family.get_or_create(&[label]).inc_by(*count);
        }
    }
}

fn end_labels(end: End) -> Two {
    let (result, class) = match end {
        End::Succeeded => ("succeeded", ""),
        End::Failed(class) => ("failed", class.name()),
        End::Silent => ("failed", "Silent"),
    };
    [("result", result), ("class", class)]
}

const fn skip_word(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Paused => "paused",
        SkipReason::Forbidden => "forbidden",
        SkipReason::TooMany => "too_many",
        SkipReason::Refused => "refused",
        SkipReason::TooLate => "too_late",
        SkipReason::Missed => "missed",
    }
}
