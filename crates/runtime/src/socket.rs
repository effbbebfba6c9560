//! Opens a runtime's socket without following links.
//!
//! Whoever can talk to a runtime is root on the node. A link in the socket's place would lead that power elsewhere
//! (CVE-2026-7374), so no part of the path may be one. The kernel checks this while it opens the path, and the
//! connection goes to what was opened: there is no moment between checking and connecting.

use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use tokio::net::UnixStream;

/// Why a socket cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path does not exist.
    #[error("there is no {}", _0.display())]
    Absent(PathBuf),
    /// A part of the path is a symbolic link.
    #[error("{} leads over a symbolic link, which is not followed on the way to a runtime: give the socket's real path", _0.display())]
    Link(PathBuf),
    /// Something else than a socket is there.
    #[error("{} is not a socket: give the path of the runtime's socket", _0.display())]
    NotSocket(PathBuf),
    /// This process may not open it.
    #[error("{} cannot be opened: {}: run with its user or group", _0.display(), _1)]
    Denied(PathBuf, #[source] io::Error),
    /// It is left over from a program that has ended.
    #[error("nobody listens on {}: {}: start the runtime", _0.display(), _1)]
    Silent(PathBuf, #[source] io::Error),
}

pub async fn connect(path: &Path) -> Result<UnixStream, SocketError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .map_err(|errno| refusal(path, errno))?;
    let stat = rustix::fs::fstat(&opened).map_err(|errno| refusal(path, errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(SocketError::NotSocket(path.to_owned()));
    }
    // The kernel's own name for what was opened. It is also short, while socket addresses are limited to 108 bytes.
    let name = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let connected = UnixStream::connect(name).await;
    connected.map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => SocketError::Denied(path.to_owned(), source),
        _ => SocketError::Silent(path.to_owned(), source),
    })
}

fn refusal(path: &Path, errno: Errno) -> SocketError {
    let path = path.to_owned();
    match errno {
        Errno::NOENT | Errno::NOTDIR => SocketError::Absent(path),
        Errno::LOOP => SocketError::Link(path),
        other => SocketError::Denied(path, other.into()),
    }
}
