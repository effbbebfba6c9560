//! Why runs did not happen, in sentences.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{SkipReason, SkippedRuns};
use prewarm_plan::schedule::MOST_COUNTED;

use crate::show::counted;

/// The sentence for runs that were skipped for one reason.
pub fn skipped(runs: &SkippedRuns) -> String {
    let count = usize::try_from(runs.count).unwrap_or_default();
    // The controller counts up to this many runs one by one; the largest count stands for more.
    let is_cut = u64::try_from(runs.count).is_ok_and(|count| count >= MOST_COUNTED);
    let at_least = if is_cut { "at least " } else { "" };
    let (number, Time(due)) = (counted(count, "run"), &runs.last_time);
    let was = if count == 1 { "it was due" } else { "the last was due" };
    format!("{at_least}{number} did not happen {}; {was} at {due}", reason(runs.reason))
}

fn reason(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Paused => "while the cron job was paused",
        SkipReason::Forbidden => {
            "because the previous run was still going on and concurrencyPolicy is Forbid"
        }
        SkipReason::TooMany => "because too many runs had not ended",
        SkipReason::Refused => "because the API server refused",
        SkipReason::TooLate => "because startingDeadlineSeconds had passed",
        SkipReason::Missed => "because no controller was running",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_to_skip_runs_has_its_sentence() {
        let reasons = [
            (SkipReason::Paused, 2),
            (SkipReason::Forbidden, 1),
            (SkipReason::TooMany, 4),
            (SkipReason::Refused, 3),
            (SkipReason::TooLate, 1),
            (SkipReason::Missed, 1000),
        ];
        let last_time = Time("2026-11-17T02:00:00Z".parse().unwrap());
        let lines = reasons
            .map(|(reason, count)| skipped(&SkippedRuns { reason, count, last_time: last_time.clone() }));
        insta::assert_snapshot!(lines.join("\n"), @r"
        2 runs did not happen while the cron job was paused; the last was due at 2026-11-17T02:00:00Z
        1 run did not happen because the previous run was still going on and concurrencyPolicy is Forbid; it was due at 2026-11-17T02:00:00Z
        4 runs did not happen because too many runs had not ended; the last was due at 2026-11-17T02:00:00Z
        3 runs did not happen because the API server refused; the last was due at 2026-11-17T02:00:00Z
        1 run did not happen because startingDeadlineSeconds had passed; it was due at 2026-11-17T02:00:00Z
        at least 1000 runs did not happen because no controller was running; the last was due at 2026-11-17T02:00:00Z
        ");
    }
}
