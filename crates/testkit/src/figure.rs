//! The output of a benchmark: one JSON line per figure with its bar, and a failing exit code when a bar is missed.

use std::process::ExitCode;

use serde_json::{Value, json};

/// The figures of one benchmark.
pub struct Figures {
    bench: &'static str,
    missed: usize,
}

/// What a figure is measured against.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

impl Bar {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }

    fn describe(self) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::AtLeast(least) => format!("≥ {least}"),
        }
    }
}

impl Figures {
    pub fn new(bench: &'static str) -> Self {
        Self { bench, missed: 0 }
    }

    /// Prints a figure. `value` is rounded to three decimals.
    pub fn add(&mut self, figure: &str, value: f64, unit: &str, bar: Bar) {
        println!("{}", self.judge(figure, value, unit, bar));
    }

    /// Prints a ratio and both of its sides, each under a name of its own.
    pub fn compare(&mut self, figure: &str, ours: (&str, f64), other: (&str, f64), bar: Bar) {
        let mut line = self.judge(figure, ours.1 / other.1, "×", bar);
        for (name, value) in [ours, other] {
            line[name] = rounded(value).into();
        }
        println!("{line}");
    }

    fn judge(&mut self, figure: &str, value: f64, unit: &str, bar: Bar) -> Value {
        let (value, is_met) = (rounded(value), bar.is_met(value));
        self.missed += usize::from(!is_met);
        json!({
            "bench": self.bench, "figure": figure, "value": value, "unit": unit, "bar": bar.describe(), "met": is_met,
        })
    }

    /// Whether every bar was met.
    pub fn close(self) -> ExitCode {
        if self.missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length.is_multiple_of(2) => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < f64::EPSILON);
    }

    #[test]
    fn a_missed_bar_is_a_failure() {
        let mut figures = Figures::new("example");
        figures.add("ratio", 1.31, "×", Bar::AtMost(1.3));
        assert_eq!(format!("{:?}", figures.close()), format!("{:?}", ExitCode::FAILURE));
        let mut figures = Figures::new("example");
        figures.compare("ratio", ("ours", 1.31), ("other", 1.0), Bar::AtMost(1.3));
        assert_eq!(format!("{:?}", figures.close()), format!("{:?}", ExitCode::FAILURE));
    }
}
