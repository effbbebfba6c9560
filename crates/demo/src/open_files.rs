//! How many files and connections the process may have open. Both ends of every connection are in this process, so a
//! few hundred nodes need more than shells usually allow.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of this process as far as the system allows. Returns how many files it may have open, or `None` if
/// there is no limit.
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
