//! Limits on a process, to a part of a core, to some memory and to so many bytes written to its disk,
//! by control groups (v1 or v2), with a report on whether they held.
//!
//! A group is made below this process's own, or, where that cannot have one, below one further up.
//! It goes when the process in it has ended and this is dropped. A limit that the system does not
//! let be set is not an error: it is reported.

mod disk;
mod held_node;
mod holder;

pub(crate) use disk::DiskLimit;
pub(crate) use held_node::{HeldNode, Look};
pub(crate) use holder::{Holder, hold};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The first part of the groups' names.
const NAME: &str = "airmail-bench";

/// Limits of a process; what is not said has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Processor time.
    pub(crate) cpu: Option<CpuLimit>,
    /// Memory, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// Bytes written to its disk.
    pub(crate) disk: Option<DiskLimit>,
}

/// Processor time of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CpuLimit {
    /// Processor time in each period.
    pub(crate) quota_us: u64,
    /// The period.
    pub(crate) period_us: u64,
}

/// A process that is held.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Groups that were made.
    groups: Vec<Group>,
    cpu: Option<PathBuf>,
    /// Limits that were set, and those that could not be, for the report.
    pub(crate) means: Vec<String>,
    /// Whether all were set.
    pub(crate) is_whole: bool,
}

/// Counts of the times that a process wanted more processor time than its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Throttled {
    /// Periods in which it ran.
    pub(crate) periods: u64,
    /// Those in which it was stopped.
    pub(crate) throttled: u64,
}

/// Removed when dropped; a group with a process in it stays.
#[derive(Debug)]
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        // One that cannot be removed holds nobody who is not in it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Where groups with a controller can be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// Where the hierarchy is mounted.
    root: PathBuf,
    /// This process's group in it.
    own: String,
    /// Version 2, with one hierarchy for all controllers.
    unified: bool,
}

impl CpuLimit {
    /// Limit to so many cores in a period.
    pub(crate) fn cores(cores: f64, period_us: u64) -> CpuLimit {
        CpuLimit {
            quota_us: (cores * period_us as f64).round() as u64,
            period_us,
        }
    }
}

impl Hold {
    /// Holds a process, as far as the system lets.
    pub(crate) fn on(pid: u32, limits: &Limits) -> Hold {
        let mut hold = Hold {
            groups: Vec::new(),
            cpu: None,
            means: Vec::new(),
            is_whole: true,
        };
        if let Some(cpu) = limits.cpu {
            hold.hold_cpu(pid, cpu);
        }
        if let Some(bytes) = limits.memory_bytes {
            hold.hold_memory(pid, bytes);
        }
        if let Some(disk) = &limits.disk {
            hold.hold_disk(pid, disk);
        }
        hold
    }

    fn hold_cpu(&mut self, pid: u32, limit: CpuLimit) {
        let CpuLimit {
            quota_us,
            period_us,
        } = limit;
        let cpu = self.control(pid, "cpu", |unified| {
            if unified {
                vec![("cpu.max", format!("{quota_us} {period_us}"))]
            } else {
                vec![
                    ("cpu.cfs_period_us", period_us.to_string()),
                    ("cpu.cfs_quota_us", quota_us.to_string()),
                ]
            }
        });
        let share = quota_us as f64 / period_us as f64;
        let what = format!("{share} of a core, period {} ms", period_us / 1000);
        self.tell(&what, cpu.as_ref().map(|(means, _)| means.as_str()));
        self.cpu = cpu.map(|(_, path)| path);
    }

    fn hold_memory(&mut self, pid: u32, bytes: u64) {
        let memory = self.control(pid, "memory", |unified| {
            let file = if unified {
                "memory.max"
            } else {
                "memory.limit_in_bytes"
            };
            vec![(file, bytes.to_string())]
        });
        let what = format!("{} MiB of memory", bytes >> 20);
        self.tell(&what, memory.as_ref().map(|(means, _)| means.as_str()));
    }

    fn hold_disk(&mut self, pid: u32, limit: &DiskLimit) {
        let disk = limit.device().ok().and_then(|device| {
            let setting = |unified| vec![limit.setting(&device, unified)];
            self.control(pid, "blkio", setting)
        });
        let what = format!("{} bytes written a second", limit.write_bytes_per_s);
        self.tell(&what, disk.as_ref().map(|(means, _)| means.as_str()));
    }

    /// Gives it another quota of processor time from now on; whether the system lets that be done.
    pub(crate) fn allow(&self, limit: CpuLimit) -> bool {
        let CpuLimit {
            quota_us,
            period_us,
        } = limit;
        let Some(group) = &self.cpu else {
            return false;
        };
        let (file, value) = if group.join("cpu.max").exists() {
            ("cpu.max", format!("{quota_us} {period_us}"))
        } else {
            ("cpu.cfs_quota_us", quota_us.to_string())
        };
        set(&group.join(file), &value).is_ok()
    }

    /// Number of times that it was stopped so far; `None` where nothing stops it.
    pub(crate) fn throttled(&self) -> Option<Throttled> {
        let text = fs::read_to_string(self.cpu.as_ref()?.join("cpu.stat")).ok()?;
        Some(Throttled::read(&text))
    }

    fn tell(&mut self, what: &str, means: Option<&str>) {
        self.is_whole &= means.is_some();
        self.means.push(match means {
            Some(means) => format!("{what}: held by {means}"),
            None => format!("{what}: not held, the system does not let this process do it"),
        });
    }

    /// Puts the process into a group with this controller, by its name in version 1, and these settings;
    /// what holds it, and the group.
    fn control(
        &mut self,
        pid: u32,
        controller: &str,
        settings: impl Fn(bool) -> Vec<(&'static str, String)>,
    ) -> Option<(String, PathBuf)> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        for place in places(&mounts, &groups, controller) {
            for parent in place.parents() {
                if place.unified {
                    // Refused where the group has processes of its own; then one further up may do.
                    let enabled = format!("+{}", unified_name(controller));
                    let _ = fs::write(parent.join("cgroup.subtree_control"), enabled);
                }
                let path = parent.join(format!("{NAME}-{pid}"));
                let made =
                    (self.groups.iter().all(|group| group.0 != path)).then(|| Group(path.clone()));
                let done = make(&path)
                    .and_then(|()| {
                        let each = settings(place.unified);
                        each.iter()
                            .try_for_each(|(file, value)| set(&path.join(file), value))
                    })
                    .and_then(|()| set(&path.join("cgroup.procs"), &pid.to_string()));
                if done.is_ok() {
                    self.groups.extend(made);
                    let version = if place.unified { "v2" } else { "v1" };
                    return Some((format!("a control group ({version}, {controller})"), path));
                }
            }
        }
        None
    }
}

impl Throttled {
    /// Reads a group's `cpu.stat`.
    fn read(text: &str) -> Throttled {
        let number = |name: &str| {
            let of_name = |line: &str| line.strip_prefix(name)?.trim().parse().ok();
            text.lines().find_map(of_name).unwrap_or_default()
        };
        Throttled {
            periods: number("nr_periods "),
            throttled: number("nr_throttled "),
        }
    }

    /// Part of all periods of some processes in which they were stopped; `None` of no periods.
    pub(crate) fn share(counts: impl Iterator<Item = Throttled>) -> Option<f64> {
        let (periods, stopped) = counts.fold((0, 0), |(periods, stopped), one| {
            (periods + one.periods, stopped + one.throttled)
        });
        (periods > 0).then(|| stopped as f64 / periods as f64)
    }

    /// Increase since an earlier look.
    pub(crate) fn since(self, before: Throttled) -> Throttled {
        Throttled {
            periods: self.periods.saturating_sub(before.periods),
            throttled: self.throttled.saturating_sub(before.throttled),
        }
    }
}

/// Name of a controller in version 2.
fn unified_name(controller: &str) -> &str {
    match controller {
        "blkio" => "io",
        same => same,
    }
}

/// The group may be there already: the one for the other controller, in version 2.
fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Sets what is there to be set: no file is made.
fn set(path: &Path, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, value.as_bytes())
}

/// Where groups with a controller may be, as the system tells of its mounts and of this process's
/// groups.
fn places(mounts: &str, groups: &str, controller: &str) -> Vec<Place> {
    let own = |controllers: &str| {
        let of_controllers = |line: &str| {
            let mut fields = line.splitn(3, ':').skip(1);
            let named = fields.next()?.split(',').any(|name| name == controllers);
            named.then(|| fields.next().map(str::to_owned)).flatten()
        };
        groups.lines().find_map(of_controllers)
    };
    let place = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let (root, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let (own, unified) = match kind {
            "cgroup2" => (own("")?, true),
            "cgroup" if options.split(',').any(|option| option == controller) => {
                (own(controller)?, false)
            }
            _ => return None,
        };
        let root = PathBuf::from(root);
        Some(Place { root, own, unified })
    };
    mounts.lines().filter_map(place).collect()
}

impl Place {
    /// Groups below which a new one may be made: this process's own, then further up.
    fn parents(&self) -> Vec<PathBuf> {
        let own = Path::new(self.own.trim_start_matches('/'));
        let up = own.ancestors().map(|path| self.root.join(path));
        up.filter(|path| path.is_dir()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str = "4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/d\n";

    #[test]
    fn a_controller_is_found_in_either_version() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let found = places(mounts, GROUPS, "cpu");
        let place = |root: &str, own: &str, unified| Place {
            root: root.into(),
            own: own.into(),
            unified,
        };
        let unified = place("/sys/fs/cgroup/unified", "/d", true);
        assert_eq!(found, [place("/sys/fs/cgroup/cpu", "/c", false), unified]);
        assert_eq!(places(mounts, GROUPS, "memory")[0].own, "/a/b");
        assert!(places("", GROUPS, "cpu").is_empty());
    }

    #[test]
    fn a_group_may_also_be_made_further_up() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        let place = Place {
            root: root.path().to_owned(),
            own: "/a/b".into(),
            unified: false,
        };
        // `b` is not seen from here, as within a container.
        assert_eq!(
            place.parents(),
            [root.path().join("a"), root.path().join("")]
        );
    }

    #[test]
    fn what_was_stopped_is_read_in_either_version() {
        let read = Throttled::read("nr_periods 70\nnr_throttled 9\nthrottled_time 5\n");
        assert_eq!((read.periods, read.throttled), (70, 9));
        let read = Throttled::read("usage_usec 1\nnr_periods 3\nnr_throttled 1\n");
        assert_eq!((read.periods, read.throttled), (3, 1));
    }
}
