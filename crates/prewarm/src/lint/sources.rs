//! Finds the files to check and reads them.
//!
//! A file that cannot be read leads to exit code 2. What the bytes mean is decided elsewhere.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// At most this much of a file is read. The API server already refuses far smaller objects.
pub const MAX_FILE_BYTES: usize = 8 << 20;

/// The extensions that mark a file in a folder as a manifest.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Standard input, named `-`.
    Stdin,
    /// A file named by the user or found in a folder.
    File(PathBuf),
}

impl Source {
    /// Its name in findings.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Reads at most one byte more than the limit.
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

#[derive(Debug, Default)]
pub struct Listing {
    /// The files in the order of the names, sorted within a folder.
    pub sources: Vec<Source>,
    /// What could not be listed; the rest is checked all the same.
    pub unreadable: Vec<Unreadable>,
}

/// Finds the files for the names that the user gave. Each file is checked once, even if it was named twice.
pub fn list(named: &[PathBuf]) -> Listing {
    let mut listing = Listing::default();
    for path in named {
        list_one(path, &mut listing);
    }
    let mut seen = BTreeSet::new();
    listing.sources.retain(|source| seen.insert(source.clone()));
    listing
}

/// A file or folder that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// As the user named it.
    pub name: String,
    /// What is wrong and what to try.
    pub reason: String,
}

impl Unreadable {
    /// Suggests what to do about an error of the operating system.
    pub fn new(name: String, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => {
                "there is no such file or folder; check the spelling, or use `-` to read from standard input"
                    .to_owned()
            }
            io::ErrorKind::PermissionDenied => {
                "permission denied; check who may read it with `ls -l`".to_owned()
            }
            _ => error.to_string(),
        };
        Self { name, reason }
    }
}

fn list_one(path: &Path, listing: &mut Listing) {
    if path == Path::new("-") {
        return listing.sources.push(Source::Stdin);
    }
    let name = path.display().to_string();
    match fs::metadata(path) {
        Err(error) => listing.unreadable.push(Unreadable::new(name, &error)),
        Ok(metadata) if !metadata.is_dir() => listing.sources.push(Source::File(path.to_owned())),
        Ok(_) => {
            let before = (listing.sources.len(), listing.unreadable.len());
            walk(path, listing);
            if before == (listing.sources.len(), listing.unreadable.len()) {
                let reason = "no .yaml, .yml or .json file is in this folder; name a file to check it whatever its ending";
                listing.unreadable.push(Unreadable { name, reason: reason.to_owned() });
            }
        }
    }
}

/// Collects the manifests of a folder in sorted order. Links to folders are not followed because they could form a
/// cycle.
fn walk(folder: &Path, listing: &mut Listing) {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return listing.unreadable.push(Unreadable::new(folder.display().to_string(), &error)),
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && !is_hidden {
            walk(&path, listing);
        } else if is_manifest(&path) && !is_hidden && !path.is_dir() {
            listing.sources.push(Source::File(path));
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}
