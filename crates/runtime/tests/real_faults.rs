//! What real runtimes say when registries fail, and how it is classified. Each runtime has its own words.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use http::StatusCode;
use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;
use prewarm_credentials::{Credential, SecretText};
use prewarm_runtime::{CallError, Endpoint, PullRequest};
use prewarm_testkit::image::{Image, Layer, index, native_architecture};
use prewarm_testkit::node::Disk;
use prewarm_testkit::registry::Challenge;
use prewarm_testkit::registry::fault::{Fault, On};
use prewarm_testkit::{FaultProxy, Faulty, Node, Registry, Runtime, real_tests};

const MIB: usize = 1024 * 1024;
const REFERENCE: &str = "faulty.example/shop/web:v1";

real_tests! {
    every_status_of_a_registry_has_its_class,
    a_busy_registry_is_known_by_its_429,
    broken_content_is_corrupt,
    broken_connections_are_unreachable,
    without_trust_the_class_is_tls,
    an_image_for_other_platforms_only_has_no_platform,
    a_full_disk_is_no_space,
    the_right_account_pulls_and_the_wrong_one_is_unauthorized,
}

/// Pulls on every node while requests meet this fault, and checks the class.
async fn expect(bed: &Faulty, on: On, fault: Fault, class: FailureClass) -> anyhow::Result<Vec<CallError>> {
    let mut errors = Vec::new();
    for node in &bed.nodes {
        bed.proxy.fail(on.clone(), fault.clone());
        let error = failure(node, REFERENCE, class).await.with_context(|| format!("{fault:?}"))?;
        bed.proxy.heal();
        errors.push(error);
    }
    Ok(errors)
}

async fn pull(
    node: &Node,
    reference: &str,
    credential: Option<Credential>,
) -> anyhow::Result<Result<(), CallError>> {
    let runtime = prewarm_runtime::Runtime::connect(&Endpoint::unix(node.socket())).await?;
    let request = PullRequest {
        reference: ImageRef::parse(reference)?,
        credential,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
    };
    Ok(runtime.pull(&request).await)
}

async fn failure(node: &Node, reference: &str, class: FailureClass) -> anyhow::Result<CallError> {
    let error = pull(node, reference, None).await?.err();
    let error = error.with_context(|| format!("{:?} pulled {reference}", node.kind()))?;
    ensure!(error.class() == class, "{:?} is {:?}, not {class:?}: {error}", node.kind(), error.class());
    ensure!(!error.is_runtime_away() && !error.is_interrupted(), "{:?}: {error:?}", node.kind());
    Ok(error)
}

async fn every_status_of_a_registry_has_its_class() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    for (status, class) in [
        (StatusCode::UNAUTHORIZED, FailureClass::Unauthorized),
        (StatusCode::FORBIDDEN, FailureClass::Unauthorized),
        (StatusCode::NOT_FOUND, FailureClass::NotFound),
    ] {
        for error in expect(&bed, On::Manifests, Fault::Status(status), class).await? {
            ensure!(!error.is_registry_overloaded(), "{status}: {error}");
        }
    }
    for status in [
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ] {
        for on in [On::Manifests, On::Blobs] {
            for error in expect(&bed, on, Fault::Status(status), FailureClass::Unreachable).await? {
                ensure!(error.is_registry_overloaded(), "{status}: {error}");
            }
        }
    }
    Ok(())
}

async fn a_busy_registry_is_known_by_its_429() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    let fault = Fault::RetryAfter(StatusCode::TOO_MANY_REQUESTS, 1);
    for error in expect(&bed, On::Manifests, fault, FailureClass::RateLimited).await? {
        ensure!(error.is_registry_overloaded(), "{error}");
    }
    Ok(())
}

async fn broken_content_is_corrupt() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    let layer = bed.image.blobs.last().context("an image has a layer")?.digest.clone();
    // With a part of the layer in each answer, containerd would resume until it has all of it.
    let errors = expect(&bed, On::Path(layer.clone()), Fault::Truncate(0), FailureClass::Corrupt).await?;
    ensure!(errors.iter().all(|error| error.to_string().ends_with("EOF")), "{errors:?}");
    // Last, because containerd may keep some of the wrong bytes and fail once more because of them.
    let errors = expect(&bed, On::Path(layer), Fault::WrongBytes, FailureClass::Corrupt).await?;
    ensure!(errors.iter().all(|error| error.to_string().contains("expected sha256:")), "{errors:?}");
    Ok(())
}

async fn broken_connections_are_unreachable() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    for error in expect(&bed, On::Anything, Fault::Reset, FailureClass::Unreachable).await? {
        ensure!(!error.is_registry_overloaded(), "{error}");
    }
    for node in &bed.nodes {
        node.lead("unknown.example", "http://no-such-host.example")?;
        failure(node, "unknown.example/shop/web:v1", FailureClass::Unreachable).await?;
    }
    Ok(())
}

async fn without_trust_the_class_is_tls() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    let untrusted = FaultProxy::start_untrusted(&bed.registry).await?;
    for node in &bed.nodes {
        node.lead("untrusted.example", &untrusted)?;
        failure(node, "untrusted.example/shop/web:v1", FailureClass::Tls).await?;
        node.lead("plain.example", format!("https://{}", bed.proxy.host()).as_str())?;
        failure(node, "plain.example/shop/web:v1", FailureClass::Tls).await?;
    }
    Ok(())
}

async fn an_image_for_other_platforms_only_has_no_platform() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    let others = ["s390x", "ppc64le"].into_iter().filter(|other| *other != native_architecture());
    let images: Vec<_> =
        others.map(|other| Image::new(other).architecture(other).layer(Layer::of(MIB))).collect();
    bed.registry.push("shop/foreign", &["v1"], &index(&images)).await?;
    for node in &bed.nodes {
        failure(node, "faulty.example/shop/foreign:v1", FailureClass::NoPlatform).await?;
    }
    Ok(())
}

async fn a_full_disk_is_no_space() -> anyhow::Result<()> {
    let registry = Registry::start().await?;
    let image = Image::new("large").layers(2, Layer::of(30 * MIB)).build();
    registry.push("shop/large", &["v1"], &image).await?;
    for runtime in Runtime::ALL {
        let node = Node::configure().runtime(runtime).disk(Disk::of_mebibytes(32)).start(&registry).await?;
        failure(&node, "registry.example/shop/large:v1", FailureClass::NoSpace).await?;
    }
    Ok(())
}

async fn the_right_account_pulls_and_the_wrong_one_is_unauthorized() -> anyhow::Result<()> {
    let bed = Faulty::start().await?;
    let reference = bed.proxy.reference("shop/web", "v1");
    let account = |password: &str| {
        Some(Credential {
            username: "jane".into(),
            password: SecretText::new(password.into()),
            server_address: bed.proxy.host().into(),
            ..Credential::default()
        })
    };
    for node in &bed.nodes {
        node.lead(bed.proxy.host(), &bed.proxy)?;
        for challenge in [Challenge::Basic, Challenge::Token] {
            bed.proxy.require("jane", "correct-horse", challenge);
            for wrong in [None, account("battery-staple")] {
                let error = pull(node, &reference, wrong).await?.err().context("it was let in")?;
                ensure!(error.class() == FailureClass::Unauthorized, "{:?}: {error}", error.class());
                ensure!(!format!("{error:?}").contains("battery"), "{error:?}");
            }
            pull(node, &reference, account("correct-horse")).await?.context("the right account")?;
            node.remove(&reference).await?;
        }
    }
    Ok(())
}
