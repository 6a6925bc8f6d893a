//! Report on crowds that have caught up: how often the log was read for them, and how long they took.

use super::CaughtUp;
use crate::spread::Spread;
use serde::Serialize;
use std::fmt::{self, Write as _};

/// One crowd that has caught up.
#[derive(Clone, Debug, Serialize)]
pub struct LateRun {
    /// Number of the round, from 1.
    pub round: u32,
    /// Readers that the node had; absent: as many as it has by itself.
    pub readers: Option<u32>,
    /// Number of the crowd at this node, from 1.
    pub crowd: u32,
    /// Payload that was stored.
    pub stored_bytes: u64,
    /// Bytes read for those behind by the node whose clients they are, over those stored.
    pub read_times: f64,
    /// Bytes read from the disk, or taken of what Kafka's readers have fetched, over those stored.
    pub storage_read_times: f64,
    /// Messages and times of its subscribers.
    pub caught_up: CaughtUp,
    /// Processor time of the node, in microseconds; of its gateway, if it is two processes.
    pub node_cpu_us: u64,
    /// Processor time of its tower, in microseconds, if it is two processes.
    pub tower_cpu_us: Option<u64>,
    /// Everybody got everything, once and in order.
    pub sound: bool,
}

/// All runs, in order.
#[derive(Clone, Debug, Serialize)]
pub struct LateReport {
    /// Subscribers, each of a topic of its own from a place of its own.
    pub subscribers: u32,
    /// Connections that they share.
    pub connections: u32,
    /// Payload of each message, in bytes.
    pub size: usize,
    /// The runs.
    pub runs: Vec<LateRun>,
}

impl LateReport {
    /// Whether everybody got everything, once and in order, in every run.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.runs.iter().all(|run| run.sound)
    }

    /// The numbers of readers that were tried, in the order of the first round.
    #[must_use]
    pub fn tried(&self) -> Vec<Option<u32>> {
        let first = self
            .runs
            .iter()
            .filter(|run| (run.round, run.crowd) == (1, 1));
        first.map(|run| run.readers).collect()
    }

    /// A figure of the first crowds over the rounds with so many readers.
    #[must_use]
    pub fn spread(&self, readers: Option<u32>, figure: fn(&LateRun) -> f64) -> Spread {
        let of = |run: &&LateRun| (run.readers, run.crowd) == (readers, 1);
        let runs = self.runs.iter().filter(of);
        Spread::of(runs.map(figure)).unwrap_or_default()
    }

    /// The runs as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::from(
            "round,readers,crowd,stored_bytes,time_us,messages,first_p50_us,first_p99_us,last_p50_us,\
             last_p99_us,last_max_us,read_times,storage_read_times,node_cpu_us,tower_cpu_us,\
             client_cpu_us,sound\n",
        );
        for run in &self.runs {
            let caught_up = &run.caught_up;
            let (first, last) = (caught_up.first_us, caught_up.last_us);
            let number = |number: Option<u64>| number.map_or(String::new(), |of| of.to_string());
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{:.3},{:.3},{},{},{},{}",
                run.round,
                number(run.readers.map(u64::from)),
                run.crowd,
                run.stored_bytes,
                caught_up.time_us,
                caught_up.messages,
                first.p50,
                first.p99,
                last.p50,
                last.p99,
                last.max,
                run.read_times,
                run.storage_read_times,
                run.node_cpu_us,
                number(run.tower_cpu_us),
                caught_up.cpu_us,
                run.sound,
            );
        }
        text
    }
}

impl fmt::Display for LateRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let caught_up = &self.caught_up;
        let each = |us: u64| us as f64 / caught_up.messages.max(1) as f64;
        let readers = self.readers.map_or("-".to_owned(), |of| of.to_string());
        let tower = self.tower_cpu_us.map(each);
        let tower = tower.map_or("-".to_owned(), |us| format!("{us:.2}"));
        let (first, last) = (caught_up.first_us, caught_up.last_us);
        write!(
            f,
            "{:>5} {readers:>7} {:>5} {:>6.1} {:>9.0} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6.2} {:>6.2} {:>7.2} {tower:>7} \
             {:>7.2}{}",
            self.round,
            self.crowd,
            caught_up.time_us as f64 / 1e6,
            caught_up.messages as f64 * 1e6 / caught_up.time_us.max(1) as f64,
            first.p50 / 1000,
            first.p99 / 1000,
            last.p50 / 1000,
            last.p99 / 1000,
            last.max / 1000,
            self.read_times,
            self.storage_read_times,
            each(self.node_cpu_us),
            each(caught_up.cpu_us),
            if self.sound { "" } else { "  NOT WHOLE" },
        )
    }
}

impl fmt::Display for LateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stored = self.runs.first().map_or(0, |run| run.stored_bytes >> 20);
        writeln!(
            f,
            "{} subscribers on {} connections, behind in a log of {stored} MiB, messages of {} bytes; times over \
             it that it was read for them,\nand from the disk or from Kafka (stored); ms until they had their first and their last message; \
             us of processor for a message\n\
             round readers crowd      s messages/s    first: p50, p99  last: p50, p99, max  read stored    node   tower clients",
            self.subscribers, self.connections, self.size
        )?;
        self.runs.iter().try_for_each(|run| writeln!(f, "{run}"))?;
        for readers in self.tried() {
            let name = readers.map_or("its own".to_owned(), |of| of.to_string());
            writeln!(
                f,
                "readers {name}: read {:.2}, of storage {:.2}, s {:.1}, ms to the first p50 {:.0}, to the last p99 {:.0}",
                self.spread(readers, |run| run.read_times),
                self.spread(readers, |run| run.storage_read_times),
                self.spread(readers, |run| run.caught_up.time_us as f64 / 1e6),
                self.spread(readers, |run| run.caught_up.first_us.p50 as f64 / 1e3),
                self.spread(readers, |run| run.caught_up.last_us.p99 as f64 / 1e3),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_column_for_every_run() {
        let run = |readers| LateRun {
            round: 1,
            readers,
            crowd: 1,
            stored_bytes: 1,
            read_times: 1.5,
            storage_read_times: 1.0,
            caught_up: CaughtUp::default(),
            node_cpu_us: 1,
            tower_cpu_us: readers.map(u64::from),
            sound: true,
        };
        let report = LateReport {
            subscribers: 1,
            connections: 1,
            size: 100,
            runs: vec![run(None), run(Some(2))],
        };
        let table = report.table();
        let columns = table.lines().map(|line| line.split(',').count());
        assert_eq!(columns.collect::<Vec<_>>(), [17; 3]);
        assert_eq!(report.tried(), [None, Some(2)]);
    }
}
