use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use super::*;

struct Server {
    address: SocketAddr,
    answers: Answers,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn server() -> Server {
    server_within(HEADER_TIMEOUT).await
}

async fn server_within(header_timeout: Duration) -> Server {
    let metrics: Metrics = Arc::new(|| "things_total 3\n# EOF\n".to_owned());
    let readiness = Checks::default().with_remark(|| "standing by".to_owned());
    let answers = Answers { health: Checks::default(), readiness, metrics };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(serve_within(listener, answers.clone(), header_timeout));
    Server { address, answers, task }
}

/// Sends a request and reads until the server closes the connection.
async fn exchange(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The status code and the body.
async fn ask(server: &Server, method: &str, path: &str) -> (u16, String) {
    let answer = exchange(server, &format!("{method} {path} HTTP/1.1\r\nhost: process\r\n\r\n")).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn a_process_without_failing_checks_is_ok() {
    let server = server().await;
    server.answers.health.register("loop", || Ok(()));
    assert_eq!(ask(&server, "GET", "/healthz").await, (200, "ok".to_owned()));
}

#[tokio::test]
async fn a_remark_is_added_to_a_good_answer() {
    let server = server().await;
    assert_eq!(ask(&server, "GET", "/readyz").await, (200, "ok: standing by".to_owned()));
}

#[tokio::test]
async fn a_failing_check_is_named_with_its_reason_only_where_it_was_registered() {
    let server = server().await;
    server.answers.readiness.register("runtime", || Err("containerd does not answer".to_owned()));
    server.answers.readiness.register("watch", || Err("not synced".to_owned()));
    let wanted = "runtime: containerd does not answer\nwatch: not synced";
    assert_eq!(ask(&server, "GET", "/readyz").await, (500, wanted.to_owned()));
    assert_eq!(ask(&server, "GET", "/healthz").await, (200, "ok".to_owned()));
    server.answers.readiness.unregister("runtime");
    server.answers.readiness.unregister("watch");
    assert_eq!(ask(&server, "GET", "/readyz").await.0, 200);
}

#[tokio::test]
async fn metrics_have_the_format_that_prometheus_reads() {
    let server = server().await;
    let answer = exchange(&server, "GET /metrics?x=1 HTTP/1.1\r\nhost: process\r\n\r\n").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains("\r\ncontent-type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{head}"
    );
    assert_eq!(body, "things_total 3\n# EOF\n");
}

#[tokio::test]
async fn head_has_the_answer_without_its_body() {
    let server = server().await;
    let answer = exchange(&server, "HEAD /healthz HTTP/1.1\r\nhost: process\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\r\ncontent-length: 2\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn other_methods_and_other_paths_are_refused() {
    let server = server().await;
    let answer = exchange(&server, "DELETE /metrics HTTP/1.1\r\nhost: process\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("\r\nallow: GET, HEAD\r\n"), "{answer}");
    for path in ["/", "/healthz/", "/metrics/..", "/debug/pprof"] {
        let wanted = (404, "there are only /healthz, /readyz and /metrics\n".to_owned());
        assert_eq!(ask(&server, "GET", path).await, wanted, "{path}");
    }
}

#[tokio::test]
async fn endless_headers_and_nonsense_end_the_connection() {
    let server = server().await;
    let endless = format!("GET /healthz HTTP/1.1\r\nx: {}", "a".repeat(2 * MOST_HEADER_BYTES));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The server may hang up before everything is sent.
    drop(stream.write_all(endless.as_bytes()).await);
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "), "{answer:?}");
    assert!(exchange(&server, "nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    assert_eq!(ask(&server, "GET", "/healthz").await.0, 200);
}

#[tokio::test]
async fn silent_connections_do_not_keep_others_waiting() {
    // The test would not end if anything waited for silent connections.
    let server = server_within(Duration::from_hours(1)).await;
    let mut silent = Vec::new();
    for _ in 0..3 * MOST_CONNECTIONS {
        silent.push(TcpStream::connect(server.address).await.unwrap());
        assert_eq!(ask(&server, "GET", "/healthz").await, (200, "ok".to_owned()));
    }
    // The oldest are closed, and the newest are not.
    assert_eq!(silent[0].read(&mut [0]).await.unwrap(), 0);
    let newest = silent.last_mut().unwrap();
    newest.write_all(b"GET /healthz HTTP/1.1\r\nhost: process\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    newest.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

/// A connection from this address, on which nothing is sent.
async fn connect_from(address: &str, server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(address.parse().unwrap(), 0)).unwrap();
    socket.connect(server.address).await.unwrap()
}

#[tokio::test]
async fn a_probe_that_is_slow_to_ask_is_answered_however_many_connections_others_open_meanwhile() {
    let server = server_within(Duration::from_hours(1)).await;
    let mut probe = connect_from("127.0.0.1", &server).await;
    let mut others = Vec::new();
    for _ in 0..3 * MOST_CONNECTIONS {
        others.push(connect_from("127.0.0.2", &server).await);
    }
    // What has made room for a later one is closed; so all of them were accepted.
    assert_eq!(others[2 * MOST_CONNECTIONS].read(&mut [0]).await.unwrap(), 0);
    probe.write_all(b"GET /healthz HTTP/1.1\r\nhost: process\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    probe.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = server_within(Duration::from_millis(100)).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut answer = Vec::new();
    drop(silent.read_to_end(&mut answer).await);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408 "), "{answer:?}");
}
