//! The open connections. Their number is bounded: a newcomer replaces the connection that has been idle for longest,
//! strangers before known clients, so half-open connections, however many, keep nobody out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::connection::{self, Door};
use super::limits::Limits;

/// The open connections. Clones share them.
#[derive(Clone, Debug)]
pub struct Connections {
    limits: Limits,
    table: Arc<Mutex<Table>>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: BTreeMap<u64, (Arc<Activity>, AbortHandle)>,
}

/// Whether there is a place for a newcomer.
enum Place {
    Free,
    /// Not yet: the connection that has been idle for longest has been so only since this time.
    TakenBySomeoneNew(Instant),
    /// No: every connection has a request under way.
    Full,
}

impl Connections {
    pub fn new(limits: Limits) -> Self {
        Self { limits, table: Arc::default(), count: watch::Sender::new(0) }
    }

    /// Accepts a connection. If all places are taken, an idle connection makes way; if none is idle, the newcomer is
    /// turned away.
    pub async fn admit(&self, stream: TcpStream, door: &Arc<Door>) {
        let mut count = self.count.subscribe();
        loop {
            let since = match self.place() {
                Place::Free => break,
                Place::Full => return,
                Place::TakenBySomeoneNew(since) => since,
            };
            // Every connection gets a moment to send a request. Until then newcomers wait in the system's queue.
            let _either = timeout_at(since + self.limits.making_way, count.changed()).await;
        }
        self.seat(stream, door);
    }

    /// Finds or makes a place for one more.
    fn place(&self) -> Place {
        let mut table = self.lock();
        if table.open.len() < self.limits.connections {
            return Place::Free;
        }
        let quiet = table.open.iter().filter_map(|(number, (activity, _))| {
            let (is_known, since) = activity.quiet()?;
            Some((is_known, since, *number))
        });
        let Some((_, since, number)) = quiet.min() else { return Place::Full };
        if since.elapsed() < self.limits.making_way {
            return Place::TakenBySomeoneNew(since);
        }
        if let Some((_, task)) = table.open.remove(&number) {
            task.abort();
        }
        Place::Free
    }

    fn seat(&self, stream: TcpStream, door: &Arc<Door>) {
        let mut table = self.lock();
        table.next += 1;
        let number = table.next;
        let activity = Arc::new(Activity::new());
        let seat = Seat { connections: self.clone(), number };
        let serving = connection::serve(stream, door.clone(), activity.clone());
        let task = tokio::spawn(async move {
            let _seat = seat;
            serving.await;
        });
        table.open.insert(number, (activity, task.abort_handle()));
        self.count.send_replace(table.open.len());
    }

    pub fn count(&self) -> usize {
        self.lock().open.len()
    }

    /// Waits until no connection is open.
    pub async fn all_gone(&self) {
        let mut count = self.count.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    /// Closes all connections.
    pub fn close(&self) {
        for (_, task) in self.lock().open.values() {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's entry in the table, removed however its task ends.
struct Seat {
    connections: Connections,
    number: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.connections.lock();
        table.open.remove(&self.number);
        self.connections.count.send_replace(table.open.len());
    }
}

/// What a connection is doing.
#[derive(Debug)]
pub struct Activity(Mutex<Requests>);

#[derive(Clone, Copy, Debug)]
struct Requests {
    under_way: usize,
    /// Whether one of the requests had the token.
    is_known: bool,
    quiet_since: Instant,
}

/// A request under way; dropping it ends the request.
#[derive(Debug)]
pub struct UnderWay(Arc<Activity>);

impl Activity {
    fn new() -> Self {
        Self(Mutex::new(Requests { under_way: 0, is_known: false, quiet_since: Instant::now() }))
    }

    /// Counts a request, and remembers whether it had the token.
    pub fn begin(self: &Arc<Self>, is_known: bool) -> UnderWay {
        let mut requests = self.lock();
        requests.under_way += 1;
        requests.is_known |= is_known;
        UnderWay(self.clone())
    }

    /// Whether the client is known, and since when it has been idle; none while it has a request under way.
    pub fn quiet(&self) -> Option<(bool, Instant)> {
        let requests = self.lock();
        (requests.under_way == 0).then_some((requests.is_known, requests.quiet_since))
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut requests = self.0.lock();
        requests.under_way -= 1;
        requests.quiet_since = Instant::now();
    }
}
