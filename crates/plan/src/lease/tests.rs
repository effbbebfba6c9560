use super::*;

const ME: &str = "me";
const WAITING: Candidate<'_> = Candidate { identity: ME, is_leading: false };
const LEADING: Candidate<'_> = Candidate { identity: ME, is_leading: true };
/// When everything was last seen to change.
const SEEN: Duration = Duration::from_secs(100);

fn wall(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// So many seconds after the last change was seen.
fn after(seconds: u64) -> Moment {
    Moment { elapsed: SEEN + Duration::from_secs(seconds), wall: wall("2030-01-01T12:00:00Z") }
}

fn held_by(holder: &str) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(15),
        lease_transitions: Some(4),
        acquire_time: Some(MicroTime(wall("2030-01-01T11:00:00Z"))),
        renew_time: Some(MicroTime(wall("2030-01-01T11:59:00Z"))),
        ..LeaseSpec::default()
    }
}

fn seen(lease: Option<LeaseSpec>) -> Observed {
    Observed { lease, since: SEEN }
}

/// What the candidate writes when it takes the lease over.
fn mine(transitions: i32) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(ME.to_owned()),
        lease_duration_seconds: Some(15),
        lease_transitions: Some(transitions),
        acquire_time: Some(MicroTime(after(0).wall)),
        renew_time: Some(MicroTime(after(0).wall)),
        ..LeaseSpec::default()
    }
}

const UNTIL: Verdict = Verdict::Wait { until: Duration::from_secs(115) };

#[test]
fn a_lease_that_changed_lately_is_waited_for() {
    let observed = seen(Some(held_by("other")));
    assert_eq!(decide(&observed, WAITING, after(0)), UNTIL);
    assert_eq!(decide(&observed, WAITING, after(14)), UNTIL);
}

#[test]
fn a_lease_that_did_not_change_for_its_duration_is_taken_and_the_change_counted() {
    let observed = seen(Some(held_by("other")));
    assert_eq!(decide(&observed, WAITING, after(15)), Verdict::Replace(mine(5)));
}

#[test]
fn the_times_in_a_lease_mean_nothing() {
    for renewed in ["1970-01-01T00:00:00Z", "2030-01-01T12:00:00Z", "2999-01-01T00:00:00Z"] {
        let lease = LeaseSpec { renew_time: Some(MicroTime(wall(renewed))), ..held_by("other") };
        let observed = seen(Some(lease));
        assert_eq!(decide(&observed, WAITING, after(14)), UNTIL);
        assert!(matches!(decide(&observed, WAITING, after(15)), Verdict::Replace(_)));
    }
}

#[test]
fn a_released_lease_is_taken_at_once() {
    for holder in [Some(String::new()), None] {
        let observed = seen(Some(LeaseSpec { holder_identity: holder, ..held_by("") }));
        assert_eq!(decide(&observed, WAITING, after(0)), Verdict::Replace(mine(5)));
    }
}

#[test]
fn a_lease_without_anything_in_it_is_free() {
    let observed = seen(Some(LeaseSpec::default()));
    assert_eq!(decide(&observed, WAITING, after(0)), Verdict::Replace(mine(1)));
}

#[test]
fn a_holder_without_a_duration_is_waited_for_as_long_as_one_of_ours() {
    for seconds in [None, Some(0), Some(-1), Some(1)] {
        let observed = seen(Some(LeaseSpec { lease_duration_seconds: seconds, ..held_by("other") }));
        assert_eq!(decide(&observed, WAITING, after(14)), UNTIL, "{seconds:?}");
        assert!(matches!(decide(&observed, WAITING, after(15)), Verdict::Replace(_)), "{seconds:?}");
    }
}

#[test]
fn a_longer_duration_is_respected_within_a_bound() {
    for (seconds, wait) in [(60, 60), (i32::MAX, 300)] {
        let observed = seen(Some(LeaseSpec { lease_duration_seconds: Some(seconds), ..held_by("other") }));
        let until = SEEN + Duration::from_secs(wait);
        assert_eq!(decide(&observed, WAITING, after(wait - 1)), Verdict::Wait { until });
        assert_eq!(decide(&observed, WAITING, after(wait)), Verdict::Replace(mine(5)));
    }
}

#[test]
fn a_leader_renews_its_own_and_changes_nothing_else() {
    let observed = seen(Some(held_by(ME)));
    let renewed = LeaseSpec { renew_time: Some(MicroTime(after(2).wall)), ..held_by(ME) };
    assert_eq!(decide(&observed, LEADING, after(2)), Verdict::Replace(renewed));
}

#[test]
fn what_was_taken_without_an_answer_is_ones_own() {
    let renewed = LeaseSpec { renew_time: Some(MicroTime(after(0).wall)), ..held_by(ME) };
    assert_eq!(decide(&seen(Some(held_by(ME))), WAITING, after(0)), Verdict::Replace(renewed));
}

#[test]
fn a_leader_whose_lease_is_anothers_or_nobodys_stops() {
    for holder in ["other", ""] {
        let observed = seen(Some(held_by(holder)));
        for seconds in [0, 1000] {
            assert_eq!(decide(&observed, LEADING, after(seconds)), Verdict::Stop, "{holder:?}");
        }
    }
}

#[test]
fn an_absent_lease_may_still_have_a_leader_and_is_marked_so() {
    let marked = LeaseSpec { holder_identity: Some(UNKNOWN.to_owned()), ..mine(0) };
    for seconds in [0, 1000] {
        assert_eq!(decide(&seen(None), WAITING, after(seconds)), Verdict::Mark(marked.clone()));
    }
}

#[test]
fn a_marked_lease_is_waited_for_like_any_other() {
    let observed = seen(Some(held_by(UNKNOWN)));
    assert_eq!(decide(&observed, WAITING, after(14)), UNTIL);
    assert_eq!(decide(&observed, WAITING, after(15)), Verdict::Replace(mine(5)));
}

#[test]
fn a_leader_makes_an_absent_lease_again_and_takes_a_marked_one_back() {
    assert_eq!(decide(&seen(None), LEADING, after(0)), Verdict::Create(mine(0)));
    assert_eq!(decide(&seen(Some(held_by(UNKNOWN))), LEADING, after(0)), Verdict::Replace(mine(5)));
}

#[test]
fn fields_that_others_use_survive() {
    let lease = LeaseSpec { strategy: Some("OldestEmulationVersion".to_owned()), ..held_by("") };
    let Verdict::Replace(taken) = decide(&seen(Some(lease)), WAITING, after(0)) else { panic!("not taken") };
    assert_eq!(taken.strategy.as_deref(), Some("OldestEmulationVersion"));
}

#[test]
fn a_count_at_its_end_stays_there() {
    let lease = LeaseSpec { lease_transitions: Some(i32::MAX), ..held_by("") };
    assert_eq!(decide(&seen(Some(lease)), WAITING, after(0)), Verdict::Replace(mine(i32::MAX)));
}

#[test]
fn only_ones_own_lease_is_released() {
    let now = after(2).wall;
    let released = LeaseSpec { renew_time: Some(MicroTime(now)), ..held_by("") };
    assert_eq!(release(&seen(Some(held_by(ME))), ME, now), Some(released));
    for lease in [None, Some(held_by("other")), Some(held_by("")), Some(LeaseSpec::default())] {
        assert_eq!(release(&seen(lease), ME, now), None);
    }
}

#[test]
fn a_leader_stops_before_others_begin_and_has_several_tries_until_then() {
    assert!(leads_until(SEEN) < SEEN + DURATION);
    assert!(RENEW_DEADLINE >= 4 * RETRY);
}

#[test]
fn jitter_only_shortens_a_pause() {
    assert_eq!([0.0, 0.5, 1.0].map(pause), [2000, 1500, 1000].map(Duration::from_millis));
}
