//! Cargo, started from here as from a shell.

use std::env;
use std::process::Command;

/// A call of cargo. What `cargo run` says about this package is kept from it: build scripts of dependencies ask for such
/// variables, and whatever stands on them would be built anew after each change between this and cargo by hand.
pub fn cargo() -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_about_package) {
            command.env_remove(name);
        }
    }
    command
}

fn is_about_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}
