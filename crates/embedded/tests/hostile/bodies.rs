//! Bodies that are too deep, too long, too clever, or not text at all.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request};
use http_body::Frame;
use http_body_util::Full;
use tower::ServiceExt as _;

use crate::{ask, code, server, still_serves};

const JOBS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MERGE: &str = "application/merge-patch+json";
const STEPS: &str = "application/json-patch+json";

fn request(method: Method, path: &str, content: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content)
        .body(Full::new(body.into()))
        .unwrap()
}

async fn server_with_a_map() -> prewarm_embedded::Server {
    let server = server();
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"1"}}"#;
    let made = ask(&server, request(Method::POST, MAPS, "application/json", map)).await;
    assert_eq!(code(made).await, 201);
    server
}

#[tokio::test]
async fn json_a_thousand_levels_deep_is_refused() {
    let server = server_with_a_map().await;
    let one = format!("{MAPS}/one");
    for levels in [101, 129, 1000, 1_000_000] {
        let objects = format!("{}0{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let lists = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for body in [objects.clone(), lists, "[".repeat(levels), r#"{"a":"#.repeat(levels)] {
            for (method, path, content) in [
                (Method::POST, JOBS, "application/json"),
                (Method::PUT, &one, "application/json"),
                (Method::PATCH, &one, MERGE),
                (Method::PATCH, &one, STEPS),
                (Method::DELETE, &one, "application/json"),
            ] {
                let answer = ask(&server, request(method.clone(), path, content, body.clone())).await;
                let code = code(answer).await;
                assert!(matches!(code, 400 | 413), "{levels} levels, {method} {content}: {code}");
            }
        }
    }
    still_serves(&server.client()).await;
}

#[tokio::test]
async fn a_stored_object_is_never_nested_deeper_than_readers_allow() {
    let server = server_with_a_map().await;
    let one = format!("{MAPS}/one");
    let wrapped = |levels: usize| format!("{}0{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let mut path = "/data/deep".to_owned();
    // Each operation alone is harmless; together they would make thousands of levels.
    for _ in 0..5 {
        let steps = format!(r#"[{{"op":"add","path":"{path}","value":{}}}]"#, wrapped(90));
        let answer = ask(&server, request(Method::PATCH, &one, STEPS, steps)).await;
        assert!(code(answer).await < 500);
        path.push_str(&"/a".repeat(90));
    }
    let levels = 2000;
    let steps: Vec<String> = (1..levels)
        .map(|level| format!(r#"{{"op":"add","path":"/x{}","value":{{}}}}"#, "/a".repeat(level - 1)))
        .collect();
    let answer = ask(&server, request(Method::PATCH, &one, STEPS, format!("[{}]", steps.join(",")))).await;
    assert!(matches!(code(answer).await, 400 | 413));
    still_serves(&server.client()).await;
}

#[tokio::test]
async fn a_patch_that_doubles_itself_is_refused_before_it_grows() {
    let server = server_with_a_map().await;
    let one = format!("{MAPS}/one");
    let steps: Vec<String> =
        (0..60).map(|step| format!(r#"{{"op":"copy","from":"/data","path":"/data/copy{step}"}}"#)).collect();
    let answer = ask(&server, request(Method::PATCH, &one, STEPS, format!("[{}]", steps.join(",")))).await;
    assert!(matches!(code(answer).await, 400 | 413));
    let many = vec![r#"{"op":"test","path":"/data/a","value":"1"}"#; 10_001].join(",");
    let answer = ask(&server, request(Method::PATCH, &one, STEPS, format!("[{many}]"))).await;
    assert_eq!(code(answer).await, 413);
    still_serves(&server.client()).await;
}

#[tokio::test]
async fn a_body_that_is_not_text_is_refused() {
    let server = server_with_a_map().await;
    let one = format!("{MAPS}/one");
    let bodies: [&[u8]; 6] = [
        b"\xff\xfe\xfd",
        b"{\"metadata\":{\"name\":\"\xc3\x28\"}}",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"\xef\xbb\xbf{}",
        b"{\"a\":\"\\ud800\"}",
        b"\0\0\0\0",
    ];
    for body in bodies {
        for (method, content) in
            [(Method::PUT, "application/json"), (Method::PATCH, MERGE), (Method::PATCH, STEPS)]
        {
            let answer = ask(&server, request(method, &one, content, Bytes::from_static(body))).await;
            assert_eq!(code(answer).await, 400, "{body:?}");
        }
    }
    for path in ["/api/v1/namespaces/%ff/pods/%c3%28", "/api/v1/pods?labelSelector=%ff%fe", "/%ff"] {
        let answer = ask(&server, request(Method::GET, path, "", "")).await;
        assert!(matches!(code(answer).await, 200 | 400 | 404), "{path}");
    }
    still_serves(&server.client()).await;
}

/// An endless body that counts how much of it was read.
struct Endless {
    sent: Arc<AtomicUsize>,
    limit: usize,
}

const CHUNK: usize = 64 * 1024;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let sent = self.sent.fetch_add(CHUNK, Ordering::Relaxed);
        Poll::Ready((sent < self.limit).then(|| Ok(Frame::data(Bytes::from(vec![b' '; CHUNK])))))
    }
}

#[tokio::test]
async fn a_body_of_a_hundred_megabytes_is_read_only_up_to_the_limit() {
    let server = server();
    let sent = Arc::new(AtomicUsize::new(0));
    let body = Endless { sent: sent.clone(), limit: 100 * 1024 * 1024 };
    let request = Request::post(JOBS).body(body).unwrap();
    let answer = server.clone().oneshot(request).await.unwrap();
    assert_eq!(code(answer).await, 413);
    let read = sent.load(Ordering::Relaxed);
    assert!(read <= 3 * 1024 * 1024 + 2 * CHUNK, "{read} bytes were read");
    still_serves(&server.client()).await;
}

#[tokio::test]
async fn endless_selectors_and_names_are_refused_or_match_nothing() {
    let server = server_with_a_map().await;
    let long = "a".repeat(30_000);
    for query in [
        format!("labelSelector={long}"),
        format!("labelSelector={}", "(".repeat(30_000)),
        format!("labelSelector=a+in+({})", "b,".repeat(15_000)),
        format!("fieldSelector={}", "metadata.name%3Dx,".repeat(2_000)),
        format!("continue={long}"),
        format!("resourceVersion={}", "9".repeat(30_000)),
        format!("limit={}", "9".repeat(30_000)),
        format!("includeObject={long}"),
    ] {
        let answer = ask(&server, request(Method::GET, &format!("{MAPS}?{query}"), "", "")).await;
        assert!(matches!(code(answer).await, 200 | 400), "{}", &query[..40]);
    }
    let answer = ask(&server, request(Method::GET, &format!("{MAPS}/{long}"), "", "")).await;
    assert_eq!(code(answer).await, 404);
    still_serves(&server.client()).await;
}
