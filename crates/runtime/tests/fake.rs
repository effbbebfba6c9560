//! The contract suite on the fake, as containerd and as CRI-O, on a clock that advances only while every task waits.

#[path = "contract/mod.rs"]
mod contract;

use std::sync::Mutex;
use std::time::Duration;

use contract::{Offer, Shape, World};
use prewarm_api::reference::ImageRef;
use prewarm_runtime::Endpoint;
use prewarm_runtime::fake::{Fake, Script};
use tonic::Code;

/// Bytes of a layer, and of the config that each image of the fake has.
const LAYER: u64 = 1_000_000;
const CONFIG: u64 = 100;

/// How often the registry that refuses connections does so.
const REFUSALS: usize = 100;

struct FakeWorld {
    fake: Fake,
    scripts: Mutex<Vec<Script>>,
    /// Lives as long as the runtime, which reports it as the directory of its images.
    _directory: tempfile::TempDir,
}

impl FakeWorld {
    fn new(fake: Fake) -> Self {
        let directory = tempfile::tempdir().expect("a test may write temporary files");
        fake.keeps_images_in(directory.path());
        Self { fake, scripts: Mutex::default(), _directory: directory }
    }

    fn change(&self, change: impl Fn(Script) -> Script) {
        for script in self.scripts.lock().expect("no test panics with the lock held").iter_mut() {
            *script = change(script.clone());
        }
    }
}

impl World for FakeWorld {
    fn endpoint(&self) -> Endpoint {
        self.fake.endpoint()
    }

    async fn offer(&self, name: &str, tag: &str, shape: Shape) -> anyhow::Result<Offer> {
        let host = if name.starts_with("library/") { "docker.io" } else { "registry.example" };
        let tagged = format!("{host}/{name}:{tag}");
        let mut script = self.fake.image(&tagged).layers(&vec![LAYER; shape.layers]);
        if shape.is_index {
            script = script.with_index();
        }
        let by_digest = ImageRef::parse(&script.by_digest())?;
        self.scripts.lock().expect("no test panics with the lock held").push(script);
        Ok(Offer { tagged: ImageRef::parse(&tagged)?, by_digest, size: LAYER * shape.layers as u64 + CONFIG })
    }

    fn hold(&self) -> anyhow::Result<()> {
        self.change(Script::hangs);
        Ok(())
    }

    fn release(&self) -> anyhow::Result<()> {
        self.change(Script::recovers);
        Ok(())
    }

    fn slow(&self) -> anyhow::Result<()> {
        self.change(|script| script.takes(Duration::from_secs(2)).unpacks_for(Duration::from_secs(1)));
        Ok(())
    }

    fn kill(&self) -> anyhow::Result<()> {
        self.fake.stop();
        Ok(())
    }

    async fn revive(&self) -> anyhow::Result<()> {
        self.fake.start();
        Ok(())
    }

    async fn remove(&self, reference: &ImageRef) -> anyhow::Result<()> {
        self.fake.remove(&reference.full());
        Ok(())
    }

    fn unreachable(&self) -> anyhow::Result<ImageRef> {
        let text = "dial tcp 10.77.0.1:9: connect: connection refused";
        self.fake.image("refused.example/shop/web:v1").fails(REFUSALS, Code::Unknown, text);
        Ok(ImageRef::parse("refused.example/shop/web:v1")?)
    }

    async fn locked(&self) -> anyhow::Result<ImageRef> {
        self.fake.image("locked.example/shop/web:v1").needs("robot", "the right one");
        Ok(ImageRef::parse("locked.example/shop/web:v1")?)
    }
}

macro_rules! on_the_fake {
    ($($module:ident::$case:ident),+ $(,)?) => {
        mod as_containerd {
            use super::*;
            $(#[tokio::test(start_paused = true)]
            async fn $case() -> anyhow::Result<()> {
                contract::$module::$case(&FakeWorld::new(Fake::new())).await
            })+
        }

        mod as_crio {
            use super::*;
            $(#[tokio::test(start_paused = true)]
            async fn $case() -> anyhow::Result<()> {
                contract::$module::$case(&FakeWorld::new(Fake::crio())).await
            })+
        }
    };
}

contract::cases!(on_the_fake);
