//! Which files to check, and their text.
//!
//! Two kinds of trouble are kept apart: a file that cannot be read at all ends in exit code 2, while a file
//! that is no manifest (too large, binary, another encoding) is a finding like any other.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::yaml::Position;

/// How much of a file is read. The API server refuses objects far smaller than this.
pub const MAX_FILE_BYTES: usize = 8 << 20;

/// What marks a file in a folder as a manifest.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Something to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Named `-`.
    Stdin,
    /// A file named by the user or found in a folder.
    File(PathBuf),
}

impl Source {
    /// How findings call it.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Reads it, but no more than one byte over the limit.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Stdin => read_limited(io::stdin().lock()),
            Self::File(path) => read_limited(File::open(path)?),
        }
    }
}

fn read_limited(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Finds the files behind what the user named. Each is checked once, however often it was named.
pub fn list(named: &[PathBuf]) -> (Vec<Source>, Vec<Unreadable>) {
    let mut sources = Vec::new();
    let mut unreadable = Vec::new();
    for path in named {
        match list_one(path) {
            Ok(found) => sources.extend(found),
            Err(reason) => unreadable.push(Unreadable { name: path.display().to_string(), reason }),
        }
    }
    let mut seen = BTreeSet::new();
    sources.retain(|source| seen.insert(source.clone()));
    (sources, unreadable)
}

/// Something the user named that could not be read, and a sentence about why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// As the user named it.
    pub name: String,
    /// What is wrong and what to try.
    pub reason: String,
}

impl Unreadable {
    /// Says what to do about an error of the operating system.
    pub fn explain(error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::NotFound => {
                "there is no such file or folder; check the spelling, or use `-` to read from standard input"
                    .to_owned()
            }
            io::ErrorKind::PermissionDenied => {
                "permission denied; check who may read it with `ls -l`".to_owned()
            }
            _ => error.to_string(),
        }
    }
}

fn list_one(path: &Path) -> Result<Vec<Source>, String> {
    if path == Path::new("-") {
        return Ok(vec![Source::Stdin]);
    }
    let is_folder = fs::metadata(path).map_err(|error| Unreadable::explain(&error))?.is_dir();
    if !is_folder {
        return Ok(vec![Source::File(path.to_owned())]);
    }
    let mut files = Vec::new();
    walk(path, &mut files)?;
    if files.is_empty() {
        return Err(
            "no .yaml, .yml or .json file is in this folder; name a file to check it whatever its ending"
                .to_owned(),
        );
    }
    Ok(files.into_iter().map(Source::File).collect())
}

/// Collects the manifests of a folder in sorted order. Links to folders are not followed: they could form a circle.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let trouble = |error: &io::Error| format!("{}: {}", folder.display(), Unreadable::explain(error));
    let mut entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(|error| trouble(&error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| trouble(&error))?;
        match kind.is_dir() {
            _ if is_hidden => {}
            true => walk(&path, files)?,
            false if is_manifest(&path) && !path.is_dir() => files.push(path),
            false => {}
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// The bytes as text, or where and why they are none.
pub fn decode(bytes: Vec<u8>) -> Result<String, (Position, String)> {
    if bytes.len() > MAX_FILE_BYTES {
        let message = format!(
            "the file is larger than {} MiB, which is more than lint reads; split it",
            MAX_FILE_BYTES >> 20
        );
        return Err((Position::START, message));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let message = "the file is UTF-16, as PowerShell's `>` writes it; save it as UTF-8";
        return Err((Position::START, message.to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]);
        (Position::after(&before), "the file is not UTF-8 text from here on; is it a manifest?".to_owned())
    })?;
    match text.char_indices().find(|(_, c)| is_unprintable(*c)) {
        None => Ok(text),
        Some((offset, c)) => {
            let message =
                format!("the file has the control character U+{:04X} here; is it a manifest?", u32::from(c));
            Err((Position::after(&text[..offset]), message))
        }
    }
}

/// Characters that YAML does not allow; binary files are full of them.
fn is_unprintable(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}')
}
