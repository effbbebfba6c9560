use super::*;

const GIB: u64 = 1 << 30;

fn read(text: &str) -> MinFree {
    text.parse().unwrap()
}

#[test]
fn shares_and_amounts_are_read() {
    let texts = [
        ("20%", MinFree::Share(2000)),
        (" 20 % ", MinFree::Share(2000)),
        ("12.5%", MinFree::Share(1250)),
        ("0%", MinFree::Share(0)),
        ("99.99%", MinFree::Share(9999)),
        ("10GiB", MinFree::Bytes(10 * GIB)),
        ("10Gi", MinFree::Bytes(10 * GIB)),
        ("10 gib", MinFree::Bytes(10 * GIB)),
        ("1.5GiB", MinFree::Bytes(3 * GIB / 2)),
        ("500MB", MinFree::Bytes(500_000_000)),
        ("500M", MinFree::Bytes(500_000_000)),
        ("7k", MinFree::Bytes(7000)),
        ("2TB", MinFree::Bytes(2_000_000_000_000)),
        ("1Ti", MinFree::Bytes(1 << 40)),
        ("1000B", MinFree::Bytes(1000)),
        ("123456", MinFree::Bytes(123_456)),
    ];
    for (text, wanted) in texts {
        assert_eq!(text.parse(), Ok(wanted), "{text}");
    }
}

#[test]
fn other_texts_are_refused_with_what_to_write() {
    for text in
        ["", "%", "100%", "120%", "-5%", "GiB", "10 potatoes", "1e9", "1.", ".5", "1.2.3", "99999999TiB"]
    {
        let error = text.parse::<MinFree>().unwrap_err();
        let wanted = format!(
            "cannot read {text:?} as room to keep free; write a share below 100% such as 20% or an amount such as 10GiB"
        );
        assert_eq!(error.to_string(), wanted);
    }
}

#[test]
fn a_refused_text_is_repeated_only_in_part() {
    assert!("x".repeat(100_000).parse::<MinFree>().unwrap_err().to_string().len() < 200);
}

#[test]
fn a_fifth_stays_free_by_default() {
    assert_eq!(MinFree::default(), read("20%"));
    assert_eq!(MinFree::default().floor(500 * GIB), 100 * GIB);
}

#[test]
fn room_is_low_below_the_floor_and_not_at_it() {
    assert!(read("20%").is_low(199, 1000));
    assert!(!read("20%").is_low(200, 1000));
    assert!(read("300").is_low(299, 1000));
    assert!(!read("300").is_low(300, 1000));
}

#[test]
fn held_pulls_start_a_hundredth_above_the_floor() {
    assert!(read("20%").is_still_low(209, 1000));
    assert!(!read("20%").is_still_low(210, 1000));
}

#[test]
fn on_large_filesystems_one_gibibyte_above_the_floor_is_enough() {
    assert_eq!(read("20%").start(1000 * GIB), 201 * GIB);
}

#[test]
fn a_floor_that_leaves_no_room_above_it_is_still_reached_by_a_free_filesystem() {
    assert!(!read("99.9%").is_still_low(1000, 1000));
}

#[test]
fn a_floor_above_the_capacity_holds_everything() {
    assert!(read("2000").is_low(1000, 1000));
    assert!(read("2000").is_still_low(1000, 1000));
}

#[test]
fn without_a_floor_nothing_is_held() {
    for min_free in [read("0"), read("0%")] {
        assert!(!min_free.is_low(0, 1000));
        assert!(!min_free.is_still_low(0, 1000));
    }
}

#[test]
fn a_filesystem_without_size_does_not_panic() {
    assert!(!read("20%").is_low(0, 0));
    assert_eq!(read("20%").floor(u64::MAX), u64::MAX / 5);
    assert_eq!(read("20%").show(0, 0), "0 %");
}

#[test]
fn a_waiting_task_says_how_much_is_free_and_what_it_needs() {
    assert_eq!(
        read("19%").waiting(12 * GIB, 100 * GIB, "/var/lib/containerd"),
        "waits for room: 12 % free on /var/lib/containerd, starts at 20 %; remove unused images or lower --min-free"
    );
    assert_eq!(
        read("10GiB").waiting(GIB + GIB / 4, 1000 * GIB, "/images"),
        "waits for room: 1.2 GiB free on /images, starts at 11 GiB; remove unused images or lower --min-free"
    );
}

#[test]
fn a_stopped_pull_says_what_has_to_stay_free() {
    assert_eq!(
        read("20%").stopped(199_999, 1_000_000, "/images"),
        "stopped for lack of room: 19.9 % free on /images, 20 % has to stay free; \
         remove unused images or lower --min-free"
    );
}

#[test]
fn what_is_free_never_looks_like_what_is_needed() {
    let min_free = read("20.01%");
    let (free, capacity) = (200_099, 1_000_000);
    assert!(min_free.is_low(free, capacity));
    assert_eq!(min_free.show(free, capacity), "20 %");
    assert_eq!(min_free.show_up(min_free.floor(capacity), capacity), "20.1 %");
}

/// A disk with room for bytes, and these inodes.
fn with_inodes(free: u64, min_free: MinFree) -> DiskRoom {
    let (room, inodes) = (Room { free: 500, capacity: 1000 }, Some(Inodes { free, total: 1000 }));
    DiskRoom { room, inodes, min_free, path: "/images".into() }
}

#[test]
fn inodes_are_guarded_like_bytes() {
    let judged = [100, 99, 109, 110].map(|free| {
        let disk = with_inodes(free, MinFree::default());
        (disk.is_low(), disk.is_still_low())
    });
    assert_eq!(judged, [(false, true), (true, true), (false, true), (false, false)]);
    let short = with_inodes(32, MinFree::default());
    assert_eq!(
        short.waiting(),
        "waits for room: 3.2 % of inodes free on /images, starts at 11 %; remove unused images or other files"
    );
    assert_eq!(
        short.stopped(),
        "stopped for lack of room: 3.2 % of inodes free on /images, 10 % has to stay free; remove unused images or \
         other files"
    );
}

#[test]
fn who_keeps_no_bytes_free_keeps_no_inodes_free_either() {
    assert!(!with_inodes(0, MinFree::Bytes(0)).is_low());
    assert!(!with_inodes(0, MinFree::Share(0)).is_still_low());
}

#[test]
fn a_shortage_of_bytes_is_named_first() {
    let short = DiskRoom { room: Room { free: 1, capacity: 1000 }, ..with_inodes(0, MinFree::default()) };
    assert!(short.waiting().starts_with("waits for room: 0.1 % free on /images"), "{}", short.waiting());
}
