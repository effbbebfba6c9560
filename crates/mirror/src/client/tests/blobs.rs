//! Blobs, whole and in parts, from mirrors that do and do not keep their word.

use super::*;

/// Content and a mirror that serves it well.
async fn good(length: usize) -> (Vec<u8>, Mirror) {
    let blob = content(length);
    let served = blob.clone();
    (blob, Mirror::start(move |seen| Reply::part(seen, &served)).await)
}

fn begin(mirrors: &Mirrors, content: &[u8], offset: u64) -> Blob {
    mirrors.blob("library/nginx", &descriptor(content), offset, &BTreeSet::new())
}

/// Reads to the end. A blob that waits for bytes that never come is helped by time.
async fn read(blob: &mut Blob) -> Result<Vec<u8>, (Vec<u8>, FetchError)> {
    let mut bytes = Vec::new();
    loop {
        match blob.next().await {
            Ok(Some(piece)) => bytes.extend_from_slice(&piece),
            Ok(None) => return Ok(bytes),
            Err(error) => return Err((bytes, error)),
        }
    }
}

#[tokio::test]
async fn a_blob_comes_whole_and_is_asked_for_once() {
    let node = Node::new();
    let (content, mirror) = good(300_000).await;
    let mirrors = node.plain(&[&mirror]);
    let mut blob = begin(&mirrors, &content, 0);
    assert_eq!(read(&mut blob).await.unwrap(), content);
    assert_eq!((blob.position(), blob.served_by()), (300_000, vec![mirror.http()]));
    let target = format!("/v2/library/nginx/blobs/{}?ns=docker.io", Digest::of(&content));
    assert_eq!(mirror.targets(), [target]);
    assert_eq!(blob.next().await, Ok(None));
}

#[tokio::test]
async fn an_empty_blob_is_nobody_asked_for() {
    let node = Node::new();
    let (_, mirror) = good(1).await;
    let mirrors = node.plain(&[&mirror]);
    assert_eq!(read(&mut begin(&mirrors, b"", 0)).await.unwrap(), b"");
    assert!(mirror.seen().is_empty());
}

#[tokio::test]
async fn a_blob_goes_on_where_an_earlier_attempt_ended() {
    let node = Node::new();
    let (content, mirror) = good(100_000).await;
    let mirrors = node.plain(&[&mirror]);
    assert_eq!(read(&mut begin(&mirrors, &content, 70_000)).await.unwrap(), content[70_000..]);
    assert_eq!(mirror.seen()[0].offset(), Some(70_000));
}

#[tokio::test]
async fn of_a_mirror_without_ranges_the_known_bytes_are_left_out() {
    let node = Node::new();
    let content = content(100_000);
    let served = content.clone();
    let mirror = Mirror::start(move |_| Reply::new(200, &served)).await;
    let mirrors = node.plain(&[&mirror]);
    assert_eq!(read(&mut begin(&mirrors, &content, 70_000)).await.unwrap(), content[70_000..]);
}

#[tokio::test]
async fn a_mirror_that_answers_with_another_part_is_left() {
    let node = Node::new();
    let (content, honest) = good(1_000).await;
    for range in
        ["bytes 499-999/1000", "bytes 500-999/1001", "bytes 500-1000/*", "bytes 9-3/1000", "pages 5", ""]
    {
        let tail = content[500..].to_vec();
        let odd = Mirror::start(move |_| Reply::new(206, &tail).with("Content-Range", range)).await;
        let mirrors = node.plain(&[&odd, &honest]);
        let mut blob = begin(&mirrors, &content, 500);
        assert_eq!(read(&mut blob).await.unwrap(), content[500..], "{range}");
        assert_eq!(blob.served_by(), [honest.http()], "{range}");
    }
}

#[tokio::test]
async fn a_mirror_that_stalls_is_left_for_the_next_at_the_offset_reached() {
    let node = Node::new();
    let (content, second) = good(100_000).await;
    let served = content.clone();
    let stalling = Mirror::start(move |_| Reply::new(200, &served).cut_to(40_000).then_hang()).await;
    let mirrors = node.plain(&[&stalling, &second]);
    let mut blob = begin(&mirrors, &content, 0);
    let mut bytes = Vec::new();
    while bytes.len() < 40_000 {
        bytes.extend_from_slice(&blob.next().await.unwrap().unwrap());
    }
    {
        let mut next = std::pin::pin!(blob.next());
        assert!(poll!(&mut next).is_pending());
        tokio::time::advance(PATIENCE.stall + Duration::from_millis(1)).await;
        bytes.extend_from_slice(&next.await.unwrap().unwrap());
    }
    bytes.extend_from_slice(&read(&mut blob).await.unwrap());
    assert_eq!(bytes, content);
    assert_eq!(second.seen()[0].offset(), Some(40_000));
    assert_eq!(blob.served_by(), [stalling.http(), second.http()]);
}

#[tokio::test]
async fn a_mirror_that_breaks_off_is_left_for_the_next_at_the_offset_reached() {
    let node = Node::new();
    let (content, second) = good(100_000).await;
    let served = content.clone();
    let breaking = Mirror::start(move |_| Reply::new(200, &served).cut_to(30_000)).await;
    let mirrors = node.plain(&[&breaking, &second]);
    assert_eq!(read(&mut begin(&mirrors, &content, 0)).await.unwrap(), content);
    assert_eq!(second.seen()[0].offset(), Some(30_000));
}

#[tokio::test]
async fn a_mirror_that_cuts_every_answer_is_asked_again_while_it_brings_something() {
    let node = Node::new();
    let content = content(200_000);
    let served = content.clone();
    let cutting = Mirror::start(move |seen| Reply::part(seen, &served).cut_to(50_000)).await;
    let mirrors = node.plain(&[&cutting]);
    assert_eq!(read(&mut begin(&mirrors, &content, 0)).await.unwrap(), content);
    let offsets: Vec<_> = cutting.seen().iter().map(Seen::offset).collect();
    assert_eq!(offsets, [None, Some(50_000), Some(100_000), Some(150_000)]);
}

#[tokio::test]
async fn a_mirror_that_brings_next_to_nothing_is_not_asked_for_ever() {
    let node = Node::new();
    let content = content(200_000);
    let served = content.clone();
    let stingy = Mirror::start(move |seen| Reply::part(seen, &served).cut_to(100)).await;
    let (bytes, error) = read(&mut begin(&node.plain(&[&stingy]), &content, 0)).await.unwrap_err();
    assert_eq!((bytes.len(), stingy.seen().len()), (100, 1));
    assert_eq!(failures(&error), [Failure::BrokenOff { at: 100 }]);
    assert_eq!(error.class(), FailureClass::Unreachable);
}

/// Reads from a mirror that sends a byte after each of these pauses, as often as that.
async fn read_drips(blob: &mut Blob, dripping: &Mirror, pause: Duration, times: usize) {
    let first = async {
        dripping.asked().await;
        tokio::task::yield_now().await;
        tokio::time::advance(pause + Duration::from_millis(1)).await;
    };
    join!(blob.next(), first).0.unwrap();
    for _ in 1..times {
        let mut next = std::pin::pin!(blob.next());
        drop(poll!(&mut next));
        tokio::time::advance(pause + Duration::from_millis(1)).await;
        next.await.unwrap();
    }
}

#[tokio::test]
async fn a_mirror_that_drips_is_left_for_the_next_one_after_a_minute() {
    let node = Node::new();
    let (content, second) = good(100_000).await;
    let served = content.clone();
    let pause = Duration::from_secs(15);
    let dripping = Mirror::start(move |seen| Reply::part(seen, &served).dripping(pause)).await;
    let mirrors = node.plain(&[&dripping, &second]);
    let mut blob = begin(&mirrors, &content, 0);
    read_drips(&mut blob, &dripping, pause, 5).await;
    assert_eq!(blob.served_by(), [dripping.http(), second.http()]);
    assert_eq!(second.seen()[0].offset(), Some(4));
}

#[tokio::test]
async fn a_mirror_that_drips_is_kept_if_there_is_no_other() {
    let node = Node::new();
    let content = content(100_000);
    let (served, pause) = (content.clone(), Duration::from_secs(15));
    let dripping = Mirror::start(move |seen| Reply::part(seen, &served).dripping(pause)).await;
    let absent = Mirror::start(|_| Reply::new(404, b"")).await;
    let mut blob = begin(&node.plain(&[&absent, &dripping]), &content, 0);
    read_drips(&mut blob, &dripping, pause, 12).await;
    assert_eq!((blob.served_by(), dripping.seen().len()), (vec![dripping.http()], 1));
}

#[tokio::test]
async fn a_mirror_in_trouble_is_asked_last_for_later_pieces() {
    let node = Node::new();
    let broken = Mirror::start(|_| Reply::new(503, b"")).await;
    let (content, second) = good(1_000).await;
    let mirrors = node.plain(&[&broken, &second]);
    for _ in 0..3 {
        assert_eq!(read(&mut begin(&mirrors, &content, 0)).await.unwrap(), content);
    }
    assert_eq!((broken.seen().len(), second.seen().len()), (1, 3));
}

#[tokio::test]
async fn wrong_content_is_noticed_before_its_last_byte_and_the_mirror_is_named() {
    let node = Node::new();
    let (content, honest) = good(100_000).await;
    let mut wrong = content.clone();
    wrong[500] ^= 1;
    let liar = Mirror::start(move |seen| Reply::part(seen, &wrong)).await;
    let mirrors = node.plain(&[&liar, &honest]);
    let mut blob = begin(&mirrors, &content, 0);
    let (bytes, error) = read(&mut blob).await.unwrap_err();
    assert!(bytes.len() < content.len());
    assert_eq!((error.class(), error.suspects()), (FailureClass::Corrupt, &[liar.http()][..]));
    assert_eq!(blob.next().await.unwrap_err(), error);

    let suspects = BTreeSet::from([liar.http()]);
    let mut again = mirrors.blob("library/nginx", &descriptor(&content), 0, &suspects);
    assert_eq!(read(&mut again).await.unwrap(), content);
    let all: BTreeSet<String> = [liar.http(), honest.http()].into();
    let nobody = read(&mut mirrors.blob("library/nginx", &descriptor(&content), 0, &all)).await;
    assert!(nobody.unwrap_err().1.has_no_mirror());
}

#[tokio::test]
async fn all_mirrors_that_had_a_part_in_a_wrong_blob_are_named() {
    let node = Node::new();
    let (content, honest) = good(100_000).await;
    let mut wrong = content.clone();
    wrong[500] ^= 1;
    let liar = Mirror::start(move |seen| Reply::part(seen, &wrong).cut_to(60_000)).await;
    let mirrors = node.plain(&[&liar, &honest]);
    let (_, error) = read(&mut begin(&mirrors, &content, 0)).await.unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.contains(&liar.http()) && sentence.contains(&honest.http()), "{sentence}");
    assert_eq!(error.suspects(), [liar.http(), honest.http()]);
}

#[tokio::test]
async fn a_body_longer_than_the_descriptor_is_cut_off_with_an_error() {
    let node = Node::new();
    let content = content(1_000);
    let longer = [content.as_slice(), b"more"].concat();
    let (first, second) = (longer.clone(), longer);
    let announcing = Mirror::start(move |_| Reply::new(200, &first)).await;
    let flooding = Mirror::start(move |_| Reply::unannounced(200, &second)).await;
    let (bytes, error) =
        read(&mut begin(&node.plain(&[&announcing, &flooding]), &content, 0)).await.unwrap_err();
    assert!(bytes.len() < content.len());
    let expected = [Failure::Length { length: 1_004, size: 1_000 }, Failure::TooLong { most: 1_000 }];
    assert_eq!(failures(&error), expected);
    assert_eq!(error.class(), FailureClass::Corrupt);
}

#[tokio::test]
async fn a_blob_that_no_mirror_has_is_not_there_yet() {
    let node = Node::new();
    let mirror = Mirror::start(|_| Reply::new(404, b"")).await;
    let mirrors = node.plain(&[&mirror]);
    let (_, error) = read(&mut begin(&mirrors, b"content", 0)).await.unwrap_err();
    assert!(error.is_not_there_yet());
}

#[tokio::test]
async fn a_caller_that_goes_and_comes_back_misses_nothing() {
    let node = Node::new();
    let (content, mirror) = good(100_000).await;
    let mirrors = node.plain(&[&mirror]);
    let mut blob = begin(&mirrors, &content, 0);
    let mut bytes = Vec::new();
    loop {
        // Most of these are dropped before they are done.
        let piece = futures::FutureExt::now_or_never(blob.next());
        match piece {
            Some(Ok(Some(piece))) => bytes.extend_from_slice(&piece),
            Some(Ok(None)) => break,
            Some(Err(error)) => panic!("{error}"),
            None if blob.position() == 0 => bytes.extend_from_slice(&blob.next().await.unwrap().unwrap()),
            None => tokio::task::yield_now().await,
        }
    }
    assert_eq!(bytes, content);
}
