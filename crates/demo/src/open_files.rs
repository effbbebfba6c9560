//! How many files and connections the process may have open. Both ends of every connection are in it, so that a few
//! hundred nodes need more than shells usually give.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as the system lets every program, for this process. Returns how many files it may have open;
/// `None` is as many as it likes.
pub fn allow_many_files() -> io::Result<Option<u64>> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(getrlimit(Resource::Nofile).current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_is_raised_to_what_is_allowed() {
        let mut low = getrlimit(Resource::Nofile);
        low.current = Some(512);
        setrlimit(Resource::Nofile, low).unwrap();
        assert_eq!(allow_many_files().unwrap(), low.maximum);
    }
}
