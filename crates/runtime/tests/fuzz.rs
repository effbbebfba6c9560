//! The body of the fuzz target, on its seed inputs and on what it found.

#[path = "../../../fuzz/bodies/failure.rs"]
mod failure;

#[test]
fn the_seed_inputs_keep_the_promises() {
    for text in [
        "",
        "eof",
        "head: EOF",
        "a: eof\"",
        "not found",
        "unexpected status: 503",
        "status 5",
        "i/o timeout",
        "x509: y",
        "denied: ",
        "failed to do request: dial tcp: connect: connection refused",
        "ü: tls: ß",
    ] {
        failure::check(text);
    }
}
