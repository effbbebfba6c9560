//! A mirror on loopback whose answers a test writes byte by byte, so that it can do what no server would.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub target: String,
    pub headers: BTreeMap<String, String>,
}

impl Seen {
    /// The first byte that is asked for.
    pub fn offset(&self) -> Option<usize> {
        self.headers.get("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// What is answered, and what happens afterwards.
pub struct Reply {
    head: String,
    body: Vec<u8>,
    /// The pause before each byte of the body.
    pause: Option<Duration>,
    hangs: bool,
}

impl Reply {
    /// A whole answer.
    pub fn new(status: u16, body: &[u8]) -> Self {
        Self::short(status, body.len(), body)
    }

    /// An answer that announces this many bytes, whatever it sends.
    pub fn short(status: u16, announced: usize, body: &[u8]) -> Self {
        Self::unannounced(status, body).with("Content-Length", &announced.to_string())
    }

    /// An answer that ends where the connection does.
    pub fn unannounced(status: u16, body: &[u8]) -> Self {
        let head = format!("HTTP/1.1 {status} Text\r\nConnection: close\r\n");
        Self { head, body: body.to_vec(), pause: None, hangs: false }
    }

    /// A blob or the rest of it, as a good mirror answers.
    pub fn part(seen: &Seen, blob: &[u8]) -> Self {
        match seen.offset() {
            None => Self::new(200, blob),
            Some(first) => {
                let range = format!("bytes {first}-{}/{}", blob.len() - 1, blob.len());
                Self::new(206, &blob[first..]).with("Content-Range", &range)
            }
        }
    }

    /// No answer at all.
    pub fn silence() -> Self {
        Self { head: String::new(), body: Vec::new(), pause: None, hangs: true }
    }

    pub fn redirect(to: &str) -> Self {
        Self::new(307, b"").with("Location", to)
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.head.extend([name, ": ", value, "\r\n"]);
        self
    }

    /// Keeps the connection open without another byte.
    pub fn then_hang(mut self) -> Self {
        self.hangs = true;
        self
    }

    /// Sends one byte at a time.
    pub fn dripping(mut self, pause: Duration) -> Self {
        self.pause = Some(pause);
        self
    }

    /// Sends only this much of the body, whatever was announced.
    pub fn cut_to(mut self, bytes: usize) -> Self {
        self.body.truncate(bytes);
        self
    }
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

/// A running mirror. To whom does not speak HTTP, it answers as real ones do.
pub struct Mirror {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrived: Arc<Notify>,
    server: JoinHandle<()>,
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Mirror {
    pub async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::run(None, script).await
    }

    pub async fn secure(
        config: ServerConfig,
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::run(Some(TlsAcceptor::from(Arc::new(config))), script).await
    }

    async fn run(tls: Option<TlsAcceptor>, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, arrived) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let script: Arc<Script> = Arc::new(script);
        let (log, bell) = (Arc::clone(&seen), Arc::clone(&arrived));
        let server = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, script) = (tls.clone(), Arc::clone(&script));
                let (log, bell) = (Arc::clone(&log), Arc::clone(&bell));
                tokio::spawn(async move {
                    match tls {
                        None => converse(stream, &*script, &log, &bell).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                converse(stream, &*script, &log, &bell).await;
                            }
                        }
                    }
                });
            }
        });
        Self { port, seen, arrived, server }
    }

    /// What was asked so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn targets(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.target).collect()
    }

    /// Waits for a request.
    pub async fn asked(&self) {
        self.arrived.notified().await;
    }

    /// Its address, as messages name it.
    pub fn http(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn https(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    script: &Script,
    log: &Mutex<Vec<Seen>>,
    bell: &Notify,
) {
    let Some(seen) = read(&mut stream).await else {
        let _gone = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _gone = stream.shutdown().await;
        // What is left unread would turn the end into a reset.
        let _gone = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        return;
    };
    let reply = script(&seen);
    log.lock().unwrap().push(seen);
    bell.notify_one();
    let head = if reply.head.is_empty() { String::new() } else { format!("{}\r\n", reply.head) };
    // A client that has enough may be gone.
    let _gone = stream.write_all(head.as_bytes()).await;
    match reply.pause {
        None => drop(stream.write_all(&reply.body).await),
        Some(pause) => {
            for byte in &reply.body {
                tokio::time::sleep(pause).await;
                let _gone = stream.write_all(&[*byte]).await;
            }
        }
    }
    let _gone = stream.flush().await;
    if reply.hangs {
        std::future::pending::<()>().await;
    }
    let _gone = stream.shutdown().await;
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
        if head[0] != b'G' {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut lines = head.lines();
    let target = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    Some(Seen { target, headers })
}
