use FailureClass::{NotFound, RateLimited, Unauthorized, Unknown, Unreachable};

use super::*;

/// Asks until there is nothing left. `answer` says what a credential gets. Returns what was asked, and the results.
fn ask(
    parties: &[&[usize]],
    of_node: &[usize],
    answer: impl Fn(Key) -> Result<(), FailureClass>,
) -> (Vec<Key>, Vec<Result<(), FailureClass>>) {
    let mut asking = Asking::new(parties.iter().map(|keys| keys.to_vec()).collect(), of_node.to_vec());
    let mut asked = Vec::new();
    while let Some(question) = asking.next_question() {
        asked.push(question.key);
        match answer(question.key) {
            Ok(()) => asking.accept(question),
            Err(class) => asking.refuse(question, class, class),
        }
    }
    (asked, asking.results())
}

/// A registry that lets these in and answers this to everybody else.
fn only(right: &'static [Key], otherwise: FailureClass) -> impl Fn(Key) -> Result<(), FailureClass> {
    move |key| if right.contains(&key) { Ok(()) } else { Err(otherwise) }
}

#[test]
fn one_party_asks_with_its_own_then_with_the_nodes_then_with_none() {
    let (asked, results) = ask(&[&[1, 2]], &[8], only(&[], Unauthorized));
    assert_eq!(asked, [Some(1), Some(2), Some(8), None]);
    assert_eq!(results, [Err(Unauthorized)]);
    assert_eq!(ask(&[&[1, 2]], &[8], only(&[Some(2)], NotFound)), (vec![Some(1), Some(2)], vec![Ok(())]));
}

#[test]
fn what_counts_for_one_party_does_not_count_for_another() {
    let (asked, results) = ask(&[&[1], &[2], &[]], &[], only(&[Some(1)], Unauthorized));
    assert_eq!(
        asked,
        [Some(1), Some(2), None],
        "no credential is shown twice, and none is asked without once"
    );
    assert_eq!(results, [Ok(()), Err(Unauthorized), Err(Unauthorized)]);
}

#[test]
fn a_party_with_the_right_credential_gets_the_image_after_others_were_refused() {
    let (_, results) = ask(&[&[], &[1], &[2]], &[], only(&[Some(2)], NotFound));
    assert_eq!(results, [Err(NotFound), Err(NotFound), Ok(())]);
}

#[test]
fn each_party_that_is_accepted_with_its_own_counts() {
    let (asked, results) = ask(&[&[1], &[2]], &[], only(&[Some(1), Some(2)], Unauthorized));
    assert_eq!((asked, results), (vec![Some(1), Some(2)], vec![Ok(()), Ok(())]));
}

#[test]
fn what_took_no_credential_or_one_of_the_node_counts_for_all() {
    for right in [&[None][..], &[Some(8)]] {
        let answer = |key: Key| if right.contains(&key) { Ok(()) } else { Err(Unauthorized) };
        let (_, results) = ask(&[&[1], &[2], &[]], &[8], answer);
        assert_eq!(results, [Ok(()), Ok(()), Ok(())], "{right:?}");
    }
    let (asked, _) = ask(&[&[], &[1]], &[], only(&[None], Unauthorized));
    assert_eq!(asked, [None], "a public image is asked for once");
}

#[test]
fn a_login_that_causes_trouble_keeps_nobody_else_away() {
    for trouble in [Unknown, RateLimited] {
        let answer = move |key: Key| if key == Some(2) { Ok(()) } else { Err(trouble) };
        let (asked, results) = ask(&[&[1], &[2]], &[], answer);
        assert_eq!(asked, [Some(1), Some(2)]);
        assert_eq!(results, [Err(trouble), Ok(())]);
    }
}

#[test]
fn a_registry_that_cannot_be_reached_is_not_asked_for_every_party() {
    let (asked, results) = ask(&[&[1], &[2], &[3]], &[], only(&[], Unreachable));
    assert_eq!((asked.len(), results), (1, vec![Err(Unreachable); 3]));
}

#[test]
fn trouble_after_the_image_has_arrived_is_that_of_the_party_that_met_it() {
    let (_, results) = ask(&[&[1], &[2], &[3]], &[], |key| match key {
        Some(2) => Err(Unreachable),
        _ => Ok(()),
    });
    assert_eq!(results, [Ok(()), Err(Unreachable), Ok(())]);
}

#[test]
fn whoever_could_not_be_asked_in_time_has_no_success() {
    let mut asking = Asking::new(vec![vec![1], vec![2]], vec![]);
    let first = asking.next_question().unwrap();
    assert!(!asking.is_accepted());
    asking.accept(first);
    assert!(asking.is_accepted() && !asking.is_for_all());
    asking.next_question().unwrap();
    asking.give_up(&"late");
    assert!(asking.next_question().is_none());
    assert_eq!(asking.results(), [Ok(()), Err("late")]);
}
