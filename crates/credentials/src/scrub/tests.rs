use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;
use crate::SecretText;

fn password(text: &str) -> Credential {
    Credential {
        username: "robot".into(),
        password: SecretText::new(text.into()),
        server_address: "reg.example".into(),
        ..Credential::default()
    }
}

fn percent(text: &str) -> String {
    join(text.bytes().map(|byte| format!("%{byte:02X}")))
}

fn hex(text: &str) -> String {
    join(text.bytes().map(|byte| format!("{byte:02x}")))
}

fn join(pieces: impl Iterator<Item = String>) -> String {
    pieces.collect::<Vec<_>>().concat()
}

#[test]
fn a_value_is_hidden_in_every_encoding() {
    let value = "pa\"ss wörd+1";
    for (written, rest) in [
        (value.to_owned(), "***"),
        (serde_json::to_string(value).unwrap(), "\"***\""),
        (serde_json::to_string(&serde_json::to_string(value).unwrap()).unwrap(), "\"\\\"***\\\"\""),
        (format!("{value:?}"), "\"***\""),
        (percent(value), "***"),
        ("pa%22ss+w%c3%b6rd%2b1".to_owned(), "***"),
        (hex(value), "***"),
        (hex(value).to_uppercase(), "***"),
        (STANDARD.encode(value), "***"),
        (STANDARD.encode(format!("robot:{value}")), "***"),
        (STANDARD.encode(format!("x{value}y")), "***"),
        (URL_SAFE_NO_PAD.encode(format!("xy{value}")), "***"),
        (STANDARD.encode(STANDARD.encode(format!("robot:{value}"))), "***"),
        (percent(&STANDARD.encode(format!("robot:{value}"))), "***"),
        (r"pa\u0022ss\u0020w\u00f6rd\u002b1".to_owned(), "***"),
    ] {
        assert_eq!(
            scrub(&format!("no ({written}) no"), &[password(value)]),
            format!("no ({rest}) no"),
            "{written}"
        );
    }
}

#[test]
fn every_kind_of_value_is_hidden() {
    let credential = Credential {
        identity_token: SecretText::new("identity".into()),
        registry_token: SecretText::new("registry".into()),
        ..password("hunter2")
    };
    assert_eq!(scrub("hunter2 identity registry robot", &[credential]), "*** *** *** robot");
}

#[test]
fn a_short_value_is_hidden_where_a_value_is_expected_and_leaves_sentences_alone() {
    let text = r#"an image: login robot:an failed, {"p":"an"}, p=an, cannot go on"#;
    let expected = r#"an image: login robot:*** failed, {"p":"***"}, p=***, cannot go on"#;
    assert_eq!(scrub(text, &[password("an")]), expected);
    assert_eq!(scrub(&STANDARD.encode("robot:an"), &[password("an")]), "***=", "as in a header");
    assert_eq!(scrub("nothing", &[password("")]), "nothing");
}

#[test]
fn shapes_of_credentials_are_hidden_and_the_words_around_them_stay() {
    for (text, expected) in [
        ("Get https://robot:pa@reg.example/v2/: EOF", "Get https://***@reg.example/v2/: EOF"),
        ("Authorization: Basic cm9ib3Q6cGE=", "Authorization: ***"),
        ("map[Authorization:[Bearer abc] Accept:[*/*]]", "map[Authorization:[***] Accept:[*/*]]"),
        (r#"{"Authorization": "Bearer abc", "a": 1}"#, r#"{"Authorization": "***", "a": 1}"#),
        ("sent Bearer abcdefgh12 to it", "sent Bearer *** to it"),
        ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln expired", "token *** expired"),
        ("GET /blob?se=1&sig=ab%2Fc&sp=r", "GET /blob?se=1&sig=***&sp=r"),
        ("GET /b?X-Amz-Signature=abc&X-Amz-Date=1", "GET /b?X-Amz-Signature=***&X-Amz-Date=1"),
        ("GET /b?X-Amz-Security-Token=abc", "GET /b?X-Amz-Security-Token=***"),
        (r#"{"auths":{"a":{"auth":"cm9ib3Q6cGE="}}}"#, r#"{"auths":{"a":{"auth":"***"}}}"#),
        (r#"body {\"access_token\":\"abc\"}"#, r#"body {\"access_token\":\"***\"}"#),
    ] {
        assert_eq!(scrub(text, &[]), expected);
    }
}

#[test]
fn ordinary_errors_are_left_as_they_are() {
    for text in [
        "failed to pull nginx:1.25@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "https://reg.example/v2/a@sha256:e3b0 not found",
        "no basic auth credentials",
        "Basic authentication failed",
        r#"Www-Authenticate: Bearer realm="https://auth.docker.io/token",service="registry.docker.io""#,
        "rpc error: code = Unknown desc = failed to resolve reference \"reg.example/a:v1\"",
        "failed to authorize: failed to fetch oauth token: 401 Unauthorized",
        "repository does not exist or may require authorization: authorization failed: no basic auth credentials",
        "may require authorization: server message: insufficient_scope: authorization failed",
    ] {
        assert_eq!(scrub(text, &[password("hunter2")]), text);
    }
}

#[test]
fn a_text_in_which_marks_would_form_a_value_is_dropped() {
    let credentials = [password("secret"), password("a***b")];
    assert_eq!(scrub("asecretb", &credentials), "***");
}

/// Every way in which a value may be written into a text.
fn encodings(value: &str) -> Vec<String> {
    let mut all = vec![
        value.to_owned(),
        percent(value),
        percent(value).to_lowercase(),
        hex(value),
        hex(value).to_uppercase(),
    ];
    let quoted = serde_json::to_string(value).unwrap();
    all.push(quoted[1..quoted.len() - 1].to_owned());
    all.push(join(value.encode_utf16().map(|unit| format!("\\u{unit:04x}"))));
    for prefix in ["", "x", "xy", "robot:"] {
        for suffix in ["", "z", "zz"] {
            all.push(STANDARD.encode(format!("{prefix}{value}{suffix}")));
            all.push(URL_SAFE_NO_PAD.encode(format!("{prefix}{value}{suffix}")));
        }
    }
    all
}

proptest! {
    #[test]
    fn no_value_survives_in_any_encoding(
        value in "\\PC{4,24}|[a-z0-9]{4,40}|[ -~]{4,24}",
        before in "[ -~]{0,12}",
        after in "[ -~]{0,12}",
    ) {
        for written in encodings(&value) {
            // Neighbours from the same alphabet would change an encoded text, so quotes separate them.
            let scrubbed = scrub(&format!("{before}'{written}'{after}"), &[password(&value)]);
            let (left, right) = (format!("{before}'"), format!("'{after}"));
            let by_chance = left.contains(&written) || right.contains(&written);
            prop_assert!(by_chance && scrubbed == MARK || !scrubbed.contains(&written), "{scrubbed} holds {written}");
        }
    }

    #[test]
    fn any_text_may_be_scrubbed_with_any_value(text in "\\PC*|[%\\\\ux0-9a-f]{0,40}", value in "\\PC{0,12}") {
        let credentials = [password(&value)];
        let scrubbed = scrub(&text, &credentials);
        prop_assert!(value.len() < MIN_VALUE_BYTES || !scrubbed.contains(&value));
    }
}
