//! What a program needs before it can be started: the dynamic linker of a dynamically linked one, or the shell of a
//! script. The kernel only says that something does not exist, and not what.
//!
//! Written by hand, because it reads a few numbers at fixed places; crates for this format read all of it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// How much of a file is read. What is needed is at the beginning, whatever the size of the file.
const BEGINNING: u64 = 64 * 1024;
/// The type of the segment that names the dynamic linker.
const INTERPRETER_SEGMENT: usize = 3;

/// The interpreter of a program, if it needs one.
pub fn of_file(program: &Path) -> io::Result<Option<String>> {
    let mut beginning = Vec::new();
    File::open(program)?.take(BEGINNING).read_to_end(&mut beginning)?;
    Ok(of(&beginning))
}

/// The interpreter that the beginning of a program names.
fn of(beginning: &[u8]) -> Option<String> {
    match beginning {
        [b'#', b'!', rest @ ..] => {
            let line = rest.split(|byte| *byte == b'\n').next()?;
            let words = String::from_utf8_lossy(line);
            words.split_whitespace().next().map(str::to_owned)
        }
        // The fifth byte says that numbers have 64 bits, the sixth that the lowest byte comes first.
        [0x7f, b'E', b'L', b'F', 2, 1, ..] => of_elf(beginning),
        _ => None,
    }
}

fn of_elf(bytes: &[u8]) -> Option<String> {
    let number = |at: usize, size: usize| {
        let mut number = [0; 8];
        number.get_mut(..size)?.copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
        usize::try_from(u64::from_le_bytes(number)).ok()
    };
    let (segments, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let segment = |index: usize| segments.checked_add(index.checked_mul(size)?);
    let is_wanted = |at: &usize| number(*at, 4) == Some(INTERPRETER_SEGMENT);
    let at = (0..count).filter_map(segment).find(is_wanted)?;
    let (start, length) = (number(at.checked_add(8)?, 8)?, number(at.checked_add(32)?, 8)?);
    let name = bytes.get(start..start.checked_add(length)?)?;
    Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_linked_dynamically_names_its_linker() {
        // Tests are linked dynamically.
        let found = of_file(&std::env::current_exe().unwrap()).unwrap().unwrap();
        assert!(found.starts_with("/lib") && found.contains("ld-linux"), "{found}");
    }

    #[test]
    fn a_script_names_its_shell() {
        assert_eq!(of(b"#!/bin/sh -e\necho\n").as_deref(), Some("/bin/sh"));
        assert_eq!(of(b"#! /usr/bin/env python3").as_deref(), Some("/usr/bin/env"));
    }

    #[test]
    fn any_other_file_names_no_interpreter() {
        let mut hostile = vec![0xff; 200];
        hostile[..6].copy_from_slice(b"\x7fELF\x02\x01");
        for content in [b"".as_slice(), b"#!", b"\x7fELF", b"\x7fELF\x02\x01", &hostile] {
            assert_eq!(of(content), None);
        }
    }
}
