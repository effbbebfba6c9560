//! What the metrics of all processes have in common: how labels look, what each process counts of itself, and the text that
//! Prometheus reads.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// No label, one, or two. Their values are fixed words, so that no object can make the number of series grow.
pub type No = [(&'static str, &'static str); 0];
pub type One = [(&'static str, &'static str); 1];
pub type Two = [(&'static str, &'static str); 2];

/// What a process counts of itself, whatever it is for.
#[derive(Default)]
pub struct Own {
    /// Writes to the Kubernetes API, by [`write_labels`].
    pub writes: Family<Two, Counter>,
    /// Events that were not recorded.
    pub dropped_events: Counter,
}

impl Own {
    /// Registers them, and the version of the process, which is called by this noun.
    pub fn register(&self, registry: &mut Registry, noun: &str) {
        let help = "Writes to the Kubernetes API, by kind and result";
        registry.register("api_writes", help, self.writes.clone());
        registry.register("events_dropped", "Events that were not recorded", self.dropped_events.clone());
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", format!("The version of this {noun}"), version);
    }

    /// Something of this kind was written, with this result.
    pub fn wrote(&self, kind: &'static str, result: &'static str) {
        self.writes.get_or_create(&write_labels(kind, result)).inc();
    }

    /// Such writes will be counted; there are none so far, and rates have a beginning.
    pub fn begin_at_zero(&self, kind: &'static str, result: &'static str) {
        drop(self.writes.get_or_create(&write_labels(kind, result)));
    }
}

fn write_labels(kind: &'static str, result: &'static str) -> Two {
    [("kind", kind), ("result", result)]
}

/// Sets a gauge to a count.
pub fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

/// Everything as text (`application/openmetrics-text`).
pub fn text(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    if encode(&mut text, registry).is_err() {
        text.clear();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_its_writes_and_dropped_events_and_says_its_version() {
        let (own, mut registry) = (Own::default(), Registry::with_prefix("prewarm_test"));
        own.register(&mut registry, "test");
        own.begin_at_zero("event", "failed");
        own.wrote("event", "written");
        own.dropped_events.inc();
        let text = text(&registry);
        let version = env!("CARGO_PKG_VERSION");
        for line in [
            "prewarm_test_api_writes_total{kind=\"event\",result=\"failed\"} 0",
            "prewarm_test_api_writes_total{kind=\"event\",result=\"written\"} 1",
            "prewarm_test_events_dropped_total 1",
            "# HELP prewarm_test_build The version of this test.",
            &format!("prewarm_test_build_info{{version=\"{version}\"}} 1"),
        ] {
            assert!(text.lines().any(|it| it == line), "no {line} in\n{text}");
        }
    }

    #[test]
    fn a_count_that_is_too_large_is_the_largest() {
        let gauge = Gauge::default();
        set(&gauge, usize::MAX);
        assert_eq!(gauge.get(), i64::MAX);
    }
}
