//! One blob, piece by piece, from as many mirrors as it takes.
//!
//! ```text
//! mirror 1   ███████▒ stalls        ┌── next round, if this one brought enough ──┐
//! mirror 2           404            │                                            ▼
//! mirror 3           ██████▒ breaks off                             mirror 1     ████████ verified, then the last piece
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::Mirrors;
use super::exchange::Answer;
use super::failure::{Failure, FetchError, Tried};
use crate::content::{Descriptor, Digest, Hasher};

/// What a round through all mirrors has to bring for another one, in bytes. A proxy that cuts every answer short is
/// borne; one that gives a byte at a time is not.
const MIN_GAIN: u64 = 16 * 1024;
/// What a mirror has to bring within a stretch of time for the next one to wait, in bytes. The slowest links that anybody
/// pulls images over bring more.
const LEAST: u64 = 64 * 1024;
/// How long a stretch is.
const STRETCH: Duration = Duration::from_mins(1);

/// A blob on its way.
pub struct Blob {
    mirrors: Mirrors,
    what: String,
    path: String,
    digest: Digest,
    size: u64,
    /// How much of it is there, with what was there before.
    position: u64,
    /// None if the first part is not known here.
    hasher: Option<Hasher>,
    current: Option<Current>,
    /// Mirrors that are still to be asked in this round.
    waiting: VecDeque<usize>,
    /// Where the round began.
    round: u64,
    /// Mirrors of which nothing more is expected.
    left: BTreeSet<usize>,
    /// Mirrors of which there are bytes in what was given on, in the order in which they began.
    served: Vec<usize>,
    failures: BTreeMap<usize, Failure>,
}

struct Current {
    mirror: usize,
    answer: Answer,
    /// Bytes of the body that are there already.
    skip: u64,
    /// How long it was waited for in the present stretch, and how many bytes came.
    stretch: (Duration, u64),
}

impl Blob {
    pub(super) fn new(
        mirrors: Mirrors,
        what: String,
        repository: &str,
        descriptor: &Descriptor,
        offset: u64,
        avoid: &BTreeSet<String>,
    ) -> Self {
        let is_asked = |number: &usize| !avoid.contains(&mirrors.hosts.mirrors[*number].to_string());
        let waiting: VecDeque<usize> = mirrors.order.present().into_iter().filter(is_asked).collect();
        let left = (0..mirrors.hosts.mirrors.len()).filter(|number| !waiting.contains(number)).collect();
        Self {
            path: format!("/{repository}/blobs/{}", descriptor.digest),
            digest: descriptor.digest.clone(),
            size: descriptor.size,
            position: offset,
            hasher: (offset == 0).then(|| descriptor.digest.hasher()),
            current: None,
            waiting,
            round: offset,
            left,
            served: Vec::new(),
            failures: BTreeMap::new(),
            mirrors,
            what,
        }
    }

    /// How much of the blob is there.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The mirrors that served some of it.
    pub fn served_by(&self) -> Vec<String> {
        self.served.iter().map(|number| self.mirrors.hosts.mirrors[*number].to_string()).collect()
    }

    /// The next bytes; none when all are there. The last ones are given on only if the whole has the right digest.
    /// It may be dropped at any time and called again.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        if self.position >= self.size {
            return self.verify().map(|()| None);
        }
        loop {
            let Some(current) = &mut self.current else {
                self.open().await?;
                continue;
            };
            let began = Instant::now();
            match current.answer.chunk(self.position).await {
                Ok(Some(bytes)) => {
                    let is_slow = current.is_slow(began.elapsed(), bytes.len() as u64);
                    let taken = self.take(bytes)?;
                    if is_slow && self.has_another() {
                        self.leave(Failure::Slow { at: self.position, least: LEAST, within: STRETCH });
                    }
                    if taken.is_some() {
                        return Ok(taken);
                    }
                }
                Ok(None) => self.leave(Failure::BrokenOff { at: self.position }),
                Err(failure) => self.leave(failure),
            }
        }
    }

    /// Takes what a mirror sent. Nothing if that has to be left out.
    fn take(&mut self, mut bytes: Bytes) -> Result<Option<Bytes>, FetchError> {
        let current = self.current.as_mut().expect("a mirror has just answered");
        let known = usize::try_from(current.skip).unwrap_or(usize::MAX).min(bytes.len());
        current.skip -= known as u64;
        let _known = bytes.split_to(known);
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() as u64 > self.size - self.position {
            self.leave(Failure::TooLong { most: self.size });
            return Ok(None);
        }
        if !self.served.contains(&current.mirror) {
            self.served.push(current.mirror);
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&bytes);
        }
        self.position += bytes.len() as u64;
        if self.position == self.size {
            self.current = None;
            self.verify()?;
        }
        Ok(Some(bytes))
    }

    fn verify(&self) -> Result<(), FetchError> {
        match &self.hasher {
            Some(hasher) if !hasher.clone().matches(&self.digest) => {
                Err(FetchError::Corrupt { what: self.what.clone(), from: self.served_by() })
            }
            _ => Ok(()),
        }
    }

    /// Asks the next mirror for the rest.
    async fn open(&mut self) -> Result<(), FetchError> {
        let Some(number) = self.waiting.front().copied() else { return self.next_round() };
        let mirror = &self.mirrors.hosts.mirrors[number];
        let asked = self.mirrors.ask(mirror, self.path.clone(), "*/*", self.position).await;
        // Only here: whoever goes before the answer asks the same mirror again.
        self.waiting.pop_front();
        match asked.and_then(|answer| self.begin(number, answer)) {
            Ok(current) => self.current = Some(current),
            Err(failure) => self.note(number, failure),
        }
        Ok(())
    }

    /// Checks that an answer begins where it should and is as long as it should be.
    fn begin(&self, mirror: usize, answer: Answer) -> Result<Current, Failure> {
        if answer.status.as_u16() == 206 {
            let range = answer.text("content-range").and_then(Range::parse);
            let range = range.ok_or(Failure::Odd("a part that does not say which"))?;
            if let Some(length) = range.total.filter(|total| *total != self.size) {
                return Err(Failure::Length { length, size: self.size });
            }
            if range.first != self.position || range.last >= self.size {
                return Err(Failure::Odd("another part than was asked for"));
            }
            return Ok(Current { mirror, answer, skip: 0, stretch: (Duration::ZERO, 0) });
        }
        match answer.length() {
            Some(length) if length != self.size => Err(Failure::Length { length, size: self.size }),
            _ => Ok(Current { mirror, answer, skip: self.position, stretch: (Duration::ZERO, 0) }),
        }
    }

    /// Whether there is a mirror besides the one that answers of which anything can be expected.
    fn has_another(&self) -> bool {
        let present = self.current.as_ref().map(|current| current.mirror);
        let mut all = 0..self.mirrors.hosts.mirrors.len();
        all.any(|number| Some(number) != present && !self.left.contains(&number))
    }

    /// Begins again with the first mirror, if that promises anything.
    fn next_round(&mut self) -> Result<(), FetchError> {
        let all = self.mirrors.order.present().into_iter();
        let hopeful: VecDeque<usize> = all.filter(|number| !self.left.contains(number)).collect();
        if hopeful.is_empty() || self.position - self.round < MIN_GAIN {
            return Err(self.failed());
        }
        self.waiting = hopeful;
        self.round = self.position;
        Ok(())
    }

    fn failed(&self) -> FetchError {
        if self.failures.is_empty() && !self.mirrors.hosts.mirrors.is_empty() {
            let why = "every mirror has sent wrong content of it; repair or remove them".to_owned();
            return FetchError::NoMirror { what: self.what.clone(), why };
        }
        if self.failures.is_empty() {
            return self.mirrors.none(self.what.clone());
        }
        let mirrors = &self.mirrors.hosts.mirrors;
        let tried = self.failures.iter();
        let tried = tried.map(|(number, failure)| Tried {
            mirror: mirrors[*number].to_string(),
            failure: failure.clone(),
        });
        FetchError::Failed { what: self.what.clone(), tried: tried.collect() }
    }

    fn leave(&mut self, failure: Failure) {
        if let Some(current) = self.current.take() {
            self.note(current.mirror, failure);
        }
    }

    fn note(&mut self, mirror: usize, failure: Failure) {
        self.mirrors.order.note(mirror, &failure);
        if !failure.is_passing() {
            self.left.insert(mirror);
        }
        self.failures.insert(mirror, failure);
    }
}

impl Current {
    /// Notes what came after which wait, and returns whether that was too little in a whole stretch. Only waits count: time in
    /// which nobody wanted more says nothing about a mirror.
    fn is_slow(&mut self, waited: Duration, came: u64) -> bool {
        let (wait, bytes) = (self.stretch.0 + waited, self.stretch.1 + came);
        self.stretch = if bytes >= LEAST { (Duration::ZERO, 0) } else { (wait, bytes) };
        self.stretch.0 >= STRETCH
    }
}

/// A `Content-Range`.
struct Range {
    first: u64,
    last: u64,
    total: Option<u64>,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let total = if total == "*" { None } else { Some(total.parse().ok()?) };
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last).then_some(Self { first, last, total })
    }
}
