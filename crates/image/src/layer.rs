//! One layer: given files, or one file of pseudo-random bytes, a part of them zero so that it compresses.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::artifact::{Blob, digest};

/// The zeros are spread in blocks of this size, so that any part of a layer compresses alike.
const BLOCK: usize = 4096;

/// The modes of data files and of programs.
const READABLE: u32 = 0o644;
const EXECUTABLE: u32 = 0o755;

/// A layer to build.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layer {
    size: usize,
    compressibility: f64,
}

/// A built layer.
pub struct Built {
    pub blob: Blob,
    /// The digest before compression, which the image config lists.
    pub diff_id: String,
}

/// A file of a layer, owned by root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path, without a leading slash.
    pub path: String,
    pub content: Vec<u8>,
    pub is_executable: bool,
}

impl Layer {
    /// A layer that unpacks to this many bytes and does not compress.
    pub fn of(size: usize) -> Self {
        Self { size, compressibility: 0.0 }
    }

    /// Makes this fraction of the layer vanish by compression.
    ///
    /// # Panics
    /// If it is not a fraction.
    #[must_use]
    pub fn compressible(self, fraction: f64) -> Self {
        assert!((0.0..=1.0).contains(&fraction), "{fraction} is no fraction");
        Self { compressibility: fraction, ..self }
    }

    pub(super) fn build(&self, seed: &str, position: usize) -> Built {
        let (path, content) = (format!("data/{position}.bin"), self.content(seed, position));
        compress(&archive(&[File { path, content, is_executable: false }], None), Compression::fast())
    }

    fn content(&self, seed: &str, position: usize) -> Vec<u8> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a fraction of a small block is a small whole number"
        )]
        let zeros = (BLOCK as f64 * self.compressibility) as usize;
        let mut random = Random::new(seed, position);
        let mut content = vec![0; self.size];
        for block in content.chunks_mut(BLOCK) {
            let start = zeros.min(block.len());
            random.fill(&mut block[start..]);
        }
        content
    }
}

/// A layer with only this program in the root directory.
pub(super) fn executable(name: &str, program: &[u8]) -> Built {
    let program = File { path: name.to_owned(), content: program.to_vec(), is_executable: true };
    compress(&archive(&[program], None), Compression::fast())
}

/// A layer of these files, compressed as well as possible, because it is sent to many nodes. The time of all files is
/// this one, in seconds since 1970.
pub fn of_files(files: &[File], time: u64) -> Built {
    compress(&archive(files, Some(time)), Compression::best())
}

fn compress(archive: &[u8], level: Compression) -> Built {
    let diff_id = digest(archive);
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(archive).expect("memory takes every byte");
    Built { blob: Blob::of(encoder.finish().expect("memory takes every byte")), diff_id }
}

/// A tar archive, the same for the same files: nothing in it depends on the machine. Directories are created by whoever
/// unpacks it. Generated images have neither time nor owner.
pub(super) fn archive(files: &[File], time: Option<u64>) -> Vec<u8> {
    let size: usize = files.iter().map(|file| file.content.len() + 4 * 512).sum();
    let mut archive = tar::Builder::new(Vec::with_capacity(size));
    for File { path, content, is_executable } in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(if *is_executable { EXECUTABLE } else { READABLE });
        header.set_size(content.len() as u64);
        if let Some(time) = time {
            header.set_mtime(time);
            header.set_uid(0);
            header.set_gid(0);
        }
        archive.append_data(&mut header, path, content.as_slice()).expect("memory takes every byte");
    }
    archive.into_inner().expect("memory takes every byte")
}

/// A small generator with a fixed algorithm (splitmix64): that of a crate may change with its version, and digests with
/// it.
struct Random {
    state: u64,
}

impl Random {
    fn new(seed: &str, position: usize) -> Self {
        let hash = Sha256::digest(format!("{seed}/{position}"));
        let first = hash.first_chunk().expect("a hash is longer than a number");
        Self { state: u64::from_le_bytes(*first) }
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
