//! The certificates of public authorities, as programs look for them: one file of PEM.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// A line of PEM is so long.
const LINE: usize = 64;

/// All of Mozilla's, in the order of the crate that carries them.
pub fn to_pem() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = BASE64_STANDARD.encode(certificate);
        for line in encoded.as_bytes().chunks(LINE) {
            writeln!(text, "{}", String::from_utf8_lossy(line)).expect("a string takes every character");
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_authority_is_there() {
        let count = to_pem().matches("BEGIN CERTIFICATE").count();
        assert_eq!(count, webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
        assert!(count > 100, "{count}");
    }
}
