//! Is there a Go that can build the programs?

use std::process::Command;

use prewarm_bed::programs::{MODULES, Module, TOOLS_VARIABLE};

/// From this release on, Go fetches a newer one by itself if a module asks for it.
const OLDEST: (u32, u32) = (1, 21);

/// Says in one line what is missing.
pub fn check() -> Result<(), String> {
    let output = Command::new("go").args(["env", "GOVERSION"]).output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match version {
        Err(error) => Err(format!("Go cannot be run ({error}): {}", advice())),
        Ok(version) if parse(&version).is_none_or(|version| version < OLDEST) => {
            Err(format!("Go is too old ({version}): {}", advice()))
        }
        Ok(_) => Ok(()),
    }
}

fn advice() -> String {
    let needed = MODULES.iter().map(Module::go_version).max().unwrap_or_default();
    format!(
        "install {needed} or later from https://go.dev/dl, or let {TOOLS_VARIABLE} name a directory with the programs"
    )
}

/// Major and minor number of `go1.26.8`.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("go")?.split('.');
    let minor = |text: &str| text.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok();
    Some((numbers.next()?.parse().ok()?, minor(numbers.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_and_candidates_have_numbers() {
        assert_eq!(parse("go1.26.8"), Some((1, 26)));
        assert_eq!(parse("go1.27rc1"), Some((1, 27)));
        assert_eq!(parse("devel"), None);
    }

    #[test]
    fn the_advice_names_the_newest_release_that_a_module_needs() {
        assert!(advice().starts_with("install 1.26.6 or later"), "{}", advice());
    }
}
