//! Why tasks wait: as types for decisions, as short reasons for metrics, and as sentences for people, all in one place.

use std::time::Duration;

use super::disk::DiskRoom;

/// Why nothing starts on the whole node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The agent stops; the next one goes on.
    Stopping,
    /// The container runtime does not answer.
    NoRuntime,
    /// What answers is not the runtime that the node's kubelet uses.
    NotTheNodes,
}

/// Why one task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Nothing starts on the node.
    Held(Hold),
    /// The runtime went away in the middle of an attempt.
    RuntimeGone,
    /// The disk has too little room.
    NoRoom(DiskRoom),
    /// Its registry asked for fewer requests.
    SlowRegistry {
        /// The registry's host.
        registry: String,
    },
    /// As many pulls run as may.
    NoPlace {
        /// How many pulls may run at once.
        places: usize,
    },
    /// Either it or another image is pulled alone.
    Alone(Alone),
    /// The node removed the image again and again, so it is left alone for a while.
    Removed {
        /// How often the node removed it.
        times: u32,
        /// For how long it is left alone.
        rest: Duration,
    },
}

/// Why a task waits because of an image that is pulled while nothing else is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// It is pulled alone, because the runtime stopped during its attempts.
    Stops {
        /// How often.
        times: u32,
    },
    /// It is pulled alone, because the disk ran out of room during one of its attempts.
    Room,
    /// Another image is pulled alone.
    Another,
}

/// The short reasons.
mod reason {
    pub const PLACE: &str = "place";
    pub const ROOM: &str = "room";
    pub const RUNTIME: &str = "runtime";
    pub const REGISTRY: &str = "registry";
    pub const RETRY: &str = "retry";
}

impl WaitReason {
    /// A short fixed label for metrics.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Held(_) | Self::RuntimeGone => reason::RUNTIME,
            Self::NoRoom(_) => reason::ROOM,
            Self::SlowRegistry { .. } => reason::REGISTRY,
            Self::NoPlace { .. } | Self::Alone(_) => reason::PLACE,
            Self::Removed { .. } => reason::RETRY,
        }
    }

    /// A sentence for people.
    pub fn message(&self) -> String {
        match self {
            Self::Held(Hold::Stopping) => "waits for the agent, which is being restarted".to_owned(),
            Self::Held(Hold::NoRuntime) => "waits for the container runtime to answer".to_owned(),
            Self::Held(Hold::NotTheNodes) => {
                "waits for the container runtime that the node's kubelet uses: what \
                                              answers is another one, see the agent's /readyz and log"
                    .to_owned()
            }
            Self::RuntimeGone => "waits for the container runtime to come back".to_owned(),
            Self::NoRoom(shortage) => shortage.waiting(),
            Self::SlowRegistry { registry } => format!("waits because {registry} asked for fewer requests"),
            Self::NoPlace { places } => format!("waits for one of {places} places"),
            Self::Alone(Alone::Stops { times }) => format!(
                "waits to be pulled alone, because the container runtime stopped {times} times while it was pulled"
            ),
            Self::Alone(Alone::Room) => {
                "waits to be pulled alone, because the disk ran out of room while it was pulled".to_owned()
            }
            Self::Alone(Alone::Another) => "waits for an image that is pulled alone".to_owned(),
            Self::Removed { times, rest } => {
                let minutes = rest.as_secs() / 60;
                format!(
                    "waits {minutes} minutes because this node removed the image {times} times: it lacks room"
                )
            }
        }
    }

    /// Whether this says the same as another, apart from how much room there is: that changes all the time, and nobody
    /// needs a report of it.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::NoRoom(shortage), Self::NoRoom(other)) => shortage.path == other.path,
            _ => self == other,
        }
    }
}

/// Waiting tasks, by what they wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// For one of the pulls that may run at once.
    pub place: usize,
    /// For room on the disk.
    pub room: usize,
    /// For the runtime to answer, or for the next agent, because this one stops.
    pub runtime: usize,
    /// For a registry that asked for fewer requests.
    pub registry: usize,
    /// For the next attempt after one that failed, or after the image was lost.
    pub retry: usize,
}

impl Waits {
    /// The counts with their short reasons.
    pub const fn by_reason(self) -> [(&'static str, usize); 5] {
        [
            (reason::PLACE, self.place),
            (reason::ROOM, self.room),
            (reason::RUNTIME, self.runtime),
            (reason::REGISTRY, self.registry),
            (reason::RETRY, self.retry),
        ]
    }

    /// Counts one task: without a reason it waits for its next attempt.
    pub(super) fn add(&mut self, reason: Option<&WaitReason>) {
        let count = match reason {
            Some(WaitReason::Held(_) | WaitReason::RuntimeGone) => &mut self.runtime,
            Some(WaitReason::NoRoom(_)) => &mut self.room,
            Some(WaitReason::SlowRegistry { .. }) => &mut self.registry,
            Some(WaitReason::NoPlace { .. } | WaitReason::Alone(_)) => &mut self.place,
            Some(WaitReason::Removed { .. }) | None => &mut self.retry,
        };
        *count += 1;
    }
}

#[cfg(test)]
mod tests;
