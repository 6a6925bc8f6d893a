//! Report on the cost of some subscribers to the others, as text and as a table.

use super::{IsolationReport, Phase};
use crate::bystander::Conduct;
use crate::spread::Spread;
use std::fmt::{self, Write as _};

impl IsolationReport {
    /// The phases as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::from(
            "round,saturated,beside,delivered_per_s,p50_us,p99_us,late_p99_us,client_ns_each,\
             node_ns_each,shard_ns_each,shard_busy,detached,late_bytes,taken_messages,taken_bytes,\
             taken_us,taken_cpu_us\n",
        );
        for phase in &self.phases {
            let taken = phase.taken.unwrap_or_default();
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{:.0},{},{},{},{:.0},{:.0},{:.0},{:.3},{},{},{},{},{},{}",
                phase.round,
                phase.saturated,
                name(phase.beside),
                phase.delivered_per_s,
                phase.p50_us,
                phase.p99_us,
                phase.late_p99_us,
                phase.client_ns_each,
                phase.node_ns_each,
                phase.shard_ns_each,
                phase.shard_busy,
                phase.detached,
                phase.late_bytes,
                taken.messages,
                taken.bytes,
                taken.time_us,
                taken.cpu_us,
            );
        }
        text
    }
}

/// Name of a pace.
pub(super) const fn pace(is_saturated: bool) -> &'static str {
    if is_saturated {
        "saturated"
    } else {
        "half load"
    }
}

fn name(beside: Option<Conduct>) -> &'static str {
    beside.map_or("nobody", Conduct::name)
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pace = pace(self.saturated);
        let beside = name(self.beside);
        write!(
            f,
            "{:>5} {pace:<9} {beside:<8} {:>9.0} {:>8} {:>8} {:>7.0} {:>7.0} {:>6.2} {:>8}",
            self.round,
            self.delivered_per_s,
            self.p50_us,
            self.p99_us,
            self.client_ns_each,
            self.node_ns_each,
            self.shard_busy,
            self.detached,
        )?;
        let Some(taken) = self.taken else {
            return Ok(());
        };
        let seconds = taken.time_us.max(1) as f64 / 1e6;
        let (rate, cpu) = (taken.bytes as f64 / seconds, taken.cpu_us as f64 / 1e6);
        write!(
            f,
            " {:>9.2} {:>9.2}",
            rate / f64::from(1 << 20),
            cpu / seconds
        )
    }
}

impl fmt::Display for IsolationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.backlog_bytes >> 20;
        writeln!(
            f,
            "airmail: {mib} MiB stored in lane {}, messages of {} bytes",
            self.backlog_lane, self.size
        )?;
        writeln!(
            f,
            "{} publishers, {} subscribers; half load is {:.0} messages/s\n",
            self.publishers, self.subscribers, self.offered_per_s
        )?;
        writeln!(
            f,
            "round load      beside   delivered   p50 us   p99 us  client    node  shard detached   beside: \
             CPU\n                               /s                   ns each ns each   busy              MiB/s"
        )?;
        for phase in &self.phases {
            writeln!(f, "{phase}")?;
        }
        writeln!(
            f,
            "\nbeside nobody it is 1           delivered                p50                p99   \
             shard's share"
        )?;
        for ratios in &self.ratios {
            let pace = pace(ratios.saturated);
            write!(f, "{pace:<9} {:<12}", ratios.beside.name())?;
            for spread in [ratios.delivered, ratios.p50, ratios.p99, ratios.shard_share] {
                let Spread {
                    median,
                    least,
                    most,
                } = spread;
                write!(f, " {median:>5.2} ({least:.2}-{most:.2})")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
