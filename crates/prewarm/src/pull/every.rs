//! `--every`: what is checked before a cron job is made, and when its first run is due.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use prewarm_plan::cluster::advanced_cron_job::timetable;
use prewarm_plan::schedule::Schedule;

use super::Args;
use crate::schedule;
use crate::show::ago;

/// The schedule of `--every`. One that is never due is an error.
pub fn timetable(args: &Args) -> anyhow::Result<Option<Schedule>> {
    let Some(line) = &args.every else { return Ok(None) };
    let timetable = schedule::read(line, args.zone.as_deref())?;
    timetable::next(&timetable, line, Timestamp::now())
        .map_err(|trouble| anyhow::anyhow!(trouble.message))?;
    anyhow::ensure!(
        !args.wait,
        "--wait is for a single job, and --every makes one again and again; leave --wait out and use `prewarm status` \
         and `prewarm explain NAME`"
    );
    anyhow::ensure!(
        args.parallelism() > 0,
        "with --every, --parallelism 0 makes runs that never begin; give at least 1, and pause the cron job with \
         spec.paused"
    );
    Ok(Some(timetable))
}

/// The line about the first run of the cron job that was made.
pub fn first_run(timetable: &Schedule, made: &DynamicObject, now: Timestamp) -> String {
    let created = made.creation_timestamp().map_or(now, |Time(created)| created);
    let Some(first) = timetable.next(created) else { return String::new() };
    let there = match timetable.zone().name() {
        "UTC" => String::new(),
        zone => format!(" ({} in {zone})", timetable.zone().show(first)),
    };
    format!("The first run is due at {first}{there}, in {}.\n", ago(now, first))
}

#[cfg(test)]
mod tests {
    use prewarm_plan::schedule::Zone;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_run_is_shown_in_utc_and_in_its_zone() {
        let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob",
            "metadata": {"name": "nightly", "creationTimestamp": "2026-11-16T20:00:00Z"}});
        let made: DynamicObject = serde_json::from_value(object).unwrap();
        let first = |line: &str, zone: &str| {
            let timetable = Schedule::read(line, Zone::find(zone).unwrap()).unwrap();
            first_run(&timetable, &made, "2026-11-16T20:00:01Z".parse().unwrap())
        };
        assert_eq!(
            first("0 2 * * *", "Europe/Berlin"),
            "The first run is due at 2026-11-17T01:00:00Z (2026-11-17T02:00:00+01:00 in Europe/Berlin), in 4h59m.\n"
        );
        assert_eq!(first("@every 90m", "UTC"), "The first run is due at 2026-11-16T21:30:00Z, in 89m.\n");
    }
}
