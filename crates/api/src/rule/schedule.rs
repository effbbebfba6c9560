//! What a pattern can see of a cron line: the number of fields, their characters, names and ranges, and the
//! descriptors. Where a line can only be refused by parsing it (`30-10`, a zone that does not exist), the
//! controller says so in a condition. So the pattern never refuses a line that runs today: as the parser does,
//! it takes `+5`, `007`, empty list entries and anything after `*-`.

/// One field of a line: a comma-separated list of stars, values or ranges, each with an optional step.
macro_rules! field {
    ($value:literal) => {
        concat!(",*", field!(@entry $value), "(,+", field!(@entry $value), ")*,*")
    };
    (@entry $value:literal) => {
        concat!("([*?](-[^ \\t\\r\\n,/]*)?|", $value, "(-", $value, ")?)(/[+]?0*[1-9][0-9]*)?")
    };
}

/// A line that may be a schedule (kruise R90, V41).
pub const PATTERN: &str = concat!(
    "^((CRON_)?TZ=[A-Za-z0-9_+/.-]* [ \\t\\r\\n]*)?",
    "(",
    "@(yearly|annually|monthly|weekly|daily|midnight|hourly)",
    "|@every [+-]?(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)",
    "|[ \\t\\r\\n]*",
    field!("[+]?0*[0-5]?[0-9]"),
    "[ \\t\\r\\n]+",
    field!("[+]?0*(1?[0-9]|2[0-3])"),
    "[ \\t\\r\\n]+",
    field!("[+]?0*([1-9]|[12][0-9]|3[01])"),
    "[ \\t\\r\\n]+",
    field!("([+]?0*([1-9]|1[0-2])|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))"),
    "[ \\t\\r\\n]+",
    field!("([+]?0*[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat))"),
    ")[ \\t\\r\\n]*$",
);

/// A name that may be that of a time zone (kruise V42), except `Local`.
pub const ZONE_PATTERN: &str = "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$";

/// Whether a line has the shape of a schedule.
pub fn looks_like_one(line: &str) -> bool {
    crate::schema::matches(PATTERN, line)
}

/// Whether a text has the shape of a time zone's name.
pub fn looks_like_a_zone(zone: &str) -> bool {
    !zone.eq_ignore_ascii_case("local") && crate::schema::matches(ZONE_PATTERN, zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_run_today_are_accepted() {
        let lines = [
            "0 2 * * *",
            "*/5 * * * *",
            "0 10 * * ?",
            "1,15,30 0-6 1-31/2 JAN-Mar mon,WED",
            "5/15 * * * *",
            "1,,2 * * * *",
            "*/100 * * * *",
            "+5 007 * * *",
            "  0\t0 1 1 0 ",
            "0 2 * * *\n",
            "@daily",
            "@midnight",
            "@every 1h30m",
            "@every 1.5h",
            "@every 90s",
            "TZ=Asia/Shanghai 0 2 * * *",
            "CRON_TZ=UTC @hourly",
            "? ? ? ? ?",
            "*-9 * * * *",
            "30-10 * * * *",
            ",5, * * * *",
        ];
        for line in lines {
            assert!(looks_like_one(line), "{line:?} should be taken");
        }
    }

    #[test]
    fn lines_that_no_parser_accepts_are_refused() {
        let lines = [
            "",
            " ",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 * ",
            "* * * * 7",
            "* * * * L",
            "* * * foo *",
            "-5 * * * *",
            "*/0 * * * *",
            "*/ * * * *",
            "1- * * * *",
            "every day",
            "@reboot",
            "@every",
            "@every ",
            "@every day",
            "@Daily",
            " @daily",
            "0 2 * * * # nightly",
            "TZ=Asia/Shanghai",
            "1/2/3 * * * *",
            "1.5 * * * *",
            "* * * * mond",
        ];
        for line in lines {
            assert!(!looks_like_one(line), "{line:?} should be refused");
        }
    }

    #[test]
    fn local_is_not_a_zone() {
        assert!(!looks_like_a_zone("Local") && !looks_like_a_zone("LOCAL") && !looks_like_a_zone(""));
        for zone in ["UTC", "Europe/Berlin", "America/Port-au-Prince", "Etc/GMT+10", "EST5EDT"] {
            assert!(looks_like_a_zone(zone), "{zone}");
        }
    }
}
