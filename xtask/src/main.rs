//! The project's only task runner: `cargo xtask …`.

mod bench;
mod cargo;
mod duration;
mod generate;
mod shipped;
mod test;
mod tools;

use std::env;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  test           all that CI runs: format, clippy, generated files, tests, the real cluster
  test --fast    the same without the real cluster
  gen            writes the generated files: deploy/crds
  check          fails if a generated file is out of date
  bench <name>   measures, prints one JSON line per figure and fails if a bar is missed:
                 admission, agent, controller, embedded
  tools          builds the programs of the real cluster into a per-user cache, once
";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => return test::run(test::Scope::Everything),
        ["test", "--fast"] => return test::run(test::Scope::WithoutRealCluster),
        ["gen"] => generate::write(root()),
        ["check"] => generate::check(root()),
        ["bench", name, flags @ ..] => bench::run(name, flags),
        ["tools"] => tools::run(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The top of the tree.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask stands in the tree")
}
