//! Properties of settling a source's copies: it ends, and everybody is served.

use std::collections::BTreeSet;

use prewarm_plan::cluster::secret::{Action, Content, Copy, Observed, Settlement, SourceState, settle};
use prewarm_plan::object::ObjectKey;
use prewarm_plan::object::SourceKey;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

fn source() -> SourceKey {
    SourceKey { namespace: "team".to_owned(), name: "regcred".to_owned() }
}

fn job() -> impl Strategy<Value = ObjectKey> {
    "[a-e]".prop_map(|name| ObjectKey { namespace: "team".to_owned(), name })
}

fn content() -> impl Strategy<Value = Content> {
    ("[xy]", 0..3_u64).prop_map(|(type_, fingerprint)| Content { type_, fingerprint })
}

fn state() -> impl Strategy<Value = SourceState> {
    prop_oneof![
        Just(SourceState::Unknown),
        Just(SourceState::Missing),
        Just(SourceState::Gone),
        Just(SourceState::Unusable("its type is Opaque".to_owned())),
        content().prop_map(SourceState::Present),
    ]
}

/// Copies of this and of another source, some on their way out.
fn copies() -> impl Strategy<Value = Vec<Copy>> {
    let copy = (btree_set(job(), 0..4), content(), 0..6_u8, 0..6_u8);
    vec(copy, 0..4).prop_map(|copies| {
        let copies = copies.into_iter().enumerate();
        let copies = copies.map(|(number, (references, content, leaving, foreign))| Copy {
            name: format!("regcred-{number}"),
            uid: format!("uid-{number}"),
            source: if foreign == 0 { None } else { Some(source()) },
            references,
            mode: None,
            content,
            is_terminating: leaving == 0,
        });
        copies.collect()
    })
}

fn settled(claimants: &BTreeSet<ObjectKey>, copies: &[Copy], state: &SourceState) -> Settlement {
    settle(&Observed {
        source: &source(),
        state,
        claimants,
        unread: &BTreeSet::new(),
        copies: &copies.iter().collect::<Vec<_>>(),
        is_taken: &|name| copies.iter().any(|copy| copy.name == name),
        config_namespace: "config",
    })
}

/// Does what an API server would do.
fn carry_out(actions: &[Action], copies: &mut Vec<Copy>, state: &SourceState) {
    for action in actions {
        match action {
            Action::Create { name, references } => {
                let SourceState::Present(content) = state else { panic!("nothing to copy") };
                assert!(copies.iter().all(|copy| copy.name != *name), "{name} exists");
                copies.push(Copy {
                    name: name.clone(),
                    uid: "uid-made".to_owned(),
                    source: Some(source()),
                    references: references.clone(),
                    mode: None,
                    content: content.clone(),
                    is_terminating: false,
                });
            }
            Action::Update { uid, references, has_new_data, .. } => {
                let copy =
                    copies.iter_mut().find(|copy| copy.uid == *uid).expect("only what exists is updated");
                copy.references.clone_from(references);
                if let (true, SourceState::Present(content)) = (has_new_data, state) {
                    assert_eq!(copy.content.type_, content.type_, "the type of a Secret is immutable");
                    copy.content = content.clone();
                }
            }
            Action::Delete { uid, .. } => copies.retain(|copy| copy.uid != *uid),
        }
    }
}

fn is_ours(copy: &Copy) -> bool {
    copy.source == Some(source()) && !copy.is_terminating
}

proptest! {
    #[test]
    fn once_settled_nothing_is_written_again(
        claimants in btree_set(job(), 0..4), mut copies in copies(), state in state(),
    ) {
        let first = settled(&claimants, &copies, &state);
        carry_out(&first.actions, &mut copies, &state);
        let second = settled(&claimants, &copies, &state);
        prop_assert_eq!(second.actions, vec![]);
        prop_assert_eq!(second.pending.is_empty(), state != SourceState::Unknown || claimants.is_empty());
    }

    #[test]
    fn in_the_end_every_job_is_listed_by_the_one_copy_that_serves_it_and_no_copy_is_left_over(
        claimants in btree_set(job(), 0..4), mut copies in copies(), content in content(),
    ) {
        let state = SourceState::Present(content.clone());
        carry_out(&settled(&claimants, &copies, &state).actions, &mut copies, &state);
        let serves = settled(&claimants, &copies, &state).serves;
        for job in &claimants {
            let listing: Vec<&Copy> =
                copies.iter().filter(|copy| is_ours(copy) && copy.references.contains(job)).collect();
            prop_assert_eq!(listing.len(), 1);
            prop_assert_eq!(serves[job].name.as_ref(), Some(&listing[0].name));
            prop_assert_eq!(&listing[0].content, &content);
        }
        prop_assert_eq!(serves.len(), claimants.len());
        let is_used = |copy: &Copy| !copy.references.is_empty() && copy.references.is_subset(&claimants);
        prop_assert!(copies.iter().filter(|copy| is_ours(copy)).all(is_used));
    }

    #[test]
    fn what_is_not_ours_is_never_touched(
        claimants in btree_set(job(), 0..4), mut copies in copies(), state in state(),
    ) {
        let foreign = |copies: &[Copy]| -> Vec<Copy> {
            copies.iter().filter(|copy| !is_ours(copy)).cloned().collect()
        };
        let before = foreign(&copies);
        carry_out(&settled(&claimants, &copies, &state).actions, &mut copies, &state);
        prop_assert_eq!(before, foreign(&copies));
    }

    /// Whoever joined or left since the first try: the name is that of the copy whose making was not answered.
    #[test]
    fn a_lost_answer_does_not_lead_to_a_second_copy(
        before in btree_set(job(), 1..4), after in btree_set(job(), 1..4), content in content(),
    ) {
        let state = SourceState::Present(content);
        let name = |claimants| match settled(claimants, &[], &state).actions.pop() {
            Some(Action::Create { name, .. }) => name,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(name(&before), name(&after));
    }
}
