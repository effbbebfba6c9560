//! An image on eight nodes whose links carry 40 Mbit/s each way, compared with the same on one of them alone. Mirrors send over the
//! same links, so a wave takes as long as one node.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use prewarm_testkit::figure::{Bar, Figures};
use prewarm_testkit::image::{Image, Layer};
use serde_json::json;

use crate::fleet::{Fleet, NODES};
use crate::prefetch::Prefetch;
use crate::shop::Shop;
use crate::wide::cluster::counts;

const BITS_PER_SECOND: u64 = 40_000_000;
/// 100 MB.
const LAYERS: usize = 10;
const LAYER: usize = 10_000_000;
/// How often is looked whether bytes arrive, and how few of them in that time are none of an image but of the API: a fifth of what a
/// link carries.
const INTERVAL: Duration = Duration::from_millis(20);
const FEW: u64 = 20_000;
/// Written at intervals, for whatever the cluster does.
const LEASES: &str = "leases";

/// What a run took.
struct Run {
    seconds: f64,
    /// From the last bytes that a node received until the condition Ready.
    after_the_last_byte: f64,
    /// Sent by the registry, compared with the size of the image.
    from_upstream: f64,
}

pub async fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let fleet = Fleet::start(NODES).await?;
    for node in &fleet.nodes {
        node.slow(BITS_PER_SECOND)?;
        node.slow_sending(BITS_PER_SECOND)?;
    }
    let alone = run(&fleet, "alone", 1).await?;
    let all = run(&fleet, "together", NODES).await?;
    let mut add = |figure: &str, value, unit, most| {
        let figure = format!("{NODES} nodes, 100 MB, 40 Mbit/s each way: {figure}");
        figures.add(&figure, value, unit, Bar::AtMost(most));
    };
    add("bytes from the registry / image", all.from_upstream, "×", 1.02);
    add("last byte to the condition Ready", all.after_the_last_byte, "s", 1.0);
    let (ours, other) = (("all", all.seconds), ("alone", alone.seconds));
    let figure = format!("{NODES} nodes, 100 MB, 40 Mbit/s each way: time / time of one node");
    figures.compare(&figure, ours, other, Bar::AtMost(5.0));
    Ok(())
}

/// From the creation of an ImagePrefetch until it is ready, on so many nodes.
async fn run(fleet: &Fleet, name: &str, nodes: usize) -> anyhow::Result<Run> {
    let shop = Shop::open(fleet, name).await?;
    let image = shop.store(Image::new(name).layers(LAYERS, Layer::of(LAYER)).build()).await?;
    let client = fleet.cluster.server.client()?;
    let before = counts(&client).await?;
    let spec = json!({"images": [image.name], "replicas": nodes});
    let start = Instant::now();
    let prefetch = Prefetch::make(fleet, "default", name, &spec).await?;
    let is_ready = AtomicBool::new(false);
    let ready = async {
        prefetch.ready(nodes).await?;
        is_ready.store(true, Ordering::Relaxed);
        anyhow::Ok(Instant::now())
    };
    let (ready, last_byte) = tokio::try_join!(ready, last_byte(fleet, &is_ready))?;
    let mut writes = counts(&client).await?;
    writes.retain(|what, count| {
        *count -= before.get(what).copied().unwrap_or_default();
        *count > 0 && what != LEASES
    });
    let seconds = (ready - start).as_secs_f64();
    eprintln!("{name}: {seconds:.1} s, {writes:?}");
    let sent: u64 = shop.upstream.requests().iter().map(|seen| seen.bytes).sum();
    Ok(Run {
        seconds,
        after_the_last_byte: (ready - last_byte).as_secs_f64(),
        from_upstream: count(sent) / count(image.artifact.size()),
    })
}

/// When a node received more than a few bytes for the last time.
async fn last_byte(fleet: &Fleet, is_over: &AtomicBool) -> anyhow::Result<Instant> {
    let received =
        || fleet.nodes.iter().map(prewarm_testkit::Node::bytes_received).collect::<Result<Vec<_>, _>>();
    let (mut before, mut last) = (received()?, Instant::now());
    while !is_over.load(Ordering::Relaxed) {
        tokio::time::sleep(INTERVAL).await;
        let after = received()?;
        if after.iter().zip(&before).any(|(after, before)| after - before > FEW) {
            last = Instant::now();
        }
        before = after;
    }
    Ok(last)
}

#[expect(clippy::cast_precision_loss, reason = "a ratio need not be exact")]
fn count(number: u64) -> f64 {
    number as f64
}
