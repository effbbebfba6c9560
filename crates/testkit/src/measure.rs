//! The kernel's figures of a process: CPU time, memory, wake-ups. They are counts, so a busy machine changes them
//! little.

use std::fs;

use anyhow::Context as _;

/// The kernel counts CPU time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// User and system time of a process, in seconds.
pub fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid}"))?;
    // The name of the program is in parentheses and may contain anything; the numbers come after it.
    let (_, fields) = stat.rsplit_once(") ").with_context(|| format!("not a stat line: {stat}"))?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |index: usize| -> anyhow::Result<f64> {
        let field = fields.get(index).with_context(|| format!("field {index} of {stat}"))?;
        Ok(field.parse::<f64>()?)
    };
    Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// Resident memory of a process, in MiB.
pub fn resident_mib(pid: u32) -> anyhow::Result<f64> {
    status_field(pid, "VmRSS:").map(|kib| kib / 1024.0)
}

/// The most memory that a process ever had resident, in MiB.
pub fn peak_resident_mib(pid: u32) -> anyhow::Result<f64> {
    status_field(pid, "VmHWM:").map(|kib| kib / 1024.0)
}

/// How often the first thread of a process went to sleep and was woken up.
pub fn wake_ups(pid: u32) -> anyhow::Result<f64> {
    status_field(pid, "voluntary_ctxt_switches:")
}

fn status_field(pid: u32, name: &str) -> anyhow::Result<f64> {
    let status =
        fs::read_to_string(format!("/proc/{pid}/status")).with_context(|| format!("process {pid}"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    let number = line.split_whitespace().next().context("a number")?;
    Ok(number.parse::<f64>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_time_and_memory() {
        let pid = std::process::id();
        assert!(resident_mib(pid).unwrap() > 0.5);
        assert!(peak_resident_mib(pid).unwrap() >= resident_mib(pid).unwrap());
        assert!(cpu_seconds(pid).unwrap() >= 0.0 && wake_ups(pid).unwrap() >= 0.0);
    }
}
