//! Redirects: wherever a mirror keeps its blobs, but never to the registry itself.

use super::*;

async fn blob(mirrors: &Mirrors, content: &[u8], offset: u64) -> Result<Vec<u8>, FetchError> {
    let mut blob = mirrors.blob("library/nginx", &descriptor(content), offset, &BTreeSet::new());
    let mut bytes = Vec::new();
    while let Some(piece) = blob.next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

#[tokio::test]
async fn a_redirect_is_followed_with_the_range_and_without_the_secrets() {
    let node = Node::new();
    let content = content(50_000);
    let served = content.clone();
    let store = Mirror::start(move |seen| Reply::part(seen, &served)).await;
    let signed = format!("{}/bucket/x?sig=s3cret", store.http());
    let mirror = Mirror::start(move |_| Reply::redirect(&signed)).await;
    let mirrors = node.mirrors(&table(&mirror, "header = { Authorization = \"Basic s3cret\" }"));
    assert_eq!(blob(&mirrors, &content, 20_000).await.unwrap(), content[20_000..]);
    let seen = &store.seen()[0];
    assert_eq!((seen.target.as_str(), seen.offset()), ("/bucket/x?sig=s3cret", Some(20_000)));
    assert!(!seen.headers.contains_key("authorization"));
    assert_eq!(seen.headers["host"], format!("127.0.0.1:{}", store.port));
}

#[tokio::test]
async fn within_the_mirror_the_headers_stay() {
    let node = Node::new();
    let content = content(1_000);
    let served = content.clone();
    let mirror = Mirror::start(move |seen| match seen.target.as_str() {
        "/data/x" => Reply::part(seen, &served),
        _ => Reply::redirect("/data/x"),
    });
    let mirror = mirror.await;
    let mirrors = node.mirrors(&table(&mirror, "header = { X-Key = \"k\" }"));
    assert_eq!(blob(&mirrors, &content, 0).await.unwrap(), content);
    assert!(mirror.seen().iter().all(|seen| seen.headers["x-key"] == "k"));
}

#[tokio::test]
async fn a_redirect_to_the_registry_itself_is_not_followed() {
    let node = Node::new();
    for upstream in
        ["https://registry-1.docker.io/v2/x?sig=s3cret", "https://production.cloudflare.docker.com/x"]
    {
        let mirror = Mirror::start(move |_| Reply::redirect(upstream)).await;
        let error = blob(&node.plain(&[&mirror]), b"content", 0).await.unwrap_err();
        assert!(matches!(failures(&error)[..], [Failure::ToUpstream(_)]), "{error}");
        assert!(
            error.to_string().contains("never asked") && !error.to_string().contains("s3cret"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_redirect_in_a_circle_ends() {
    let node = Node::new();
    let mirror = Mirror::start(|_| Reply::redirect("/again")).await;
    let error = blob(&node.plain(&[&mirror]), b"content", 0).await.unwrap_err();
    assert_eq!(failures(&error), [Failure::TooManyRedirects(5)]);
    assert_eq!(mirror.seen().len(), 6);
}

#[tokio::test]
async fn a_redirect_that_leads_nowhere_is_a_failure_of_the_mirror() {
    let node = Node::new();
    for mirror in [
        Mirror::start(|_| Reply::redirect("ftp://store.example/x")).await,
        Mirror::start(|_| Reply::new(302, b"")).await,
    ] {
        let error = blob(&node.plain(&[&mirror]), b"content", 0).await.unwrap_err();
        assert_eq!(failures(&error), [Failure::Odd("a redirect to nowhere")]);
    }
}
