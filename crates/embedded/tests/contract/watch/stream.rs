//! A watch, read event by event.

use anyhow::{Context as _, bail, ensure};
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

use crate::contract::world::World;

/// An open watch.
pub struct Watching {
    body: Body,
    rest: Vec<u8>,
}

impl Watching {
    /// Opens a watch. The path has a query.
    pub async fn open(world: &World, path: &str) -> anyhow::Result<Self> {
        Self::open_with(world, path, "application/json").await
    }

    /// Opens a watch of objects in another form.
    pub async fn open_with(world: &World, path: &str, accept: &str) -> anyhow::Result<Self> {
        let request = Request::get(format!("{path}&watch=true")).header("accept", accept);
        let response = world.client.send(request.body(Body::empty())?).await?;
        let code = response.status();
        ensure!(code == 200, "the watch was refused with {code}");
        Ok(Self { body: response.into_body(), rest: Vec::new() })
    }

    /// The next event, or none when the watch is over.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).context("an event is JSON");
            }
            let Some(frame) = self.body.frame().await else {
                ensure!(self.rest.is_empty(), "the watch ended within a line");
                return Ok(None);
            };
            self.rest.extend(frame?.into_data().ok().unwrap_or_default());
        }
    }

    /// The next event of a watch that is not over. Bookmarks may come at any time and are skipped.
    pub async fn event(&mut self) -> anyhow::Result<Value> {
        loop {
            match self.next().await? {
                Some(event) if is_plain_bookmark(&event) => {}
                Some(event) => return Ok(event),
                None => bail!("the watch is over"),
            }
        }
    }

    /// The next events in short form: `ADDED one`.
    pub async fn take(&mut self, count: usize) -> anyhow::Result<Vec<String>> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(brief(&self.event().await?));
        }
        Ok(events)
    }

    /// All events until the watch is over, in short form.
    pub async fn into_lines(mut self) -> anyhow::Result<Vec<String>> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(brief(&event));
        }
        Ok(events)
    }
}

/// The type of an event and the name of its object.
pub fn brief(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    format!("{} {}", text(&event["type"]), text(&event["object"]["metadata"]["name"]))
}

fn is_plain_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"].is_null()
}
