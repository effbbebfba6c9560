//! One pull, from its request to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use prewarm_api::reference::ImageRef;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tonic::Status;

use super::call::{Call, Outcome};
use super::script::Plot;
use super::world::{Download, Shared};
use crate::proto::cri::{AuthConfig, PullImageRequest};
use crate::runtime::Kind;

/// Pulls that others may join, by what has to be the same for that.
pub(super) type Flights = BTreeMap<(String, Option<String>), watch::Receiver<Landing>>;

/// What all who share a pull are told. `None` while it lasts.
pub(super) type Landing = Option<Result<String, Status>>;

/// A pull that was written down. Dropped before its end, it was cancelled.
pub(super) struct Pulling {
    shared: Arc<Shared>,
    request: PullImageRequest,
    number: usize,
    outcome: Outcome,
}

impl Pulling {
    pub fn begin(shared: &Arc<Shared>, request: PullImageRequest) -> Self {
        let number = shared.world().begin(Call::of(&request));
        shared.changed();
        Self { shared: Arc::clone(shared), request, number, outcome: Outcome::Cancelled }
    }

    pub async fn run(mut self) -> Result<String, Status> {
        let kind = self.shared.world().kind;
        let pulled = if kind == Kind::CriO { self.share().await } else { self.fetch().await };
        self.outcome = if pulled.is_ok() { Outcome::Succeeded } else { Outcome::Failed };
        pulled
    }

    /// As CRI-O does it: the second caller waits for the first, and is cancelled with it.
    async fn share(&self) -> Result<String, Status> {
        let name = self.request.image.as_ref().map(|spec| spec.image.clone()).unwrap_or_default();
        let key = (name, self.request.auth.as_ref().map(|auth| auth.username.clone()));
        let joined = self.shared.world().flights.get(&key).cloned();
        if let Some(mut flight) = joined {
            return match flight.wait_for(Option::is_some).await.map(|landing| landing.clone()) {
                Ok(landing) => landing.expect("it was waited for"),
                Err(_first_is_gone) => Err(Status::cancelled("context canceled")),
            };
        }
        let (sender, flight) = watch::channel(None);
        self.shared.world().flights.insert(key.clone(), flight);
        let _flight = Flight { shared: Arc::clone(&self.shared), key };
        let pulled = self.fetch().await;
        sender.send_replace(Some(pulled.clone()));
        pulled
    }

    async fn fetch(&self) -> Result<String, Status> {
        let name = self.request.image.as_ref().map(|spec| spec.image.as_str()).unwrap_or_default();
        let reference =
            ImageRef::parse(name).map_err(|_unreadable| self.says(Refusal::BadReference, name))?;
        let plot = self.admit(&reference)?;
        if !self.is_present(&reference, &plot) {
            self.shared
                .until(|world| world.plots.values().all(|other| !same(other, &plot) || !other.hangs))
                .await;
            self.download(&reference, &plot).await;
            self.shared.world().store(&reference, &plot);
        }
        Ok(match self.shared.world().kind {
            Kind::CriO => format!("{}@{}", reference.name(), plot.manifest()),
            Kind::Containerd | Kind::Other => plot.config(),
        })
    }

    /// What the registry says to the first request.
    fn admit(&self, reference: &ImageRef) -> Result<Plot, Status> {
        let mut world = self.shared.world();
        let kind = world.kind;
        let Some(plot) = world.plot_mut(reference) else {
            return Err(says(kind, Refusal::NotFound, &reference.full()));
        };
        if let Some(failure) = plot.failures.pop_front() {
            return Err(failure);
        }
        let shown = self.request.auth.clone().unwrap_or_default();
        if plot.account.as_ref().is_some_and(|account| !is_account(account, &shown)) {
            return Err(says(kind, Refusal::Unauthorized, &reference.full()));
        }
        Ok(plot.clone())
    }

    /// Whether what the registry has now is on the node under this name.
    fn is_present(&self, reference: &ImageRef, plot: &Plot) -> bool {
        let world = self.shared.world();
        let here = world.stored.get(&plot.config());
        here.is_some_and(|image| crate::image::Image::from(image.clone()).is(reference))
    }

    async fn download(&self, reference: &ImageRef, plot: &Plot) {
        let download = Download {
            reference: reference.clone(),
            plot: plot.clone(),
            began: Instant::now(),
            touched: SystemTime::now(),
        };
        self.shared.world().downloads.insert(self.number, download);
        self.shared.changed();
        sleep(plot.takes).await;
        sleep(plot.unpacks).await;
    }

    fn says(&self, refusal: Refusal, name: &str) -> Status {
        says(self.shared.world().kind, refusal, name)
    }
}

impl Drop for Pulling {
    fn drop(&mut self) {
        self.shared.world().end(self.number, self.outcome);
        self.shared.changed();
    }
}

/// Takes a flight off the list when its first caller ends or goes away.
struct Flight {
    shared: Arc<Shared>,
    key: (String, Option<String>),
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.shared.world().flights.remove(&self.key);
    }
}

fn same(one: &Plot, other: &Plot) -> bool {
    one.config() == other.config()
}

fn is_account((username, password): &(String, String), shown: &AuthConfig) -> bool {
    shown.username == *username && shown.password == *password
}

#[derive(Clone, Copy)]
enum Refusal {
    NotFound,
    Unauthorized,
    BadReference,
}

/// The words of the real programs.
fn says(kind: Kind, refusal: Refusal, name: &str) -> Status {
    let resolve = format!("failed to pull and unpack image \"{name}\": failed to resolve image");
    match (kind, refusal) {
        (Kind::CriO, Refusal::NotFound) => Status::unknown(format!(
            "unable to try pulling possible OCI artifact: build image source: reading manifest in {name}: manifest unknown"
        )),
        (Kind::CriO, Refusal::Unauthorized) => {
            Status::unknown(format!("reading manifest in {name}: unauthorized: authentication required"))
        }
        (Kind::CriO, Refusal::BadReference) => Status::unknown("cannot parse input"),
        (_, Refusal::NotFound) => Status::not_found(format!("{resolve}: {name}: not found")),
        (_, Refusal::Unauthorized) => Status::unknown(format!(
            "{resolve}: pull access denied, repository does not exist or may require authorization: \
             authorization failed: no basic auth credentials"
        )),
        (_, Refusal::BadReference) => {
            Status::unknown(format!("failed to parse image reference \"{name}\": invalid reference format"))
        }
    }
}
