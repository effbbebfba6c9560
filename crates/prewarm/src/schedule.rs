//! `prewarm schedule`: the next times of a schedule, or what is wrong with it. It needs no cluster.

mod line;
mod report;

use clap::Args as ClapArgs;
use jiff::Timestamp;

use crate::answer::{Answer, Exit};
use crate::show::{Format, Look, Output, render};
use report::Report;

pub use line::{Mistake, read};

/// How many runs are shown by default.
const FEW: u16 = 5;
/// The most runs that are shown: those of a schedule for every minute in about sixteen hours.
const MOST: u16 = 1000;

/// Show when a schedule is due
///
/// A schedule is a line of five fields (minute, hour, day of month, month, day of week), such as '0 2 * * 1-5', or
/// @hourly, @daily, @weekly, @monthly, @yearly or '@every 90m'. AdvancedCronJobs and `prewarm pull --every` accept
/// it. Its times are UTC unless --zone, or TZ= at its beginning, names a zone.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm schedule '0 2 * * 1-5' --zone Europe/Berlin
  prewarm schedule 'TZ=America/New_York 30 6 * * *' --count 10
  prewarm schedule '@every 90m' --from 2026-11-16T09:00:00Z -o json

Exit codes:
  0  the line is a schedule
  1  the line is not a schedule, or the zone does not exist
  2  wrong usage")]
pub struct Args {
    /// The schedule, in quotes so that the shell does not expand its stars
    #[arg(value_name = "LINE", allow_hyphen_values = true)]
    line: String,
    /// The time zone of the schedule by its IANA name, such as Europe/Berlin; UTC by default
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Show runs after this time, such as 2026-11-16T09:00:00Z; by default the present
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<Timestamp>,
    /// How many runs to show at most, up to 1000
    #[arg(long, value_name = "N", default_value_t = FEW, value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST)))]
    count: u16,
    #[command(flatten)]
    output: Output,
}

/// Parses a time in RFC 3339.
fn time(text: &str) -> Result<Timestamp, String> {
    let example = "write a time such as 2026-11-16T09:00:00Z or 2026-11-16T10:00:00+01:00";
    text.parse().map_err(|_| example.to_owned())
}

pub fn run(args: &Args) -> Answer {
    let schedule = match read(&args.line, args.zone.as_deref()) {
        Ok(schedule) => schedule,
        Err(mistake) => {
            return Answer::failed(format!("error: {mistake}\n"));
        }
    };
    let from = args.from.unwrap_or_else(Timestamp::now);
    let report = Report::of(&schedule, from, usize::from(args.count));
    let format = args.output.output;
    let is_for_people = matches!(format, Format::Table | Format::Wide);
    let stderr = if is_for_people { report.remark() } else { String::new() };
    Answer { stdout: render(&report, format, Look::of(format)), stderr, exit: Exit::Success }
}
