//! What a NodeImage has room for, and who gets it.

use prewarm_api::kruise::ImagePullJobStatus;

use super::*;
use crate::cluster::image_pull_job::explain::{Wait, Why};
use crate::cluster::node_image::room::{Crowd, MOST_IMAGES};

/// What one namespace may have of the images of a NodeImage.
const SHARE: usize = MOST_IMAGES / 4 * 3;

fn in_namespace(namespace: &str, mut job: ImagePullJob) -> ImagePullJob {
    job.metadata.namespace = Some(namespace.to_owned());
    job
}

/// A job that never ends, for this image.
fn lasting(name: &str, image: &str) -> ImagePullJob {
    job(name, &json!({"image": image, "parallelism": 100, "completionPolicy": {"type": "Never"}}))
}

/// Somebody makes many jobs that never end, each for an image of its own.
fn crowd(world: &mut World, namespace: &str, jobs: usize) {
    for number in 0..jobs {
        let name = format!("{namespace}-{number:03}");
        world.create(in_namespace(namespace, lasting(&name, &format!("{namespace}/none-{number:03}:1"))));
    }
}

fn status(world: &World, namespace: &str, name: &str) -> ImagePullJobStatus {
    let key = ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() };
    world.store.jobs[&key].status.clone().unwrap_or_default()
}

/// Reason and message of what a job says of its progress.
fn progress(status: &ImagePullJobStatus) -> (String, String) {
    let found =
        status.conditions.iter().flatten().find(|condition| condition.type_ == "Progressing").unwrap();
    (found.reason.clone(), found.message.clone())
}

fn images(world: &World, prefix: &str) -> usize {
    world.store.images["n1"].spec.images.keys().filter(|name| name.starts_with(prefix)).count()
}

#[test]
fn a_namespace_that_wants_everything_leaves_room_for_others() {
    let mut world = World::of(&["n1"]);
    crowd(&mut world, "hog", MOST_IMAGES);
    world.pass(SECOND);
    assert_eq!(images(&world, "hog/"), SHARE);
    world.create(lasting("late", "app:1")).settle();
    assert_eq!((world.granted("late"), world.counts("late")), (vec!["n1".to_owned()], [1, 1, 0, 0]));
}

#[test]
fn whoever_is_turned_away_waits_learns_why_and_has_not_failed() {
    let mut world = World::of(&["n1", "n2"]);
    crowd(&mut world, "hog", MOST_IMAGES);
    world.pass(SECOND);
    let last = status(&world, "hog", "hog-255");
    assert_eq!([last.desired, last.active, last.failed], [2, 0, 0]);
    assert_eq!(last.completion_time, None);
    let why = "on 2 nodes the jobs of this namespace have their share of the NodeImage; the job goes on there when \
               entries leave";
    assert_eq!(progress(&last), ("WaitingForRoom".to_owned(), why.to_owned()));
    let told = world.events.iter().filter(|event| event.about.name.as_deref() == Some("hog-255"));
    assert_eq!(told.map(|event| event.notice.reason).collect::<Vec<_>>(), ["NoRoom"]);
    let key = ObjectKey { namespace: "hog".to_owned(), name: "hog-255".to_owned() };
    let explained = world.kernel.explain::<ImagePullJob>(&key, world.now).unwrap();
    assert!(explained.values().all(|why| *why == Why::Waiting(Wait::Room(Crowd::Share))), "{explained:?}");
    world.restart();
    let explained = world.kernel.explain::<ImagePullJob>(&key, world.now).unwrap();
    assert!(
        explained.values().all(|why| *why == Why::Waiting(Wait::Room(Crowd::Share))),
        "without a cycle, too"
    );
}

#[test]
fn a_crowded_world_is_at_rest_and_stays_so_after_a_restart() {
    let mut world = World::of(&["n1"]);
    crowd(&mut world, "hog", MOST_IMAGES);
    world.pass(seconds(5));
    assert_eq!(world.pass(seconds(60)), 0);
    world.restart();
    assert_eq!(world.settle(), 0);
}

#[test]
fn whoever_waits_for_room_goes_on_when_there_is_some() {
    let mut world = World::of(&["n1"]);
    crowd(&mut world, "hog", SHARE + 1);
    world.pass(SECOND);
    let waits = format!("hog-{SHARE:03}");
    assert_eq!(progress(&status(&world, "hog", &waits)).0, "WaitingForRoom");
    let first = ObjectKey { namespace: "hog".to_owned(), name: "hog-000".to_owned() };
    world.store.delete_job(&first, world.now);
    world.pass(seconds(5));
    assert_eq!(status(&world, "hog", &waits).active, 1);
    assert_eq!(progress(&status(&world, "hog", &waits)).0, "Pulling");
    assert_eq!(images(&world, "hog/"), SHARE);
}

/// Results that nobody counts any more stay for their time to live, unless somebody waits for their room.
#[test]
fn results_of_jobs_that_are_over_make_room() {
    let mut world = World::of(&["n1"]);
    for number in 0..MOST_IMAGES - 1 {
        let image = json!({"image": format!("app-{number:03}:1"), "parallelism": 100});
        world.create(job(&format!("j-{number:03}"), &image));
    }
    for _ in 0..4 {
        world.pass(SECOND);
        world.pull_all();
    }
    world.pass(SECOND);
    let is_over =
        |job: &ImagePullJob| job.status.as_ref().is_some_and(|status| status.completion_time.is_some());
    assert!(world.store.jobs.values().all(is_over));
    assert!(
        world.store.jobs.values().all(|job| job.status.as_ref().is_some_and(|status| status.succeeded == 1))
    );
}

#[test]
fn many_owners_of_one_tag_leave_room_for_others() {
    let mut world = World::of(&["n1"]);
    for number in 0..1100 {
        world.create(in_namespace("hog", lasting(&format!("hog-{number:04}"), "nginx:1")));
    }
    world.pass(SECOND);
    world.create(lasting("late", "nginx:1")).settle();
    let owners = world.tag("n1", "nginx:1").unwrap().owner_references.unwrap();
    assert_eq!(owners.len(), 768 + 1);
    assert_eq!(world.granted("late"), ["n1"]);
}

#[test]
fn many_tags_of_one_image_leave_room_for_others() {
    let mut world = World::of(&["n1"]);
    for number in 0..900 {
        world.create(in_namespace("hog", lasting(&format!("hog-{number:04}"), &format!("nginx:{number}"))));
    }
    world.pass(SECOND);
    world.create(lasting("late", "nginx:late")).settle();
    assert_eq!(world.granted("late"), ["n1"]);
    let tags = world.store.images["n1"].spec.images["nginx"].tags.len();
    assert!((400..=768).contains(&tags), "{tags}: bytes may count before tags do");
}

/// With no place to hold, a node without room holds up none of those that have it.
#[test]
fn a_node_without_room_holds_no_place() {
    let mut world = World::of(&["n1", "n2"]);
    for number in 0..SHARE {
        let spec = json!({"image": format!("none-{number:03}:1"), "selector": {"names": ["n1"]}, "completionPolicy": {"type": "Never"}});
        world.create(job(&format!("j-{number:03}"), &spec));
    }
    world.pass(SECOND);
    world.create(job("all", &json!({"image": "app:1", "parallelism": 1}))).settle();
    assert_eq!((world.granted("all"), world.counts("all")), (vec!["n2".to_owned()], [2, 1, 0, 0]));
    assert_eq!(progress(&world.status("all")).0, "WaitingForRoom");
}

/// A job as earlier versions took them is stored with more than fits anywhere.
#[test]
fn an_entry_that_fits_nowhere_fails_with_its_reason_and_alone() {
    let mut world = World::of(&["n1"]);
    let note: String = "x".repeat(400_000);
    world.create(job("huge", &json!({"image": "app:1", "sandboxConfig": {"annotations": {"note": note}}})));
    world.create(job("small", &json!({"image": "app:1"})));
    world.pass(SECOND);
    assert_eq!(world.counts("huge"), [1, 0, 0, 1]);
    let told: Vec<&str> = world.events.iter().map(|event| event.notice.note.as_str()).collect();
    assert!(told.iter().any(|note| note.starts_with("app:1 cannot be written to node n1")), "{told:?}");
    assert_eq!((world.granted("small"), world.counts("small")), (vec!["n1".to_owned()], [1, 1, 0, 0]));
}
