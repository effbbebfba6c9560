//! The verbs: each reads what it needs from the request and does its work under the lock.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::decode::Decoded;
use super::{Answer, identity, options, patch, protobuf, yaml};
use crate::kubectl::View;
use crate::read;
use crate::refusal::Refusal;
use crate::request::{Query, Target};
use crate::resource::Resource;
use crate::server::{Server, Whole};
use crate::store::{Key, Stored};
use crate::watch::WatchStream;
use crate::write::{DeleteOptions, Deleted, Manner, Part, Writer, Written, is_made_by_replacing};

/// A request to a resource.
pub(super) struct Verbs<'a> {
    server: &'a Server,
    request: &'a Whole,
    target: Target,
    query: Query,
    resource: Arc<Resource>,
    part: Part,
    view: View,
}

impl<'a> Verbs<'a> {
    pub(super) fn new(
        server: &'a Server,
        request: &'a Whole,
        target: Target,
        query: Query,
    ) -> Result<Self, Refusal> {
        let resource = server.lock().resources.find(&target.group, &target.plural).cloned();
        let resource = resource.filter(|resource| resource.version(&target.version).is_some());
        let resource = resource.ok_or_else(Refusal::no_such_path)?;
        let part = match target.subresource.as_deref() {
            None => Part::Main,
            Some("status") if resource.has_status => Part::Status,
            Some(_) => return Err(Refusal::no_such_path()),
        };
        if target.namespace.is_some() && !resource.namespaced {
            return Err(Refusal::no_such_path());
        }
        let view = View::of(server, request, &resource, &target.version)?;
        Ok(Self { server, request, target, query, resource, part, view })
    }

    fn manner<'b>(&'b self, complaints: &'b [String], patch: Option<&'b str>) -> Manner<'b> {
        Manner {
            version: &self.target.version,
            dry_run: self.query.dry_run,
            field_validation: self.query.field_validation,
            complaints,
            patch,
        }
    }

    fn key(&self) -> Result<Key, Refusal> {
        let is_custom_patch = self.resource.is_custom && self.request.method() == Method::PATCH;
        let name = self.target.name.clone().ok_or_else(|| {
            if is_custom_patch {
                Refusal::bad_request("name must be provided")
            } else {
                Refusal::method_not_allowed()
            }
        })?;
        Ok(Key { namespace: self.target.namespace.clone().unwrap_or_default(), name })
    }

    fn object(&self, code: StatusCode, object: &Stored) -> Answer {
        Answer::text(code, self.view.object(object))
    }

    fn written(&self, code: StatusCode, written: Written) -> Answer {
        let answer = self.object(code, &written.object);
        Answer { warnings: written.warnings, is_dry_run: self.query.dry_run, ..answer }
    }

    /// GET: one object, a list, or a watch.
    pub(super) fn read(&self) -> Result<Answer, Refusal> {
        if self.target.name.is_some() {
            let object = read::get(&self.server.lock(), &self.resource, &self.key()?, &self.query)?;
            return Ok(self.object(StatusCode::OK, &object));
        }
        if self.query.watch {
            let plan = read::watch(&mut self.server.lock(), &self.resource, &self.target, &self.query)?;
            let stream = plan.map_or_else(|refusal| WatchStream::refused(&refusal), WatchStream::new);
            return Ok(Answer::watch(stream.seen_through(self.view.events())));
        }
        let page = read::list(&self.server.lock(), &self.resource, &self.target, &self.query)?;
        Ok(Answer::text(StatusCode::OK, self.view.list(&page)))
    }

    /// POST: a new object.
    pub(super) fn create(&self) -> Result<Answer, Refusal> {
        // A real server accepts POST at the path of a custom object too, and only the body has the name.
        let is_named = self.target.name.is_some() && !(self.resource.is_custom && self.part == Part::Main);
        if is_named || (self.resource.namespaced && self.target.namespace.is_none()) {
            return Err(Refusal::method_not_allowed());
        }
        let Decoded { value: object, complaints } = self.body()?;
        let manner = self.manner(&complaints, None);
        let namespace = self.target.namespace.clone().unwrap_or_default();
        let now = self.server.clock.now();
        let mut state = self.server.lock();
        let written = Writer::new(&mut state, now).create(&self.resource, &namespace, object, &manner)?;
        drop(state);
        Ok(self.written(StatusCode::CREATED, written))
    }

    /// PUT: the whole object, or its status.
    pub(super) fn update(&self) -> Result<Answer, Refusal> {
        let (key, Decoded { value: object, complaints }) = (self.key()?, self.body()?);
        identity::check_name(&self.resource, &key, &object)?;
        let manner = self.manner(&complaints, None);
        let now = self.server.clock.now();
        let mut state = self.server.lock();
        let old = match state.object(&self.resource, &key) {
            Err(_) if self.part == Part::Main && is_made_by_replacing(&self.resource) => {
                let mut writer = Writer::new(&mut state, now);
                let written = writer.create(&self.resource, &key.namespace, object, &manner)?;
                drop(state);
                return Ok(self.written(StatusCode::CREATED, written));
            }
            found => found?,
        };
        let mut writer = Writer::new(&mut state, now);
        let written = writer.update(&self.resource, (&old, &old.value()), self.part, object, &manner)?;
        drop(state);
        Ok(self.written(StatusCode::OK, written))
    }

    /// PATCH: a change of the object or of its status.
    pub(super) fn patch(&self) -> Result<Answer, Refusal> {
        let key = self.key()?;
        let change = patch::Change::parse(self.request)?;
        let now = self.server.clock.now();
        let mut state = self.server.lock();
        let old = state.object(&self.resource, &key)?;
        let before = old.value();
        let Decoded { value: new, complaints } = change.apply(&self.resource, self.shown(before.clone()))?;
        let text = String::from_utf8_lossy(self.request.body());
        identity::check_patched(&self.resource, &self.target.version, &new, &text)?;
        identity::check_name(&self.resource, &key, &new)?;
        let written = Writer::new(&mut state, now).update(
            &self.resource,
            (&old, &before),
            self.part,
            new,
            &self.manner(&complaints, Some(&text)),
        )?;
        drop(state);
        Ok(self.written(StatusCode::OK, written))
    }

    /// DELETE: one object, or all that are selected.
    pub(super) fn delete(&self) -> Result<Answer, Refusal> {
        if self.part == Part::Status {
            return Err(Refusal::method_not_allowed());
        }
        let options = self.delete_options()?;
        if self.target.name.is_none() {
            return self.delete_collection(&options);
        }
        let key = self.key()?;
        let now = self.server.clock.now();
        let mut state = self.server.lock();
        let old = state.object(&self.resource, &key)?;
        let deleted = Writer::new(&mut state, now).delete(&self.resource, &old, &options)?;
        drop(state);
        let answer = match &deleted {
            Deleted::Waiting(object) => self.object(StatusCode::OK, object),
            Deleted::Gone(object) if self.resource.shows_what_is_gone() => {
                self.object(StatusCode::OK, object)
            }
            Deleted::Gone(object) => Answer::json(StatusCode::OK, &self.success(object)),
        };
        Ok(Answer { is_dry_run: options.dry_run, ..answer })
    }

    fn delete_collection(&self, options: &DeleteOptions) -> Result<Answer, Refusal> {
        // Neither across namespaces nor whole namespaces at a time.
        let is_too_wide = self.resource.namespaced && self.target.namespace.is_none();
        if is_too_wide || (self.resource.group.is_empty() && self.resource.plural == "namespaces") {
            return Err(Refusal::method_not_allowed());
        }
        let now = self.server.clock.now();
        let mut state = self.server.lock();
        let page = read::list(&state, &self.resource, &self.target, &self.query)?;
        for object in &page.objects {
            // An earlier deletion may have taken this object with it.
            if let Ok(old) = state.object(&self.resource, &object.key) {
                Writer::new(&mut state, now).delete(&self.resource, &old, options)?;
            }
        }
        drop(state);
        let answer =
            Answer::text(StatusCode::OK, read::list_text(&page, &self.resource, &self.target.version));
        Ok(Answer { is_dry_run: options.dry_run, ..answer })
    }

    fn success(&self, object: &Stored) -> Value {
        let mut details = json!({ "name": object.key.name, "kind": self.resource.plural, "uid": object.uid });
        if !self.resource.group.is_empty() {
            details["group"] = self.resource.group.clone().into();
        }
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
    }

    /// The stored object as this client sees it.
    fn shown(&self, mut object: Value) -> Value {
        self.resource.narrow(&self.target.version, &mut object);
        object["apiVersion"] = self.resource.api_version(&self.target.version).into();
        object["kind"] = self.resource.kind.clone().into();
        object
    }

    fn body(&self) -> Result<Decoded, Refusal> {
        let mut decoded = self.decoded()?;
        if !decoded.value.is_object() {
            return Err(Refusal::bad_request("the body of the request is not an object"));
        }
        identity::check_kind(&self.resource, &self.target.version, &mut decoded.value)?;
        Ok(decoded)
    }

    /// Objects come as JSON or YAML, or from kubectl's shortcuts as protobuf. Without a content type, the body is JSON.
    fn decoded(&self) -> Result<Decoded, Refusal> {
        let given =
            self.request.headers().get("content-type").map_or("", |value| value.to_str().unwrap_or("?"));
        match given.split(';').next().unwrap_or_default().trim() {
            "" | "application/json" => patch::json(self.request),
            "application/yaml" => yaml::decode(self.request.body()),
            "application/vnd.kubernetes.protobuf" if !self.resource.is_custom => {
                let value = protobuf::decode(self.request.body())?;
                Ok(Decoded { value, complaints: Vec::new() })
            }
            _ => Err(Refusal::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml",
            )),
        }
    }

    fn delete_options(&self) -> Result<DeleteOptions, Refusal> {
        let has_body = !self.request.body().is_empty();
        let body = has_body.then(|| patch::json(self.request)).transpose()?;
        options::parse(body.map(|body| body.value).as_ref(), &self.query)
    }
}
