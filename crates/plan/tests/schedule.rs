//! Schedules: the verdicts of the Go library that Kubernetes uses, properties, and the body of the fuzz target.

use jiff::{SignedDuration, Timestamp};
use prewarm_plan::schedule::{MOST_COUNTED, Schedule, Zone};
use proptest::prelude::*;

#[path = "../../../fuzz/bodies/schedule.rs"]
mod body;

/// What the Go program beside it made of `lines.tsv`.
const GOLDEN: &str = include_str!("schedule_golden/golden.tsv");

/// So many times of each line are compared.
const TIMES: usize = 6;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn read(line: &str) -> Schedule {
    Schedule::read(line, Zone::utc()).unwrap_or_else(|fault| panic!("{line:?}: {fault:?}"))
}

fn times(schedule: &Schedule, from: Timestamp) -> Vec<String> {
    let next = |at: &Timestamp| schedule.next(*at);
    std::iter::successors(schedule.next(from), next).take(TIMES).map(|at| at.to_string()).collect()
}

/// kruise R90: hostile lines, and every change of clocks in the zones that people trip over.
#[test]
fn every_line_means_what_it_means_to_kubernetes() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for row in GOLDEN.lines() {
        let [from, quoted, expected] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let line: String = serde_json::from_str(quoted).unwrap();
        let ours = match Schedule::read(&line, Zone::utc()) {
            Ok(schedule) => times(&schedule, at(from)).join(" "),
            Err(_) => "error".to_owned(),
        };
        compared += 1;
        if ours != expected {
            wrong.push(format!("{from} {quoted}\n  Kubernetes {expected}\n  here       {ours}"));
        }
    }
    assert!(compared > 1000, "only {compared} lines");
    assert!(wrong.is_empty(), "{} of {compared} differ\n{}", wrong.len(), wrong.join("\n"));
}

/// kruise T100.
#[test]
fn a_schedule_is_read_in_its_zone() {
    let morning = at("2026-11-17T01:00:00Z");
    let next = |line: &str, zone: &str, after: Timestamp| {
        let schedule = Schedule::read(line, Zone::find(zone).unwrap()).unwrap();
        schedule.next(after).unwrap().to_string()
    };
    assert_eq!(next("0 10 * * ?", "UTC", morning), "2026-11-17T10:00:00Z");
    assert_eq!(next("0 10 * * ?", "UTC", at("2026-11-17T10:00:00Z")), "2026-11-18T10:00:00Z");
    assert_eq!(next("0 10 * * ?", "Asia/Shanghai", morning), "2026-11-17T02:00:00Z");
    assert_eq!(next("TZ=Asia/Shanghai 0 10 * * ?", "UTC", morning), "2026-11-17T02:00:00Z");
    assert_eq!(next("CRON_TZ=Asia/Shanghai 0 10 * * ?", "America/New_York", morning), "2026-11-17T02:00:00Z");
}

#[test]
fn a_fault_names_its_place_in_the_line() {
    let place = |line: &str| {
        let fault = Schedule::read(line, Zone::utc()).unwrap_err();
        (line[fault.at].to_owned(), fault.what)
    };
    let told = |place: &str, what: &str| (place.to_owned(), what.to_owned());
    assert_eq!(place("0 25 * * *"), told("25", "25 is out of range: an hour is from 0 to 23"));
    assert_eq!(place("0,30-10 2 * * *"), told("30-10", "30-10 begins after its end"));
    assert_eq!(place("0 2 * * 1,7"), told("7", "7 is out of range: a day of week is from 0 to 6"));
    assert_eq!(
        place("TZ=Mars/Olympus 0 2 * * *"),
        told("Mars/Olympus", "there is no time zone \"Mars/Olympus\"")
    );
    assert_eq!(place("@every 1x"), told("1x", "\"1x\": no such unit: there are h, m, s, ms, us and ns"));
    assert_eq!(place("0 2 * *").0, "0 2 * *");
    assert_eq!(place("CRON_TZ=UTC 0 2 * foo *"), told("foo", "\"foo\" is no month"));
}

#[test]
fn what_was_missed_is_counted_and_the_latest_is_known() {
    let hourly = read("0 * * * *");
    let missed = hourly.missed(at("2026-11-17T08:00:00Z"), at("2026-11-17T11:30:00Z")).unwrap();
    assert_eq!((missed.first, missed.latest), (at("2026-11-17T09:00:00Z"), at("2026-11-17T11:00:00Z")));
    assert_eq!(missed.count, 3);
    assert_eq!(hourly.missed(at("2026-11-17T08:00:00Z"), at("2026-11-17T08:59:59Z")), None);
    // Ten years of minutes are not walked through one by one.
    let minutely = read("* * * * *").missed(at("2016-11-17T08:00:00Z"), at("2026-11-17T08:00:30Z")).unwrap();
    assert_eq!((minutely.latest, minutely.count), (at("2026-11-17T08:00:00Z"), MOST_COUNTED));
    let every = read("@every 7s").missed(at("2026-11-17T08:00:00Z"), at("2026-11-17T08:01:00Z")).unwrap();
    assert_eq!((every.latest, every.count), (at("2026-11-17T08:00:56Z"), 8));
}

/// kruise T109.
#[test]
fn a_zone_without_a_space_is_a_fault_and_no_panic() {
    for line in ["TZ=UTC", "CRON_TZ=", "TZ=", "TZ=Europe/Berlin", "@every", "@", "", " ", "\u{0}", "TZ=é"] {
        assert!(Schedule::read(line, Zone::utc()).is_err(), "{line:?}");
    }
}

/// One field that has a value now and then.
fn field(first: u8, last: u8) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => (first..=last).prop_map(|value| value.to_string()),
        1 => (first..=last, first..=last).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (first..=last, 1_u8..20).prop_map(|(value, step)| format!("{value}/{step}")),
        1 => (1_u8..20).prop_map(|step| format!("*/{step}")),
    ]
}

fn line() -> impl Strategy<Value = String> {
    // Where clocks skip midnight or half an hour, the Go library passes over times that match, and takes some that do
    // not. The golden file says which.
    const ZONES: [&str; 4] = ["", "TZ=America/New_York ", "TZ=Asia/Kathmandu ", "TZ=Europe/Dublin "];
    let fields = (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6));
    (proptest::sample::select(&ZONES[..]), fields).prop_map(|(zone, (minute, hour, day, month, week))| {
        format!("{zone}{minute} {hour} {day} {month} {week}")
    })
}

proptest! {
    /// Walking from one time to the next finds exactly those minutes that match, for three days, where clocks move by
    /// whole hours and days begin at midnight.
    #[test]
    fn walking_equals_filtering_every_minute(line in line(), start in 1_767_225_600_i64..1_830_297_600) {
        let schedule = read(&line);
        let start = Timestamp::from_second(start - start.rem_euclid(60)).unwrap();
        let end = start + SignedDuration::from_hours(72);
        let next = |at: &Timestamp| schedule.next(*at);
        let walked: Vec<Timestamp> =
            std::iter::successors(schedule.next(start), next).take_while(|at| *at <= end).collect();
        let minutes = (1..=72 * 60).map(|minute| start + SignedDuration::from_mins(minute));
        let filtered: Vec<Timestamp> = minutes.filter(|at| schedule.matches(*at)).collect();
        prop_assert_eq!(walked, filtered, "{}", line);
    }

    /// What was missed is what walking finds.
    #[test]
    fn missed_times_are_those_of_a_walk(line in line(), start in 1_767_225_600_i64..1_830_297_600, length in 0_i64..400_000) {
        let schedule = read(&line);
        let (start, end) = (Timestamp::from_second(start).unwrap(), Timestamp::from_second(start + length).unwrap());
        let next = |at: &Timestamp| schedule.next(*at);
        let walked: Vec<Timestamp> =
            std::iter::successors(schedule.next(start), next).take_while(|at| *at <= end).collect();
        let missed = schedule.missed(start, end);
        prop_assert_eq!(missed.map(|missed| (missed.first, missed.latest)), walked.first().copied().zip(walked.last().copied()));
        let count = u64::try_from(walked.len()).unwrap().min(MOST_COUNTED);
        prop_assert_eq!(missed.map_or(0, |missed| missed.count), count);
    }

    /// Whatever is written, reading it ends, and times go forward.
    #[test]
    fn nothing_that_is_written_breaks_it(line in "\\PC{0,40}", second in -60_000_000_000_i64..250_000_000_000) {
        body::check(&line, second);
    }

    #[test]
    fn nothing_that_looks_like_a_schedule_breaks_it(
        line in "((CRON_)?TZ=[A-Za-z/]{0,8} ?)?(@every [0-9.hmsnuµ+-]{0,12}|@[a-z]{0,8}|([0-9*?,/+jJanFSU-]{1,6} ){4,5}[0-9*?,/-]{1,4})",
        second in -60_000_000_000_i64..250_000_000_000,
    ) {
        body::check(&line, second);
    }
}
