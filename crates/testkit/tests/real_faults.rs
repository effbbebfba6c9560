//! Registries that fail: each fault of the proxy, as both runtimes experience it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use http::StatusCode;
use prewarm_testkit::node::cri::Credentials;
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::registry::{Challenge, Upstream};
use prewarm_testkit::{FaultProxy, Faulty, Node, Runtime, real_tests, wait};
use tonic::Code;

const MIB: usize = 1024 * 1024;
const REFERENCE: &str = "faulty.example/shop/web:v1";

real_tests! {
    without_a_fault_everything_is_handed_on_and_written_down,
    a_status_reaches_the_runtime_until_it_is_healed,
    a_fault_ends_after_its_number_of_requests,
    retry_after_sets_the_time_to_wait,
    only_the_right_password_pulls,
    a_registry_that_hangs_or_stalls_keeps_a_pull_waiting,
    broken_blobs_fail_a_pull,
    a_slow_registry_slows_a_pull,
    a_reset_connection_fails_a_pull,
    an_untrusted_certificate_fails_a_pull,
    nobody_listens_and_nobody_knows_the_name,
}

/// Pulls through CRI and returns the runtime's error.
async fn complaint(node: &Node, reference: &str) -> anyhow::Result<String> {
    let pulled = node.cri()?.pull(reference, None).await;
    Ok(pulled.err().with_context(|| format!("{} pulled {reference}", node.name()))?.message().to_owned())
}

async fn pull(node: &Node) -> anyhow::Result<()> {
    let pulled = node.cri()?.pull(REFERENCE, None).await;
    pulled.map(drop).with_context(|| format!("pulling on {:?}", node.kind()))
}

/// Pulls again as long as the pull ends together with another one: CRI-O lets a caller share a pull that was cancelled
/// a moment ago.
async fn pull_unshared(node: &Node) -> anyhow::Result<()> {
    loop {
        match node.cri()?.pull(REFERENCE, None).await {
            Err(status) if status.code() == Code::Cancelled => {}
            pulled => return pulled.map(drop).with_context(|| format!("pulling on {:?}", node.kind())),
        }
    }
}

async fn without_a_fault_everything_is_handed_on_and_written_down() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    for node in &bed.nodes {
        bed.proxy.forget();
        pull(node).await?;
        let blobs = bed.proxy.requests_on(&On::Blobs);
        ensure!(blobs.iter().filter(|seen| seen.is_download()).count() == 2, "{blobs:#?}");
        let bytes: u64 = bed.proxy.requests().iter().map(|seen| seen.bytes).sum();
        ensure!(bytes >= bed.image.size(), "{bytes} of {}", bed.image.size());
        ensure!(bed.proxy.requests().iter().all(|seen| seen.user.is_none()), "nobody was asked for a name");
    }
    Ok(())
}

async fn a_status_reaches_the_runtime_until_it_is_healed() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    for node in &bed.nodes {
        for (status, on) in [
            (StatusCode::UNAUTHORIZED, On::Manifests),
            (StatusCode::FORBIDDEN, On::Manifests),
            (StatusCode::NOT_FOUND, On::Path("shop/web".to_owned())),
            (StatusCode::INTERNAL_SERVER_ERROR, On::Blobs),
            (StatusCode::SERVICE_UNAVAILABLE, On::Manifests),
        ] {
            bed.proxy.forget();
            bed.proxy.fail(on, Fault::Status(status));
            complaint(node, REFERENCE).await?;
            ensure!(bed.proxy.requests().iter().any(|seen| seen.status == Some(status)), "{status}");
            bed.proxy.heal();
        }
        pull(node).await?;
    }
    Ok(())
}

async fn a_fault_ends_after_its_number_of_requests() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    for node in &bed.nodes {
        // More than one pull requests, because runtimes retry by themselves.
        bed.proxy.fail_times(3, On::Manifests, Fault::Status(StatusCode::INTERNAL_SERVER_ERROR));
        let mut failures = 0;
        while pull(node).await.is_err() {
            failures += 1;
            ensure!(failures <= 3, "the fault does not end");
        }
        ensure!(failures > 0);
    }
    Ok(())
}

async fn retry_after_sets_the_time_to_wait() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    bed.proxy.fail_times(2, On::Manifests, Fault::RetryAfter(StatusCode::TOO_MANY_REQUESTS, 1));
    let crio = bed.nodes.iter().find(|node| node.kind() == Runtime::Crio).context("there is one")?;
    let start = Instant::now();
    // CRI-O retries by itself, after the time in the answer.
    pull(crio).await?;
    ensure!(start.elapsed() > Duration::from_secs(2), "it took only {:?}", start.elapsed());
    Ok(())
}

async fn only_the_right_password_pulls() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    let reference = bed.proxy.reference("shop/web", "v1");
    for node in &bed.nodes {
        node.lead(bed.proxy.host(), &bed.proxy)?;
        for challenge in [Challenge::Basic, Challenge::Token] {
            bed.proxy.require("jane", "secret", challenge);
            let cri = node.cri()?;
            ensure!(cri.pull(&reference, None).await.is_err(), "{challenge:?} without a password");
            let wrong = cri.pull(&reference, Some(Credentials::new("jane", "wrong"))).await;
            ensure!(wrong.is_err(), "{challenge:?} with a wrong password");
            bed.proxy.forget();
            let right = cri.pull(&reference, Some(Credentials::new("jane", "secret"))).await;
            right.with_context(|| format!("{challenge:?} on {:?}", node.kind()))?;
            let passed = bed.proxy.requests_on(&On::Manifests).into_iter();
            let mut passed = passed.filter(|seen| seen.status == Some(StatusCode::OK));
            ensure!(passed.next().is_some_and(|seen| seen.user.as_deref() == Some("jane")));
            ensure!(
                passed.all(|seen| seen.user.as_deref() == Some("jane")),
                "a request without a name passed"
            );
            node.remove(&reference).await?;
        }
    }
    Ok(())
}

async fn a_registry_that_hangs_or_stalls_keeps_a_pull_waiting() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    for node in &bed.nodes {
        for (on, fault) in [(On::Manifests, Fault::Hang), (On::Blobs, Fault::Stall(100))] {
            bed.proxy.forget();
            bed.proxy.fail(on.clone(), fault.clone());
            let early = tokio::time::timeout(Duration::from_secs(2), pull_unshared(node)).await;
            ensure!(early.is_err(), "{fault:?} let a pull end: {early:?}");
            let met = bed.proxy.requests_on(&on);
            ensure!(
                !met.is_empty() && met.iter().all(|seen| !seen.is_complete && seen.bytes <= 100),
                "{met:#?}"
            );
            bed.proxy.heal();
        }
        // Both runtimes let another caller wait for a pull that was cancelled a moment ago.
        wait::until("a pull after the faults", async || Ok(pull(node).await.ok())).await?;
    }
    Ok(())
}

async fn broken_blobs_fail_a_pull() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    let layer = bed.image.blobs.last().context("an image has a layer")?.digest.clone();
    for node in &bed.nodes {
        // After a first byte, containerd would request the rest again and again, as long as each answer brings some of
        // it.
        for fault in [Fault::WrongBytes, Fault::Truncate(0)] {
            bed.proxy.fail(On::Path(layer.clone()), fault.clone());
            let text = complaint(node, REFERENCE).await?;
            ensure!(!node.images().await?.contains(&REFERENCE.to_owned()), "{fault:?}: {text}");
            bed.proxy.heal();
        }
        // containerd may have kept a part of the wrong bytes, and discards it when a pull fails because of it.
        wait::until("a pull after the faults", async || Ok(pull(node).await.ok())).await?;
    }
    Ok(())
}

async fn a_slow_registry_slows_a_pull() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    bed.proxy.fail(On::Blobs, Fault::Slow(MIB as u64));
    for node in &bed.nodes {
        let start = Instant::now();
        pull(node).await?;
        ensure!(start.elapsed() > Duration::from_millis(1500), "2 MiB took only {:?}", start.elapsed());
    }
    Ok(())
}

async fn a_reset_connection_fails_a_pull() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    bed.proxy.fail(On::Anything, Fault::Reset);
    for node in &bed.nodes {
        let text = complaint(node, REFERENCE).await?;
        ensure!(text.contains("connection reset by peer"), "{text}");
    }
    Ok(())
}

async fn an_untrusted_certificate_fails_a_pull() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    let untrusted = FaultProxy::start_untrusted(&bed.registry).await?;
    for node in &bed.nodes {
        node.lead("untrusted.example", &untrusted)?;
        let text = complaint(node, "untrusted.example/shop/web:v1").await?;
        ensure!(text.contains("x509: certificate signed by unknown authority"), "{text}");
    }
    ensure!(untrusted.requests().is_empty() && untrusted.url().starts_with("https://"));
    Ok(())
}

async fn nobody_listens_and_nobody_knows_the_name() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    for node in &bed.nodes {
        node.lead("closed.example", "http://10.77.0.1:9")?;
        let text = complaint(node, "closed.example/shop/web:v1").await?;
        ensure!(text.contains("connection refused"), "{text}");
        node.lead("unknown.example", "http://no-such-host.example")?;
        let text = complaint(node, "unknown.example/shop/web:v1").await?;
        ensure!(text.contains("lookup no-such-host.example"), "{text}");
    }
    Ok(())
}
