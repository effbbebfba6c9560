//! Time zones, found by their exact names.
//!
//! The zones are those that are built in, not those of the machine: a schedule means the same wherever it is read, and the
//! program runs in images that have no zones.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Where nobody says anything else.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// The zone of this name in the tz database. Names are exact there; a program that runs anywhere has no local time of
    /// its own, so `Local` is UTC.
    pub fn find(name: &str) -> Option<Self> {
        match name {
            "" | "UTC" | "Local" => Some(Self::utc()),
            _ => ZONES.get(name).ok().filter(|zone| zone.iana_name() == Some(name)).map(Self),
        }
    }

    /// Seconds by which clocks are ahead of UTC at this second; `None` outside of all calendars.
    pub(super) fn offset(&self, second: i64) -> Option<i64> {
        let at = Timestamp::from_second(second).ok()?;
        Some(i64::from(self.0.to_offset(at).seconds()))
    }

    /// What clocks show there, with the offset from UTC: `2026-03-29T03:00:00+02:00`.
    pub fn show(&self, at: Timestamp) -> String {
        at.display_with_offset(self.0.to_offset(at)).to_string()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }
}
