//! Keeps a status small enough to be stored, whatever happened on the node.
//!
//! A status that the API server refuses is worse than one that says less. So the least valuable parts are dropped first,
//! and no more than necessary. For whom a result counts is never dropped by itself: it would then count for everybody. In
//! order: the middle of long messages, evenly; counts of bytes; the names in image IDs, which
//! repeat the key; image IDs; messages; how the pull went (progress, attempts, start). The phase,
//! version and end of a task are given up last, starting with tasks that have not begun: after a restart of the
//! agent an ended task without a status would be pulled again.

use prewarm_api::kruise::{ImageTagStatus, NodeImageStatus, PullPhase};
use prewarm_api::text::cut;

use crate::agent::message;

/// The most bytes that a status has as JSON. With the spec of 256 names and 5 tags each it fits into any API server's
/// 1.5 MiB.
pub(super) const MOST_STATUS_BYTES: usize = 600_000;
/// Messages are not shortened below this before other things go.
const SHORTEST_MESSAGE: usize = 96;
/// The schema's bound on image IDs. A longer one cannot be one.
const MOST_OF_IMAGE_ID: usize = 1024;
const MOST_OF_DIGEST: usize = 256;
/// The schema's bound on UIDs of owners.
const MOST_OF_UID: usize = 128;
/// The schema's bound on results of owners. For an owner beyond it the result does not count.
const MOST_RESULTS: usize = 1024;
/// The schema's bound on tags. A longer one is no tag, and its message says so.
const MOST_OF_TAG: usize = 256;
/// The schema's bound on the first pass's message.
const MOST_OF_FIRST_SYNC: usize = 4096;

/// The same status within the bounds of its schema and [`MOST_STATUS_BYTES`]. One that is small enough loses nothing.
pub(super) fn bounded(mut status: NodeImageStatus) -> NodeImageStatus {
    keep_to_schema(&mut status);
    shorten_messages(&mut status);
    let steps: [fn(&mut ImageTagStatus); 5] =
        [drop_bytes, drop_name_of_id, drop_id, drop_message, drop_course];
    for step in steps {
        if size(&status) <= MOST_STATUS_BYTES {
            return status;
        }
        for_each(&mut status, step);
    }
    leave_out(&mut status);
    status
}

fn keep_to_schema(status: &mut NodeImageStatus) {
    for_each(status, |tag| {
        tag.progress = tag.progress.clamp(0, 100);
        tag.failed_attempts = tag.failed_attempts.max(0);
        tag.interruptions = tag.interruptions.max(0);
        tag.bytes_done = tag.bytes_done.map(|bytes| bytes.max(0));
        tag.bytes_total = tag.bytes_total.map(|bytes| bytes.max(0));
        if tag.tag.len() > MOST_OF_TAG {
            tag.tag = cut(&tag.tag, MOST_OF_TAG);
        }
        tag.image_id = tag.image_id.take().filter(|id| id.len() <= MOST_OF_IMAGE_ID);
        tag.digest = tag.digest.take().filter(|digest| digest.len() <= MOST_OF_DIGEST);
        if let Some(results) = &mut tag.owner_results {
            results.retain(|result| result.uid.len() <= MOST_OF_UID);
            results.truncate(MOST_RESULTS);
        }
        shorten_message(tag, message::MOST_BYTES);
    });
    if let Some(message) = status.first_sync_status.as_mut().and_then(|first| first.message.as_mut()) {
        *message = cut(message, MOST_OF_FIRST_SYNC);
    }
}

/// Cuts all messages to the longest length at which the status fits, if there is one.
fn shorten_messages(status: &mut NodeImageStatus) {
    let excess = size(status).saturating_sub(MOST_STATUS_BYTES);
    if excess == 0 {
        return;
    }
    let (mut fits, mut exceeds) = (SHORTEST_MESSAGE, message::MOST_BYTES);
    while exceeds - fits > 1 {
        let middle = usize::midpoint(fits, exceeds);
        if saved(status, middle) >= excess { fits = middle } else { exceeds = middle }
    }
    for_each(status, |tag| shorten_message(tag, fits));
}

/// How many bytes a bound on messages saves.
fn saved(status: &NodeImageStatus, most: usize) -> usize {
    let messages = tags(status).flat_map(messages).filter(|message| message.len() > most);
    messages.map(|message| json(message).saturating_sub(json(&cut(message, most)))).sum()
}

/// What is said of a tag, and of it to single owners.
fn messages(tag: &ImageTagStatus) -> impl Iterator<Item = &String> {
    let of_owners = tag.owner_results.iter().flatten().filter_map(|result| result.message.as_ref());
    tag.message.iter().chain(of_owners)
}

fn shorten_message(tag: &mut ImageTagStatus, most: usize) {
    let of_owners = tag.owner_results.iter_mut().flatten().filter_map(|result| result.message.as_mut());
    for message in tag.message.iter_mut().chain(of_owners).filter(|message| message.len() > most) {
        *message = cut(message, most);
    }
}

fn drop_bytes(tag: &mut ImageTagStatus) {
    (tag.bytes_done, tag.bytes_total) = (None, None);
}

fn drop_name_of_id(tag: &mut ImageTagStatus) {
    if let Some((_, id)) = tag.image_id.as_deref().and_then(|id| id.rsplit_once('@')) {
        tag.image_id = Some(id.to_owned());
    }
}

fn drop_id(tag: &mut ImageTagStatus) {
    (tag.image_id, tag.digest) = (None, None);
}

fn drop_message(tag: &mut ImageTagStatus) {
    tag.message = None;
    tag.owner_results.iter_mut().flatten().for_each(|result| result.message = None);
}

fn drop_course(tag: &mut ImageTagStatus) {
    (tag.progress, tag.failed_attempts, tag.interruptions, tag.start_time) = (0, 0, 0, None);
}

/// Leaves out as few tags as it takes: first those that wait, then those that are pulled, then the rest; of each the
/// largest first. The counts still have them.
fn leave_out(status: &mut NodeImageStatus) {
    let mut excess = size(status).saturating_sub(MOST_STATUS_BYTES);
    let mut order: Vec<_> =
        tags(status).map(|tag| (worth(tag), usize::MAX - json(tag))).enumerate().collect();
    order.sort_by_key(|(place, (worth, smallness))| (*worth, *smallness, *place));
    let mut is_out = vec![false; order.len()];
    for (place, (_, smallness)) in order {
        if excess == 0 {
            break;
        }
        is_out[place] = true;
        excess = excess.saturating_sub(usize::MAX - smallness);
    }
    let mut place = is_out.into_iter();
    for image in status.image_statuses.iter_mut().flat_map(|images| images.values_mut()) {
        image.tags.retain(|_| !place.next().unwrap_or_default());
    }
}

/// In which order tags are kept.
fn worth(tag: &ImageTagStatus) -> u8 {
    match tag.phase {
        PullPhase::Waiting => 0,
        PullPhase::Pulling => 1,
        PullPhase::Failed => 2,
        PullPhase::Succeeded => 3,
    }
}

fn tags(status: &NodeImageStatus) -> impl Iterator<Item = &ImageTagStatus> {
    status.image_statuses.iter().flat_map(|images| images.values()).flat_map(|image| &image.tags)
}

fn for_each(status: &mut NodeImageStatus, change: impl FnMut(&mut ImageTagStatus)) {
    let images = status.image_statuses.iter_mut().flat_map(|images| images.values_mut());
    images.flat_map(|image| &mut image.tags).for_each(change);
}

fn size(status: &NodeImageStatus) -> usize {
    json(status)
}

/// The size of a value as JSON, which is counted and not kept.
fn json(value: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value)
        .expect("a status has only texts as keys, and counting cannot fail");
    count.0
}

#[cfg(test)]
mod tests;
