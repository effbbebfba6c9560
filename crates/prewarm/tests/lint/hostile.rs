//! Input that is not a manifest, or one that was made to do harm: one clear sentence, quickly and with little
//! memory.

use std::fmt::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Run, lint_with_stdin, run_with_stdin};

/// Far more than any input needs, even on a busy machine and without optimisation.
const PATIENCE: Duration = Duration::from_mins(1);

/// The address space that the program may use. The largest text it reads is 8 MiB.
const MEMORY_KIB: usize = 512 << 10;

/// Runs on at most `MEMORY_KIB`; a program that asks for more aborts and has no exit code.
fn lint_in_little_memory(stdin: &[u8]) -> Run {
    let started = Instant::now();
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("ulimit -v {MEMORY_KIB} && exec \"$0\" lint -"),
        env!("CARGO_BIN_EXE_prewarm"),
    ]);
    let run = run_with_stdin(&mut command, stdin);
    assert!(started.elapsed() < PATIENCE, "took {:?}", started.elapsed());
    run
}

/// Random bytes, the same in every run.
fn garbage(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn ten_megabytes_of_garbage_get_one_sentence() {
    let run = lint_in_little_memory(&garbage(10_000_000));
    assert_eq!(
        run.stdout,
        "<stdin>:1:1: the file is larger than 8 MiB, which is more than lint reads; split it\n"
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn binary_data_is_called_that() {
    let run = lint_in_little_memory(&garbage(8_000_000));
    assert!(run.stdout.contains("the file is not UTF-8 text from here on"), "{}", run.stdout);
    let run = lint_with_stdin(&["-"], b"kind: a\nb: \0\n");
    assert_eq!(
        run.stdout,
        "<stdin>:2:4: the file has the control character U+0000 here; is it a manifest?\n"
    );
}

#[test]
fn garbage_that_is_text_is_answered_in_few_lines() {
    let pieces = [
        "[",
        "{",
        "- ",
        "? ",
        ": ",
        "a",
        "a ",
        "\n",
        "- x\n",
        "a:\n",
        "- a:\n",
        "- - a\n",
        "- {}\n",
        "- [a]\n",
        "--- a\n",
        "--- [\n",
        "&a ",
        "- &a a\n",
        "- &a [",
        "!a ",
        "*a ",
        "\"",
        "'",
        "#",
        "a: b: ",
        "|\n",
        " ",
        "\t",
        "a:\n ",
        "%a\n",
        "[a,",
        "{a: ",
        "{}\n",
        "{\"a\":1}",
        "<<: ",
        "\n  ",
        "\u{feff}",
        "é",
    ];
    for piece in pieces {
        let run = lint_in_little_memory(piece.repeat((256 << 10) / piece.len()).as_bytes());
        assert_eq!(run.code, Some(1), "{piece:?}: {} {}", run.stdout, run.stderr);
        assert!(run.stdout.lines().count() <= 501, "{piece:?}");
    }
}

#[test]
fn the_largest_text_that_is_read_fits_in_little_memory() {
    for piece in ["a", "- x\n", "- a:\n", "- &a a\n"] {
        let run = lint_in_little_memory(piece.repeat((8 << 20) / piece.len()).as_bytes());
        assert_eq!(run.code, Some(1), "{piece:?}: {} {}", run.stdout, run.stderr);
    }
}

#[test]
fn aliases_that_multiply_are_refused_before_they_grow() {
    let mut laughs = String::from("a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
    for level in 1..12 {
        let repeated = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(laughs, "a{level}: &a{level} [{repeated}]").unwrap();
    }
    let run = lint_in_little_memory(laughs.as_bytes());
    assert!(run.stdout.contains("the document is too large to check"), "{}", run.stdout);
    assert_eq!(run.code, Some(1));
}

#[test]
fn deep_nesting_is_refused_in_yaml_and_json() {
    for text in ["- ".repeat(100_000), "[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        let run = lint_in_little_memory(text.as_bytes());
        assert!(run.stdout.contains("nested more than 100 levels deep"), "{}", run.stdout);
        assert_eq!(run.code, Some(1));
    }
}

#[test]
fn a_file_of_a_thousand_mistakes_says_how_many_it_leaves_out() {
    let object = "---\napiVersion: apps.kruise.io/v1beta1\nkind: ImagePullJob\nmetadata: {name: a}\nspec: {image: 1}\n";
    let run = lint_with_stdin(&["-"], object.repeat(1000).as_bytes());
    assert_eq!(run.stdout.lines().count(), 501);
    assert!(run.stdout.ends_with("further errors in this file are not shown\n"));
    assert_eq!(run.stderr, "1000 objects checked, 1000 errors in 1 file\n");
}

#[test]
fn a_line_break_in_a_value_does_not_look_like_a_finding() {
    let text = "apiVersion: apps.kruise.io/v1beta1\nkind: \"Image\\nPull\\e[31mJob\"\n";
    let run = lint_with_stdin(&["-"], text.as_bytes());
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'));
}
