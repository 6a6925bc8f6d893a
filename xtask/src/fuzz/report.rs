//! Result of one fuzz target's run, read from libFuzzer's output, and the table of all.

/// One target's run.
#[derive(Debug)]
pub(crate) struct Report {
    /// The target.
    pub(crate) target: String,
    inputs: u64,
    per_second: u64,
    edges: u64,
    peak_mib: u64,
    outcome: Outcome,
    must_fail: bool,
}

/// Ends of a run.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It took all its inputs.
    Clean,
    /// An input made it fail: the first line that says how.
    Found(String),
    /// It ended before it had all its inputs, without saying why.
    Short,
}

impl Report {
    /// Reads the report from libFuzzer's output. `must_fail` is for the target with a planted bug.
    pub(crate) fn new(
        target: &str,
        wanted: u64,
        must_fail: bool,
        success: bool,
        told: &str,
    ) -> Report {
        let inputs = stat(told, "number_of_executed_units").unwrap_or(0);
        let reason = told.lines().find(|line| {
            line.contains("panicked at") || line.contains("ERROR: libFuzzer") && !success
        });
        let outcome = match reason {
            _ if success && inputs >= wanted => Outcome::Clean,
            Some(reason) if !success => Outcome::Found(reason.trim().to_owned()),
            _ => Outcome::Short,
        };
        Report {
            target: target.to_owned(),
            inputs,
            per_second: stat(told, "average_exec_per_sec").unwrap_or(0),
            edges: edges(told).unwrap_or(0),
            peak_mib: stat(told, "peak_rss_mb").unwrap_or(0),
            outcome,
            must_fail,
        }
    }

    /// Whether the run ended as it must: clean, or, for the canary, found.
    pub(crate) fn as_wanted(&self) -> bool {
        match self.outcome {
            Outcome::Clean => !self.must_fail,
            Outcome::Found(_) => self.must_fail,
            Outcome::Short => false,
        }
    }

    /// Its line of the table.
    pub(crate) fn line(&self) -> String {
        let result = match (&self.outcome, self.must_fail) {
            (Outcome::Clean, false) => "clean".to_owned(),
            (Outcome::Clean, true) => "NOT FOUND, though it is there".to_owned(),
            (Outcome::Found(_), true) => "found, as it must be".to_owned(),
            (Outcome::Found(reason), false) => format!("FAILED: {reason}"),
            (Outcome::Short, _) => "ENDED EARLY".to_owned(),
        };
        format!(
            "{:<20} {:>12} {:>10} {:>7} {:>9}  {result}",
            self.target, self.inputs, self.per_second, self.edges, self.peak_mib
        )
    }
}

/// Prints the table.
pub(crate) fn print(reports: &[Report]) {
    println!(
        "\n{:<20} {:>12} {:>10} {:>7} {:>9}  result",
        "target", "inputs", "inputs/s", "edges", "peak MiB"
    );
    for report in reports {
        println!("{}", report.line());
    }
}

/// A figure of libFuzzer's final statistics.
fn stat(told: &str, name: &str) -> Option<u64> {
    let start = format!("stat::{name}:");
    let line = told.lines().find_map(|line| line.strip_prefix(&start))?;
    line.trim().parse().ok()
}

/// The edges reached, by the last line of progress.
fn edges(told: &str) -> Option<u64> {
    let mut lines = told.lines().rev();
    let (_, after) = lines.find_map(|line| line.split_once(" cov: "))?;
    after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: &str = "#9\tNEW    cov: 70 ft: 230 corp: 33/694b\n\
        #100\tDONE   cov: 71 ft: 230 corp: 33/694b\n\
        stat::number_of_executed_units: 100\nstat::average_exec_per_sec:     50\n\
        stat::peak_rss_mb:              27\n";

    #[test]
    fn a_run_of_all_inputs_is_clean() {
        let report = Report::new("position", 100, false, true, END);
        assert!(report.as_wanted(), "{report:?}");
        assert_eq!(
            (
                report.inputs,
                report.per_second,
                report.edges,
                report.peak_mib
            ),
            (100, 50, 71, 27)
        );
    }

    #[test]
    fn a_run_that_ends_early_is_no_good() {
        assert!(!Report::new("position", 101, false, true, END).as_wanted());
        assert!(!Report::new("position", 100, false, false, "killed").as_wanted());
    }

    #[test]
    fn a_planted_bug_must_be_found_and_no_other() {
        let told =
            "thread panicked at fuzz_targets/x.rs:9:5:\n==1== ERROR: libFuzzer: deadly signal\n";
        assert!(Report::new("canary", 100, true, false, told).as_wanted());
        assert!(!Report::new("canary", 100, true, true, END).as_wanted());
        let report = Report::new("position", 100, false, false, told);
        assert!(!report.as_wanted());
        assert!(report.line().contains("panicked at fuzz_targets/x.rs"));
    }
}
