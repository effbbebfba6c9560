//! Whole controllers that share a Lease: one works, the other stands by, and goes on when it is gone.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use prewarm_api::kruise::NodeImage;
use prewarm_clock::{Clock, TokioClock};
use prewarm_controller::config::Config;
use prewarm_controller::lease::{Lease, Loss, Place, identity};
use prewarm_controller::{Controller, Health, run};
use prewarm_embedded::faults::{FaultPlan, Faults, Rates};
use prewarm_embedded::{Options, Server};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

struct Cluster {
    server: Server,
    clock: Arc<dyn Clock>,
}

struct Process {
    faults: Faults,
    health: Health,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Loss>>,
}

impl Cluster {
    fn new() -> Self {
        let clock = Arc::new(TokioClock::starting_at("2030-01-01T00:00:00Z".parse().unwrap()));
        let server = Server::new(clock.clone(), Options::default());
        server.install_definitions();
        for name in ["prewarm-system", "kruise-daemon-config"] {
            server.install_namespace(name);
        }
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "prewarm-controller", "namespace": "prewarm-system" },
        });
        server.install(&lease).unwrap();
        Self { server, clock }
    }

    fn start(&self, name: &str) -> Process {
        self.start_on(name, Faults::none())
    }

    fn start_on(&self, name: &str, faults: Faults) -> Process {
        let (controller, lease) = self.parts(name, &faults);
        let health = controller.health.clone();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(run(controller, Some(lease), async move { drop(stopped.await) }));
        Process { faults, health, stop, task }
    }

    /// A controller and its candidate for the Lease, to whose requests all this happens.
    fn parts(&self, name: &str, faults: &Faults) -> (Controller, Lease) {
        let (client, clock) = (faults.client(&self.server), self.clock.clone());
        let (controller, writer) = Controller::new(name, Config::default(), client.clone(), clock.clone());
        tokio::spawn(writer.run());
        let place = Place { namespace: "prewarm-system".to_owned(), name: "prewarm-controller".to_owned() };
        let lease = Lease::new(client, place, identity(name), clock, controller.metrics.clone());
        (controller, lease)
    }

    /// How many seconds ago the Lease was renewed.
    async fn renewed(&self) -> i64 {
        let api: Api<Object> = Api::namespaced(self.server.client(), "prewarm-system");
        let spec = api.get("prewarm-controller").await.unwrap().spec.unwrap();
        self.clock.now().duration_since(spec.renew_time.unwrap().0).as_secs()
    }

    /// Makes a node, and waits for its NodeImage; after how many seconds it came.
    async fn add_node(&self, name: &str) -> f64 {
        let ready = json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": null });
        let node = json!({ "metadata": { "name": name }, "status": { "conditions": [ready] } });
        let node: Node = serde_json::from_value(node).unwrap();
        let client = self.server.client();
        Api::all(client.clone()).create(&PostParams::default(), &node).await.unwrap();
        let began = Instant::now();
        while Api::<NodeImage>::all(client.clone()).get_opt(name).await.unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_mins(2), "no NodeImage for {name}");
            pass(0.1).await;
        }
        began.elapsed().as_secs_f64()
    }
}

async fn pass(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_stands_by_reads_the_lease_and_nothing_else() {
    let cluster = Cluster::new();
    let leader = cluster.start("a");
    pass(1.0).await;
    let other = cluster.start("b");
    cluster.add_node("node-1").await;
    pass(60.0).await;
    assert_eq!(leader.health.checks().remark().as_deref(), Some("leader"));
    assert_eq!(other.health.checks().remark().as_deref(), Some("standby"));
    assert_eq!(other.health.checks().failing(), []);
    let asked = other.faults.journal();
    assert!(asked.iter().all(|entry| entry.path.contains("/leases/") && !entry.verb.is_write()), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_within_twenty_seconds_of_a_crash() {
    let cluster = Cluster::new();
    let leader = cluster.start("a");
    pass(1.0).await;
    let _other = cluster.start("b");
    assert!(cluster.add_node("node-1").await < 2.0);
    leader.task.abort();
    drop(leader.task.await);
    let waited = cluster.add_node("node-2").await;
    assert!((12.0..20.0).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_within_moments_of_a_stop() {
    let cluster = Cluster::new();
    let leader = cluster.start("a");
    pass(1.0).await;
    let _other = cluster.start("b");
    cluster.add_node("node-1").await;
    drop(leader.stop);
    assert_eq!(leader.task.await.unwrap(), Ok(()));
    let waited = cluster.add_node("node-2").await;
    assert!(waited < 3.0, "{waited}");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_told_to_stop_while_it_stands_by_stops() {
    let cluster = Cluster::new();
    let _leader = cluster.start("a");
    pass(1.0).await;
    let other = cluster.start("b");
    pass(5.0).await;
    drop(other.stop);
    assert_eq!(other.task.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_does_not_come_round_keeps_its_lease_and_is_no_longer_alive() {
    let cluster = Cluster::new();
    let (controller, lease) = cluster.parts("a", &Faults::none());
    let health = controller.health.clone();
    let mut life = pin!(run(controller, Some(lease), std::future::pending()));
    // From here on the loop runs only while the test lets it: as if one of its cycles took minutes.
    tokio::select! {
        end = &mut life => panic!("{end:?}"),
        _ = cluster.add_node("node-1") => {}
    }
    let other = cluster.start("b");
    assert_eq!(health.alive().failing(), []);
    for _ in 0..30 {
        pass(10.0).await;
        assert!(cluster.renewed().await <= 3, "{} s", cluster.renewed().await);
    }
    assert_eq!(other.health.checks().remark().as_deref(), Some("standby"));
    let complaint = "the loop has not run for 300 s".to_owned();
    assert_eq!(health.alive().failing(), [("loop", complaint)]);
    tokio::select! {
        end = &mut life => panic!("{end:?}"),
        waited = cluster.add_node("node-2") => assert!(waited < 2.0, "{waited}"),
    }
    assert_eq!(health.alive().failing(), []);
}

/// reliability L6.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_packets_are_swallowed_is_followed_within_twenty_seconds() {
    let cluster = Cluster::new();
    let leader = cluster.start("a");
    pass(1.0).await;
    let _other = cluster.start("b");
    cluster.add_node("node-1").await;
    leader.faults.swallow();
    let waited = cluster.add_node("node-2").await;
    assert!(waited < 20.0, "{waited}");
    assert_eq!(leader.task.await.unwrap(), Err(Loss::Expired));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_loses_the_lease_ends_and_writes_nothing_more() {
    let cluster = Cluster::new();
    let away = Rates { refused: 1.0, ..Rates::default() };
    let plan = FaultPlan::always(away).quiet(Duration::ZERO..Duration::from_secs(10));
    let leader = cluster.start_on("a", Faults::new(plan, 0));
    pass(1.0).await;
    let _other = cluster.start("b");
    cluster.add_node("node-1").await;
    assert_eq!(leader.task.await.unwrap(), Err(Loss::Expired));
    let asked = leader.faults.journal().len();
    cluster.add_node("node-2").await;
    pass(60.0).await;
    assert_eq!(leader.faults.journal().len(), asked);
}

/// The Lease of OpenKruise's manager, as renewed at this second.
async fn kruise_renews(cluster: &Cluster, second: u32) {
    let renewed = json!({ "spec": {
        "holderIdentity": "kruise-manager-1", "renewTime": format!("2030-01-01T00:00:{second:02}.000000Z"),
    } });
    let api: Api<Object> = Api::namespaced(cluster.server.client(), "kruise-system");
    api.patch("kruise-manager", &PatchParams::default(), &Patch::Merge(renewed)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_beside_which_openkruises_manager_runs_says_so_as_long_as_it_does() {
    let cluster = Cluster::new();
    cluster.server.install_namespace("kruise-system");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "kruise-manager", "namespace": "kruise-system" },
        "spec": { "holderIdentity": "kruise-manager-1", "renewTime": "2029-12-01T00:00:00.000000Z" },
    });
    cluster.server.install(&lease).unwrap();
    let one = cluster.start("one");
    cluster.add_node("n1").await;
    let remark = || one.health.checks().remark().unwrap();
    pass(130.0).await;
    assert_eq!(remark(), "leader", "one that was left behind is not renewed");
    kruise_renews(&cluster, 1).await;
    pass(70.0).await;
    assert!(remark().contains("OpenKruise's manager is running, too"), "{}", remark());
    assert!(one.health.checks().failing().is_empty(), "it works all the same");
    pass(70.0).await;
    assert_eq!(remark(), "leader");
    one.stop.send(()).unwrap();
    one.task.await.unwrap().unwrap();
}
