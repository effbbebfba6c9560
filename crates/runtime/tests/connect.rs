//! Finding a runtime and checking that it is one.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use prewarm_runtime::fake::Fake;
use prewarm_runtime::{Endpoint, Kind, Runtime, candidates};
use tempfile::{TempDir, tempdir};
use tokio::net::UnixListener;
use tokio::time::Instant;

const SOCKETS: [&str; 6] = [
    "containerd.sock",
    "containerd/containerd.sock",
    "crio.sock",
    "crio/crio.sock",
    "cri-dockerd.sock",
    "cri-dockerd/cri-dockerd.sock",
];

fn run_directory() -> TempDir {
    let directory = tempdir().expect("a test may write temporary files");
    for part in ["containerd", "crio", "cri-dockerd"] {
        std::fs::create_dir(directory.path().join(part)).expect("a test may write temporary files");
    }
    directory
}

async fn refusal(socket: &Path) -> String {
    match Runtime::connect(&Endpoint::unix(socket)).await {
        Ok(_) => panic!("connected to {}", socket.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn sockets_are_tried_in_a_fixed_order() {
    let expected: Vec<_> = SOCKETS.iter().map(|socket| Path::new("/run").join(socket)).collect();
    assert_eq!(candidates(Path::new("/run")), expected);
}

#[tokio::test]
async fn every_candidate_is_found() {
    for socket in SOCKETS {
        let directory = run_directory();
        Fake::new().listen(&directory.path().join(socket)).unwrap();
        let runtime = Runtime::detect(directory.path()).await.unwrap();
        assert_eq!((runtime.kind(), runtime.version()), (Kind::Containerd, "2.4.2"), "{socket}");
    }
}

#[tokio::test]
async fn the_first_candidate_that_answers_is_chosen() {
    let directory = run_directory();
    // The first socket is left over from a program that has ended.
    drop(UnixListener::bind(directory.path().join("containerd.sock")).unwrap());
    Fake::crio().listen(&directory.path().join("crio/crio.sock")).unwrap();
    Fake::new().listen(&directory.path().join("cri-dockerd.sock")).unwrap();
    assert_eq!(Runtime::detect(directory.path()).await.unwrap().kind(), Kind::CriO);
}

#[tokio::test]
async fn without_a_runtime_the_error_of_each_candidate_is_reported() {
    let directory = run_directory();
    std::fs::write(directory.path().join("crio.sock"), "").unwrap();
    drop(UnixListener::bind(directory.path().join("containerd.sock")).unwrap());
    let error = Runtime::detect(directory.path()).await.err().unwrap().to_string();
    for socket in SOCKETS {
        assert!(error.contains(socket), "{socket} is missing in: {error}");
    }
    assert!(error.contains("crio.sock is not a socket") && error.contains("nobody listens on"), "{error}");
    let nowhere = Runtime::detect(&directory.path().join("none")).await.err().unwrap().to_string();
    assert!(nowhere.contains("cannot be read"), "{nowhere}");
}

#[tokio::test]
async fn the_run_directory_may_be_a_link_as_it_often_is() {
    let directory = run_directory();
    Fake::new().listen(&directory.path().join("containerd/containerd.sock")).unwrap();
    let elsewhere = tempdir().unwrap();
    let link = elsewhere.path().join("run");
    symlink(directory.path(), &link).unwrap();
    assert_eq!(Runtime::detect(&link).await.unwrap().kind(), Kind::Containerd);
}

#[tokio::test]
async fn a_link_is_not_followed_anywhere_on_the_way_to_the_socket() {
    let directory = run_directory();
    let socket = directory.path().join("containerd/containerd.sock");
    Fake::new().listen(&socket).unwrap();
    let (link, linked_directory) = (directory.path().join("link.sock"), directory.path().join("linked"));
    symlink(&socket, &link).unwrap();
    symlink(directory.path().join("containerd"), &linked_directory).unwrap();
    for path in [link, linked_directory.join("containerd.sock")] {
        let error = refusal(&path).await;
        assert!(error.contains("symbolic link") && error.contains("real path"), "{error}");
    }
    assert!(Runtime::connect(&Endpoint::unix(&socket)).await.is_ok());
}

#[tokio::test]
async fn a_link_put_in_the_place_of_the_socket_later_is_not_followed_either() {
    let directory = run_directory();
    let (socket, other) = (directory.path().join("containerd.sock"), directory.path().join("other.sock"));
    let (fake, trap) = (Fake::new(), Fake::new());
    let endpoint = fake.listen(&socket).unwrap();
    let runtime = Runtime::connect(&endpoint).await.unwrap();
    trap.listen(&other).unwrap();
    std::fs::remove_file(&socket).unwrap();
    symlink(&other, &socket).unwrap();
    fake.stop();
    let error = loop {
        match runtime.images().await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(error.is_runtime_away(), "{error:?}");
    let error = runtime.images().await.err().unwrap();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert_eq!(trap.requests("ListImages"), 0);
}

#[tokio::test]
async fn a_path_may_be_longer_than_a_socket_address() {
    let directory = tempdir().unwrap();
    let deep = directory.path().join("a".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let (short, long) = (directory.path().join("s.sock"), deep.join("runtime.sock"));
    Fake::new().listen(&short).unwrap();
    std::fs::rename(&short, &long).unwrap();
    assert!(Runtime::connect(&Endpoint::unix(&long)).await.is_ok());
}

#[tokio::test]
async fn something_that_is_no_runtime_is_refused() {
    let directory = run_directory();
    let socket = directory.path().join("containerd.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = tonic::transport::Server::builder().add_routes(tonic::service::Routes::default());
    let incoming = futures::stream::unfold(listener, async |listener| {
        let accepted = listener.accept().await.map(|(stream, _)| stream);
        Some((accepted, listener))
    });
    tokio::spawn(server.serve_with_incoming(Box::pin(incoming)));
    let error = refusal(&socket).await;
    assert!(error.contains("does not speak CRI v1"), "{error}");
}

#[tokio::test]
async fn a_silent_socket_is_refused() {
    let directory = run_directory();
    let socket = directory.path().join("containerd.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let error = refusal(&socket).await;
    assert!(error.contains("did not answer ImageFsInfo"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_frozen_runtime_gets_ten_seconds() {
    let fake = Fake::new();
    fake.freeze();
    let start = Instant::now();
    let error = Runtime::connect(&fake.endpoint()).await.err().unwrap().to_string();
    assert!(error.contains("did not answer ImageFsInfo"), "{error}");
    assert_eq!(start.elapsed().as_secs(), Duration::from_secs(10).as_secs());
}

#[tokio::test]
async fn all_candidates_that_answer_are_found_with_name_version_and_socket() {
    let directory = run_directory();
    let debian = Fake::new();
    debian.is_version("1.7.24~ds1");
    debian.listen(&directory.path().join("containerd/containerd.sock")).unwrap();
    let crio = directory.path().join("crio/crio.sock");
    Fake::crio().listen(&crio).unwrap();
    drop(UnixListener::bind(directory.path().join("containerd.sock")).unwrap());
    let answering = Runtime::all(directory.path()).await.unwrap();
    let said: Vec<_> = answering.iter().map(|runtime| (runtime.name(), runtime.version())).collect();
    assert_eq!(said, [("containerd", "1.7.24~ds1"), ("cri-o", "1.34.0")]);
    let crio = std::fs::canonicalize(crio).unwrap();
    assert_eq!(answering[1].place(), crio.display().to_string());
    let empty = run_directory();
    let error = Runtime::all(empty.path()).await.err().unwrap().to_string();
    assert!(error.starts_with("no container runtime below"), "{error}");
}
