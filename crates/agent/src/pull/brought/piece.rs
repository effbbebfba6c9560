//! One piece of an image: it waits for its turn and a place, and comes from as many mirrors as it takes.
//!
//! What several images share is brought by one task at a time. A piece that waits for another task holds no place, so that the other
//! pieces of its image come meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prewarm_mirror::{Descriptor, FetchError};
use prewarm_runtime::{Blob, Ingest, Opened};
use tokio::sync::SemaphorePermit;
use tokio::time::sleep;
use tracing::debug;

use super::Way;
use super::suspects::Tries;
use crate::pull::mirrors::Trouble;
use crate::pull::turns::Turn;

/// So much is held in memory of each piece before it is written.
const CHUNK: usize = 256 * 1024;
/// The pause before a piece is tried again that somebody outside this agent writes, and the longest one.
const BUSY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// A place among the pieces that are under way.
pub(super) type Place<'a> = Option<SemaphorePermit<'a>>;

impl Way<'_> {
    /// The turn for a piece, and a place.
    pub(super) async fn turn(&self, blob: &Blob) -> (Turn, Place<'_>) {
        let turns = &self.bringer.turns;
        let place = self.place().await;
        if let Some(turn) = turns.try_take(&blob.digest) {
            return (turn, place);
        }
        drop(place);
        let turn = turns.take(&blob.digest).await;
        (turn, self.place().await)
    }

    async fn place(&self) -> Place<'_> {
        Some(self.places.acquire().await.expect("places are never closed"))
    }

    /// Brings one piece, from as many mirrors as it takes.
    pub(super) async fn part(&self, part: &Descriptor) -> Result<(), Trouble> {
        let blob = Blob { digest: part.digest.to_string(), size: part.size };
        let (_turn, mut place) = self.turn(&blob).await;
        let mirrors = &self.bringer.mirrors.hosts().mirrors;
        let mut tries = Tries::new(mirrors.iter().map(ToString::to_string).collect(), &self.liars);
        loop {
            let Some(mut ingest) = self.open(&blob, &mut place).await? else {
                self.done.fetch_add(part.size, Ordering::Relaxed);
                return Ok(());
            };
            let begun_at = ingest.offset();
            self.done.fetch_add(begun_at, Ordering::Relaxed);
            let filled = self.fill(&mut ingest, part, &tries.avoided()).await;
            let written = ingest.offset();
            let error = match filled {
                Ok(()) => match ingest.commit(self.labels()).await {
                    Ok(()) => return Ok(()),
                    // An earlier attempt wrote something wrong, and nobody knows which mirror that was from.
                    Err(error) if begun_at > 0 && !error.is_runtime_away() => {
                        debug!(digest = blob.digest, %error, "what was begun earlier is discarded");
                        self.done.fetch_sub(written, Ordering::Relaxed);
                        continue;
                    }
                    Err(error) => return Err(Trouble::Call(error)),
                },
                Err(Trouble::Fetch(error)) => error,
                Err(other) => return Err(other),
            };
            drop(ingest);
            if !tries.keeps(&error) {
                self.bringer.store.abort(&blob.digest).await.map_err(Trouble::Call)?;
                self.done.fetch_sub(written, Ordering::Relaxed);
            }
            tries.next(error).map_err(Trouble::Fetch)?;
        }
    }

    /// Writes what is missing of a piece as it arrives.
    async fn fill(
        &self,
        ingest: &mut Ingest,
        part: &Descriptor,
        avoided: &BTreeSet<String>,
    ) -> Result<(), Trouble> {
        let repository = self.reference.repository();
        let mut arriving = self.bringer.mirrors.blob(repository, part, ingest.offset(), avoided);
        let mut chunk = Vec::with_capacity(CHUNK);
        loop {
            let next = arriving.next().await;
            if let Ok(Some(bytes)) = &next {
                chunk.extend_from_slice(bytes);
            }
            let is_wrong = matches!(next, Err(FetchError::Corrupt { .. }));
            if chunk.len() >= CHUNK || (!matches!(next, Ok(Some(_))) && !is_wrong) {
                let size = chunk.len() as u64;
                ingest.append(std::mem::take(&mut chunk)).await.map_err(Trouble::Call)?;
                self.done.fetch_add(size, Ordering::Relaxed);
            }
            if next.map_err(Trouble::Fetch)?.is_none() {
                return Ok(());
            }
        }
    }

    /// Opens a piece as soon as nobody else writes it. Nothing if it is there.
    pub(super) async fn open<'a>(
        &'a self,
        blob: &Blob,
        place: &mut Place<'a>,
    ) -> Result<Option<Ingest>, Trouble> {
        let mut pause = BUSY.0;
        loop {
            match self.bringer.store.ingest(&self.lease, blob).await.map_err(Trouble::Call)? {
                Opened::Present => return Ok(None),
                Opened::Ingest(ingest) => return Ok(Some(*ingest)),
                Opened::Busy => {
                    *place = None;
                    sleep(pause).await;
                    pause = (pause * 2).min(BUSY.1);
                    *place = self.place().await;
                }
            }
        }
    }
}
