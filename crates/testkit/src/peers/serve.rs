//! One request to a [`PeerMirror`](super::PeerMirror): from the node's content, else from another node's mirror.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{FuturesUnordered, try_unfold};
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HOST, RANGE};
use http::response::Builder;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::time::{sleep, timeout};

use super::route::{self, MIRRORED, Wanted};
use super::{Asked, Shared, Source, lock};

type Body = BoxBody<Bytes, io::Error>;

/// How long another mirror may take to begin its answer.
const PEER_LIMIT: Duration = Duration::from_secs(3);
/// How long a mirror is waited for before the next one is asked as well: one that is busy answers late.
const HEDGE: Duration = Duration::from_millis(50);
/// How much of a file is read at once.
const PIECE: usize = 64 * 1024;

pub(super) async fn serve(request: Request<Incoming>, shared: Arc<Shared>) -> io::Result<Response<Body>> {
    let is_from_peer = request.headers().contains_key(MIRRORED);
    let (source, answer) = match answer(&request, &shared, is_from_peer).await {
        Ok(answered) => answered,
        Err(error) => {
            (Source::Nobody, refusal(StatusCode::INTERNAL_SERVER_ERROR, "UNKNOWN", &format!("{error:#}")))
        }
    };
    let asked = Asked {
        method: request.method().clone(),
        path: request.uri().path_and_query().map_or_else(String::new, ToString::to_string),
        range: header(&request, RANGE.as_str()),
        is_from_peer,
        status: answer.status(),
        source,
    };
    lock(&shared.asked).push(asked);
    Ok(answer)
}

async fn answer(
    request: &Request<Incoming>,
    shared: &Shared,
    is_from_peer: bool,
) -> anyhow::Result<(Source, Response<Body>)> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let refusal = refusal(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", "only GET and HEAD");
        return Ok((Source::Nobody, refusal));
    }
    let wanted = Wanted::of(request);
    if wanted == Wanted::Ping {
        return Ok((Source::Here, Response::new(nothing())));
    }
    if let Some(answer) = from_here(request, &wanted, shared).await? {
        return Ok((Source::Here, answer));
    }
    // A mirror that asks has asked all others itself.
    let is_passed_on = !is_from_peer && wanted != Wanted::Else;
    if is_passed_on && let Some(answer) = from_peers(request, shared).await {
        return Ok((Source::Peer, answer));
    }
    Ok((Source::Nobody, refusal(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN", "no node has it")))
}

async fn from_here(
    request: &Request<Incoming>,
    wanted: &Wanted,
    shared: &Shared,
) -> anyhow::Result<Option<Response<Body>>> {
    let (digest, is_manifest) = match wanted {
        Wanted::Ping | Wanted::Else => return Ok(None),
        Wanted::Tag(image) => match shared.store.resolve(image).await? {
            Some(digest) => (digest, true),
            None => return Ok(None),
        },
        Wanted::Digest { digest, is_manifest } => (digest.clone(), *is_manifest),
    };
    let Some((file, length)) = shared.store.open(&digest).await? else { return Ok(None) };
    let kind = if is_manifest { shared.store.media_type(&digest, length).await? } else { None };
    let kind = kind.unwrap_or_else(|| "application/octet-stream".to_owned());
    let head = Response::builder().header(CONTENT_TYPE, kind).header("docker-content-digest", digest);
    let is_head = request.method() == Method::HEAD;
    part(head, file, length, header(request, RANGE.as_str()), is_head).await.map(Some)
}

/// The whole of a file, or the part of it that is asked for.
async fn part(
    head: Builder,
    mut file: File,
    length: u64,
    range: Option<String>,
    is_head: bool,
) -> anyhow::Result<Response<Body>> {
    let head = head.header(ACCEPT_RANGES, "bytes");
    let selected = range.as_deref().map(|text| route::range(text, length));
    let (head, first, count) = match selected {
        None => (head, 0, length),
        Some(Some((first, last))) => {
            let range = format!("bytes {first}-{last}/{length}");
            (head.status(StatusCode::PARTIAL_CONTENT).header(CONTENT_RANGE, range), first, last + 1 - first)
        }
        Some(None) => {
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            return Ok(refusal(status, "SIZE_INVALID", "there are no such bytes"));
        }
    };
    let head = head.header(CONTENT_LENGTH, count);
    if is_head {
        return Ok(head.body(nothing())?);
    }
    file.seek(io::SeekFrom::Start(first)).await?;
    let pieces = try_unfold(file.take(count), |mut file| async move {
        let mut piece = vec![0; PIECE];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        io::Result::Ok((read > 0).then(|| (Frame::data(Bytes::from(piece)), file)))
    });
    Ok(head.body(BodyExt::boxed(StreamBody::new(pieces)))?)
}

/// Asks the mirrors of other nodes until one has it: the next as soon as one has not, or does not answer at once. Each request asks
/// them in another order, so that all who have something send some of it.
async fn from_peers(request: &Request<Incoming>, shared: &Shared) -> Option<Response<Body>> {
    let mut peers = lock(&shared.peers).clone();
    let turn = shared.turn.fetch_add(1, Ordering::Relaxed);
    let order = BuildHasherDefault::<DefaultHasher>::default();
    peers.sort_by_cached_key(|peer| order.hash_one((turn, shared.address, peer)));
    let mut waiting = peers.into_iter().map(|peer| from_peer(request, peer, shared));
    let mut asked: FuturesUnordered<_> = waiting.next().into_iter().collect();
    loop {
        tokio::select! {
            answer = asked.next(), if !asked.is_empty() => match answer {
                Some(Ok(answer)) if answer.status().is_success() => return Some(answer),
                // It has nothing, as a node that is away.
                Some(_) | None => {}
            },
            () = sleep(HEDGE), if waiting.len() > 0 => {}
            else => return None,
        }
        asked.extend(waiting.next());
    }
}

/// Passes a request on to the mirror of another node, which answers for itself only.
async fn from_peer(
    request: &Request<Incoming>,
    peer: SocketAddr,
    shared: &Shared,
) -> anyhow::Result<Response<Body>> {
    let stream = shared.network.connect(peer).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the body that comes over it.
    tokio::spawn(connection);
    let target = request.uri().path_and_query().context("a request has a path")?.as_str();
    let mut passed = Request::builder()
        .method(request.method())
        .uri(target)
        .header(HOST, peer.to_string())
        .header(MIRRORED, "true");
    if let Some(range) = header(request, RANGE.as_str()) {
        passed = passed.header(RANGE, range);
    }
    let answer = timeout(PEER_LIMIT, sender.send_request(passed.body(Empty::<Bytes>::new())?)).await??;
    Ok(answer.map(|body| BodyExt::boxed(body.map_err(io::Error::other))))
}

/// An error in the form of registries.
fn refusal(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let text = serde_json::json!({"errors": [{"code": code, "message": message}]}).to_string();
    let mut answer = Response::new(BodyExt::boxed(Full::from(text).map_err(|never| match never {})));
    *answer.status_mut() = status;
    answer
}

fn nothing() -> Body {
    BodyExt::boxed(Empty::new().map_err(|never| match never {}))
}

fn header(request: &Request<Incoming>, name: &str) -> Option<String> {
    request.headers().get(name)?.to_str().ok().map(ToOwned::to_owned)
}
