//! Writes one piece of content. It grows at its end only, and what was written stays under its lease when the writer goes away.

use std::collections::BTreeMap;

use futures::SinkExt as _;
use futures::channel::mpsc;
use tonic::{Code, Status, Streaming};

use super::{Blob, ContentStore, Lease, leased, reference};
use crate::error::CallError;
use crate::proto::content::{WriteAction, WriteContentRequest, WriteContentResponse};

/// At most this many messages wait to be sent; each is answered before the next.
const MESSAGES: usize = 1;

/// What came of opening a piece for writing.
pub enum Opened {
    /// It is there, and the lease keeps it.
    Present,
    /// Somebody else writes it at the moment.
    Busy,
    /// It can be written.
    Ingest(Box<Ingest>),
}

/// A piece that is being written. Dropping it leaves what was written, and the next writer goes on there.
pub struct Ingest {
    store: ContentStore,
    lease: Lease,
    blob: Blob,
    offset: u64,
    requests: mpsc::Sender<WriteContentRequest>,
    answers: Streaming<WriteContentResponse>,
}

impl ContentStore {
    /// Opens a piece for writing, where an earlier writer stopped.
    pub async fn ingest(&self, lease: &Lease, blob: &Blob) -> Result<Opened, CallError> {
        let (mut requests, messages) = mpsc::channel(MESSAGES);
        let stat = message(WriteAction::Stat, blob, 0);
        // The receiver is still here.
        drop(requests.send(stat).await);
        let answers = match self.content().write(leased(messages, lease)?).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return refused(&status),
        };
        let (store, lease, blob) = (self.clone(), lease.clone(), blob.clone());
        let mut ingest = Ingest { store, lease, blob, offset: 0, requests, answers };
        match ingest.answer().await {
            Ok(offset) => ingest.offset = offset,
            Err(status) => return refused(&status),
        }
        if ingest.offset > ingest.blob.size {
            // It cannot become this piece any more.
            let digest = ingest.blob.digest.clone();
            drop(ingest);
            self.abort(&digest).await?;
            return Err(CallError::odd_answer(&format!("more was written of {digest} than its size")));
        }
        Ok(Opened::Ingest(Box::new(ingest)))
    }
}

impl Ingest {
    /// How many bytes are written.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether all bytes are written.
    pub fn is_complete(&self) -> bool {
        self.offset == self.blob.size
    }

    /// Writes the next bytes.
    pub async fn append(&mut self, bytes: Vec<u8>) -> Result<(), CallError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = self.offset + bytes.len() as u64;
        // With the offset 0, containerd would empty an ingest that has bytes. It has none then, because the offset is its own.
        let request = WriteContentRequest {
            data: bytes,
            expected: String::new(),
            ..message(WriteAction::Write, &self.blob, self.offset)
        };
        let offset = self.ask(request).await.map_err(|status| CallError::from_status(&status))?;
        if offset != end {
            return Err(CallError::odd_answer(&format!(
                "containerd has {offset} bytes of {} instead of {end}",
                self.blob.digest
            )));
        }
        self.offset = offset;
        Ok(())
    }

    /// Completes the piece, if its bytes have its digest. Otherwise everything that was written is discarded.
    pub async fn commit(mut self, labels: BTreeMap<String, String>) -> Result<(), CallError> {
        let request = WriteContentRequest { labels, ..message(WriteAction::Commit, &self.blob, self.offset) };
        let status = match self.ask(request).await {
            Ok(_) => return Ok(()),
            // Somebody else was quicker.
            Err(status) if status.code() == Code::AlreadyExists => return self.join().await,
            Err(status) => status,
        };
        let error = CallError::from_status(&status);
        if !error.is_runtime_away() {
            let (store, digest) = (self.store.clone(), self.blob.digest.clone());
            drop(self);
            // Otherwise every later writer would go on after the wrong bytes.
            store.abort(&digest).await?;
        }
        Err(error)
    }

    /// Puts what somebody else has completed under the lease, which a commit in vain does not.
    async fn join(self) -> Result<(), CallError> {
        let Self { store, lease, blob, requests, answers, .. } = self;
        drop((requests, answers));
        match store.ingest(&lease, &blob).await? {
            Opened::Present => Ok(()),
            Opened::Busy | Opened::Ingest(_) => Err(CallError::odd_answer(&format!(
                "somebody else completed {} and removed it again",
                blob.digest
            ))),
        }
    }

    async fn ask(&mut self, request: WriteContentRequest) -> Result<u64, Status> {
        // If the stream has ended, its end says why.
        drop(self.requests.send(request).await);
        self.answer().await
    }

    async fn answer(&mut self) -> Result<u64, Status> {
        let answer = self.answers.message().await?;
        let answer =
            answer.ok_or_else(|| Status::unavailable("containerd ended a write without an answer"))?;
        Ok(u64::try_from(answer.offset).unwrap_or(0))
    }
}

fn message(action: WriteAction, blob: &Blob, offset: u64) -> WriteContentRequest {
    WriteContentRequest {
        action: action.into(),
        r#ref: reference(&blob.digest),
        total: i64::try_from(blob.size).unwrap_or(i64::MAX),
        expected: blob.digest.clone(),
        offset: i64::try_from(offset).unwrap_or(i64::MAX),
        ..WriteContentRequest::default()
    }
}

fn refused(status: &Status) -> Result<Opened, CallError> {
    match status.code() {
        Code::AlreadyExists => Ok(Opened::Present),
        // Other reasons for this code mean that containerd itself is away.
        Code::Unavailable if status.message().contains("locked") => Ok(Opened::Busy),
        _ => Err(CallError::from_status(status)),
    }
}
