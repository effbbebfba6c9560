//! Who begins, wave after wave.

use super::*;

const ONE: Limits = Limits { seeds: 1, first: 1 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn place(number: usize) -> Place {
    Place {
        node: format!("n{number:04}").as_str().into(),
        zone: NodeZone::default(),
        is_able: true,
        is_doubtful: false,
        holds: Holds::Nothing,
        role: None,
        progress: Progress::Idle,
        is_refused: false,
        is_resting: false,
    }
}

fn places(count: usize) -> Vec<Place> {
    (0..count).map(place).collect()
}

/// Carries out what is decided. Returns how many of each role were added.
fn step(places: &mut [Place], limits: Limits, now: i64) -> (usize, usize) {
    let next = next(places, Past::default(), limits, "uid", at(now));
    let (mut seeds, mut mirrors) = (0, 0);
    for place in places.iter_mut() {
        let Some(role) = next.roles.get(&place.node) else { continue };
        if place.role.is_none() {
            match role {
                Role::Seed => seeds += 1,
                Role::Mirror => mirrors += 1,
            }
        }
        place.role = Some(*role);
        place.progress = Progress::Busy;
    }
    (seeds, mirrors)
}

fn finish(places: &mut [Place]) {
    for place in places.iter_mut().filter(|place| place.progress == Progress::Busy) {
        place.progress = Progress::Done;
    }
}

fn fail(places: &mut [Place], since: i64) {
    for place in places.iter_mut().filter(|place| place.progress == Progress::Busy) {
        place.progress = Progress::Failing(at(since));
    }
}

#[test]
fn each_wave_is_as_large_as_the_nodes_that_have_the_images() {
    let mut nodes = places(8);
    let mut waves = Vec::new();
    while nodes.iter().any(|node| node.progress != Progress::Done) {
        waves.push(step(&mut nodes, ONE, 0));
        finish(&mut nodes);
    }
    assert_eq!(waves, [(1, 0), (0, 1), (0, 2), (0, 4)]);
}

#[test]
fn five_hundred_nodes_take_no_more_waves_than_doubling_does() {
    let mut nodes = places(500);
    let mut waves = 0;
    while nodes.iter().any(|node| node.progress != Progress::Done) {
        step(&mut nodes, ONE, 0);
        finish(&mut nodes);
        waves += 1;
    }
    assert!(waves <= 10, "{waves} waves");
}

#[test]
fn nobody_asks_mirrors_before_the_registry_has_answered() {
    let mut nodes = places(4);
    assert_eq!(step(&mut nodes, Limits { seeds: 1, first: 4 }, 0), (1, 0));
    assert_eq!(step(&mut nodes, Limits { seeds: 1, first: 4 }, 0), (0, 0));
}

#[test]
fn as_many_ask_the_registry_as_the_limit_says_and_no_more_at_first_than_the_other_limit() {
    let mut nodes = places(9);
    let limits = Limits { seeds: 3, first: 2 };
    assert_eq!(step(&mut nodes, limits, 0), (2, 0));
    finish(&mut nodes);
    assert_eq!(step(&mut nodes, limits, 0), (1, 1));
}

#[test]
fn a_node_that_fails_to_ask_the_registry_is_followed_by_others_ever_more_slowly() {
    let mut nodes = places(5);
    let mut begun = Vec::new();
    let mut now = 0;
    while begun.len() < 4 && now < 10_000 {
        if step(&mut nodes, ONE, now).0 == 1 {
            begun.push(now);
            fail(&mut nodes, now);
        }
        now += 1;
    }
    assert_eq!(begun, [0, 10, 30, 70]);
    let next = next(&nodes, Past::default(), ONE, "uid", at(71));
    assert_eq!((next.roles.len(), next.wake_at), (0, Some(at(150))));
}

#[test]
fn a_node_that_fails_holds_no_place_of_a_wave() {
    let mut nodes = places(6);
    step(&mut nodes, ONE, 0);
    finish(&mut nodes);
    assert_eq!(step(&mut nodes, ONE, 0), (0, 1));
    fail(&mut nodes, 0);
    assert_eq!(step(&mut nodes, ONE, 4), (0, 0), "its mirror may only be late");
    assert_eq!(step(&mut nodes, ONE, 5), (0, 1), "another one begins in its stead");
}

#[test]
fn when_the_last_node_that_had_the_images_loses_them_another_one_asks_the_registry() {
    let mut nodes = places(3);
    while nodes.iter().any(|node| node.progress != Progress::Done) {
        step(&mut nodes, ONE, 0);
        finish(&mut nodes);
    }
    for node in &mut nodes {
        node.progress = Progress::Failing(at(100));
    }
    let seed = nodes.iter().position(|node| node.role == Some(Role::Seed)).unwrap();
    assert_eq!(step(&mut nodes, ONE, 100), (0, 0), "whoever asks the registry does it again");
    assert_eq!(nodes[seed].role, Some(Role::Seed));
    nodes.remove(seed);
    assert_eq!(next(&nodes, Past::default(), ONE, "uid", at(100)).wake_at, Some(at(110)));
    let promoted = next(&nodes, Past::default(), ONE, "uid", at(110)).roles;
    assert_eq!(promoted.into_values().collect::<Vec<_>>(), [Role::Seed]);
    for node in &mut nodes {
        node.is_resting = true;
    }
    assert!(next(&nodes, Past::default(), ONE, "uid", at(110)).roles.is_empty(), "they are left alone");
}

#[test]
fn what_the_registry_refuses_three_nodes_is_asked_by_no_fourth() {
    let mut nodes = places(6);
    for now in 0..10_000 {
        step(&mut nodes, ONE, now);
        for node in nodes.iter_mut().filter(|node| node.progress == Progress::Busy) {
            (node.progress, node.is_refused) = (Progress::Failing(at(now)), true);
        }
    }
    assert_eq!(nodes.iter().filter(|node| node.role.is_some()).count(), 3);
}

#[test]
fn whoever_failed_to_ask_the_registry_is_not_replaced_once_mirrors_serve() {
    let mut nodes = places(6);
    let limits = Limits { seeds: 2, first: 2 };
    step(&mut nodes, limits, 0);
    let first = nodes.iter_mut().find(|node| node.role.is_some()).unwrap();
    first.progress = Progress::Done;
    fail(&mut nodes, 0);
    assert_eq!(next(&nodes, Past::default(), limits, "uid", at(1)).roles.len(), 2);
    for node in nodes.iter_mut().filter(|node| matches!(node.progress, Progress::Failing(_))) {
        (node.role, node.progress) = (Some(Role::Mirror), Progress::Busy);
    }
    let past = Past { is_verified: true, demoted: 1 };
    assert!(!next(&nodes, past, limits, "uid", at(1)).roles.values().any(|role| *role == Role::Seed));
}

#[test]
fn whoever_fails_to_ask_the_registry_asks_mirrors_once_one_has_the_images() {
    let mut nodes = places(3);
    step(&mut nodes, ONE, 0);
    fail(&mut nodes, 0);
    assert_eq!(step(&mut nodes, ONE, 10), (1, 0));
    finish(&mut nodes);
    let next = next(&nodes, Past::default(), ONE, "uid", at(11));
    let failed = nodes.iter().find(|node| matches!(node.progress, Progress::Failing(_))).unwrap();
    assert_eq!(next.roles.get(&failed.node), Some(&Role::Mirror));
}

#[test]
fn nodes_that_ask_the_registry_are_spread_over_zones_and_not_the_first_by_name() {
    let mut nodes = places(20);
    for (number, node) in nodes.iter_mut().enumerate() {
        node.zone = if number < 17 { "a".into() } else { "b".into() };
    }
    step(&mut nodes, Limits { seeds: 2, first: 2 }, 0);
    let zones: BTreeSet<_> =
        nodes.iter().filter(|node| node.role.is_some()).map(|node| node.zone.clone()).collect();
    assert_eq!(zones.len(), 2);
    let first =
        |salt: &str| next(&places(20), Past::default(), ONE, salt, at(0)).roles.into_keys().next().unwrap();
    let starts: BTreeSet<NodeName> = (0..10).map(|salt| first(&salt.to_string())).collect();
    assert!(starts.len() > 3, "ten objects begin at {} nodes", starts.len());
}

#[test]
fn whoever_has_the_images_asks_the_registry_first() {
    let mut nodes = places(20);
    nodes[13].holds = Holds::All;
    nodes[13].zone = "far".into();
    assert_eq!(step(&mut nodes, ONE, 0), (1, 0));
    assert_eq!(nodes[13].role, Some(Role::Seed));
}

#[test]
fn a_node_that_cannot_be_told_anything_is_passed_over() {
    let mut nodes = places(2);
    nodes[0].is_able = false;
    assert_eq!(step(&mut nodes, ONE, 0), (1, 0));
    assert_eq!((nodes[0].role, nodes[1].role), (None, Some(Role::Seed)));
}
