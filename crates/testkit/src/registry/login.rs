//! Authentication at a [`FaultProxy`](super::FaultProxy).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;

/// The path of the token service.
pub(super) const TOKEN_PATH: &str = "/token";

/// The prefix of tokens; the rest names the user.
const TOKEN: &str = "token-of-";

/// How a client has to authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// With a password in each request.
    Basic,
    /// At a token service, whose token is then sent with each request.
    Token,
}

/// The only user with access.
pub(super) struct Login {
    user: String,
    password: String,
    challenge: Challenge,
}

/// The credentials of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Nothing,
    Password { user: String, password: String },
    Token { user: String },
    Unreadable,
}

impl Login {
    pub(super) fn new(user: &str, password: &str, challenge: Challenge) -> Self {
        Self { user: user.to_owned(), password: password.to_owned(), challenge }
    }

    /// Whether a request to the registry is allowed.
    pub(super) fn lets_in(&self, shown: &Shown) -> bool {
        match (self.challenge, shown) {
            (Challenge::Basic, Shown::Password { .. }) => self.knows(shown),
            (Challenge::Token, Shown::Token { user }) => *user == self.user,
            _ => false,
        }
    }

    /// The token for a client with the right password.
    pub(super) fn token(&self, shown: &Shown) -> Option<String> {
        self.knows(shown).then(|| format!("{TOKEN}{}", self.user))
    }

    /// The header that tells a client how to authenticate.
    pub(super) fn challenge(&self, url: &str) -> String {
        match self.challenge {
            Challenge::Basic => "Basic realm=\"bed\"".to_owned(),
            Challenge::Token => format!("Bearer realm=\"{url}{TOKEN_PATH}\",service=\"bed\""),
        }
    }

    fn knows(&self, shown: &Shown) -> bool {
        matches!(shown, Shown::Password { user, password } if *user == self.user && *password == self.password)
    }
}

impl Shown {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers.get(AUTHORIZATION) else { return Self::Nothing };
        value.to_str().ok().and_then(read).unwrap_or(Self::Unreadable)
    }

    /// The user, empty if it could not be read.
    pub(super) fn user(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Password { user, .. } | Self::Token { user } => Some(user.clone()),
            Self::Unreadable => Some(String::new()),
        }
    }
}

fn read(value: &str) -> Option<Shown> {
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Shown::Token { user: rest.strip_prefix(TOKEN)?.to_owned() });
    }
    let decoded = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    let basic = scheme.eq_ignore_ascii_case("basic");
    basic.then(|| Shown::Password { user: user.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &str) -> Shown {
        Shown::of(&HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]))
    }

    #[test]
    fn only_the_right_password_is_accepted() {
        let login = Login::new("jane", "secret", Challenge::Basic);
        assert!(login.lets_in(&shown(&format!("Basic {}", STANDARD.encode("jane:secret")))));
        assert!(!login.lets_in(&shown(&format!("Basic {}", STANDARD.encode("jane:wrong")))));
        assert!(!login.lets_in(&shown("Bearer token-of-jane")));
        assert!(!login.lets_in(&Shown::of(&HeaderMap::new())));
    }

    #[test]
    fn a_token_is_issued_for_the_right_password() {
        let login = Login::new("jane", "secret", Challenge::Token);
        let right = shown(&format!("Basic {}", STANDARD.encode("jane:secret")));
        assert!(!login.lets_in(&right));
        let token = login.token(&right).unwrap();
        assert!(login.lets_in(&shown(&format!("Bearer {token}"))));
        assert_eq!(login.token(&shown("Basic nonsense")), None);
    }
}
