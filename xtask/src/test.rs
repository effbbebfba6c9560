//! `cargo xtask test`: all that CI runs.
//!
//! A whole run has two lanes: real suites mostly wait, and the others compute. A failed step does not hide the next one. At
//! the very end stands one plain line with the sums.
//!
//! ```text
//!          ┌─ build ─ clippy ─┬─┬─ tests ─ examples ───────┬─ tables, N passed, N failed
//! format ──┼─ tools ──────────┘ ├─ real cluster ───────────┤
//!          ├─ program for clusters ─ release ─ image ──────┤
//!          └─ supply chain ────────────────────────────────┘
//! ```

mod bars;
mod changed;
mod lane;
mod options;
mod real;
mod record;
mod report;
mod selection;
mod shipped;
mod suite;
mod tally;
mod timing;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, ensure};
use prewarm_bed::{cgroups, enter};

pub use options::Options;

use crate::cargo::{self, cargo};
use crate::{citations, supply};
use bars::Bars;
use lane::Conditions;
use options::Scope;
use record::{Record, Round};
use report::Report;
use selection::Selection;
use shipped::Shipped;
use suite::{Build, Suite};
use tally::Tally;

/// How many ordinary suites run at once: some wait for clocks or terminals while others compute.
const AT_ONCE: usize = 2;
/// How many real suites run at once. They mostly wait, and each bed has files in memory.
const BEDS: usize = 3;
/// One in so many repeated rounds is beside a busy machine.
const BUSY_EVERY: u32 = 5;
/// Tells the crash tests to play only some of their stories.
const FAST_VARIABLE: &str = "PREWARM_FAST";
/// Tells the tests of a release where it is.
const RELEASE_VARIABLE: &str = "PREWARM_RELEASE";
/// What a fast run leaves out: the simulated year.
const NOT_FAST: &[&str] = &["_quarter_"];

pub fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let record = Mutex::new(Record::load()?);
    let selection = Selection::of(options)?;
    let is_whole = *options == Options::default();
    let report = Report::begin(if is_whole { Bars::usual() } else { Bars::default() });
    report.check("format", || cargo::run(&["fmt", "--all", "--check"]));
    report.check("citations", || citations::check(crate::root()));
    thread::scope(|scope| {
        if options.has_supply_chain() {
            scope.spawn(|| report.check("supply chain", supply::check));
        }
        match options.repeat {
            Some(times) => repeat(&report, &record, &selection, times),
            None => once(&report, &record, &selection, options),
        }
    });
    Ok(report.close())
}

/// Everything that is asked for, once.
fn once(report: &Report, record: &Mutex<Record>, selection: &Selection, options: &Options) {
    let run = Run { report, record, round: Round { seed: 0, is_busy: false } };
    let is_fast = options.scope == Scope::Fast;
    let build = if is_fast { Build::Fast } else { Build::Whole };
    let shipped = Shipped::default();
    thread::scope(|scope| {
        // Without root there is no bed to try it in.
        if selection.is_everything() && enter::is_root() {
            scope.spawn(|| shipped.program(report));
        }
        let Some(Prepared { real, ordinary, bed, maker }) = prepare(report, selection, build) else {
            return;
        };
        if let Some(bed) = bed {
            let shipped = &shipped;
            scope.spawn(move || run.real(&real, bed, shipped, maker.as_deref()));
        }
        if is_fast {
            run.fast(&ordinary);
        } else {
            run.ordinary(&ordinary);
        }
        if options.only.is_none() {
            report.tests("examples in the documentation", || run_documentation(build));
        }
    });
}

/// Runs the suites again and again with other seeds, and says what failed how often.
fn repeat(report: &Report, record: &Mutex<Record>, selection: &Selection, times: u32) {
    let Some(Prepared { real, ordinary, bed, maker }) = prepare(report, selection, Build::Whole) else {
        return;
    };
    let shipped = Shipped::default();
    for number in 1..=times {
        let seed = record.lock().unwrap_or_else(PoisonError::into_inner).next_seed();
        let round = Round { seed, is_busy: number % BUSY_EVERY == 0 };
        println!("round {number} of {times}: {round}");
        let run = Run { report, record, round };
        lane::beside_a_busy_machine(round.is_busy, || {
            thread::scope(|scope| {
                if let Some(bed) = &bed {
                    scope.spawn(|| run.real(&real, bed.clone(), &shipped, maker.as_deref()));
                }
                run.ordinary(&ordinary);
            });
        });
    }
    println!("\nof all runs so far\n{}", record.lock().unwrap_or_else(PoisonError::into_inner).to_table());
}

/// Why there can be no bed, if there cannot.
type Bed = Option<String>;

/// What is to be run.
struct Prepared {
    real: Vec<Suite>,
    ordinary: Vec<Suite>,
    /// None if nothing real runs at all.
    bed: Option<Bed>,
    /// What makes a release.
    maker: Option<PathBuf>,
}

/// Builds the suites and the programs that the real ones need. There is nothing to run if the suites cannot be built, and
/// nothing real without its programs.
fn prepare(report: &Report, selection: &Selection, kind: Build) -> Option<Prepared> {
    let is_real = kind == Build::Whole;
    let programs = || report.check("tools", real::obstacle);
    thread::scope(|scope| {
        // The first time they take as long as the suites; some of the suites alone may not need them.
        let early = (is_real && !selection.is_named()).then(|| scope.spawn(programs));
        let built = report.check("build", || selection.check(suite::build(kind)?))?;
        report.check("clippy", || {
            ensure!(built.lints.is_empty(), "{}", built.lints.concat());
            Ok(())
        });
        let suites = selection.name_rest(built.suites);
        let (real, ordinary): (Vec<_>, Vec<_>) = suites.into_iter().partition(Suite::is_real);
        let bed = match early {
            Some(early) => early.join().expect("the builder of programs does not panic"),
            None if is_real && !real.is_empty() => programs(),
            None => None,
        };
        Some(Prepared { real, ordinary, bed, maker: built.maker })
    })
}

/// One run of suites.
#[derive(Clone, Copy)]
struct Run<'a> {
    report: &'a Report,
    record: &'a Mutex<Record>,
    round: Round,
}

impl Run<'_> {
    fn ordinary(self, suites: &[Suite]) {
        self.tests("tests", suites, AT_ONCE, &Conditions::default());
    }

    fn fast(self, suites: &[Suite]) {
        println!("   left out: the real cluster, the simulated year, and most stories of sim/tests/crash");
        let variables = vec![(FAST_VARIABLE, "1".to_owned())];
        self.tests("tests", suites, AT_ONCE, &Conditions { variables, left_out: NOT_FAST });
    }

    /// What is about the image runs beside the others as soon as there is one.
    fn real(self, suites: &[Suite], bed: Bed, shipped: &Shipped, maker: Option<&Path>) {
        if let Some(reason) = bed.filter(|_| !suites.is_empty()) {
            return self.report.tests("real cluster", || real::skip(suites, &reason));
        }
        let (about_image, others): (Vec<Suite>, Vec<Suite>) =
            suites.iter().cloned().partition(Suite::is_about_image);
        thread::scope(|scope| {
            if !about_image.is_empty() {
                scope.spawn(|| self.image(&about_image, shipped, maker));
            }
            self.tests("real cluster", &others, BEDS, &Conditions::default());
        });
        // Each bed removes its own; one that was killed could not.
        cgroups::sweep_stale(enter::NAME_PREFIX);
    }

    fn image(self, suites: &[Suite], shipped: &Shipped, maker: Option<&Path>) {
        if let Some(release) = shipped.release(self.report, maker) {
            let variables = vec![(RELEASE_VARIABLE, release.display().to_string())];
            self.tests("image", suites, 1, &Conditions { variables, ..Conditions::default() });
        }
    }

    fn tests(self, title: &str, suites: &[Suite], at_once: usize, conditions: &Conditions) {
        if !suites.is_empty() {
            self.report.tests(title, || lane::run(self, suites, at_once, conditions));
        }
    }
}

fn run_documentation(build: Build) -> anyhow::Result<Tally> {
    let mut command = cargo();
    suite::with_clippy(&mut command).args(["test", "--quiet", "--locked", "--workspace", "--doc"]);
    command.args(["--profile", build.profile()]);
    let output = command.output().context("starting cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let tally = Tally::of_output(&text);
    if !output.status.success() {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
        ensure!(tally.failed > 0, "cargo test --doc: {}", output.status);
    }
    Ok(tally)
}
