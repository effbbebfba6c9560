//! Asks a server about objects, strictly and without storing them. The embedded server answers the same questions.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail};
use http::Request;
use kube::Client;
use prewarm_api::served;
use prewarm_corpus::{Case, Verdict};
use prewarm_testkit::ApiServer;
use serde_json::Value;

/// The answer of the server.
pub enum Answer {
    /// It would store this object.
    Taken(Value),
    /// It refused for reasons at these paths.
    Refused { paths: Vec<String>, message: String },
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(_) => f.write_str("taken"),
            Self::Refused { paths, message } => write!(f, "refused at {paths:?}: {message}"),
        }
    }
}

/// A client of a server that has our definitions.
pub struct Judge {
    client: Client,
    namespace: String,
}

impl Judge {
    /// Installs our definitions first.
    pub async fn new(server: &ApiServer) -> anyhow::Result<Self> {
        prewarm_testkit::install::definitions(&server.client()?, prewarm_api::crd::all()).await?;
        Self::of(server).await
    }

    /// Uses the server as it is.
    pub async fn of(server: &ApiServer) -> anyhow::Result<Self> {
        Ok(Self::through(server.client()?, server.namespace().await?))
    }

    /// Uses whatever server the client talks to.
    pub fn through(client: Client, namespace: String) -> Self {
        Self { client, namespace }
    }

    /// The verdict on a case: on the creation or, if it has an old object, on the update.
    pub async fn ask(&self, case: &Case) -> anyhow::Result<Answer> {
        match &case.old {
            None => self.create(&case.object, "&dryRun=All").await,
            Some(old) => self.update(old, &case.object).await,
        }
    }

    /// Creates an object. `query` is added to the request.
    pub async fn create(&self, object: &Value, query: &str) -> anyhow::Result<Answer> {
        let path = self.collection(object);
        self.send("POST", &format!("{path}?fieldValidation=Strict{query}"), object).await
    }

    async fn update(&self, old: &Value, new: &Value) -> anyhow::Result<Answer> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("update-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let (mut old, mut new) = (old.clone(), new.clone());
        old["metadata"]["name"] = name.clone().into();
        new["metadata"]["name"] = name.clone().into();
        let Answer::Taken(stored) = self.create(&old, "").await? else { bail!("the old object was refused") };
        new["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        let path = format!("{}/{name}", self.collection(&old));
        self.send("PUT", &format!("{path}?fieldValidation=Strict&dryRun=All"), &new).await
    }

    /// The path of the list that an object belongs to.
    pub fn collection(&self, object: &Value) -> String {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let served = served::find(api_version.split('/').next().unwrap_or_default(), kind);
        let is_cluster_wide = served.is_some_and(|served| !served.namespaced);
        let namespace =
            if is_cluster_wide { String::new() } else { format!("/namespaces/{}", self.namespace) };
        let plural = match kind {
            "ImagePrefetch" => "imageprefetches".to_owned(),
            kind => format!("{}s", kind.to_lowercase()),
        };
        format!("/apis/{api_version}{namespace}/{plural}")
    }

    /// Sends a request with a JSON body.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Answer> {
        let content_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(serde_json::to_vec(body)?)?;
        match self.client.request::<Value>(request).await {
            Ok(stored) => Ok(Answer::Taken(stored)),
            Err(kube::Error::Api(status)) => Ok(refusal(&status)),
            Err(error) => Err(error).with_context(|| format!("{method} {path}")),
        }
    }
}

fn refusal(status: &kube::core::Status) -> Answer {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut paths: Vec<String> = causes.map(|cause| cause.field.clone()).collect();
    // Strict decoding reports its findings only in the message.
    for piece in status.message.split("unknown field \"").skip(1) {
        paths.extend(piece.split('"').next().map(str::to_owned));
    }
    if status.code == 404 {
        paths.extend(["apiVersion".to_owned(), "kind".to_owned()]);
    }
    Answer::Refused { paths, message: status.message.clone() }
}

/// Whether the answer agrees with the verdict: accepted, or refused at that path.
pub fn agrees(verdict: &Verdict, answer: &Answer) -> bool {
    match (verdict, answer) {
        (Verdict::Accept, Answer::Taken(_)) => true,
        (Verdict::Refuse { at }, Answer::Refused { paths, .. }) => {
            paths.iter().any(|path| is_same_place(path, at))
        }
        _ => false,
    }
}

/// Whether the server's path and ours mean the same. The server writes a map key as `.key` after a schema error and as
/// `[key]` after a rule, and reports rules about the object's name at the root.
pub fn is_same_place(theirs: &str, ours: &str) -> bool {
    let dotted = |path: &str| path.replace(['[', ']'], ".").replace("..", ".").trim_matches('.').to_owned();
    (matches!(theirs, "<nil>" | "") && ours == "metadata.name") || dotted(theirs) == dotted(ours)
}
