//! One plugin with its cache. Requests that could share an answer wait for one run instead of starting their own:
//!
//! ```text
//! image a ─▶ run for a ────▶ answer is for the registry ─▶ cached
//! image b ─▶ waits for it ─▶ covered, done        (otherwise: a run for b alone)
//! ```
//!
//! The scope of answers is unknown before the first one; until then all requests share one run. A run that nobody waits
//! for is dropped, and its process with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use prewarm_api::reference::ImageRef;
use tokio::time::Instant;

use super::cache::Cache;
use super::config::Provider;
use super::exec;
use super::response::{self, Answer, Key, Scope};
use crate::pattern::Fit;

/// One plugin with its cache.
#[derive(Clone)]
pub(super) struct Plugin {
    inner: Arc<Inner>,
}

struct Inner {
    provider: Provider,
    program: PathBuf,
    time_limit: Duration,
    state: Mutex<State>,
}

struct State {
    cache: Cache,
    flights: BTreeMap<Key, WeakShared<BoxFuture<'static, Landed>>>,
    /// The scope of the last answer.
    scope: Scope,
}

/// A finished run: its image, and its answer or the sentence that says why there is none.
#[derive(Clone)]
struct Landed {
    asked: ImageRef,
    outcome: Result<Arc<Answer>, Arc<str>>,
}

impl Plugin {
    pub(super) fn new(provider: Provider, program: PathBuf, time_limit: Duration) -> Self {
        let state = State { cache: Cache::default(), flights: BTreeMap::new(), scope: Scope::Global };
        Self { inner: Arc::new(Inner { provider, program, time_limit, state: Mutex::new(state) }) }
    }

    /// Whether the config assigns this image to this plugin.
    pub(super) fn is_for(&self, image: &ImageRef) -> bool {
        self.inner.provider.match_images.iter().any(|pattern| pattern.fit(image) == Some(Fit::Named))
    }

    /// The answer for an image: from the cache, from a run under way, or from a run of its own.
    pub(super) async fn answer(&self, image: &ImageRef) -> Result<Arc<Answer>, Arc<str>> {
        // The first run may reveal the scope of answers, so the second may be shared better; the last is never shared.
        for learns in [true, true, false] {
            let scope = if learns { self.inner.state().scope } else { Scope::Image };
            if let Some(outcome) = self.ask(image, scope).await {
                return outcome;
            }
        }
        Err("no run was for this image".into())
    }

    /// Shares a run with everybody within the same scope. `None` if its answer is not for this image.
    async fn ask(&self, image: &ImageRef, scope: Scope) -> Option<Result<Arc<Answer>, Arc<str>>> {
        let flight = match self.board(image, scope) {
            Ok(cached) => return Some(Ok(cached)),
            Err(flight) => flight,
        };
        let Landed { asked, outcome } = flight.await;
        let holds_for_both = |answer: &Arc<Answer>| answer.scope.key(&asked) == answer.scope.key(image);
        let is_covered = match &outcome {
            Ok(answer) => holds_for_both(answer),
            Err(_) => response::bare_name(&asked) == response::bare_name(image),
        };
        is_covered.then_some(outcome)
    }

    fn board(
        &self,
        image: &ImageRef,
        scope: Scope,
    ) -> Result<Arc<Answer>, Shared<BoxFuture<'static, Landed>>> {
        let key = scope.key(image);
        let mut state = self.inner.state();
        if let Some(answer) = state.cache.find(image, Instant::now()) {
            return Ok(answer);
        }
        if let Some(flight) = state.flights.get(&key).and_then(WeakShared::upgrade) {
            return Err(flight);
        }
        let flight = fly(Arc::clone(&self.inner), image.clone(), key.clone()).boxed().shared();
        state.flights.retain(|_, flight| flight.upgrade().is_some());
        state.flights.extend(flight.downgrade().map(|weak| (key, weak)));
        Err(flight)
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn fly(plugin: Arc<Inner>, image: ImageRef, key: Key) -> Landed {
    let outcome = run(&plugin, &image).await;
    let mut state = plugin.state();
    state.flights.remove(&key);
    if let Ok(answer) = &outcome {
        state.scope = answer.scope;
        state.cache.keep(&image, answer, Instant::now());
    }
    drop(state);
    Landed { asked: image, outcome }
}

async fn run(plugin: &Inner, image: &ImageRef) -> Result<Arc<Answer>, Arc<str>> {
    let Inner { provider, program, time_limit, .. } = plugin;
    let failed =
        |reason: String| -> Arc<str> { format!("credential plugin {}: {reason}", provider.name).into() };
    let request = response::request(provider, image);
    let output = exec::run(program, provider, &request, *time_limit)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let answer = response::decode(provider, &output).map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(answer))
}
