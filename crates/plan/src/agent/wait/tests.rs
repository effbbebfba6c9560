use super::*;
use crate::agent::disk::{MinFree, Room};

fn room(free: u64) -> WaitReason {
    let room = Room { free, capacity: 100 };
    WaitReason::NoRoom(DiskRoom { room, inodes: None, min_free: MinFree::default(), path: "/images".into() })
}

/// Every reason once.
fn all() -> [WaitReason; 10] {
    [
        WaitReason::Held(Hold::Stopping),
        WaitReason::Held(Hold::NoRuntime),
        WaitReason::RuntimeGone,
        room(12),
        WaitReason::SlowRegistry { registry: "slow.example".to_owned() },
        WaitReason::NoPlace { places: 2 },
        WaitReason::Alone(Alone::Stops { times: 2 }),
        WaitReason::Alone(Alone::Room),
        WaitReason::Alone(Alone::Another),
        WaitReason::Removed { times: 3, rest: Duration::from_mins(10) },
    ]
}

#[test]
fn each_reason_has_its_sentence() {
    let sentences = all().map(|reason| reason.message());
    let wanted = [
        "waits for the agent, which is being restarted",
        "waits for the container runtime to answer",
        "waits for the container runtime to come back",
        "waits for room: 12 % free on /images, starts at 21 %; remove unused images or lower --min-free",
        "waits because slow.example asked for fewer requests",
        "waits for one of 2 places",
        "waits to be pulled alone, because the container runtime stopped 2 times while it was pulled",
        "waits to be pulled alone, because the disk ran out of room while it was pulled",
        "waits for an image that is pulled alone",
        "waits 10 minutes because this node removed the image 3 times: it lacks room",
    ];
    assert_eq!(sentences, wanted);
}

#[test]
fn a_reason_is_counted_under_its_short_word() {
    for reason in all() {
        let mut waits = Waits::default();
        waits.add(Some(&reason));
        let counted: Vec<_> = waits.by_reason().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [(reason.reason(), 1)], "{reason:?}");
    }
}

#[test]
fn only_the_amount_of_room_makes_no_difference() {
    assert!(room(12).is_like(&room(9)));
    for (place, reason) in all().iter().enumerate() {
        for (other_place, other) in all().iter().enumerate() {
            assert_eq!(reason.is_like(other), place == other_place, "{reason:?} and {other:?}");
        }
    }
    let other_registry = WaitReason::SlowRegistry { registry: "slow2.example".to_owned() };
    assert!(!other_registry.is_like(&WaitReason::SlowRegistry { registry: "slow1.example".to_owned() }));
}
