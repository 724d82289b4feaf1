//! What processes have used, as the system tells. Where it has no `/proc`, nothing is told.

use std::fs;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

/// The CPU time that this process has used.
pub(super) fn own_cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), u32::try_from(used.tv_nsec).unwrap_or(0))
}

/// The CPU time that the process `root` and all below it have used, with those that have ended and were waited for.
pub(super) fn tree_cpu(root: u32) -> Option<Duration> {
    let all: Vec<Stat> = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| Stat::read(&entry.path())).collect();
    let mut tree = vec![root];
    let mut ticks = all.iter().find(|stat| stat.pid == root)?.ticks;
    let mut next = 0;
    while let Some(parent) = tree.get(next).copied() {
        for child in all.iter().filter(|stat| stat.parent == parent) {
            tree.push(child.pid);
            ticks += child.ticks;
        }
        next += 1;
    }
    Some(Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64))
}

/// One process.
#[derive(PartialEq, Eq, Debug)]
struct Stat {
    pid: u32,
    parent: u32,
    ticks: u64,
}

impl Stat {
    fn read(folder: &std::path::Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(folder.join("stat")).ok()?)
    }

    fn parse(line: &str) -> Option<Self> {
        /// The first field after the name is the third of the line.
        const PARENT: usize = 1;
        /// User and system time, of the process and of its children that were waited for.
        const TIMES: std::ops::Range<usize> = 11..15;
        let pid = line.split_whitespace().next()?.parse().ok()?;
        // The name stands in parentheses and may hold anything.
        let (_, rest) = line.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let times = fields.get(TIMES)?.iter().map(|field| field.parse::<u64>());
        Some(Self { pid, parent: fields.get(PARENT)?.parse().ok()?, ticks: times.sum::<Result<u64, _>>().ok()? })
    }
}

/// Makes [`peak_memory`] forget what was before. False where the system does not let it.
pub(super) fn forget_peak_memory() -> bool {
    const PEAK: &str = "5";
    fs::write("/proc/self/clear_refs", PEAK).is_ok()
}

/// The largest memory that this process has had, in bytes.
pub(super) fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_system_is_read_whatever_the_name_of_the_process() {
        let line = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 1 0 5 6 7";
        assert_eq!(Stat::parse(line), Some(Stat { pid: 42, parent: 7, ticks: 124 }));
        assert_eq!(Stat::parse("42 (x) S"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_used_time_and_memory() {
        let before = own_cpu();
        let busy: u64 = (0..20_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        std::hint::black_box(busy);
        assert!(own_cpu() > before);
        assert!(tree_cpu(std::process::id()).is_some());
        assert!(peak_memory().unwrap() > 1 << 20);
        assert_eq!(tree_cpu(u32::MAX), None);
    }
}
