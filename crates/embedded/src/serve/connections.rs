//! Who is connected. The number is bounded: a newcomer takes the place of whoever has been without a request for
//! longest, so half-open connections, however many, keep nobody out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::connection::{self, Door};

/// The open connections. Clones are the same.
#[derive(Clone, Debug)]
pub struct Connections {
    limit: usize,
    table: Arc<Mutex<Table>>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: BTreeMap<u64, (Arc<Activity>, AbortHandle)>,
}

/// What a connection is doing.
#[derive(Debug)]
pub struct Activity(Mutex<Requests>);

#[derive(Clone, Copy, Debug)]
struct Requests {
    under_way: usize,
    has_had_one: bool,
    quiet_since: Instant,
}

/// A request under way; dropping it ends the request.
#[derive(Debug)]
pub struct UnderWay(Arc<Activity>);

impl Connections {
    /// None yet, and never more than this.
    pub fn new(limit: usize) -> Self {
        Self { limit, table: Arc::default(), count: watch::Sender::new(0) }
    }

    /// Takes a connection in, if there is a place for it or one can be made.
    pub fn admit(&self, stream: TcpStream, door: &Arc<Door>) {
        let mut table = self.lock();
        if table.open.len() >= self.limit && !table.drop_quietest() {
            return;
        }
        table.next += 1;
        let number = table.next;
        let activity = Arc::new(Activity::new());
        let place = Place { connections: self.clone(), number };
        let task = connection::serve(stream, door.clone(), activity.clone());
        let task = tokio::spawn(async move {
            let _place = place;
            task.await;
        });
        table.open.insert(number, (activity, task.abort_handle()));
        self.count.send_replace(table.open.len());
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().open.len()
    }

    /// Waits until there are none.
    pub async fn all_gone(&self) {
        let mut count = self.count.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    /// Ends all of them.
    pub fn close(&self) {
        for (_, task) in self.lock().open.values() {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Ends the connection that has been without a request for longest; says whether there was one.
    fn drop_quietest(&mut self) -> bool {
        let quiet = self
            .open
            .iter()
            .filter_map(|(number, (activity, _))| activity.quiet_since().map(|since| (since, *number)));
        let Some((_, number)) = quiet.min() else { return false };
        if let Some((_, task)) = self.open.remove(&number) {
            task.abort();
        }
        true
    }
}

/// A connection's place in the table, given up however its task ends.
struct Place {
    connections: Connections,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.connections.lock();
        table.open.remove(&self.number);
        self.connections.count.send_replace(table.open.len());
    }
}

impl Activity {
    fn new() -> Self {
        Self(Mutex::new(Requests { under_way: 0, has_had_one: false, quiet_since: Instant::now() }))
    }

    /// Notes a request.
    pub fn begin(self: &Arc<Self>) -> UnderWay {
        let mut requests = self.lock();
        requests.under_way += 1;
        requests.has_had_one = true;
        UnderWay(self.clone())
    }

    /// Whether there was ever a request.
    pub fn has_had_request(&self) -> bool {
        self.lock().has_had_one
    }

    /// Since when there is no request; none while there is one.
    pub fn quiet_since(&self) -> Option<Instant> {
        let requests = self.lock();
        (requests.under_way == 0).then_some(requests.quiet_since)
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
