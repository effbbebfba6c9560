//! `prewarm schedule`: when a schedule is due, or what is wrong with it. It needs no cluster.

mod line;
mod report;

use clap::Args as ClapArgs;
use jiff::Timestamp;

use crate::answer::{Answer, Exit};
use crate::show::{Format, Look, Output, render};
use report::Report;

pub use line::{Mistake, read};

/// So many runs are shown unless somebody says how many.
const FEW: u16 = 5;
/// More are not shown at once: a schedule for every minute has so many in sixteen hours.
const MOST: u16 = 1000;

/// Show when a schedule is due
///
/// A schedule is a line of five fields (minute, hour, day of month, month, day of week), such as '0 2 * * 1-5', or @hourly,
/// @daily, @weekly, @monthly, @yearly or '@every 90m': what an AdvancedCronJob and `prewarm pull --every` take. Its times are
/// UTC unless --zone, or TZ= at its beginning, names a zone.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  prewarm schedule '0 2 * * 1-5' --zone Europe/Berlin
  prewarm schedule 'TZ=America/New_York 30 6 * * *' --count 10
  prewarm schedule '@every 90m' --from 2026-11-16T09:00:00Z -o json

Exit codes:
  0  the line is a schedule
  1  the line is no schedule, or there is no such zone
  2  wrong usage")]
pub struct Args {
    /// The schedule, in quotes: a shell would take its stars for file names
    #[arg(value_name = "LINE", allow_hyphen_values = true)]
    line: String,
    /// The time zone of the schedule by its IANA name, such as Europe/Berlin; otherwise UTC
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// The time after which runs are shown, such as 2026-11-16T09:00:00Z; otherwise now
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<Timestamp>,
    /// How many runs are shown at most, up to 1000
    #[arg(long, value_name = "N", default_value_t = FEW, value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST)))]
    count: u16,
    #[command(flatten)]
    output: Output,
}

/// Reads a time in RFC 3339.
fn time(text: &str) -> Result<Timestamp, String> {
    let example = "write a time such as 2026-11-16T09:00:00Z or 2026-11-16T10:00:00+01:00";
    text.parse().map_err(|_| example.to_owned())
}

/// Shows the times, or the mistake.
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
