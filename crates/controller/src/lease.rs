//! Which of several controllers works: the one that holds a Lease. The rules are in `plan::lease`; this is what reads and
//! writes by them.
//!
//! ```text
//! acquire ─▶ hold ─▶ lost: the process ends, since it cannot know which of its writes are still under way
//!               └──▶ release: the process was told to stop, and another may work at once
//! ```

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use prewarm_clock::Clock;
use prewarm_plan::agent::Moment;
use prewarm_plan::lease::{self as plan, Candidate, Verdict, holder};
use prewarm_process::log::chain;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{info, warn};

use crate::apply::answer::result;
use crate::metrics::{Metrics, Written};

mod term;
mod view;

pub use term::Term;
use view::View;

/// A request that takes longer has failed. A leader has time for another before it must stop.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// So long a stopping leader tries to release its Lease; then the others have to wait until it expires.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two tries to release it.
const RELEASE_PAUSE: Duration = Duration::from_millis(250);
/// The pause before a leader looks again after a renewal failed.
const SECOND_LOOK: Duration = Duration::from_millis(100);

/// One candidate for a Lease.
pub struct Lease {
    api: Api<Object>,
    name: String,
    identity: String,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    start: Instant,
    /// While this process leads.
    term: Term,
    view: Mutex<View>,
}

/// Where a Lease is.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// An identity for a process of this name, which no other process has or had.
pub fn identity(name: &str) -> String {
    format!("{name}_{:016x}", rand::random::<u64>())
}

/// Why a process leads no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The API server took no renewal in time.
    #[error("the lease could not be renewed for {} s", plan::RENEW_DEADLINE.as_secs())]
    Expired,
    /// Somebody else wrote it.
    #[error("the lease was given to {}", .0.as_deref().unwrap_or("nobody"))]
    Taken(Option<String>),
}

/// Why a step did not succeed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot read the lease")]
    Read(#[source] kube::Error),
    #[error("cannot write the lease")]
    Write(#[source] kube::Error),
    #[error("the API server did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Silent,
}

/// What a step led to.
enum Step {
    Leading,
    Waiting { until: Duration },
    Taken(Option<String>),
}

impl Lease {
    /// A candidate that holds nothing yet. Its [`identity`] must be its own: no process had it before, not even in the
    /// same pod.
    /// The client should not be one that makes requests wait for others: a late renewal is a lost Lease.
    pub fn new(
        client: Client,
        place: Place,
        identity: String,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
    ) -> Self {
        Self {
            api: Api::namespaced(client, &place.namespace),
            name: place.name,
            identity,
            clock,
            metrics,
            start: Instant::now(),
            term: Term::unbegun(),
            view: Mutex::default(),
        }
    }

    /// Waits, however long it takes, until this process leads. [`Lease::hold`] has to be running soon after.
    pub async fn acquire(&self) {
        info!(identity = self.identity, "waiting for the lease");
        loop {
            let pause = plan::pause(rand::random());
            match self.step().await {
                Ok(Step::Leading) => return info!(identity = self.identity, "leading"),
                Ok(Step::Waiting { until }) => {
                    sleep(pause.min(until.saturating_sub(self.start.elapsed()))).await;
                }
                Ok(Step::Taken(_)) | Err(_) => sleep(pause).await,
            }
        }
    }

    /// Renews for as long as this process leads, and returns when it does no more: before another can. A process that
    /// was stopped in between, as by SIGSTOP, hears of it late; [`Lease::is_leading`] knows at every moment.
    pub async fn hold(&self) -> Loss {
        loop {
            let Some(until) = self.term.until() else { return Loss::Expired };
            let loss = match timeout_at(until, self.renew()).await {
                Ok(Ok(())) => continue,
                Ok(Err(loss)) => loss,
                Err(_) => Loss::Expired,
            };
            self.stop_leading();
            return loss;
        }
    }

    /// Gives the Lease back, so that another process leads within moments. Nothing may be written by this one any more.
    pub async fn release(&self) {
        self.stop_leading();
        let mut view = self.view.lock().await;
        let released = timeout(RELEASE_TIMEOUT, async {
            while view.may_hold() {
                if self.release_once(&mut view).await.is_err() {
                    sleep(RELEASE_PAUSE).await;
                }
            }
        });
        if released.await.is_err() {
            warn!("the lease could not be released; others wait until it expires");
        }
    }

    /// Whether this process leads at this very moment.
    pub fn is_leading(&self) -> bool {
        self.term.is_running()
    }

    /// The same for those who write.
    pub fn term(&self) -> Term {
        self.term.clone()
    }

    /// One good renewal, after a pause and as many tries as it takes.
    async fn renew(&self) -> Result<(), Loss> {
        let mut pauses = [plan::pause(rand::random()), SECOND_LOOK].into_iter();
        loop {
            // One look clears up an answer that was lost and a Lease that was written or deleted by somebody; other
            // trouble takes time.
            sleep(pauses.next().unwrap_or_else(|| plan::pause(rand::random()))).await;
            if !self.is_leading() {
                // This process was frozen. It must not take the Lease again just before it ends.
                return Err(Loss::Expired);
            }
            match self.step().await {
                Ok(Step::Leading) => return Ok(()),
                Ok(Step::Taken(holder)) => return Err(Loss::Taken(holder)),
                Ok(Step::Waiting { .. }) | Err(_) => {}
            }
        }
    }

    /// Looks, decides and writes, once.
    async fn step(&self) -> Result<Step, Error> {
        let mut view = self.view.lock().await;
        let step = self.try_step(&mut view).await;
        let complaint = step.as_ref().err().map(|error| chain(error));
        // The same sentence every two seconds tells nobody anything new.
        if view.is_other_complaint(complaint.clone())
            && let Some(error) = complaint
        {
            warn!(error, "trouble with the lease; trying again");
        }
        step
    }

    async fn try_step(&self, view: &mut View) -> Result<Step, Error> {
        let observed = self.gather(view).await?;
        let candidate = Candidate { identity: &self.identity, is_leading: self.is_leading() };
        let now = Moment { elapsed: self.start.elapsed(), wall: self.clock.now() };
        match plan::decide(&observed, candidate, now) {
            Verdict::Create(spec) | Verdict::Replace(spec) => {
                let sent = self.start.elapsed();
                self.write(view, spec).await?;
                self.lead_until(plan::leads_until(sent));
                Ok(Step::Leading)
            }
            Verdict::Mark(spec) => {
                self.write(view, spec).await?;
                view.lost();
                Ok(Step::Waiting { until: self.start.elapsed() + plan::DURATION })
            }
            Verdict::Wait { until } => Ok(Step::Waiting { until }),
            Verdict::Stop => {
                view.lost();
                Ok(Step::Taken(observed.lease.as_ref().and_then(holder).map(str::to_owned)))
            }
        }
    }

    async fn release_once(&self, view: &mut View) -> Result<(), Error> {
        let observed = self.gather(view).await?;
        if let Some(spec) = plan::release(&observed, &self.identity, self.clock.now()) {
            self.write(view, spec).await?;
        }
        view.lost();
        Ok(())
    }

    /// What is known of the Lease. It is read, unless this process wrote it last.
    async fn gather(&self, view: &mut View) -> Result<plan::Observed, Error> {
        if let Some(observed) = view.current() {
            return Ok(observed);
        }
        let answer = timeout(REQUEST_TIMEOUT, self.api.get_opt(&self.name)).await;
        let object = answer.map_err(|_| Error::Silent)?.map_err(Error::Read)?;
        Ok(view.saw(object, self.start.elapsed()))
    }

    /// Writes exactly over what is known: the server refuses if anybody wrote in between.
    async fn write(&self, view: &mut View, spec: LeaseSpec) -> Result<(), Error> {
        let known = view.writes();
        let params = PostParams::default();
        let write = async {
            let is_there = known.is_some();
            let made = || ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let object = Object { metadata: known.unwrap_or_else(made), spec: Some(spec) };
            if is_there {
                self.api.replace(&self.name, &params, &object).await
            } else {
                self.api.create(&params, &object).await
            }
        };
        let answer = timeout(REQUEST_TIMEOUT, write).await;
        self.metrics.wrote(Written::Lease, result(answer.as_ref().ok()));
        let object = answer.map_err(|_| Error::Silent)?.map_err(Error::Write)?;
        view.wrote(object, self.start.elapsed());
        Ok(())
    }

    fn lead_until(&self, until: Duration) {
        self.term.set(Some(self.start + until));
        self.metrics.leads(true);
    }

    fn stop_leading(&self) {
        self.term.set(None);
        self.metrics.leads(false);
    }
}
