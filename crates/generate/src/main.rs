//! `cargo xtask gen` and `cargo xtask check`.

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let root = prewarm_generate::root();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write"] => prewarm_generate::write(root),
        ["check"] => prewarm_generate::check(root),
        _ => bail!("usage: prewarm-generate write | check"),
    }
}
