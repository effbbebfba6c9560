//! Compiles the protocol files into the build directory. The serving half is for programs that take the place of a runtime.

use std::env;
use std::error::Error;

const FILES: [&str; 8] = [
    "proto/content.proto",
    "proto/cri.proto",
    "proto/events.proto",
    "proto/images.proto",
    "proto/leases.proto",
    "proto/streaming.proto",
    "proto/transfer.proto",
    "proto/transfer_types.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .build_server(env::var_os("CARGO_FEATURE_SERVE").is_some())
        .btree_map(".")
        // Derived, it would show passwords. `proto.rs` has one that does not.
        .skip_debug(["runtime.v1.AuthConfig"])
        .compile_fds(descriptors)?;
    Ok(())
}
