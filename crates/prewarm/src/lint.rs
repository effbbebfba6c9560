//! `prewarm lint`: checks manifests offline with the rules that the cluster applies.
//!
//! Files are read one at a time (gather), judged by pure functions (decide) and reported at the end (apply).

mod check;
mod decode;
mod list;
mod misplaced;
mod render;
mod report;
mod sources;

use std::path::PathBuf;

use clap::ValueEnum;

use self::report::Report;
use self::sources::{Listing, Unreadable};
use crate::answer::{Answer, Exit};

/// Check manifests offline, before a cluster sees them
///
/// Reads YAML or JSON with any number of documents, and lists of objects. Each finding is one line,
/// `file:line:column path: sentence`. Objects of other kinds are passed over with a note.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prewarm lint job.yaml
  prewarm lint -f manifests/
  helm template . | prewarm lint -

Exit codes:
  0  no errors (notes are not errors)
  1  at least one error
  2  wrong usage, or something could not be read")]
pub struct Args {
    /// Files, folders (all *.yaml, *.yml and *.json in them), or `-` for standard input
    #[arg(value_name = "FILE|DIR|-", required_unless_present = "filename")]
    paths: Vec<PathBuf>,

    /// The same, as kubectl takes it; may be given more than once
    #[arg(short = 'f', long, value_name = "FILE|DIR|-")]
    filename: Vec<PathBuf>,

    /// How to print the findings
    #[arg(short, long, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One line per finding
    Text,
    /// One JSON document with all findings and counts
    Json,
}

/// Checks every file that was named.
pub fn run(args: &Args) -> Answer {
    let named: Vec<PathBuf> = args.paths.iter().chain(&args.filename).cloned().collect();
    let Listing { sources, mut unreadable } = sources::list(&named);
    let mut report = Report::default();
    for source in sources {
        match source.read() {
            Ok(bytes) => report.add(check::check(&source.name(), bytes)),
            Err(error) => unreadable.push(Unreadable::new(source.name(), &error)),
        }
    }
    answer(&report, &unreadable, args.output)
}

fn answer(report: &Report, unreadable: &[Unreadable], output: Output) -> Answer {
    let stdout = match output {
        Output::Text => render::text(report),
        Output::Json => render::json(report),
    };
    let complaints =
        unreadable.iter().map(|Unreadable { name, reason }| format!("error: {name}: {reason}\n"));
    let exit = match (unreadable.is_empty(), report.errors) {
        (false, _) => Exit::Unusable,
        (true, 0) => Exit::Success,
        (true, _) => Exit::Findings,
    };
    Answer { stdout, stderr: complaints.collect::<String>() + &render::summary(report), exit }
}
