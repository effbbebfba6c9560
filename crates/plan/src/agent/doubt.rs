//! Which image harms the node: kills the runtime, or fills the disk. When several are pulled at that moment nobody knows, so
//! those in doubt are pulled alone, and what happens then is their own.
//!
//! ```text
//! the runtime stops            1   all that are pulled go on as before; it may have been anything
//!                              2   from here on it is pulled alone
//!                              3   alone: it has failed
//!                              6   it has failed, whether or not it was alone
//! the disk runs out of room    1   alone: it has failed; else all that are pulled wait for room, and are pulled alone
//!                              3   of those that were there each time, the one that grew most has failed
//! ```

use std::time::Duration;

use prewarm_api::kruise::FailureClass;

use super::wait::Alone;
use super::worklist::Failure;

/// From this interruption on, an image is pulled alone.
const SUSPECT_AFTER: u32 = 2;
/// With this interruption, an image that is pulled alone has failed.
const GUILTY_AFTER: u32 = 3;
/// With this interruption, an image has failed although others were pulled beside it: the runtime may stop later than the time
/// for which an image stays alone.
const GUILTY_ANYHOW_AFTER: u32 = 6;
/// An image that was there this often when room ran out may be the one that uses it up, although it was never alone: one that
/// is larger than the disk can take longer than the time for which it stays alone.
const LARGE_AFTER: u32 = 3;
/// How long an image stays alone. Whoever has waited so long for it goes on beside it, because it may take a day.
pub const ALONE_FOR: Duration = Duration::from_mins(10);

/// What speaks against an image. Only the interruptions are reported, so only those survive a restart of the agent: a disk
/// runs full again if need be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// How often the runtime stopped during its attempts.
    pub interruptions: u32,
    /// How often the disk ran out of room while it was pulled beside others.
    pub shortages: u32,
}

impl Doubt {
    /// Why it has to be pulled alone, if so.
    pub fn alone(self) -> Option<Alone> {
        if self.interruptions >= SUSPECT_AFTER {
            return Some(Alone::Stops { times: self.interruptions });
        }
        (self.shortages > 0).then_some(Alone::Room)
    }

    /// Notes that the runtime stopped, and returns whether that was the image's doing.
    pub fn interrupted(&mut self, is_alone: bool) -> bool {
        self.interruptions = self.interruptions.saturating_add(1);
        let most = if is_alone { GUILTY_AFTER } else { GUILTY_ANYHOW_AFTER };
        self.interruptions >= most
    }

    /// Notes that room ran out beside others, and returns whether that may be the image's doing.
    pub fn ran_short(&mut self) -> bool {
        self.shortages = self.shortages.saturating_add(1);
        self.shortages >= LARGE_AFTER
    }
}

/// The failure of an image that stops the runtime.
pub fn crash(interruptions: u32) -> Failure {
    Failure {
        class: FailureClass::RuntimeCrash,
        text: format!(
            "it stopped {interruptions} times while it pulled this image, which was pulled alone from the third time on"
        ),
        problems: Vec::new(),
        advice: "see the container runtime's log on this node, and do not pull the image before that is understood"
            .to_owned(),
        is_registry_overloaded: false,
        is_final: true,
        fingerprint: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_suspected_after_two_interruptions_and_guilty_of_the_third_alone() {
        let mut doubt = Doubt::default();
        assert_eq!((doubt.interrupted(true), doubt.alone()), (false, None));
        assert_eq!((doubt.interrupted(true), doubt.alone()), (false, Some(Alone::Stops { times: 2 })));
        assert!(!doubt.interrupted(false), "it was not alone");
        assert!(doubt.interrupted(true));
    }

    #[test]
    fn an_image_that_never_stays_alone_until_the_runtime_stops_is_guilty_in_the_end() {
        let mut doubt = Doubt::default();
        let guilty: Vec<bool> = (1..=6).map(|_| doubt.interrupted(false)).collect();
        assert_eq!(guilty, [false, false, false, false, false, true]);
    }

    #[test]
    fn an_image_that_was_pulled_when_room_ran_out_is_pulled_alone() {
        let mut doubt = Doubt::default();
        assert_eq!(doubt.alone(), None);
        assert_eq!((doubt.ran_short(), doubt.alone()), (false, Some(Alone::Room)));
        assert_eq!((doubt.ran_short(), doubt.ran_short()), (false, true));
    }
}
