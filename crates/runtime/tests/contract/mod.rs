//! What every runtime has to do, one sentence per case. The same cases run on the fake, on containerd, on CRI-O and on
//! the demo's store, so that tests with the fake say something about the real ones.

pub mod calls;
pub mod pulls;
pub mod trouble;

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use anyhow::Context as _;
use prewarm_api::reference::ImageRef;
use prewarm_credentials::Credential;
use prewarm_runtime::{Endpoint, PullRequest, Runtime};

/// A runtime, and the registry that its images come from.
pub trait World {
    fn endpoint(&self) -> Endpoint;
    /// Adds an image to the registry.
    fn offer(&self, name: &str, tag: &str, shape: Shape) -> impl Future<Output = anyhow::Result<Offer>>;
    /// Makes the registry hang: pulls that begin do not end.
    fn hold(&self) -> anyhow::Result<()>;
    /// Undoes [`hold`](Self::hold).
    fn release(&self) -> anyhow::Result<()>;
    /// Makes pulls take a second or two.
    fn slow(&self) -> anyhow::Result<()>;
    /// Kills the runtime without a chance to clean up.
    fn kill(&self) -> anyhow::Result<()>;
    /// Starts it again and waits until it answers.
    fn revive(&self) -> impl Future<Output = anyhow::Result<()>>;
    /// Removes an image behind the client's back.
    fn remove(&self, reference: &ImageRef) -> impl Future<Output = anyhow::Result<()>>;
    /// An image in a registry that refuses connections.
    fn unreachable(&self) -> anyhow::Result<ImageRef>;
    /// An image in a registry that requires credentials.
    fn locked(&self) -> impl Future<Output = anyhow::Result<ImageRef>>;
}

/// The structure of an image.
#[derive(Clone, Copy, Default)]
pub struct Shape {
    /// How many layers of a megabyte.
    pub layers: usize,
    /// Whether it is behind an index of several platforms.
    pub is_index: bool,
}

/// An image in the registry.
pub struct Offer {
    pub tagged: ImageRef,
    /// The same image by the digest that its tag points to.
    pub by_digest: ImageRef,
    /// The bytes of config and layers, packed.
    pub size: u64,
}

pub const SMALL: Shape = Shape { layers: 1, is_index: false };

/// How long anything that should not hang may take.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub async fn connect(world: &impl World) -> anyhow::Result<Runtime> {
    Runtime::connect(&world.endpoint()).await.context("connecting")
}

pub fn request(reference: &ImageRef) -> PullRequest {
    request_as(reference, None)
}

pub fn request_as(reference: &ImageRef, credential: Option<Credential>) -> PullRequest {
    PullRequest {
        reference: reference.clone(),
        credential,
        labels: BTreeMap::from([("app".into(), "shop".into())]),
        annotations: BTreeMap::from([("example/why".into(), "contract".into())]),
    }
}

/// Passes all cases to a macro that makes tests of them.
macro_rules! cases {
    ($make:ident) => {
        $make! {
            calls::an_image_that_was_never_pulled_is_absent,
            calls::a_pulled_image_is_found_by_tag_and_by_digest,
            calls::a_short_name_means_the_public_registry,
            calls::an_image_pulled_by_digest_does_not_have_its_tag,
            calls::the_same_content_under_another_name_is_another_image,
            calls::all_images_are_listed_with_their_names_and_sizes,
            calls::a_removed_image_is_absent,
            calls::a_removal_wakes_listeners_on_containerd_and_nobody_elsewhere,
            calls::images_are_kept_in_a_directory_that_exists,
            pulls::a_present_image_is_pulled_again_without_harm,
            pulls::an_index_leads_to_the_image_of_this_platform,
            pulls::a_dropped_pull_is_cancelled_and_the_next_one_succeeds,
            pulls::two_callers_of_one_image_both_get_it,
            pulls::when_the_first_of_two_callers_leaves_the_second_gets_the_image_or_may_repeat,
            pulls::progress_grows_to_the_sum_of_all_layers_on_containerd,
            pulls::without_a_pull_there_is_no_progress,
            trouble::a_missing_image_is_not_found,
            trouble::a_registry_that_refuses_connections_is_unreachable,
            trouble::a_registry_that_wants_credentials_says_unauthorized,
            trouble::wrong_credentials_do_not_appear_in_the_error,
            trouble::a_runtime_killed_during_a_pull_is_away_and_comes_back,
        }
    };
}
pub(crate) use cases;
