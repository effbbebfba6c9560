//! A server, the candidates on it, and the watch over them: whenever time passes, at most one leads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease as Object;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use prewarm_clock::TokioClock;
use prewarm_controller::Metrics;
use prewarm_controller::lease::{Lease, Place};
use prewarm_embedded::faults::Faults;
use prewarm_embedded::{Options, Server};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::candidate::Candidate;

pub const NAMESPACE: &str = "prewarm-system";
pub const NAME: &str = "prewarm-controller";
/// How often is looked whether more than one leads. No pause of a candidate is a multiple of it.
const STEP: Duration = Duration::from_millis(37);

pub struct World {
    pub server: Server,
    pub born: Instant,
    pub metrics: Metrics,
    pub candidates: BTreeMap<String, Candidate>,
}

impl World {
    /// A server with the Lease that is installed with the program, which nobody holds, and no candidates.
    pub fn new() -> Self {
        let world = Self::without_lease();
        world.install(&json!({}));
        world
    }

    pub fn without_lease() -> Self {
        let beginning: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let server = Server::new(Arc::new(TokioClock::starting_at(beginning)), Options::default());
        server.install_namespace(NAMESPACE);
        let metrics = Metrics::new();
        Self { server, born: Instant::now(), metrics, candidates: BTreeMap::new() }
    }

    /// Makes the Lease with this spec.
    pub fn install(&self, spec: &Value) {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": NAME, "namespace": NAMESPACE }, "spec": spec,
        });
        self.server.install(&lease).unwrap();
    }

    pub fn start(&mut self, name: &str) {
        self.start_with(name, self.server.client());
    }

    /// Starts a candidate to whose requests all this happens.
    pub fn start_on(&mut self, name: &str, faults: &Faults) {
        self.start_with(name, faults.client(&self.server));
    }

    fn start_with(&mut self, name: &str, client: Client) {
        // No two clocks agree, and none of these is right.
        let hours = i64::try_from(self.candidates.len()).unwrap() * 5 - 7;
        let beginning = Timestamp::from_second(hours * 3600).unwrap();
        let clock = Arc::new(TokioClock::starting_at(beginning));
        let place = Place { namespace: NAMESPACE.to_owned(), name: NAME.to_owned() };
        let lease = Lease::new(client, place, name.to_owned(), clock, self.metrics.clone());
        self.candidates.insert(name.to_owned(), Candidate::start(name, lease));
    }

    pub fn take(&mut self, name: &str) -> Candidate {
        self.candidates.remove(name).unwrap()
    }

    /// Who leads. Never are there two.
    pub fn leader(&self) -> Option<String> {
        let leading = self.candidates.values().filter(|one| one.lease.is_leading());
        let names: Vec<&str> = leading.map(|one| one.name.as_str()).collect();
        assert!(names.len() < 2, "{names:?} all lead after {:?}", self.born.elapsed());
        names.first().map(|&name| name.to_owned())
    }

    /// Lets this much time pass, with a look at every step.
    pub async fn pass(&self, seconds: f64) {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < end {
            tokio::time::sleep(STEP.min(end - Instant::now())).await;
            self.leader();
        }
    }

    /// Waits until somebody leads; who, and after how many seconds.
    pub async fn elect(&self) -> (String, f64) {
        let began = Instant::now();
        loop {
            if let Some(leader) = self.leader() {
                return (leader, began.elapsed().as_secs_f64());
            }
            let waited = began.elapsed();
            assert!(waited < Duration::from_mins(10), "nobody leads after {waited:?}");
            tokio::time::sleep(STEP).await;
        }
    }

    pub fn api(&self) -> Api<Object> {
        Api::namespaced(self.server.client(), NAMESPACE)
    }

    pub async fn lease(&self) -> Object {
        self.api().get(NAME).await.unwrap()
    }

    pub async fn transitions(&self) -> i32 {
        self.lease().await.spec.unwrap().lease_transitions.unwrap()
    }

    pub async fn patch(&self, patch: Value) {
        self.api().patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn delete(&self) {
        self.api().delete(NAME, &DeleteParams::default()).await.unwrap();
    }

    /// Whether the metrics have this line.
    pub fn counts(&self, line: &str) -> bool {
        self.metrics.encode().lines().any(|it| it == format!("prewarm_controller_{line}"))
    }
}
