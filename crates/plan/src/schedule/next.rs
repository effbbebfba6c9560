//! The next time that matches.
//!
//! The search walks as the Go library does, month by month, day by day, hour by hour, minute by minute, on moments and
//! not on clock faces: that decides what happens in the hours that clocks skip or repeat.

use jiff::Timestamp;

use super::Fields;
use super::zone::Zone;

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 86_400;
/// So many years are searched.
const YEARS: i64 = 5;

/// A moment, and what clocks and calendars of a zone show then.
#[derive(Clone, Copy)]
struct Moment {
    second: i64,
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    in_minute: i64,
    weekday: i64,
}

/// The first moment after this second that matches.
pub fn next(fields: &Fields, after: i64, zone: &Zone) -> Option<Timestamp> {
    if [fields.minute, fields.hour, fields.month].contains(&0) {
        // A field of commas alone matches nothing, and a walk would take years to find out.
        return None;
    }
    let mut walk = Walk { zone, now: Moment::read(after.checked_add(1)?, zone)?, is_trimmed: false };
    let last_year = walk.now.year + YEARS;
    while walk.now.year <= last_year {
        if walk.turn(fields)? {
            return Timestamp::from_second(walk.now.second).ok();
        }
    }
    None
}

/// Whether clocks and calendars match at this second.
pub fn matches(fields: &Fields, second: i64, zone: &Zone) -> bool {
    Moment::read(second, zone).is_some_and(|now| {
        now.in_minute == 0
            && has(fields.minute, now.minute)
            && has(fields.hour, now.hour)
            && has(fields.month, now.month)
            && matches_day(fields, &now)
    })
}

struct Walk<'a> {
    zone: &'a Zone,
    now: Moment,
    /// Whether what is smaller than the first step has been set to its beginning.
    is_trimmed: bool,
}

impl Walk<'_> {
    /// Walks until everything matches (`true`), or a larger unit has changed and has to be looked at again.
    fn turn(&mut self, fields: &Fields) -> Option<bool> {
        while !has(fields.month, self.now.month) {
            self.trim(|now, zone| date(now.year, now.month, 1, 0, zone))?;
            self.go(date_at(self.now, 1, 0, self.zone)?)?;
            if self.now.month == 1 {
                return Some(false);
            }
        }
        while !matches_day(fields, &self.now) {
            self.trim(|now, zone| date(now.year, now.month, now.day, 0, zone))?;
            // Where a whole day was skipped, the face of the next day may lie in the past.
            let next = date_at(self.now, 0, 1, self.zone)?;
            self.go(if next > self.now.second { next } else { self.now.second + DAY })?;
            // Midnight is skipped or repeated in some zones.
            let hour = self.now.hour;
            if hour != 0 {
                let back_to_midnight = if hour > 12 { (24 - hour) * HOUR } else { -hour * HOUR };
                self.go(self.now.second + back_to_midnight)?;
            }
            if self.now.day == 1 {
                return Some(false);
            }
        }
        while !has(fields.hour, self.now.hour) {
            self.trim(|now, zone| date(now.year, now.month, now.day, now.hour * HOUR, zone))?;
            self.go(self.now.second + HOUR)?;
            if self.now.hour == 0 {
                return Some(false);
            }
        }
        while !has(fields.minute, self.now.minute) {
            self.trim(|now, _| Some(now.second - now.second.rem_euclid(MINUTE)))?;
            self.go(self.now.second + MINUTE)?;
            if self.now.minute == 0 {
                return Some(false);
            }
        }
        while self.now.in_minute != 0 {
            self.is_trimmed = true;
            self.go(self.now.second + 1)?;
            if self.now.in_minute == 0 {
                return Some(false);
            }
        }
        Some(true)
    }

    fn go(&mut self, second: i64) -> Option<()> {
        self.now = Moment::read(second, self.zone)?;
        Some(())
    }

    fn trim(&mut self, to: impl Fn(&Moment, &Zone) -> Option<i64>) -> Option<()> {
        if self.is_trimmed {
            return Some(());
        }
        self.is_trimmed = true;
        let second = to(&self.now, self.zone)?;
        self.go(second)
    }
}

fn has(bits: u64, value: i64) -> bool {
    bits & (1 << value) != 0
}

/// If one of the two day fields is open, the other decides; otherwise either suffices.
fn matches_day(fields: &Fields, now: &Moment) -> bool {
    let (day, weekday) = (has(fields.day.values, now.day), has(fields.weekday.values, now.weekday));
    if fields.day.is_open || fields.weekday.is_open { day && weekday } else { day || weekday }
}

impl Moment {
    fn read(second: i64, zone: &Zone) -> Option<Self> {
        let local = second.checked_add(zone.offset(second)?)?;
        let (days, in_day) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = civil(days);
        Some(Self {
            second,
            year,
            month,
            day,
            hour: in_day / HOUR,
            minute: in_day % HOUR / MINUTE,
            in_minute: in_day % MINUTE,
            // The first of January 1970 was a Thursday.
            weekday: (days + 4).rem_euclid(7),
        })
    }
}

/// The same clock face so many months and days later.
fn date_at(now: Moment, months: i64, days: i64, zone: &Zone) -> Option<i64> {
    let in_day = now.hour * HOUR + now.minute * MINUTE + now.in_minute;
    date(now.year, now.month + months, now.day + days, in_day, zone)
}

/// The moment at which clocks show this. Where they never do, or do twice, it is the one that the Go library takes: the
/// offset is that of the moment which the same face would be in UTC, corrected once.
fn date(year: i64, month: i64, day: i64, in_day: i64, zone: &Zone) -> Option<i64> {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12) + 1);
    let face = (days(year, month) + day - 1) * DAY + in_day;
    let offset = zone.offset(face)?;
    let offset = if offset == 0 { 0 } else { zone.offset(face - offset)? };
    Some(face - offset)
}

/// Days from 1970 to the first of a month, in the calendar that is used everywhere today.
fn days(year: i64, month: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let in_era = year.rem_euclid(400);
    let month = (month + 9) % 12;
    let in_year = (153 * month + 2) / 5;
    era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719_468
}

/// Year, month and day of a day since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, in_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}
