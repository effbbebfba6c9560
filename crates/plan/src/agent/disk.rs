//! When a filesystem has too little room to pull (the disk guard), and how that is said.
//!
//! The kubelet collects images at 85 % used and evicts pods below 15 % free. The default floor lies above both, so
//! that warming an image never causes either.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::amount::{self, scaled, share, tenths};

/// Room on a filesystem, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// What programs without privileges can still write. The blocks that a filesystem reserves for root are not
    /// counted, because the kubelet does not count them either and its thresholds are what the guard stays clear of.
    pub free: u64,
    /// What the filesystem has in all.
    pub capacity: u64,
}

/// The files that a filesystem can have. An image of many small ones can use them up long before the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inodes {
    /// How many more there can be.
    pub free: u64,
    /// How many there can be in all.
    pub total: u64,
}

/// The room on one filesystem, and what has to stay free there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// The room that there is.
    pub room: Room,
    /// The same in files, on filesystems that have a limit.
    pub inodes: Option<Inodes>,
    /// What has to stay free.
    pub min_free: MinFree,
    /// Where images lie.
    pub path: Arc<str>,
}

impl DiskRoom {
    /// Whether pulls have to stop, and none may start.
    pub fn is_low(&self) -> bool {
        let are_inodes_low = |inodes: Inodes| INODES_FLOOR.is_low(inodes.free, inodes.total);
        self.min_free.is_low(self.room.free, self.room.capacity) || self.inodes().is_some_and(are_inodes_low)
    }

    /// Whether pulls that are held because room was low have to wait on.
    pub fn is_still_low(&self) -> bool {
        self.are_bytes_still_low() || self.inodes().is_some_and(are_inodes_still_low)
    }

    fn are_bytes_still_low(&self) -> bool {
        self.min_free.is_still_low(self.room.free, self.room.capacity)
    }

    /// The inodes, if they are guarded: who keeps no bytes free wants no guard at all.
    fn inodes(&self) -> Option<Inodes> {
        self.inodes.filter(|_| self.min_free.floor(self.room.capacity) > 0)
    }

    /// The inodes, if it is those that are short and not the bytes.
    fn short_inodes(&self) -> Option<Inodes> {
        self.inodes().filter(|inodes| !self.are_bytes_still_low() && are_inodes_still_low(*inodes))
    }

    /// Why a task waits.
    pub fn waiting(&self) -> String {
        if let Some(Inodes { free, total }) = self.short_inodes() {
            let (free, path) = (INODES_FLOOR.show(free, total), &self.path);
            let start = INODES_FLOOR.show_up(INODES_FLOOR.start(total), total);
            return format!(
                "waits for room: {free} of inodes free on {path}, starts at {start}; {INODES_ADVICE}"
            );
        }
        self.min_free.waiting(self.room.free, self.room.capacity, &self.path)
    }

    /// Why a running pull was stopped.
    pub fn stopped(&self) -> String {
        if let Some(Inodes { free, total }) = self.short_inodes() {
            let (free, path) = (INODES_FLOOR.show(free, total), &self.path);
            let floor = INODES_FLOOR.show_up(INODES_FLOOR.floor(total), total);
            return format!(
                "stopped for lack of room: {free} of inodes free on {path}, {floor} has to stay free; {INODES_ADVICE}"
            );
        }
        self.min_free.stopped(self.room.free, self.room.capacity, &self.path)
    }
}

fn are_inodes_still_low(inodes: Inodes) -> bool {
    INODES_FLOOR.is_still_low(inodes.free, inodes.total)
}

/// Room that pulls leave free. Written as a share (`20%`) or an amount (`10GiB`, `10Gi`, `500MB`, `500000000`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinFree {
    /// A share of the filesystem, in hundredths of a percent.
    Share(u16),
    /// An amount of bytes.
    Bytes(u64),
}

impl Default for MinFree {
    /// 20 %.
    fn default() -> Self {
        Self::Share(2000)
    }
}

/// What has to be free beyond the floor before pulls start again, as a share of the filesystem: a hundredth. Without
/// it, a pull that was stopped would start again with the first byte that is freed.
const RESUME_DIVISOR: u64 = 100;
/// On large filesystems, less than the share is enough to start again: 1 GiB.
const LARGEST_RESUME_MARGIN: u64 = 1 << 30;

impl MinFree {
    /// The bytes that have to stay free.
    pub fn floor(&self, capacity: u64) -> u64 {
        match *self {
            Self::Share(hundredths) => share(capacity, u64::from(hundredths), WHOLE),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The bytes that have to be free before pulls start again after they were held. At most the whole filesystem.
    pub fn start(&self, capacity: u64) -> u64 {
        let margin = (capacity / RESUME_DIVISOR).min(LARGEST_RESUME_MARGIN);
        let floor = self.floor(capacity);
        // Without a floor nothing is ever held.
        if floor == 0 { 0 } else { floor.saturating_add(margin).min(capacity.max(floor)) }
    }

    fn is_low(&self, free: u64, capacity: u64) -> bool {
        free < self.floor(capacity)
    }

    fn is_still_low(&self, free: u64, capacity: u64) -> bool {
        free < self.start(capacity)
    }

    fn waiting(&self, free: u64, capacity: u64, path: &str) -> String {
        let (free, start) = (self.show(free, capacity), self.show_up(self.start(capacity), capacity));
        format!("waits for room: {free} free on {path}, starts at {start}; {ADVICE}")
    }

    fn stopped(&self, free: u64, capacity: u64, path: &str) -> String {
        let (free, floor) = (self.show(free, capacity), self.show_up(self.floor(capacity), capacity));
        format!("stopped for lack of room: {free} free on {path}, {floor} has to stay free; {ADVICE}")
    }

    /// An amount in the unit that the floor was given in, rounded down.
    fn show(self, bytes: u64, capacity: u64) -> String {
        match self {
            Self::Share(_) => tenths(share(1000, bytes, capacity), "%"),
            Self::Bytes(_) => amount::show(bytes),
        }
    }

    /// The same rounded up, for what has to be reached.
    fn show_up(self, bytes: u64, capacity: u64) -> String {
        match self {
            Self::Share(_) => {
                let down = share(1000, bytes, capacity);
                let is_exact = u128::from(down) * u128::from(capacity) == u128::from(bytes) * 1000;
                tenths(down + u64::from(!is_exact), "%")
            }
            Self::Bytes(_) => amount::show_up(bytes),
        }
    }
}

/// The share of inodes that has to stay free, twice that below which the kubelet evicts pods. It is not configurable: inodes are
/// short on no filesystem that was made for containers.
const INODES_FLOOR: MinFree = MinFree::Share(1000);
const INODES_ADVICE: &str = "remove unused images or other files";
const ADVICE: &str = "remove unused images or lower --min-free";
/// All of a share, in hundredths of a percent.
const WHOLE: u64 = 10_000;

/// A text that says neither a share nor an amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseMinFreeError(String);

impl std::error::Error for ParseMinFreeError {}

impl fmt::Display for ParseMinFreeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            formatter,
            "cannot read {text:?} as room to keep free; write a share below 100% such as 20% or an amount such as 10GiB"
        )
    }
}

impl FromStr for MinFree {
    type Err = ParseMinFreeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let (number, unit) = amount::split(trimmed);
        let parsed = if unit == "%" {
            scaled(number, 100)
                .filter(|hundredths| *hundredths < WHOLE)
                .and_then(|h| u16::try_from(h).ok())
                .map(Self::Share)
        } else {
            amount::factor(unit).and_then(|factor| scaled(number, factor)).map(Self::Bytes)
        };
        parsed.ok_or_else(|| ParseMinFreeError(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests;
