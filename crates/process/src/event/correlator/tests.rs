use super::*;

const BOUNDS: Bounds = Bounds::ONE_OF_MANY;
const MISSING: Reason = Reason::warning("PullImageFailed").of_class("NotFound");

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn object(name: &str) -> ObjectReference {
    ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() }
}

fn event(name: &str, note: &str) -> Event {
    Event { about: object(name), reason: MISSING, note: note.to_owned() }
}

fn batch(name: &str, note: &str, count: u32) -> Batch {
    let (about, note) = (object(name), note.to_owned());
    Batch { about, reason: MISSING, note, count, repeats: None, total: count }
}

/// Takes everything that may be written and confirms that it was.
fn write_all(correlator: &mut Correlator, now: Duration) -> Vec<Batch> {
    let mut written = Vec::new();
    while let Some(batch) = correlator.take(now) {
        correlator.wrote(&batch, Some(format!("event-{}", now.as_secs())), now);
        written.push(batch);
    }
    written
}

#[test]
fn without_events_there_is_nothing_to_write() {
    let mut correlator = Correlator::new(BOUNDS);
    assert_eq!((correlator.due(), correlator.take(seconds(1))), (None, None));
}

#[test]
fn the_first_event_is_written_at_once() {
    let mut correlator = Correlator::new(BOUNDS);
    assert!(correlator.add(event("job", "no a"), seconds(3)));
    assert_eq!(correlator.due(), Some(seconds(3)));
    assert_eq!(write_all(&mut correlator, seconds(3)), [batch("job", "no a", 1)]);
    assert_eq!(correlator.due(), None);
}

#[test]
fn the_events_that_follow_are_written_as_one_when_the_window_ends() {
    let mut correlator = Correlator::new(BOUNDS);
    correlator.add(event("job", "no a"), seconds(0));
    write_all(&mut correlator, seconds(0));
    for note in ["no b", "no c", "no d"] {
        correlator.add(event("job", note), seconds(1));
    }
    assert_eq!(correlator.due(), Some(seconds(10)));
    assert_eq!(write_all(&mut correlator, seconds(9)), []);
    assert_eq!(write_all(&mut correlator, seconds(10)), [batch("job", "no d", 3)]);
}

#[test]
fn windows_double_up_to_five_minutes_and_start_over_after_a_quiet_time() {
    let mut correlator = Correlator::new(BOUNDS);
    let mut windows = Vec::new();
    let mut now = seconds(0);
    for _ in 0..8 {
        correlator.add(event("job", "no a"), now);
        let due = correlator.due().unwrap();
        windows.push(due.saturating_sub(now).as_secs());
        now = due;
        write_all(&mut correlator, now);
    }
    assert_eq!(windows, [0, 10, 20, 40, 80, 160, 300, 300]);
    let later = now + LONGEST_WINDOW + LONGEST_WINDOW;
    correlator.add(event("job", "no a"), later);
    assert_eq!(write_all(&mut correlator, later), [batch("job", "no a", 1)]);
    correlator.add(event("job", "no b"), later);
    assert_eq!(correlator.due(), Some(later + FIRST_WINDOW));
}

#[test]
fn the_same_text_again_counts_the_last_event_up() {
    let mut correlator = Correlator::new(BOUNDS);
    correlator.add(event("job", "no a"), seconds(0));
    write_all(&mut correlator, seconds(0));
    correlator.add(event("job", "no a"), seconds(1));
    correlator.add(event("job", "no a"), seconds(2));
    let repeated = Batch { repeats: Some("event-0".to_owned()), total: 3, ..batch("job", "no a", 2) };
    let taken = correlator.take(seconds(10)).unwrap();
    assert_eq!(taken, repeated);
    correlator.wrote(&taken, Some("event-0".to_owned()), seconds(10));
    // As soon as one text differs, the written event cannot stand for all of them.
    correlator.add(event("job", "no b"), seconds(11));
    correlator.add(event("job", "no a"), seconds(12));
    assert_eq!(correlator.take(seconds(30)), Some(batch("job", "no a", 2)));
}

#[test]
fn other_objects_and_other_reasons_have_series_of_their_own() {
    let mut correlator = Correlator::new(BOUNDS);
    correlator.add(event("job", "no a"), seconds(0));
    correlator.add(event("other", "no a"), seconds(0));
    correlator.add(Event { reason: MISSING.of_class("Tls"), ..event("job", "no a") }, seconds(0));
    correlator.add(
        Event { about: ObjectReference { uid: Some("2".into()), ..object("job") }, ..event("job", "no a") },
        seconds(0),
    );
    assert_eq!(write_all(&mut correlator, seconds(0)).len(), 4);
}

#[test]
fn many_objects_write_no_more_than_the_bucket_holds() {
    let mut correlator = Correlator::new(BOUNDS);
    for number in 0..100 {
        correlator.add(event(&format!("job-{number}"), "no a"), seconds(0));
    }
    assert_eq!(write_all(&mut correlator, seconds(0)).len(), 25);
    assert_eq!(correlator.due(), Some(BOUNDS.refill));
    assert_eq!(write_all(&mut correlator, BOUNDS.refill).len(), 1);
    assert_eq!(write_all(&mut correlator, seconds(29)).len(), 4);
    assert_eq!(correlator.due(), Some(seconds(30)));
}

#[test]
fn a_warning_does_not_wait_behind_normal_events() {
    let mut correlator = Correlator::new(BOUNDS);
    for number in 0..100 {
        let reason = Reason::normal("RunScheduled");
        let good = Event { reason, ..event(&format!("cron-{number}"), "made a run") };
        correlator.add(good, seconds(0));
    }
    assert_eq!(write_all(&mut correlator, seconds(0)).len(), 25);
    correlator.add(event("job", "no a"), seconds(1));
    assert_eq!(write_all(&mut correlator, BOUNDS.refill), [batch("job", "no a", 1)]);
}

#[test]
fn a_bucket_that_was_full_for_a_long_time_holds_no_more_than_its_burst() {
    let mut correlator = Correlator::new(BOUNDS);
    for number in 0..100 {
        correlator.add(event(&format!("job-{number}"), "no a"), seconds(10_000));
    }
    assert_eq!(write_all(&mut correlator, seconds(10_000)).len(), 25);
    assert_eq!(correlator.due(), Some(seconds(10_005)));
}

#[test]
fn no_more_series_are_kept_than_the_bound_and_written_ones_give_way() {
    let mut correlator = Correlator::new(BOUNDS);
    for number in 0..BOUNDS.series {
        assert!(correlator.add(event(&format!("job-{number:03}"), "no a"), seconds(0)));
    }
    assert!(!correlator.add(event("one more", "no a"), seconds(0)));
    assert!(correlator.add(event("job-000", "no b"), seconds(0)));
    write_all(&mut correlator, seconds(0));
    assert!(correlator.add(event("one more", "no a"), seconds(0)));
    assert_eq!(correlator.series.len(), BOUNDS.series);
}

#[test]
fn a_batch_that_could_not_be_written_is_written_later_with_what_followed() {
    let mut correlator = Correlator::new(BOUNDS);
    correlator.add(event("job", "no a"), seconds(0));
    let first = correlator.take(seconds(0)).unwrap();
    correlator.give_back(&first, Some(seconds(10)), seconds(1));
    correlator.add(event("job", "no b"), seconds(2));
    assert_eq!(correlator.due(), Some(seconds(11)));
    assert_eq!(write_all(&mut correlator, seconds(11)), [batch("job", "no b", 2)]);
}

#[test]
fn a_series_whose_event_is_gone_becomes_another_event_at_once() {
    let mut correlator = Correlator::new(BOUNDS);
    correlator.add(event("job", "no a"), seconds(0));
    write_all(&mut correlator, seconds(0));
    correlator.add(event("job", "no a"), seconds(1));
    let repeated = correlator.take(seconds(10)).unwrap();
    assert!(repeated.repeats.is_some());
    correlator.give_back(&repeated, None, seconds(10));
    assert_eq!(correlator.take(seconds(10)), Some(batch("job", "no a", 1)));
}

#[test]
fn a_stopping_process_does_not_wait_for_windows() {
    let mut correlator = Correlator::new(BOUNDS);
    correlator.add(event("job", "no a"), seconds(5));
    write_all(&mut correlator, seconds(5));
    correlator.add(event("job", "no b"), seconds(6));
    correlator.hurry();
    assert_eq!(write_all(&mut correlator, seconds(6)), [batch("job", "no b", 1)]);
}
