//! What the controller counts, in the text form that Prometheus reads. `docs/observe.md` says what each metric means.
//!
//! Every label's values come from an enum, so that no image, job or node can make the number of series grow; only ofen's own
//! (`ofen.rs`) are by object, and of those there are at most a thousand.

use std::sync::Arc;
use std::time::Duration;

use prewarm_plan::cluster::measure::Passes;
use prewarm_plan::cluster::size::Size;
use prewarm_plan::cluster::{Kind, Subject};
use prewarm_process::event::Tally;
use prewarm_process::metrics::text;

mod families;
mod measured;
mod ofen;
mod size;
mod written;

/// The last line of every text.
const END: &str = "# EOF\n";

use families::Families;
pub use written::{WriteResult, Written};

/// All counters of one controller. Clones count together.
#[derive(Clone)]
pub struct Metrics {
    families: Arc<Families>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Counters at zero. Those that can be known beforehand are there from the start, so that rates have a beginning.
    pub fn new() -> Self {
        let metrics = Self { families: Arc::new(Families::new()) };
        metrics.begin_at_zero();
        metrics
    }

    fn begin_at_zero(&self) {
        for what in Written::all() {
            for result in WriteResult::ALL {
                self.families.own.begin_at_zero(what.as_str(), result.as_str());
            }
        }
        for kind in Kind::ALL {
            drop(self.families.reconnects.get_or_create(&[("kind", kind.as_str())]));
        }
        self.passed(Passes::default(), None);
        self.holds(&Size::default());
        self.begin_measuring();
    }

    /// The kernel ran a cycle.
    pub fn passed(&self, passes: Passes, took: Option<Duration>) {
        for subject in Subject::ALL {
            let counter = self.families.passes.get_or_create(&[("kind", subject.as_str())]);
            counter.inc_by(passes.of(subject));
        }
        if let Some(took) = took {
            self.families.turns.observe(took.as_secs_f64());
        }
    }

    /// So many pulls were granted.
    pub fn granted(&self, grants: usize) {
        self.families.grants.inc_by(u64::try_from(grants).unwrap_or(u64::MAX));
    }

    /// Something was written, or not.
    pub fn wrote(&self, what: Written, result: WriteResult) {
        self.families.own.wrote(what.as_str(), result.as_str());
    }

    /// Whether it leads.
    pub fn leads(&self, leads: bool) {
        self.families.leads.set(i64::from(leads));
    }

    /// A watch was lost and is opened again.
    pub fn reconnected(&self, kind: Kind) {
        self.families.reconnects.get_or_create(&[("kind", kind.as_str())]).inc();
    }

    /// Everything as text (`application/openmetrics-text`).
    pub fn encode(&self) -> String {
        let (own, ofen) = (text(&self.families.registry), text(&self.families.ofen.registry));
        // One end for both.
        own.strip_suffix(END).map_or_else(|| own.clone(), |own| format!("{own}{ofen}"))
    }
}

impl Tally for Metrics {
    fn wrote(&self, is_written: bool) {
        let result = if is_written { WriteResult::Ok } else { WriteResult::Failed };
        Self::wrote(self, Written::Event, result);
    }

    fn dropped(&self) {
        self.families.own.dropped_events.inc();
    }
}

#[cfg(test)]
mod tests;
