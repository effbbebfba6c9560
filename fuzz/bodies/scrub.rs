//! What holds for every text and every credential: the credential is gone, in the encodings that texts bring. The
//! fuzz target and the tests share it.

use prewarm_api::text::{cut, plain};
use prewarm_credentials::scrub::{MIN_VALUE_BYTES, scrub};
use prewarm_credentials::{Credential, SecretText};

const MAX_EXCERPT_BYTES: usize = 64;

/// Takes the first line as a password and the rest as a text, into which the password is also written.
pub fn check(input: &str) {
    let (password, text) = input.split_once('\n').unwrap_or((input, ""));
    let credential = Credential {
        username: "robot".into(),
        password: SecretText::new(password.into()),
        ..Credential::default()
    };
    let middle = text.floor_char_boundary(text.len() / 2);
    for written in [String::new(), password.to_owned(), hex(password), percent(password), json(password)] {
        let leaking = format!("{}{written}{}", &text[..middle], &text[middle..]);
        let scrubbed = scrub(&leaking, std::slice::from_ref(&credential));
        if password.len() >= MIN_VALUE_BYTES {
            assert!(!scrubbed.contains(password), "{scrubbed:?} from {leaking:?}");
            assert!(written.is_empty() || !scrubbed.contains(&written), "{scrubbed:?} from {leaking:?}");
        }
        assert!(cut(&plain(&scrubbed), MAX_EXCERPT_BYTES).len() <= MAX_EXCERPT_BYTES);
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat()
}

fn json(text: &str) -> String {
    let codes = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    codes.collect::<Vec<_>>().concat()
}
