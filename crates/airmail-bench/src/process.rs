//! A process's use of resources, as Linux gives it in `/proc`, and its limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::fs;

/// Length of a clock tick of `/proc/PID/stat`, in microseconds; Linux has no other on any machine
/// of ours.
const TICK_US: u64 = 10_000;

/// Use of the machine by a process; zeros where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time, user and system, in microseconds.
    pub cpu_us: u64,
    /// Memory that it holds.
    pub rss_bytes: u64,
}

impl Usage {
    /// Use by this process.
    #[must_use]
    pub fn own() -> Usage {
        Usage::read("self")
    }

    /// Use by another process.
    #[must_use]
    pub fn of(process: u32) -> Usage {
        Usage::read(&process.to_string())
    }

    /// Use by several processes together.
    #[must_use]
    pub fn of_all(processes: &[u32]) -> Usage {
        let each = processes.iter().map(|process| Usage::of(*process));
        each.fold(Usage::default(), |sum, one| Usage {
            cpu_us: sum.cpu_us + one.cpu_us,
            rss_bytes: sum.rss_bytes + one.rss_bytes,
        })
    }

    /// Use by the threads of other processes that have this name. Threads have no memory of their
    /// own.
    #[must_use]
    pub fn of_threads(processes: &[u32], name: &str) -> Usage {
        let threads = processes.iter();
        let threads =
            threads.filter_map(|process| fs::read_dir(format!("/proc/{process}/task")).ok());
        let threads = threads.flatten().filter_map(Result::ok);
        let stats =
            threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
        let named = stats.filter(|stat| stat.contains(&format!("({name})")));
        Usage {
            cpu_us: named.filter_map(|stat| cpu_us(&stat)).sum(),
            rss_bytes: 0,
        }
    }

    fn read(process: &str) -> Usage {
        let text = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}"));
        Usage {
            cpu_us: text("stat")
                .ok()
                .and_then(|stat| cpu_us(&stat))
                .unwrap_or_default(),
            rss_bytes: text("status")
                .ok()
                .and_then(|status| rss_bytes(&status))
                .unwrap_or_default(),
        }
    }

    /// Time since an earlier look, memory now.
    #[must_use]
    pub fn since(self, before: &Usage) -> Usage {
        Usage {
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            rss_bytes: self.rss_bytes,
        }
    }
}

/// Fields 14 and 15, counted behind the name, which may hold anything.
fn cpu_us(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) * TICK_US)
}

fn rss_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Raises the limit on open files and sockets of this process and its children as far as the system
/// lets it; gives the new limit.
pub fn raise_open_files() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: maximum,
        maximum,
    };
    // Refused, there are as many as there were; who needs more meets the system's own error.
    let files = match setrlimit(Resource::Nofile, all) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    files.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        assert!(Usage::own().rss_bytes > 0);
    }

    #[test]
    fn a_name_with_blanks_and_brackets_is_no_field() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4 10 0 0 0 25 5 0 0 20 0 3 0 9";
        assert_eq!(cpu_us(stat), Some(300_000));
    }
}
