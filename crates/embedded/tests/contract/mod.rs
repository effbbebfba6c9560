//! One suite for two servers: what holds on the real kube-apiserver must hold on the embedded one.
//!
//! A case is an `async fn(World) -> anyhow::Result<()>` whose name is the sentence it proves. It gets a namespace of
//! its own on a server that all cases share. A case that may fail on the embedded server says why and how, and it must
//! fail there in exactly that way: a difference that no longer exists has to leave the list, and none can hide another
//! fault.
//!
//! `CONTRACT=word` runs only the cases whose name contains the word.

#![expect(clippy::similar_names, reason = "the cases are about paths and patches")]
#![expect(clippy::needless_pass_by_value, reason = "values are written where they are passed")]

mod built_in;
mod collect;
mod contents;
mod creating;
mod definitions;
mod delete;
mod events;
mod fields;
mod finalizers;
mod json_patches;
mod kinds;
mod limits;
mod list;
mod metadata;
mod pages;
mod patching;
mod pods;
mod requests;
mod schemas;
mod selectors;
mod status;
mod streaming;
mod tables;
mod unknown_fields;
mod updating;
mod watch;
mod watch_ends;
mod world;

use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use kube::Client;

pub use world::World;

/// How many cases run at the same time.
const AT_ONCE: usize = 8;
/// How long one case may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Which server the suite runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each of the two binaries makes one of them")]
pub enum Side {
    Embedded,
    Real,
}

/// One sentence of the contract.
pub struct Case {
    pub name: &'static str,
    pub run: fn(World) -> LocalBoxFuture<'static, anyhow::Result<()>>,
    /// How the embedded server fails the case, if it may.
    pub difference: Option<Difference>,
}

/// How the embedded server may differ.
#[derive(Clone, Copy)]
pub struct Difference {
    /// Why it may differ.
    pub reason: &'static str,
    /// A part of the case's error in that situation.
    pub complaint: &'static str,
}

/// Lists cases: `cases![a_sentence, another; differing: [a_third => "why it may", "the error it fails with"]]`.
macro_rules! cases {
    ($($name:ident),* $(,)? $(; differing: [$($other:ident => $reason:expr, $complaint:expr);* $(;)?])?) => {
        vec![
            $($crate::contract::Case {
                name: stringify!($name), run: |world| Box::pin($name(world)), difference: None,
            },)*
            $($($crate::contract::Case {
                name: stringify!($other), run: |world| Box::pin($other(world)),
                difference: Some($crate::contract::Difference { reason: $reason, complaint: $complaint }),
            },)*)?
        ]
    };
}
pub(crate) use cases;

/// All cases.
pub fn all() -> Vec<Case> {
    [
        built_in::cases(),
        collect::cases(),
        contents::cases(),
        creating::cases(),
        definitions::cases(),
        delete::cases(),
        events::cases(),
        fields::cases(),
        finalizers::cases(),
        json_patches::cases(),
        kinds::cases(),
        limits::cases(),
        list::cases(),
        metadata::cases(),
        pages::cases(),
        patching::cases(),
        pods::cases(),
        requests::cases(),
        schemas::cases(),
        selectors::cases(),
        status::cases(),
        streaming::cases(),
        tables::cases(),
        unknown_fields::cases(),
        updating::cases(),
        watch::cases(),
        watch_ends::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs the suite and reports all failures together.
pub async fn run(side: Side, client: &Client) -> anyhow::Result<()> {
    world::prepare(client).await?;
    let wanted = std::env::var("CONTRACT").unwrap_or_default();
    let cases: Vec<Case> = all().into_iter().filter(|case| case.name.contains(&wanted)).collect();
    let start = Instant::now();
    let runs = cases.iter().enumerate().map(|(number, case)| judge(case, side, client, number));
    let verdicts: Vec<Option<String>> = futures::stream::iter(runs).buffer_unordered(AT_ONCE).collect().await;
    let server = match side {
        Side::Embedded => "the embedded server",
        Side::Real => "the real kube-apiserver",
    };
    println!(
        "\ncounted: {} contract cases ran on {server} in {:.1} s",
        cases.len(),
        start.elapsed().as_secs_f32()
    );
    for case in &cases {
        if let Some(Difference { reason, .. }) = case.difference {
            println!("counted: may differ: {}: {reason}", case.name.replace('_', " "));
        }
    }
    let failures: Vec<String> = verdicts.into_iter().flatten().collect();
    ensure!(failures.is_empty(), "{} of them failed:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

/// Runs one case. Returns what went wrong, if anything did.
async fn judge(case: &Case, side: Side, client: &Client, number: usize) -> Option<String> {
    let attempt = async {
        let world = World::new(client, side, number).await?;
        (case.run)(world).await
    };
    let start = Instant::now();
    let outcome = match tokio::time::timeout(PATIENCE, attempt).await {
        Ok(outcome) => outcome,
        Err(_) => Err(anyhow::anyhow!("did not end within {} s", PATIENCE.as_secs())),
    };
    if start.elapsed() > Duration::from_secs(5) {
        println!("slow: {} took {:.1} s", case.name, start.elapsed().as_secs_f32());
    }
    let difference = case.difference.filter(|_| side == Side::Embedded);
    let trouble = match (outcome, difference) {
        (Ok(()), None) => return None,
        (Ok(()), Some(listed)) => format!("passes, but is listed as differing: {}", listed.reason),
        (Err(error), None) => format!("{error:#}"),
        (Err(error), Some(listed)) => {
            let error = format!("{error:#}");
            if error.contains(listed.complaint) {
                return None;
            }
            format!("differs otherwise than listed: {error}")
        }
    };
    Some(format!("  {}: {trouble}", case.name))
}
