//! Objects that are gone: names come back, also at once, and what is said of an object may come after its end.

use std::collections::{HashSet, VecDeque};

use crate::object::Uid;

/// So many objects are remembered that are gone. What is said of one after so many others have gone does not come any more.
const MOST_GONE: usize = 4096;

/// UIDs of objects that are gone, the last ones of them.
#[derive(Debug, Default)]
pub struct Gone {
    order: VecDeque<Uid>,
    uids: HashSet<Uid>,
}

impl Gone {
    /// One is gone.
    pub fn add(&mut self, uid: Uid) {
        if self.uids.insert(uid.clone()) {
            self.order.push_back(uid);
        }
        if self.order.len() > MOST_GONE
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    /// Whether this one is gone.
    pub fn has(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}
