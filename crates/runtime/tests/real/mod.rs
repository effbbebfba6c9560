//! A real runtime and a real registry in a bed.

use anyhow::Context as _;
use prewarm_api::reference::ImageRef;
use prewarm_bed::inside::BRIDGE_ADDRESS;
use prewarm_runtime::Endpoint;
use prewarm_testkit::image::{Image, Layer, index, native_architecture};
use prewarm_testkit::{Node, Registry, Runtime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::contract::{Offer, Shape, World};

/// The bytes of a layer before compression, which does not make it smaller.
const LAYER: usize = 1_000_000;

/// Slow enough that six layers take about a second and a half.
const SLOW_BITS_PER_SECOND: u64 = 32_000_000;

pub struct RealWorld {
    registry: Registry,
    node: Node,
}

impl RealWorld {
    pub async fn start(runtime: Runtime) -> anyhow::Result<Self> {
        let registry = Registry::start().await?;
        let node = Node::configure().runtime(runtime).start(&registry).await?;
        Ok(Self { registry, node })
    }
}

impl World for RealWorld {
    fn endpoint(&self) -> Endpoint {
        Endpoint::unix(self.node.socket())
    }

    async fn offer(&self, name: &str, tag: &str, shape: Shape) -> anyhow::Result<Offer> {
        let image = Image::new(&format!("{name}:{tag}")).layers(shape.layers, Layer::of(LAYER));
        let other = if native_architecture() == "amd64" { "arm64" } else { "amd64" };
        let built = image.build();
        let artifact = if shape.is_index {
            index(&[Image::new("other platform").architecture(other).layer(Layer::of(LAYER)), image])
        } else {
            built.clone()
        };
        self.registry.push(name, &[tag], &artifact).await?;
        let name = format!("registry.example/{name}");
        Ok(Offer {
            tagged: ImageRef::from_parts(&name, tag)?,
            by_digest: ImageRef::from_parts(&name, artifact.digest())?,
            size: built.blobs.iter().map(|blob| blob.bytes.len() as u64).sum(),
        })
    }

    fn hold(&self) -> anyhow::Result<()> {
        self.registry.process.freeze()
    }

    fn release(&self) -> anyhow::Result<()> {
        self.registry.process.thaw()
    }

    fn slow(&self) -> anyhow::Result<()> {
        self.node.slow(SLOW_BITS_PER_SECOND)
    }

    fn kill(&self) -> anyhow::Result<()> {
        self.node.runtime.kill()
    }

    async fn revive(&self) -> anyhow::Result<()> {
        self.node.runtime.spawn()?;
        self.node.ready().await
    }

    /// Removes an image as the kubelet does.
    async fn remove(&self, reference: &ImageRef) -> anyhow::Result<()> {
        Ok(self.node.cri()?.remove(&reference.full()).await?)
    }

    fn unreachable(&self) -> anyhow::Result<ImageRef> {
        self.node.lead("refused.example", format!("http://{BRIDGE_ADDRESS}:9").as_str())?;
        Ok(ImageRef::parse("refused.example/shop/web:v1")?)
    }

    async fn locked(&self) -> anyhow::Result<ImageRef> {
        let listener = TcpListener::bind((BRIDGE_ADDRESS, 0)).await.context("opening a port")?;
        let url = format!("http://{}", listener.local_addr()?);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(refuse(stream));
            }
        });
        self.node.lead("locked.example", url.as_str())?;
        Ok(ImageRef::parse("locked.example/shop/web:v1")?)
    }
}

/// Answers one request with 401, whatever it is.
async fn refuse(mut stream: TcpStream) -> std::io::Result<()> {
    const ANSWER: &str = "HTTP/1.1 401 Unauthorized\r\n\
        WWW-Authenticate: Basic realm=\"locked\"\r\n\
        Content-Type: application/json\r\n\
        Connection: close\r\n\
        Content-Length: 72\r\n\r\n\
        {\"errors\":[{\"code\":\"UNAUTHORIZED\",\"message\":\"authentication required\"}]}";
    let mut request = [0; 4096];
    let mut length = 0;
    while !request[..length].ends_with(b"\r\n\r\n") && length < request.len() {
        let read = stream.read(&mut request[length..]).await?;
        if read == 0 {
            return Ok(());
        }
        length += read;
    }
    stream.write_all(ANSWER.as_bytes()).await
}
