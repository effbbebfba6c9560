//! The project's only task runner: `cargo xtask …`.

mod bench;
mod cargo;
mod citations;
mod claims;
mod cross;
mod duration;
mod image;
mod release;
mod shipped;
mod supply;
mod test;
mod tools;
mod twice;

use std::env;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  test                 all that CI runs: format, clippy, generated files, dependencies, tests,
                       the real cluster
  test --fast          while writing: without the real cluster, a few of the long stories only, and if something has
                       changed, only the suites that depend on it
  test --changed       before a commit: the suites that depend on what changed since the last commit on main
  test --repeat N      builds once, then runs all suites N times with other seeds, each fifth time beside a busy
                       machine, and prints what failed how often; counts add up from call to call
       --only NAME     with any of these: only the suites whose name has NAME in it
  gen                  writes the generated files: definitions, the chart's roles, deploy/install.yaml
  check                fails if a generated file is out of date, if the tree is not as the documents claim, or if a rule
                       is cited that docs/spec does not have
  check --figures      prints the shape of the code in numbers, and fails if one misses its bar without a stated reason
  supply               judges the dependencies by deny.toml: licences, bans, sources, yanked crates, advisories
  bench <name>         measures the program as it is shipped, prints one JSON line per figure and fails if a bar is
                       missed; without a name it lists what there is
  image                builds the program for clusters and makes its image, with the list of its parts
        --output PLACE into a directory, or an archive if the name ends with .tar
        --push NAME    to a registry, as HOST/REPO:TAG; --plain-http without TLS; a login from REGISTRY_USER and
                       REGISTRY_PASSWORD, or from what `docker login` left
        --platform P   only for linux/amd64 or only for linux/arm64
        --twice        builds the commit once more in another directory, and fails unless both images are the same
  release              all that a release consists of, with checksums, into target/prewarm-release
        --output DIR   into another directory
        --platform P   as above
  tools                builds the programs of the real cluster into a per-user cache, once
";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test", flags @ ..] => match test::Options::read(flags).and_then(|options| test::run(&options)) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        ["gen"] => generate("write"),
        ["check"] => check(),
        ["check", "--figures"] => claims::figures::show(root()),
        ["supply"] => supply::check(),
        ["bench"] => bench::run("", &[]),
        ["bench", name, flags @ ..] => bench::run(name, flags),
        ["image", flags @ ..] => image::Options::read(flags).and_then(|options| image::run(&options)),
        ["release", flags @ ..] => release::Options::read(flags).and_then(|options| release::run(&options)),
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

fn check() -> anyhow::Result<()> {
    generate("check")?;
    claims::check(root())?;
    citations::check(root())
}

/// The generated files are made by a program of their own, which knows the API types.
fn generate(verb: &str) -> anyhow::Result<()> {
    cargo::run(&["run", "--quiet", "--locked", "--package", "prewarm-generate", "--", verb])
}

/// The top of the tree.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask stands in the tree")
}
