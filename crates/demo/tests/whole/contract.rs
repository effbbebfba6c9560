//! The contract suite of the runtime's client, run on the store.

#[path = "../../../runtime/tests/contract/mod.rs"]
mod cases;

use cases::{Offer, Shape, World};
use prewarm_api::reference::ImageRef;
use prewarm_demo::{Flow, Registry, Store};
use prewarm_image::{Image, Layer, index, native_architecture};
use prewarm_runtime::Endpoint;

use crate::site::{Site, closed_address};

const LAYER: usize = 1_000_000;
/// The rate at which six layers take two seconds.
const SLOW: u64 = 3_000_000;

struct StoreWorld(Site);

impl StoreWorld {
    fn new() -> Self {
        Self(Site::new())
    }

    fn registry(&self) -> &Registry {
        &self.0.registry
    }

    fn store(&self) -> &Store {
        &self.0.store
    }
}

impl World for StoreWorld {
    fn endpoint(&self) -> Endpoint {
        self.store().endpoint()
    }

    async fn offer(&self, name: &str, tag: &str, shape: Shape) -> anyhow::Result<Offer> {
        let image = |architecture: &str| {
            Image::new(&format!("{name}:{tag}"))
                .architecture(architecture)
                .layers(shape.layers, Layer::of(LAYER))
        };
        let native = image(native_architecture());
        let size = native.build().blobs.iter().map(|blob| blob.bytes.len() as u64).sum();
        let artifact = if shape.is_index { index(&[image("s390x"), native]) } else { native.build() };
        let host = if name.starts_with("library/") { "docker.io" } else { "registry.example" };
        let tagged = ImageRef::parse(&format!("{host}/{name}:{tag}"))?;
        let by_digest = ImageRef::parse(&format!("{host}/{name}@{}", artifact.digest()))?;
        self.registry().push(name, tag, artifact);
        Ok(Offer { tagged, by_digest, size })
    }

    fn hold(&self) -> anyhow::Result<()> {
        self.registry().uplink().set(Flow::Still);
        Ok(())
    }

    fn release(&self) -> anyhow::Result<()> {
        self.registry().uplink().set(Flow::Free);
        Ok(())
    }

    fn slow(&self) -> anyhow::Result<()> {
        self.store().link().set(Flow::Limited(SLOW));
        Ok(())
    }

    fn kill(&self) -> anyhow::Result<()> {
        self.store().stop();
        Ok(())
    }

    async fn revive(&self) -> anyhow::Result<()> {
        self.store().start();
        Ok(())
    }

    async fn remove(&self, reference: &ImageRef) -> anyhow::Result<()> {
        self.store().remove(reference)?;
        Ok(())
    }

    fn unreachable(&self) -> anyhow::Result<ImageRef> {
        Ok(ImageRef::parse(&format!("{}/shop/web:v1", closed_address()))?)
    }

    async fn locked(&self) -> anyhow::Result<ImageRef> {
        let offer = self.offer("locked/web", "v1", cases::SMALL).await?;
        self.registry().protect("locked/web", "robot", "the right one");
        Ok(offer.tagged)
    }
}

macro_rules! on_the_store {
    ($($module:ident::$case:ident),+ $(,)?) => {
        $(#[tokio::test]
        async fn $case() -> anyhow::Result<()> {
            cases::$module::$case(&StoreWorld::new()).await
        })+
    };
}

cases::cases!(on_the_store);
