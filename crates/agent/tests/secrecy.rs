//! Credentials appear nowhere, also when the runtime repeats them (reliability S13). The log is read at its finest
//! level, and it is the whole process's, so this test has a process of its own.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "whole/node/mod.rs"]
#[allow(dead_code, unused_imports, reason = "it uses a part of what the other tests need")]
mod node;

use std::io;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prewarm_runtime::Code;
use serde_json::json;

use node::{Node, docker_config, image_of, owned, pass, policy, tag, with_secrets};

const PASSWORD: &str = "hunter2/correct+horse";

/// A log that is kept in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// Every way in which the password could be written.
fn spellings() -> Vec<String> {
    let basic = STANDARD.encode(format!("robot:{PASSWORD}"));
    let escaped = PASSWORD.replace('/', "%2F").replace('+', "%2B");
    let digits = |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap());
    let hex = PASSWORD.bytes().flat_map(digits).collect();
    vec![PASSWORD.to_owned(), STANDARD.encode(PASSWORD), basic, escaped, hex]
}

#[tokio::test(start_paused = true)]
async fn no_credential_reaches_the_status_the_events_the_metrics_or_the_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let mut node = Node::new();
    let echo = format!("denied: you said {}", spellings().join(" and "));
    node.fake.image("reg.example/app:1").needs("robot", "another").fails(1, Code::Unknown, &echo);
    node.fake.image("reg.example/app:2").fails(
        9,
        Code::Unknown,
        &format!("https://robot:{PASSWORD}@reg.example/"),
    );
    let entry = |name: &str| owned(policy(tag(name), &json!({ "backoffLimit": 1 })), "job");
    let image = image_of(vec![entry("1"), entry("2"), entry("absent")]);
    node.ask(json!({ "reg.example/app": with_secrets(image, &["pull", "broken"]) })).await;
    node.secret("pull", &docker_config("reg.example", "robot", PASSWORD)).await;
    node.raw_secret("broken", format!("{{ \"auths\": {PASSWORD} ").as_bytes()).await;
    node.start();
    assert_eq!(node.settled(3).await.failed, 3);
    pass(120.0).await;
    node.stop().await;
    let status = serde_json::to_string(&node.status().await).unwrap();
    let events = serde_json::to_string(&node.events().await).unwrap();
    let places =
        [("status", status), ("events", events), ("metrics", node.metrics.encode()), ("log", log.text())];
    for (place, text) in &places {
        for spelling in spellings() {
            assert!(!text.contains(&spelling), "the {place} has {spelling}");
        }
    }
    let [(_, status), (_, events), _, (_, log)] = places;
    assert!(status.contains("cannot pull") && events.contains("cannot pull"), "there was something to find");
    assert!(log.contains("TRACE") && log.contains("attempting"), "the log was read: {log:.3000}");
}
