//! Requests made of valid pieces in the wrong order.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::{ask, said, server, still_serves};

/// How many requests are generated. `PROPTEST_CASES` sets another number.
const CASES: u32 = 3000;

/// Paths that exist, so that a request gets further than its path.
const PLACES: &[&str] = &[
    "/api/v1/namespaces",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/pods",
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/one",
    "/api/v1/events",
    "/api/v1/namespaces/default/configmaps/one/status",
    "/api/v1/namespaces/default/pods/p/status",
    "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs",
    "/apis/apps.kruise.io/v1alpha1/imagepulljobs",
    "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs/one",
    "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs/one/status",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodeimages.apps.kruise.io",
    "/apis/batch/v1/namespaces/default/jobs",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/api",
    "/apis",
    "/apis/apps/v1",
];
const SEGMENTS: &[&str] = &[
    "api",
    "apis",
    "v1",
    "v1beta1",
    "apps.kruise.io",
    "apps",
    "batch",
    "namespaces",
    "default",
    "pods",
    "nodes",
    "events",
    "imagepulljobs",
    "nodeimages",
    "customresourcedefinitions",
    "apiextensions.k8s.io",
    "status",
    "scale",
    "finalize",
    "watch",
    "openapi",
    "v3",
    "v2",
    "version",
    "readyz",
    "web",
    "",
    ".",
    "..",
    "%00",
    "%ff",
    "%2f",
    "%F0%9F%A6%80",
    "a%20b",
    "-",
    "~",
];
const PARAMETERS: &[&str] = &[
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "watch",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "timeoutSeconds",
    "dryRun",
    "fieldValidation",
    "propagationPolicy",
    "gracePeriodSeconds",
    "includeObject",
    "pretty",
    "fieldManager",
    "force",
];
const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "99999999999999999999",
    "18446744073709551615",
    "true",
    "false",
    "All",
    "Strict",
    "Exact",
    "NotOlderThan",
    "Orphan",
    "Foreground",
    "a=b",
    "a+in+(b,c)",
    "!a",
    "a+notin+()",
    "((((",
    "metadata.name=web",
    "metadata.name",
    "spec.image=x",
    "=",
    ",,,",
    "%",
    "%zz",
    "%00",
    "eyJ9",
    "Object",
    "None",
    "Metadata",
    "NaN",
    "1e9",
];
const ACCEPTED: &[&str] = &[
    "",
    "*/*",
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v9;g=meta.k8s.io",
    "application/yaml",
    "text/html",
    ";;;,,,",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
];
const CONTENT: &[&str] = &[
    "application/json",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    ";",
];
const BODIES: &[&str] = &[
    "",
    "{}",
    "[]",
    "null",
    "0",
    "\"\"",
    "{",
    "[{\"op\":\"add\"}]",
    "[{\"op\":\"remove\",\"path\":\"/metadata\"}]",
    "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/spec/a\"}]",
    "[{\"op\":\"replace\",\"path\":\"\",\"value\":0}]",
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"one\"},\"data\":{\"a\":\"1\"}}",
    "{\"metadata\":null}",
    "{\"metadata\":[]}",
    "{\"metadata\":{\"labels\":[]}}",
    "{\"metadata\":{\"name\":7}}",
    "{\"metadata\":{\"ownerReferences\":{}}}",
    "{\"metadata\":{\"finalizers\":[1]}}",
    "{\"spec\":null}",
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"generateName\":\"p\"},\"spec\":{\"containers\":[]}}",
    "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"generateName\":\"n-\"}}",
    "{\"kind\":\"ImagePullJob\",\"apiVersion\":\"apps.kruise.io/v1beta1\",\"metadata\":{\"name\":\"one\"},\"spec\":{\"image\":\"a\"}}",
    "{\"kind\":\"CustomResourceDefinition\",\"apiVersion\":\"apiextensions.k8s.io/v1\",\"metadata\":{\"name\":\"a.b\"},\"spec\":{\"group\":\"b\",\"versions\":[{}],\"names\":{\"plural\":\"a\",\"kind\":\"A\"}}}",
    "{\"propagationPolicy\":7,\"preconditions\":\"no\",\"gracePeriodSeconds\":-5}",
    "k8s\0\u{a}\u{1}",
];

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ONE_MAP: &str = "/api/v1/namespaces/default/configmaps/one";
const JOBS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs";
const ONE_JOB: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs/one";
const JOB: &str = r#"{"apiVersion":"apps.kruise.io/v1beta1","kind":"ImagePullJob","metadata":{"name":"one"},"spec":{"image":"a"}}"#;
const MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"1"}}"#;
const STALE: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","resourceVersion":"1"},"data":{"a":"2"}}"#;

/// Methods, paths, content types and bodies that belong together.
const SENSIBLE: &[(&str, &str, &str, &str)] = &[
    ("POST", MAPS, "application/json", MAP),
    ("PUT", ONE_MAP, "application/json", MAP),
    ("PUT", ONE_MAP, "application/json", STALE),
    ("PATCH", ONE_MAP, "application/merge-patch+json", r#"{"data":{"b":null,"c":"3"}}"#),
    (
        "PATCH",
        ONE_MAP,
        "application/json-patch+json",
        r#"[{"op":"copy","from":"/data","path":"/metadata/labels"}]"#,
    ),
    ("DELETE", ONE_MAP, "application/json", r#"{"propagationPolicy":"Foreground"}"#),
    ("DELETE", MAPS, "", ""),
    ("POST", JOBS, "application/json", JOB),
    (
        "PATCH",
        ONE_JOB,
        "application/merge-patch+json",
        r#"{"spec":{"parallelism":-1},"metadata":{"finalizers":["a/b"]}}"#,
    ),
    ("DELETE", ONE_JOB, "", ""),
    ("GET", JOBS, "", ""),
    ("GET", MAPS, "", ""),
];

#[derive(Clone, Debug)]
struct Made {
    method: String,
    target: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

fn made() -> impl Strategy<Value = Made> {
    let method = prop_oneof![
        9 => prop::sample::select(vec!["GET", "POST", "PUT", "PATCH", "DELETE"]).prop_map(str::to_owned),
        1 => "[A-Z]{1,10}",
    ];
    let segment = prop_oneof![
        9 => prop::sample::select(SEGMENTS).prop_map(str::to_owned),
        1 => "[ -~]{0,20}",
    ];
    let path = prop_oneof![
        3 => prop::sample::select(PLACES).prop_map(str::to_owned),
        1 => prop::collection::vec(segment, 0..9).prop_map(|segments| format!("/{}", segments.join("/"))),
    ];
    let value = prop_oneof![
        9 => prop::sample::select(VALUES).prop_map(str::to_owned),
        1 => "[ -~]{0,30}",
    ];
    let parameter =
        (prop::sample::select(PARAMETERS), value).prop_map(|(name, value)| format!("{name}={value}"));
    let query = prop_oneof![
        Just(String::new()),
        prop::collection::vec(parameter, 0..5).prop_map(|parameters| parameters.join("&")),
    ];
    let any_bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let text = |texts: &'static [&'static str]| {
        prop_oneof![
            // What a well-behaved client would send is frequent, or nothing would ever be stored.
            9 => Just(b"application/json".to_vec()),
            9 => prop::sample::select(texts).prop_map(|text| text.as_bytes().to_vec()),
            1 => any_bytes(),
        ]
    };
    let body = prop_oneof![
        9 => prop::sample::select(BODIES).prop_map(|text| text.as_bytes().to_vec()),
        1 => any_bytes(),
    ];
    let loose = (method, path, text(CONTENT), body);
    let sensible = prop::sample::select(SENSIBLE).prop_map(|(method, path, content, body)| {
        (method.to_owned(), path.to_owned(), content.as_bytes().to_vec(), body.as_bytes().to_vec())
    });
    // A third is well-formed except for its query and what it accepts, or hardly anything would ever be stored.
    let core = prop_oneof![2 => loose.boxed(), 1 => sensible.boxed()];
    (core, query, text(ACCEPTED)).prop_map(|((method, path, content, body), query, accept)| Made {
        method,
        target: if query.is_empty() { path } else { format!("{path}?{query}") },
        headers: vec![("accept", accept), ("content-type", content)],
        body,
    })
}

impl Made {
    /// None if HTTP itself does not allow the request: a socket refuses it before the server sees it.
    fn request(&self) -> Option<Request<Full<Bytes>>> {
        let mut request = Request::new(Full::new(Bytes::from(self.body.clone())));
        *request.method_mut() = Method::from_bytes(self.method.as_bytes()).ok()?;
        *request.uri_mut() = self.target.parse::<Uri>().ok()?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(*name, HeaderValue::from_bytes(value).ok()?);
        }
        Some(request)
    }
}

#[test]
fn every_request_gets_an_answer_or_a_clear_refusal() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(async { server() });
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let mut counts = std::collections::BTreeMap::<u16, u32>::new();
    let counts_of = std::cell::RefCell::new(&mut counts);
    runner
        .run(&made(), |made| {
            let Some(request) = made.request() else { return Ok(()) };
            let (code, words) = runtime.block_on(async { said(ask(&server, request).await).await });
            *counts_of.borrow_mut().entry(code).or_default() += 1;
            // A real server answers 504 for a version that lies in the future, and 500 for one that is not a number.
            let is_about_version =
                code == 504 || (code == 500 && words.starts_with("resourceVersion: Invalid value"));
            prop_assert!((200..500).contains(&code) || is_about_version, "{made:?} got {code} {words}");
            Ok(())
        })
        .unwrap();
    println!("answers by code: {counts:?}");
    // Fuzzing that never gets past the paths would prove little.
    for code in [200, 201, 400, 404, 405, 409, 415, 422] {
        assert!(counts.contains_key(&code), "no answer was a {code}: {counts:?}");
    }
    runtime.block_on(async { still_serves(&server.client()).await });
}
