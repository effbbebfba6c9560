//! One pull, from its request to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use prewarm_api::reference::ImageRef;
use prewarm_credentials::Credential;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tonic::Status;

use super::call::{Call, Outcome};
use super::script::Plot;
use super::world::{Download, Shared};
use crate::runtime::Kind;
use crate::serve::{PullCall, Refusal};

/// Pulls that others may join, by the key that callers must share.
pub(super) type Flights = BTreeMap<(String, Option<String>), watch::Receiver<Landing>>;

/// The result for all callers that share a pull. `None` while it lasts.
pub(super) type Landing = Option<Result<String, Status>>;

/// A recorded pull. Dropping it before its end cancels it.
pub(super) struct Pulling {
    shared: Arc<Shared>,
    call: PullCall,
    number: usize,
    outcome: Outcome,
}

impl Pulling {
    pub fn begin(shared: &Arc<Shared>, call: PullCall) -> Self {
        let number = shared.world().begin(Call::of(&call));
        shared.changed();
        Self { shared: Arc::clone(shared), call, number, outcome: Outcome::Cancelled }
    }

    pub async fn run(mut self) -> Result<String, Status> {
        let kind = self.shared.world().kind;
        let pulled = if kind == Kind::CriO { self.share().await } else { self.fetch().await };
        self.outcome = if pulled.is_ok() { Outcome::Succeeded } else { Outcome::Failed };
        pulled
    }

    /// Shares a pull as CRI-O does: the second caller waits for the first, and is cancelled with it.
    async fn share(&self) -> Result<String, Status> {
        let username = self.call.credential.as_ref().map(|credential| credential.username.clone());
        let key = (self.call.name.clone(), username);
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
        let name = &self.call.name;
        let reference =
            ImageRef::parse(name).map_err(|_unreadable| self.says(&Refusal::BadReference, name))?;
        let plot = self.admit(&reference)?;
        if !self.is_present(&reference, &plot) {
            self.shared
                .until(|world| world.plots.values().all(|other| !same(other, &plot) || !other.hangs))
                .await;
            self.download(&reference, &plot).await;
            if let Some(downtime) = plot.stops_runtime {
                self.shared.crash(downtime);
                std::future::pending::<()>().await;
            }
            self.shared.world().stored.add(&reference, &plot.identity());
        }
        Ok(match self.shared.world().kind {
            Kind::CriO => format!("{}@{}", reference.name(), plot.manifest()),
            Kind::Containerd | Kind::Other => plot.config(),
        })
    }

    /// What the registry answers to the first request.
    fn admit(&self, reference: &ImageRef) -> Result<Plot, Status> {
        let mut world = self.shared.world();
        let kind = world.kind;
        let Some(plot) = world.plot_mut(reference) else {
            return Err(says(kind, &Refusal::NotFound, &reference.full()));
        };
        if let Some(failure) = plot.failures.pop_front() {
            return Err(failure);
        }
        let shown = self.call.credential.clone().unwrap_or_default();
        if plot.account.as_ref().is_some_and(|account| !is_account(account, &shown)) {
            return Err(says(kind, &Refusal::NoCredentials, &reference.full()));
        }
        Ok(plot.clone())
    }

    /// Whether the node has the registry's current image under this name.
    fn is_present(&self, reference: &ImageRef, plot: &Plot) -> bool {
        let world = self.shared.world();
        world.stored.by_config(&plot.config()).is_some_and(|image| image.is(reference))
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

    fn says(&self, refusal: &Refusal, name: &str) -> Status {
        says(self.shared.world().kind, refusal, name)
    }
}

impl Drop for Pulling {
    fn drop(&mut self) {
        self.shared.world().end(self.number, self.outcome);
        self.shared.changed();
    }
}

/// Removes a flight from the list when its first caller ends or leaves.
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

fn is_account((username, password): &(String, String), shown: &Credential) -> bool {
    shown.username == *username && shown.password.reveal() == password
}

/// The words of the real programs.
fn says(kind: Kind, refusal: &Refusal, name: &str) -> Status {
    match (kind, refusal) {
        (Kind::CriO, Refusal::NotFound) => Status::unknown(format!(
            "unable to try pulling possible OCI artifact: build image source: reading manifest in {name}: manifest unknown"
        )),
        (Kind::CriO, Refusal::NoCredentials) => {
            Status::unknown(format!("reading manifest in {name}: unauthorized: authentication required"))
        }
        (Kind::CriO, Refusal::BadReference) => Status::unknown("cannot parse input"),
        (_, refusal) => refusal.status(name),
    }
}
