//! A real log file, repeated as need be: the log of Debian's package manager on this machine, or,
//! where there is none, lines of the same shape.

use std::collections::BTreeMap;
use std::fs;

/// `count` lines; each begins with what was done (`install`, `status` …), then its own number, then
/// the line of the file.
pub(crate) fn lines(count: usize) -> Vec<String> {
    let text = fs::read_to_string("/var/log/dpkg.log").unwrap_or_default();
    let real: Vec<&str> = text
        .lines()
        .filter(|line| line.split(' ').count() > 3)
        .collect();
    let line = |number: usize| {
        if real.is_empty() {
            made_up(number)
        } else {
            let line = real[number % real.len()];
            let action = line.split(' ').nth(2).unwrap_or("none");
            format!("{action} {number} {line}")
        }
    };
    (0..count).map(line).collect()
}

/// The lines by their first word, in order.
pub(crate) fn by_first_word(lines: &[String]) -> BTreeMap<&str, Vec<&str>> {
    let mut topics: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines {
        let word = line.split(' ').next().unwrap_or_default();
        topics.entry(word).or_default().push(line);
    }
    topics
}

fn made_up(number: usize) -> String {
    let actions = [
        "status",
        "status",
        "status",
        "configure",
        "install",
        "upgrade",
        "trigproc",
    ];
    let action = actions[number * 5 % 17 % actions.len()];
    let package = number * 7919 % 613;
    format!(
        "{action} {number} 2026-01-01 00:00:00 {action} package-{package}:amd64 1.{number}-1 <none>"
    )
}
