//! What an ImagePrefetch costs and how fast it is: on a thousand simulated nodes (`wide`), and on eight real ones with slow links, of
//! which one asks the registry and the others take the image from the mirrors of those that have it (`links`).

#[path = "../tests/real_agent/cluster.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod cluster;
#[path = "../tests/real_agent/desk.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod desk;
#[path = "../tests/real_prefetch/fleet.rs"]
#[expect(dead_code, reason = "shared with the tests of ImagePrefetches, which need more of it")]
mod fleet;
#[path = "prefetch/links.rs"]
mod links;
#[path = "../tests/real_prefetch/prefetch.rs"]
#[expect(dead_code, reason = "shared with the tests of ImagePrefetches, which need more of it")]
mod prefetch;
#[path = "../tests/real_agent/program.rs"]
#[expect(dead_code, reason = "shared with the tests of the agent, which need more of it")]
mod program;
#[path = "../tests/real_prefetch/shop.rs"]
#[expect(dead_code, reason = "shared with the tests of ImagePrefetches, which need more of it")]
mod shop;
#[path = "prefetch/wide.rs"]
mod wide;

use std::process::ExitCode;

use anyhow::bail;
use prewarm_testkit::figure::Figures;

/// What to measure. Without a word for one of the parts, both.
#[derive(Default)]
struct Choice {
    wide: bool,
    links: bool,
    is_embedded: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let choice = chosen(std::env::args().skip(1))?;
    if !choice.is_embedded
        && let Err(reason) = prewarm_bed::enter()
    {
        bail!("cannot measure on a real API server: {reason}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut figures = Figures::new("prefetch");
    if choice.wide {
        runtime.block_on(wide::measure(choice.is_embedded, &mut figures))?;
    }
    if choice.links {
        runtime.block_on(links::measure(&mut figures))?;
    }
    Ok(figures.close())
}

fn chosen(words: impl Iterator<Item = String>) -> anyhow::Result<Choice> {
    let mut choice = Choice::default();
    for word in words {
        match word.as_str() {
            // That is how cargo calls benchmarks.
            "--bench" => {}
            "--embedded" => choice = Choice { wide: true, is_embedded: true, ..choice },
            "wide" => choice.wide = true,
            "links" => choice.links = true,
            _ => bail!("{word} means nothing here; there are --embedded, wide and links"),
        }
    }
    if !choice.wide && !choice.links {
        choice = Choice { wide: true, links: true, ..choice };
    }
    Ok(choice)
}
