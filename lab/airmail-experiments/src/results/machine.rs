//! The machine on which figures were measured: without it they mean nothing.

use std::fs;

/// This machine and what else it does at the moment, in a sentence.
#[must_use]
pub fn machine() -> String {
    let first_of = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let said = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let memory = first_of("/proc/meminfo", "MemTotal");
    let kib = memory.split_whitespace().next().map(str::parse::<u64>);
    let gib = kib.and_then(Result::ok).unwrap_or_default() >> 20;
    let load = said("/proc/loadavg");
    format!(
        "Measured on {cores} cores of {model} with {gib} GiB, Linux {kernel}; when it began, {load} \
         processes were running or waiting, on the average of a minute.",
        cores = std::thread::available_parallelism().map_or(0, usize::from),
        model = first_of("/proc/cpuinfo", "model name"),
        kernel = said("/proc/sys/kernel/osrelease").trim(),
        load = load.split_whitespace().next().unwrap_or("?"),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_tells_cores_and_system() {
        let said = super::machine();
        assert!(said.contains("cores") && said.contains("Linux"), "{said}");
    }
}
