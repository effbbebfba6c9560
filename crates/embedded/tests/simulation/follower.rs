//! A client that mirrors a kind with `kube-runtime`'s watcher and reflector.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt as _, future, stream};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use prewarm_embedded::faults::Faults;
use serde_json::Value;

use super::world::{Kind, World, key, plain};

/// Every way of listing and watching.
const WAYS: [&str; 6] = ["pages", "any", "streaming", "without bookmarks", "red", "streaming red"];

/// How often a follower forgets its position and lists again, as a restarted program does: an undisturbed watcher
/// hardly ever lists.
const RESTARTS: u32 = 20;
/// How long it follows before each restart. All restarts happen while there are faults.
const LIFE: Duration = Duration::from_hours(2);

pub struct Follower {
    kind: &'static Kind,
    way: &'static str,
    labels: Option<&'static str>,
    store: Store<DynamicObject>,
    faults: Faults,
    notes: Arc<Mutex<Notes>>,
}

/// What a follower has seen.
#[derive(Default)]
struct Notes {
    /// Each version of an object.
    sighted: BTreeMap<u64, Value>,
    expired: u64,
}

impl Follower {
    /// One follower for every second way. The other half is for the next kind, or for the next seed.
    pub fn several(
        world: &World,
        kind: &'static Kind,
        half: u64,
        faults: impl Fn(u64) -> Faults,
    ) -> Vec<Self> {
        let ways = WAYS.iter().zip(0..).filter(|(_, number)| number % 2 == half % 2);
        ways.map(|(way, number)| Self::start(world, kind, way, faults(number), RESTARTS)).collect()
    }

    /// A follower without faults, which sees every version.
    pub fn auditor(world: &World, kind: &'static Kind) -> Self {
        Self::start(world, kind, "auditor", Faults::none(), 0)
    }

    fn start(world: &World, kind: &'static Kind, way: &'static str, faults: Faults, restarts: u32) -> Self {
        let labels = way.ends_with("red").then_some("color=red");
        let mut config = match way {
            "pages" | "red" => Config::default().page_size(4),
            "any" => Config::default().any_semantic(),
            "without bookmarks" => Config::default().disable_bookmarks(),
            "streaming" | "streaming red" => Config::default().streaming_lists(),
            _ => Config::default(),
        };
        config.label_selector = labels.map(str::to_owned);
        let writer = reflector::store::Writer::new(kind.resource());
        let (store, notes) = (writer.as_reader(), Arc::new(Mutex::new(Notes::default())));
        let api = kind.api(faults.client(&world.server));
        let lives = stream::iter(0..=restarts).flat_map(move |life| {
            let end = async move {
                if life < restarts { tokio::time::sleep(LIFE).await } else { future::pending().await }
            };
            watcher(api.clone(), config.clone()).default_backoff().take_until(Box::pin(end))
        });
        let events = kube::runtime::reflector(writer, lives);
        let noting = notes.clone();
        tokio::spawn(events.for_each(move |event| {
            noting.lock().unwrap().take(&event);
            future::ready(())
        }));
        Self { kind, way, labels, store, faults, notes }
    }

    /// The mirror equals what the server has.
    pub async fn check(&self, world: &World) {
        let mirrored: BTreeMap<_, _> =
            self.store.state().iter().map(|object| (key(object), plain(object))).collect();
        let stored = world.objects(self.kind, self.labels).await;
        assert_eq!(mirrored, stored, "{} of {}", self.way, self.kind.plural);
    }

    /// Everything that it saw has existed.
    pub fn saw_nothing_that_never_was(&self, auditors: &[Self]) {
        let auditor = auditors.iter().find(|auditor| auditor.kind.plural == self.kind.plural).unwrap();
        let (audited, notes) = (auditor.notes.lock().unwrap(), self.notes.lock().unwrap());
        assert_eq!(audited.expired, 0, "the auditor has missed something");
        for (version, object) in &notes.sighted {
            assert_eq!(Some(object), audited.sighted.get(version), "{} of {}", self.way, self.kind.plural);
        }
    }

    /// How often each fault occurred.
    pub fn tally(&self) -> BTreeMap<&'static str, u64> {
        let mut tally = self.faults.tally();
        tally.insert("watch-expired", self.notes.lock().unwrap().expired);
        tally.retain(|_, times| *times > 0);
        tally
    }
}

impl Notes {
    fn take(&mut self, event: &watcher::Result<Event<DynamicObject>>) {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let version = object.resource_version().unwrap().parse().unwrap();
                let content = plain(object);
                let known = self.sighted.entry(version).or_insert_with(|| content.clone());
                assert_eq!(*known, content, "one version has two contents");
            }
            Err(watcher::Error::WatchError(status)) if status.code == 410 => self.expired += 1,
            _ => {}
        }
    }
}
