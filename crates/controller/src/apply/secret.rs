//! Reads Secrets that jobs name, and writes their copies. What they hold passes through here and stays nowhere: of a
//! source only the part that its jobs need is looked at, and memory that held any of it is overwritten.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PatchParams, PostParams, Preconditions};
use prewarm_api::names::SECRET_REFERENCES_ANNOTATION;
use prewarm_credentials::docker_config::DecodeError;
use prewarm_plan::cluster::secret::{Action, Copy, Excerpt, SourceState, annotations, references_text};
use prewarm_plan::cluster::{Kind, Object, Outcome};
use prewarm_plan::object::{ObjectKey, SourceKey};
use serde_json::json;
use tracing::warn;

use super::answer::{Meaning, meaning};
use super::{FIELD_MANAGER, Writer, json_patch};
use crate::content::{self, Held};
use crate::metrics::Written;

/// What became of a write: a copy that is like this, one that is gone, or trouble in words without any content.
type Done = Result<Option<Held>, String>;

impl Writer {
    /// What a Secret that jobs name is like; `None` if it cannot be read just now.
    pub(super) async fn read_source(&self, excerpt: &Excerpt) -> Option<SourceState> {
        match self.source(&excerpt.source).await {
            Ok(Some(secret)) => Some(match content::part(&secret, &excerpt.registries) {
                Ok(part) => SourceState::Present(content::of(&part)),
                Err(why) => SourceState::Unusable(why.to_string()),
            }),
            Ok(None) => Some(SourceState::Missing),
            Err(trouble) => {
                warn!(secret = %excerpt.source, trouble, "cannot read a Secret; trying again");
                None
            }
        }
    }

    async fn source(&self, key: &SourceKey) -> Result<Option<Held>, String> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        match self.send(api.get_opt(&key.name)).await {
            Some(Ok(secret)) => Ok(secret.map(Held)),
            Some(Err(error)) => Err(words(&error)),
            None => Err("the API server did not answer in time".to_owned()),
        }
    }

    /// The part of a source that is copied.
    async fn part(&self, excerpt: &Excerpt) -> Result<Held, String> {
        let key = &excerpt.source;
        let source = self.source(key).await?.ok_or_else(|| format!("Secret {key} is gone"))?;
        content::part(&source, &excerpt.registries)
            .map_err(|why: DecodeError| format!("Secret {key} is not copied: {why}"))
    }

    pub(super) async fn write_copy(&self, excerpt: &Excerpt, name: &str, action: Action) -> Outcome<Object> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.config_namespace);
        let done = match action {
            Action::Create { name, references } => self.create_copy(&api, excerpt, &name, &references).await,
            Action::Update { name, uid, references, has_new_data } => {
                self.update_copy(&api, excerpt, (&name, &uid), &references, has_new_data).await
            }
            Action::Delete { name, uid } => self.delete_copy(&api, &name, &uid).await,
        };
        // Only what the kernel keeps leaves this function.
        match done {
            Ok(Some(copy)) => Outcome::Written(Copy::read(&copy.0.metadata, content::of(&copy)).into()),
            Ok(None) => Outcome::Gone,
            Err(trouble) => {
                warn!(secret = %excerpt.source, copy = %name, trouble, "cannot write the copy of a Secret; trying again");
                Outcome::Failed(Some(trouble))
            }
        }
    }

    async fn create_copy(
        &self,
        api: &Api<Secret>,
        excerpt: &Excerpt,
        name: &str,
        references: &BTreeSet<ObjectKey>,
    ) -> Done {
        let mut copy = self.part(excerpt).await?;
        copy.0.metadata = ObjectMeta {
            name: Some(name.to_owned()),
            annotations: Some(annotations(&excerpt.source, references)),
            ..ObjectMeta::default()
        };
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let answer = self.send(api.create(&params, &copy.0)).await;
        self.count(Written::Object(Kind::Secret), answer.as_ref());
        self.settle_copy(api, name, answer).await
    }

    async fn update_copy(
        &self,
        api: &Api<Secret>,
        excerpt: &Excerpt,
        (name, uid): (&str, &str),
        references: &BTreeSet<ObjectKey>,
        has_new_data: bool,
    ) -> Done {
        let mut operations = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": uid}),
            json!({"op": "add", "path": format!("/metadata/annotations/{}", SECRET_REFERENCES_ANNOTATION.replace('/', "~1")),
                   "value": references_text(references)}),
        ];
        if has_new_data {
            let part = self.part(excerpt).await?;
            operations.push(json!({"op": "add", "path": "/data", "value": part.0.data}));
        }
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = json_patch(operations);
        let answer = self.send(api.patch(name, &params, &patch)).await;
        self.count(Written::Object(Kind::Secret), answer.as_ref());
        self.settle_copy(api, name, answer).await
    }

    async fn delete_copy(&self, api: &Api<Secret>, name: &str, uid: &str) -> Done {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let answer = self.send(api.delete(name, &params)).await;
        self.count(Written::Object(Kind::Secret), answer.as_ref());
        match answer {
            Some(Ok(_)) => Ok(None),
            Some(Err(error)) => self.settle_copy(api, name, Some(Err(error))).await,
            None => Err("the API server did not answer in time".to_owned()),
        }
    }

    async fn settle_copy(
        &self,
        api: &Api<Secret>,
        name: &str,
        answer: Option<Result<Secret, kube::Error>>,
    ) -> Done {
        match answer {
            Some(Ok(copy)) => Ok(Some(Held(copy))),
            None => Err("the API server did not answer in time".to_owned()),
            Some(Err(error)) => match meaning(&error) {
                Meaning::Stale => match self.send(api.get_opt(name)).await {
                    Some(Ok(copy)) => Ok(copy.map(Held)),
                    Some(Err(error)) => Err(words(&error)),
                    None => Err("the API server did not answer in time".to_owned()),
                },
                Meaning::Gone if !is_about_namespace(&error) => Ok(None),
                Meaning::Gone => Err(format!(
                    "namespace {} does not exist; it is part of the installation",
                    self.config_namespace
                )),
                Meaning::Refused(_) | Meaning::Trouble => Err(words(&error)),
            },
        }
    }
}

/// A Secret cannot be made in a namespace that is missing; the answer then speaks of the namespace.
fn is_about_namespace(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.details.as_ref().is_some_and(|details| details.kind == "namespaces")
}

/// The error without its text, which may quote what was sent.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!("the API server answered 403 ({}); does the controller have its role?", status.reason)
        }
        kube::Error::Api(status) => format!("the API server answered {} ({})", status.code, status.reason),
        _ => "the API server cannot be reached".to_owned(),
    }
}
