//! Where an answer redirects to.

use crate::hosts::{Address, Scheme};

/// One request's place: the host, and path and query there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub address: Address,
    pub target: String,
}

impl Place {
    /// The place that a `Location` names, seen from this one. Addresses of signed requests have secrets in their query, so
    /// nothing of it is ever shown.
    pub fn follow(&self, location: &str) -> Option<Self> {
        let location = location.split('#').next()?;
        if let Some(rest) = location.strip_prefix("//") {
            let scheme = match self.address.scheme {
                Scheme::Http => "http",
                Scheme::Https => "https",
            };
            return absolute(&format!("{scheme}://{rest}"));
        }
        if location.contains("://") && !location.starts_with('/') {
            return absolute(location);
        }
        let target = if location.starts_with('/') {
            location.to_owned()
        } else {
            let path = self.target.split('?').next()?;
            let (folder, _) = path.rsplit_once('/')?;
            format!("{folder}/{location}")
        };
        Some(Self { address: self.address.clone(), target })
    }
}

fn absolute(location: &str) -> Option<Place> {
    let address = Address::parse(location, true)?;
    let (_, rest) = location.split_once("://")?;
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let target = match &rest[at..] {
        "" => "/".to_owned(),
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_owned(),
    };
    // The path stands in the target, whatever it was cleaned to.
    Some(Place { address: Address { root: String::new(), ..address }, target })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_read_from_where_it_was_answered() {
        let address = Address::parse("https://m.example:5000", false).unwrap();
        let place = Place { address, target: "/v2/a/blobs/sha256:00?ns=docker.io".into() };
        let table = [
            ("https://cdn.example/x/y?sig=1#top", Some(("https://cdn.example", "/x/y?sig=1"))),
            ("http://cdn.example", Some(("http://cdn.example", "/"))),
            ("https://cdn.example?sig=1", Some(("https://cdn.example", "/?sig=1"))),
            ("//cdn.example/x//y/../z", Some(("https://cdn.example", "/x//y/../z"))),
            (
                "/data/x?to=https://b.example",
                Some(("https://m.example:5000", "/data/x?to=https://b.example")),
            ),
            ("other", Some(("https://m.example:5000", "/v2/a/blobs/other"))),
            ("ftp://cdn.example/x", None),
            ("https://", None),
        ];
        for (location, expected) in table {
            let followed = place.follow(location);
            let shown = followed.map(|place| (place.address.to_string(), place.target));
            let expected = expected.map(|(address, target)| (address.to_owned(), target.to_owned()));
            assert_eq!(shown, expected, "{location}");
        }
    }
}
