//! Objects in the form that one client wants: each answer and each event of a watch passes through here.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::form::Form;
use super::table::{self, Columns};
use crate::read::{self, Page};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::server::{Server, Whole};
use crate::store::Stored;
use prewarm_clock::Clock;

#[derive(Clone)]
pub(crate) struct View {
    form: Form,
    resource: Arc<Resource>,
    version: String,
    clock: Arc<dyn Clock>,
}

impl View {
    /// The view that a request asks for.
    pub(crate) fn of(
        server: &Server,
        request: &Whole,
        resource: &Arc<Resource>,
        version: &str,
    ) -> Result<Self, Refusal> {
        let form = Form::of(request.headers(), request.uri().query().unwrap_or_default())?;
        Ok(Self {
            form,
            resource: resource.clone(),
            version: version.to_owned(),
            clock: server.clock.clone(),
        })
    }

    pub(crate) fn object(&self, object: &Stored) -> Bytes {
        match self.form {
            Form::Objects if self.narrows() => self.narrowed(object).to_string().into(),
            Form::Objects => object.text(&self.api_version(), &self.resource.kind),
            Form::Metadata => metadata_text(object).into(),
            Form::Table(_) => {
                let columns = Columns::of(&self.resource, &self.version);
                let row = self.row(&columns, &object.value());
                let metadata = json!({ "resourceVersion": object.revision.to_string() });
                table_value(&metadata, &columns.definitions(), &[row]).to_string().into()
            }
        }
    }

    pub(crate) fn list(&self, page: &Page) -> Bytes {
        let values = || page.objects.iter().map(|object| object.value());
        match self.form {
            Form::Objects if self.narrows() => {
                let items: Vec<Value> = page.objects.iter().map(|object| self.narrowed(object)).collect();
                let list = json!({
                    "kind": format!("{}List", self.resource.kind), "apiVersion": self.api_version(),
                    "metadata": read::list_metadata(page, true), "items": items,
                });
                list.to_string().into()
            }
            Form::Objects => read::list_text(page, &self.resource, &self.version),
            Form::Metadata => {
                let items: Vec<String> = page.objects.iter().map(|object| metadata_text(object)).collect();
                let metadata = read::list_metadata(page, false);
                format!(
                    "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\
                     \"metadata\":{metadata},\"items\":[{}]}}",
                    items.join(",")
                )
                .into()
            }
            Form::Table(_) => {
                let columns = Columns::of(&self.resource, &self.version);
                let rows: Vec<Value> = values().map(|object| self.row(&columns, &object)).collect();
                let table = table_value(&read::list_metadata(page, false), &columns.definitions(), &rows);
                table.to_string().into()
            }
        }
    }

    /// How the events of a watch are shown, unless they are sent as they are.
    pub(crate) fn events(&self) -> Option<EventView> {
        let columns = match self.form {
            Form::Objects if !self.narrows() => return None,
            Form::Objects | Form::Metadata => None,
            Form::Table(_) => Some(Columns::of(&self.resource, &self.version)),
        };
        Some(EventView { view: self.clone(), columns, has_headings: false })
    }

    fn row(&self, columns: &Columns, object: &Value) -> Value {
        let Form::Table(beside) = self.form else { return Value::Null };
        columns.row(object, (&self.api_version(), &self.resource.kind), beside, self.clock.now())
    }

    /// Whether this version shows less than what is stored.
    fn narrows(&self) -> bool {
        self.resource.narrowing(&self.version).is_some()
    }

    fn narrowed(&self, object: &Stored) -> Value {
        let mut object = object.value();
        object["apiVersion"] = self.api_version().into();
        object["kind"] = self.resource.kind.clone().into();
        self.resource.narrow(&self.version, &mut object);
        object
    }

    fn api_version(&self) -> String {
        self.resource.api_version(&self.version)
    }
}

/// The metadata of an object, taken from its text.
fn metadata_text(object: &Stored) -> String {
    let metadata = String::from_utf8_lossy(object.metadata());
    format!(
        "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata}}}"
    )
}

fn table_value(metadata: &Value, definitions: &Value, rows: &[Value]) -> Value {
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows,
    })
}

/// How a client sees the events of a watch. Only people watch tables, and few of them, so each line is parsed and
/// rendered again.
pub(crate) struct EventView {
    view: View,
    columns: Option<Columns>,
    has_headings: bool,
}

impl std::fmt::Debug for EventView {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EventView").field("form", &self.view.form).finish_non_exhaustive()
    }
}

impl EventView {
    /// A line as this client sees it. Errors are unchanged.
    pub(crate) fn line(&mut self, line: Bytes) -> Bytes {
        let Ok(mut event) = serde_json::from_slice::<Value>(&line) else { return line };
        if event["type"] == "ERROR" {
            return line;
        }
        let mut object = event["object"].take();
        event["object"] = match &self.columns {
            None if matches!(self.view.form, Form::Objects) => {
                self.view.resource.narrow(&self.view.version, &mut object);
                object
            }
            None => table::metadata(&object),
            Some(columns) => {
                // Only the first row comes with headings.
                let definitions = if self.has_headings { Value::Null } else { columns.definitions() };
                let metadata = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
                let row = self.view.row(columns, &object);
                table_value(&metadata, &definitions, &[row])
            }
        };
        self.has_headings = true;
        format!("{event}\n").into()
    }
}
