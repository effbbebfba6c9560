//! What the registry answers to a plain HTTP client.

use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE, WWW_AUTHENTICATE,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use prewarm_demo::{Flow, Pace, Registry};
use prewarm_image::{Artifact, Image, Layer};
use serde_json::Value;

fn registry() -> (Registry, Artifact) {
    let registry = Registry::start(Pace::new(Flow::Free)).unwrap();
    let artifact = Image::new("web").layers(2, Layer::of(50_000)).build();
    registry.push("shop/web", "v1", artifact.clone());
    (registry, artifact)
}

async fn ask(registry: &Registry, method: Method, path: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let mut request = Request::builder().method(method).uri(format!("http://{}{path}", registry.address()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = client.request(request.body(Empty::new()).unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

fn header(answer: &Response<Bytes>, name: impl http::header::AsHeaderName) -> &str {
    answer.headers()[name].to_str().unwrap()
}

fn code(answer: &Response<Bytes>) -> String {
    let errors: Value = serde_json::from_slice(answer.body()).unwrap();
    errors["errors"][0]["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_manifest_is_found_by_tag_and_by_digest_with_its_type_and_its_digest() {
    let (registry, artifact) = registry();
    for reference in ["v1", artifact.digest()] {
        let path = format!("/v2/shop/web/manifests/{reference}");
        for method in [Method::GET, Method::HEAD] {
            let answer = ask(&registry, method.clone(), &path, &[]).await;
            assert_eq!(answer.status(), StatusCode::OK);
            assert_eq!(header(&answer, CONTENT_TYPE), "application/vnd.oci.image.manifest.v1+json");
            assert_eq!(header(&answer, "docker-content-digest"), artifact.digest());
            assert_eq!(header(&answer, CONTENT_LENGTH), artifact.root().blob.bytes.len().to_string());
            let expected: &[u8] = if method == Method::GET { &artifact.root().blob.bytes } else { &[] };
            assert_eq!(answer.body(), expected);
        }
    }
}

#[tokio::test]
async fn a_blob_is_sent_whole_or_the_part_that_was_asked_for() {
    let (registry, artifact) = registry();
    let blob = &artifact.blobs[1];
    let path = format!("/v2/shop/web/blobs/{}", blob.digest);
    let whole = ask(&registry, Method::GET, &path, &[]).await;
    assert_eq!((whole.status(), whole.body().as_ref()), (StatusCode::OK, blob.bytes.as_slice()));
    assert_eq!(header(&whole, ACCEPT_RANGES), "bytes");
    let part = ask(&registry, Method::GET, &path, &[(RANGE.as_str(), "bytes=100-199")]).await;
    assert_eq!((part.status(), part.body().as_ref()), (StatusCode::PARTIAL_CONTENT, &blob.bytes[100..200]));
    assert_eq!(header(&part, CONTENT_RANGE), format!("bytes 100-199/{}", blob.bytes.len()));
    let outside = ask(&registry, Method::GET, &path, &[(RANGE.as_str(), "bytes=9999999-")]).await;
    assert_eq!(outside.status(), StatusCode::RANGE_NOT_SATISFIABLE);
}

#[tokio::test]
async fn missing_content_is_refused_with_the_code_of_the_specification() {
    let (registry, artifact) = registry();
    registry.push("other/tool", "v1", Image::new("tool").layer(Layer::of(10)).build());
    let elsewhere = format!("/v2/other/tool/blobs/{}", artifact.blobs[1].digest);
    for (path, expected) in [
        ("/v2/shop/nothing/manifests/v1", "NAME_UNKNOWN"),
        ("/v2/shop/web/manifests/v2", "MANIFEST_UNKNOWN"),
        ("/v2/shop/web/blobs/sha256:00", "BLOB_UNKNOWN"),
        // A blob of another repository is not visible here.
        (elsewhere.as_str(), "BLOB_UNKNOWN"),
    ] {
        let answer = ask(&registry, Method::GET, path, &[]).await;
        assert_eq!((answer.status(), code(&answer).as_str()), (StatusCode::NOT_FOUND, expected), "{path}");
    }
    let push = ask(&registry, Method::PUT, "/v2/shop/web/manifests/v1", &[]).await;
    assert_eq!((push.status(), code(&push).as_str()), (StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED"));
}

#[tokio::test]
async fn a_private_repository_shows_nothing_without_its_account() {
    let (registry, artifact) = registry();
    registry.protect("shop/web", "robot", "hunter2");
    let blob = format!("/v2/shop/web/blobs/{}", artifact.blobs[1].digest);
    let right = ("authorization", "Basic cm9ib3Q6aHVudGVyMg==");
    let wrong = (AUTHORIZATION.as_str(), "Basic cm9ib3Q6d3Jvbmc=");
    for path in ["/v2/shop/web/manifests/v1", "/v2/shop/web/manifests/none", &blob] {
        for shown in [&[][..], &[wrong]] {
            let answer = ask(&registry, Method::GET, path, shown).await;
            assert_eq!((answer.status(), code(&answer).as_str()), (StatusCode::UNAUTHORIZED, "UNAUTHORIZED"));
            assert!(header(&answer, WWW_AUTHENTICATE).starts_with("Basic realm="));
        }
    }
    assert_eq!(ask(&registry, Method::GET, &blob, &[right]).await.status(), StatusCode::OK);
    assert_eq!(ask(&registry, Method::GET, "/v2/", &[]).await.status(), StatusCode::OK);
}
