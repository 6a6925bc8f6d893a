//! A run over time as a table, for other programs.

use crate::part::Sample;
use std::fmt::Write as _;

/// The columns.
const HEADING: &str = "seconds,acknowledged_per_s,delivered_per_s,p50_us,p99_us,max_us\n";

/// One line for each interval, below a line of names.
#[must_use]
pub fn table(samples: &[Sample]) -> String {
    let mut text = HEADING.to_owned();
    for sample in samples {
        let Sample {
            seconds,
            acknowledged_per_s,
            delivered_per_s,
            p50_us,
            p99_us,
            max_us,
        } = sample;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{seconds:.3},{acknowledged_per_s:.0},{delivered_per_s:.0},{p50_us},{p99_us},{max_us}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_every_column() {
        let text = table(&[Sample::default(), Sample::default()]);
        let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [6, 6, 6]);
    }
}
