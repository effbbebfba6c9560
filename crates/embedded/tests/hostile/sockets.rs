//! What can go wrong on a socket before and while a request is read.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use prewarm_embedded::{Limits, Serving};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::socket::{PATIENCE, Socket};
use crate::{server, still_serves};

/// How many half-open connections there are, if the machine allows that many file descriptors.
const HALF_OPEN: usize = 10_000;

/// How many of them are opened at a time.
const CROWD: usize = 100;

async fn serve(limits: Limits) -> (Serving, Client) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    // A client that finds the system's queue full tries again after a second, which would happen often in a flood.
    let listener = socket.listen(4096).unwrap();
    let serving = server().serve_within(listener, limits).unwrap();
    let client = client(&serving).await;
    still_serves(&client).await;
    (serving, client)
}

async fn client(serving: &Serving) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&serving.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn head(serving: &Serving, line: &str, headers: &str) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n{headers}\r\n", serving.token())
        .into_bytes()
}

const POST: &str = "POST /api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn garbage_before_tls_closes_the_connection() {
    let (serving, client) = serve(Limits::default()).await;
    let garbage: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"\0\0\0\0\0\0\0\0",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x05hello",
        b"\x80\x2e\x01\x00\x02",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    for bytes in garbage {
        let mut stream = TcpStream::connect(serving.address()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // The connection may be reset, which is as good as closed.
        let _ended =
            tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it is closed");
        assert!(answer.len() < 64, "at most an alert: {answer:?}");
        still_serves(&client).await;
    }
}

#[tokio::test]
async fn garbage_inside_tls_gets_a_clear_refusal() {
    let (serving, client) = serve(Limits::default()).await;
    let many_headers = "x: y\r\n".repeat(1000);
    let long_header = format!("x: {}\r\n", "y".repeat(1_000_000));
    let cases = [
        (b"\xff\xfe\0\x01\r\n\r\n".to_vec(), "400"),
        (b"GET / HTTP/9.9\r\n\r\n".to_vec(), "400"),
        (b"GET /\x01\xff HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), "400"),
        (head(&serving, POST, "content-length: minus one\r\n"), "400"),
        (
            head(&serving, POST, "transfer-encoding: chunked\r\n").into_iter().chain(*b"zz\r\n").collect(),
            "400",
        ),
        (head(&serving, "GET /readyz", &many_headers), "431"),
        (head(&serving, "GET /readyz", &long_header), "431"),
        (b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_vec(), "401"),
        (
            b"GET / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer\xff\r\nconnection: close\r\n\r\n".to_vec(),
            "401",
        ),
        (head(&serving, "BREW /readyz", "connection: close\r\n"), "405"),
    ];
    for (bytes, wanted) in cases {
        let mut socket = Socket::connect(&serving).await;
        socket.send(&bytes).await;
        let answer = socket.rest().await;
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {wanted} ")), "{start:?} got {answer:?}");
        still_serves(&client).await;
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_changes_nothing() {
    let (serving, client) = serve(Limits::default()).await;
    for bytes in [&b""[..], b"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","] {
        let mut socket = Socket::connect(&serving).await;
        socket.send(&head(&serving, POST, "content-length: 1000\r\n")).await;
        socket.send(bytes).await;
        drop(socket);
        still_serves(&client).await;
    }
    let maps = kube::Api::<k8s_openapi::api::core::v1::ConfigMap>::default_namespaced(client);
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_hundred_megabytes_are_refused_while_they_are_sent() {
    let (serving, client) = serve(Limits::default()).await;
    let chunk = vec![b' '; 64 * 1024];
    let framed = [format!("{:x}\r\n", chunk.len()).as_bytes(), &chunk, b"\r\n"].concat();
    let with_token = |framing: &str| head(&serving, POST, framing);
    let stranger = b"POST /api HTTP/1.1\r\nhost: x\r\ncontent-length: 104857600\r\n\r\n".to_vec();
    let cases = [
        (with_token("content-length: 104857600\r\n"), &chunk, "413"),
        (with_token("transfer-encoding: chunked\r\n"), &framed, "413"),
        (stranger, &chunk, "401"),
    ];
    for (start, chunk, wanted) in cases {
        let mut socket = Socket::connect(&serving).await;
        socket.send(&start).await;
        let (mut reader, mut writer) = socket.split();
        let sending = async {
            let mut sent = 0;
            while sent < 100 * 1024 * 1024 && writer.write_all(chunk).await.is_ok() {
                sent += chunk.len();
            }
            sent
        };
        let reading = async {
            let mut answer = vec![0; 12];
            reader.read_exact(&mut answer).await.expect("there is an answer");
            String::from_utf8(answer).unwrap()
        };
        let (sent, answer) =
            tokio::time::timeout(PATIENCE, async { tokio::join!(sending, reading) }).await.unwrap();
        assert_eq!(answer, format!("HTTP/1.1 {wanted}"));
        // What the server does not read piles up only in the system's buffers.
        assert!(sent < 40 * 1024 * 1024, "{sent} bytes were taken");
        still_serves(&client).await;
    }
}

#[tokio::test]
async fn a_client_that_sends_its_head_byte_by_byte_is_cut_off_and_delays_nobody() {
    let limit = Duration::from_millis(300);
    let (serving, client) = serve(Limits { first_request: limit, ..Limits::default() }).await;
    let start = Instant::now();
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(Socket::connect(&serving).await);
    }
    let trickle = async {
        let mut letters = b"GET /readyz HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'y'));
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        while !slow.is_empty() {
            pace.tick().await;
            let letter = [*letters.next().unwrap()];
            let mut left = Vec::new();
            for mut socket in slow {
                if socket.send(&letter).await {
                    left.push(socket);
                }
            }
            slow = left;
        }
    };
    let ordinary = async {
        while serving.connections() > 1 {
            still_serves(&client).await;
        }
    };
    tokio::time::timeout(PATIENCE, async { tokio::join!(trickle, ordinary) }).await.expect("all are cut off");
    assert!(start.elapsed() >= limit);
}

#[tokio::test]
async fn a_client_that_withholds_its_body_gets_a_408() {
    let (serving, client) = serve(Limits { body: Duration::from_millis(200), ..Limits::default() }).await;
    let mut socket = Socket::connect(&serving).await;
    socket.send(&head(&serving, POST, "content-length: 10\r\n")).await;
    socket.send(b"{").await;
    let answer = socket.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer:?}");
    still_serves(&client).await;
}

#[tokio::test]
async fn a_client_that_never_speaks_tls_is_cut_off() {
    let (serving, client) =
        serve(Limits { handshake: Duration::from_millis(200), ..Limits::default() }).await;
    let mut stream = TcpStream::connect(serving.address()).await.unwrap();
    stream.write_all(b"\x16\x03\x01\x02").await.unwrap();
    let mut rest = Vec::new();
    let _reset = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it is closed");
    still_serves(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_half_open_connections_keep_nobody_out() {
    let limits = Limits { connections: 500, making_way: Duration::from_millis(10), ..Limits::default() };
    let (most, places) = (files(), limits.connections);
    let (serving, client) = serve(limits).await;
    let count = HALF_OPEN.min(most);
    println!("{count} half-open connections on {places} places");
    let address = serving.address();
    // Several at a time: the system lets each wait for a second when it cannot keep up.
    let flood = tokio::spawn(futures::future::join_all((0..CROWD).map(|_| async move {
        let mut held = Vec::with_capacity(count / CROWD);
        for _ in 0..count / CROWD {
            held.push(TcpStream::connect(address).await.unwrap());
        }
        held
    })));
    let mut answered = 0;
    while !flood.is_finished() {
        still_serves(&client).await;
        answered += 1;
        assert!(serving.connections() <= places, "no more than the limit");
    }
    let held = flood.await.unwrap();
    println!("{answered} ordinary answers meanwhile");
    assert_eq!(held.iter().map(Vec::len).sum::<usize>(), count / CROWD * CROWD);
    assert!(answered > 0);
    // All of them are still open, and a newcomer finds a place nevertheless.
    still_serves(&self::client(&serving).await).await;
}

/// How many connections fit into the file descriptors of this process, after raising their limit as far as the system
/// allows.
fn files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let _unchanged = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // The server's side and the other tests of this process need some too.
    usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(2000).max(100)
}
