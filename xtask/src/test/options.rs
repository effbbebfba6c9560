//! What a test run is asked to do.

use anyhow::{Context as _, bail};

/// How much is tested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Everything,
    /// While writing: without the real cluster, and a few of the long stories only.
    Fast,
    /// Before a commit: what depends on what has changed.
    Changed,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub scope: Scope,
    /// How often the suites run, if they run for the sake of counting.
    pub repeat: Option<u32>,
    /// A part of the names of the suites that run.
    pub only: Option<String>,
}

impl Options {
    pub fn read(flags: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self::default();
        let mut rest = flags.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{flag} needs a value"));
            match *flag {
                "--fast" => options.scope = Scope::Fast,
                "--changed" => options.scope = Scope::Changed,
                "--only" => options.only = Some((*value()?).to_owned()),
                "--repeat" => {
                    let number = value()?;
                    let times = number.parse().ok().filter(|times| *times > 0);
                    options.repeat =
                        Some(times.with_context(|| format!("--repeat {number}: not a number of runs"))?);
                }
                _ => bail!(
                    "test: unknown flag {flag}; there are --fast, --changed, --repeat N and --only NAME"
                ),
            }
        }
        if options.repeat.is_some() && options.scope != Scope::Everything {
            bail!("--repeat runs whole suites; use --only NAME for a part of them");
        }
        Ok(options)
    }

    /// Whether dependencies are judged: they are in no suite, and no seed changes them.
    pub fn has_supply_chain(&self) -> bool {
        self.scope != Scope::Fast && self.repeat.is_none() && self.only.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_flags_everything_is_tested_once() {
        assert_eq!(Options::read(&[]).unwrap(), Options::default());
    }

    #[test]
    fn repeated_runs_may_be_of_some_suites() {
        let options = Options::read(&["--repeat", "10", "--only", "crash"]).unwrap();
        assert_eq!((options.repeat, options.only.as_deref()), (Some(10), Some("crash")));
    }

    #[test]
    fn dependencies_are_judged_unless_the_run_is_of_something_else() {
        let is_judged = |flags: &[&str]| Options::read(flags).unwrap().has_supply_chain();
        assert!(is_judged(&[]) && is_judged(&["--changed"]));
        assert!(
            !is_judged(&["--fast"]) && !is_judged(&["--repeat", "2"]) && !is_judged(&["--only", "crash"])
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (flags, complaint) in [
            (["--repeat"].as_slice(), "--repeat needs a value"),
            (&["--repeat", "0"], "--repeat 0: not a number of runs"),
            (&["--repeat", "3", "--fast"], "--repeat runs whole suites; use --only NAME for a part of them"),
            (
                &["--quick"],
                "test: unknown flag --quick; there are --fast, --changed, --repeat N and --only NAME",
            ),
        ] {
            assert_eq!(Options::read(flags).unwrap_err().to_string(), complaint);
        }
    }
}
