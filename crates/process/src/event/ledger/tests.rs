use super::*;

const BOUNDS: Bounds = Bounds::ONE_OF_MANY;
const MISSING: Reason = Reason::warning("PullImageFailed").of_class("NotFound");

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn object(name: &str) -> ObjectReference {
    ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() }
}

fn happening(name: &str, note: &str) -> Happening {
    Happening { about: object(name), reason: MISSING, note: note.to_owned() }
}

fn line(name: &str, note: &str, happenings: u32) -> Line {
    let (about, note) = (object(name), note.to_owned());
    Line { about, reason: MISSING, note, happenings, repeats: None, total: happenings }
}

/// Takes everything that may be written and says that it was.
fn write_all(ledger: &mut Ledger, now: Duration) -> Vec<Line> {
    let mut written = Vec::new();
    while let Some(line) = ledger.take(now) {
        ledger.wrote(&line, Some(format!("event-{}", now.as_secs())), now);
        written.push(line);
    }
    written
}

#[test]
fn an_empty_ledger_has_nothing_to_write() {
    let mut ledger = Ledger::new(BOUNDS);
    assert_eq!((ledger.due(), ledger.take(seconds(1))), (None, None));
}

#[test]
fn the_first_happening_is_written_at_once() {
    let mut ledger = Ledger::new(BOUNDS);
    assert!(ledger.note(happening("job", "no a"), seconds(3)));
    assert_eq!(ledger.due(), Some(seconds(3)));
    assert_eq!(write_all(&mut ledger, seconds(3)), [line("job", "no a", 1)]);
    assert_eq!(ledger.due(), None);
}

#[test]
fn those_that_follow_leave_together_when_the_window_ends() {
    let mut ledger = Ledger::new(BOUNDS);
    ledger.note(happening("job", "no a"), seconds(0));
    write_all(&mut ledger, seconds(0));
    for note in ["no b", "no c", "no d"] {
        ledger.note(happening("job", note), seconds(1));
    }
    assert_eq!(ledger.due(), Some(seconds(10)));
    assert_eq!(write_all(&mut ledger, seconds(9)), []);
    assert_eq!(write_all(&mut ledger, seconds(10)), [line("job", "no d", 3)]);
}

#[test]
fn windows_double_to_five_minutes_and_begin_anew_after_a_quiet_time() {
    let mut ledger = Ledger::new(BOUNDS);
    let mut windows = Vec::new();
    let mut now = seconds(0);
    for _ in 0..8 {
        ledger.note(happening("job", "no a"), now);
        let due = ledger.due().unwrap();
        windows.push(due.saturating_sub(now).as_secs());
        now = due;
        write_all(&mut ledger, now);
    }
    assert_eq!(windows, [0, 10, 20, 40, 80, 160, 300, 300]);
    let later = now + LONGEST_WINDOW + LONGEST_WINDOW;
    ledger.note(happening("job", "no a"), later);
    assert_eq!(write_all(&mut ledger, later), [line("job", "no a", 1)]);
    ledger.note(happening("job", "no b"), later);
    assert_eq!(ledger.due(), Some(later + FIRST_WINDOW));
}

#[test]
fn the_same_text_again_counts_the_last_event_up() {
    let mut ledger = Ledger::new(BOUNDS);
    ledger.note(happening("job", "no a"), seconds(0));
    write_all(&mut ledger, seconds(0));
    ledger.note(happening("job", "no a"), seconds(1));
    ledger.note(happening("job", "no a"), seconds(2));
    let repeated = Line { repeats: Some("event-0".to_owned()), total: 3, ..line("job", "no a", 2) };
    let taken = ledger.take(seconds(10)).unwrap();
    assert_eq!(taken, repeated);
    ledger.wrote(&taken, Some("event-0".to_owned()), seconds(10));
    // As soon as one text is another, the event cannot stand for all of them.
    ledger.note(happening("job", "no b"), seconds(11));
    ledger.note(happening("job", "no a"), seconds(12));
    assert_eq!(ledger.take(seconds(30)), Some(line("job", "no a", 2)));
}

#[test]
fn other_objects_and_other_reasons_have_lines_of_their_own() {
    let mut ledger = Ledger::new(BOUNDS);
    ledger.note(happening("job", "no a"), seconds(0));
    ledger.note(happening("other", "no a"), seconds(0));
    ledger.note(Happening { reason: MISSING.of_class("Tls"), ..happening("job", "no a") }, seconds(0));
    ledger.note(
        Happening {
            about: ObjectReference { uid: Some("2".into()), ..object("job") },
            ..happening("job", "no a")
        },
        seconds(0),
    );
    assert_eq!(write_all(&mut ledger, seconds(0)).len(), 4);
}

#[test]
fn many_objects_write_no_more_than_the_bucket_holds() {
    let mut ledger = Ledger::new(BOUNDS);
    for number in 0..100 {
        ledger.note(happening(&format!("job-{number}"), "no a"), seconds(0));
    }
    assert_eq!(write_all(&mut ledger, seconds(0)).len(), 25);
    assert_eq!(ledger.due(), Some(BOUNDS.refill));
    assert_eq!(write_all(&mut ledger, BOUNDS.refill).len(), 1);
    assert_eq!(write_all(&mut ledger, seconds(29)).len(), 4);
    assert_eq!(ledger.due(), Some(seconds(30)));
}

#[test]
fn what_somebody_should_look_at_does_not_wait_behind_good_news() {
    let mut ledger = Ledger::new(BOUNDS);
    for number in 0..100 {
        let reason = Reason::normal("RunScheduled");
        let good = Happening { reason, ..happening(&format!("cron-{number}"), "made a run") };
        ledger.note(good, seconds(0));
    }
    assert_eq!(write_all(&mut ledger, seconds(0)).len(), 25);
    ledger.note(happening("job", "no a"), seconds(1));
    assert_eq!(write_all(&mut ledger, BOUNDS.refill), [line("job", "no a", 1)]);
}

#[test]
fn a_bucket_that_was_full_for_long_holds_no_more_than_its_burst() {
    let mut ledger = Ledger::new(BOUNDS);
    for number in 0..100 {
        ledger.note(happening(&format!("job-{number}"), "no a"), seconds(10_000));
    }
    assert_eq!(write_all(&mut ledger, seconds(10_000)).len(), 25);
    assert_eq!(ledger.due(), Some(seconds(10_005)));
}

#[test]
fn no_more_lines_are_kept_than_the_bound_and_told_ones_give_way() {
    let mut ledger = Ledger::new(BOUNDS);
    for number in 0..BOUNDS.lines {
        assert!(ledger.note(happening(&format!("job-{number:03}"), "no a"), seconds(0)));
    }
    assert!(!ledger.note(happening("one more", "no a"), seconds(0)));
    assert!(ledger.note(happening("job-000", "no b"), seconds(0)));
    write_all(&mut ledger, seconds(0));
    assert!(ledger.note(happening("one more", "no a"), seconds(0)));
    assert_eq!(ledger.lines.len(), BOUNDS.lines);
}

#[test]
fn what_could_not_be_written_is_told_later_with_what_followed() {
    let mut ledger = Ledger::new(BOUNDS);
    ledger.note(happening("job", "no a"), seconds(0));
    let line_a = ledger.take(seconds(0)).unwrap();
    ledger.give_back(&line_a, Some(seconds(10)), seconds(1));
    ledger.note(happening("job", "no b"), seconds(2));
    assert_eq!(ledger.due(), Some(seconds(11)));
    assert_eq!(write_all(&mut ledger, seconds(11)), [line("job", "no b", 2)]);
}

#[test]
fn a_series_whose_event_is_gone_becomes_another_event_at_once() {
    let mut ledger = Ledger::new(BOUNDS);
    ledger.note(happening("job", "no a"), seconds(0));
    write_all(&mut ledger, seconds(0));
    ledger.note(happening("job", "no a"), seconds(1));
    let repeated = ledger.take(seconds(10)).unwrap();
    assert!(repeated.repeats.is_some());
    ledger.give_back(&repeated, None, seconds(10));
    assert_eq!(ledger.take(seconds(10)), Some(line("job", "no a", 1)));
}

#[test]
fn a_stopping_process_waits_for_no_window() {
    let mut ledger = Ledger::new(BOUNDS);
    ledger.note(happening("job", "no a"), seconds(5));
    write_all(&mut ledger, seconds(5));
    ledger.note(happening("job", "no b"), seconds(6));
    ledger.hurry();
    assert_eq!(write_all(&mut ledger, seconds(6)), [line("job", "no b", 1)]);
}
