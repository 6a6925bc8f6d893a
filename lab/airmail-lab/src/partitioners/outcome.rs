//! Outcome of one run, over all of its producers.

use super::metric::Metric;
use airmail_bench::latency::Latencies;
use serde::Deserialize;

/// Size of the paper's MB, as Kafka's tool counts them.
const MEGABYTE: f64 = 1_048_576.0;
/// Quantiles that are also told as a stride gives them.
pub(super) const STRIDED: [f64; 3] = [0.5, 0.99, 0.999];

/// Report of one flow; times in microseconds where not said otherwise.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct FlowTold {
    /// Records that count, and were acknowledged.
    counted: u64,
    /// Records that were not.
    failed: u64,
    first_error: Option<String>,
    /// Time from the first record that counts to the last ack.
    seconds: f64,
    sum_us: u64,
    max_us: u64,
    latencies: Latencies,
    /// Those of each 200th record in the order of sending.
    strided: Latencies,
    /// Records acknowledged and the greatest latency, for each quarter of a second.
    course: Vec<(u64, u64)>,
    /// The producer's metrics.
    io_time_ns: Option<f64>,
    batch_bytes: Option<f64>,
    requests: Option<f64>,
}

/// Report of a process with some flows.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Told {
    pub(super) flows: Vec<FlowTold>,
    /// Output of Kafka's tool on the last flow.
    pub(super) tool: String,
}

/// A run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Records that count, and were acknowledged.
    pub(super) counted: u64,
    /// Records that were not acknowledged.
    pub(super) failed: u64,
    pub(super) first_error: Option<String>,
    /// Values in the order of [`Metric::ALL`].
    values: [f64; 9],
    /// [`STRIDED`] of each 200th record, in milliseconds.
    strided_ms: [f64; 3],
    /// Bytes of a batch, on the average.
    pub(super) batch_bytes: f64,
    /// Requests of all producers.
    pub(super) requests: f64,
    /// Records acknowledged and the greatest latency in microseconds, for each quarter of a second.
    pub(super) course: Vec<(u64, u64)>,
    /// Records of each partition, as the cluster tells them; warm-up included.
    pub(super) partitions: Vec<u64>,
    /// Share of a core that each broker used, from the first record to the last ack.
    pub(super) core_shares: Vec<f64>,
    /// Output of Kafka's tool.
    pub(super) tool: String,
}

impl Outcome {
    /// Adds up the reports of a run's processes, with records of `size` bytes.
    pub(super) fn of(told: &[Told], size: u32, partitions: Vec<u64>) -> Outcome {
        let flows: Vec<&FlowTold> = told.iter().flat_map(|told| &told.flows).collect();
        let mut sum = Outcome {
            partitions,
            tool: told
                .last()
                .map(|told| told.tool.clone())
                .unwrap_or_default(),
            ..Outcome::default()
        };
        let (mut latencies, mut strided) = (Latencies::new(), Latencies::new());
        let (mut seconds, mut sum_us, mut max_us) = (0_f64, 0, 0);
        for flow in &flows {
            sum.counted += flow.counted;
            sum.failed += flow.failed;
            sum.first_error = sum.first_error.or_else(|| flow.first_error.clone());
            seconds = seconds.max(flow.seconds);
            sum_us += flow.sum_us;
            max_us = max_us.max(flow.max_us);
            latencies.add(&flow.latencies);
            strided.add(&flow.strided);
            sum.requests += flow.requests.unwrap_or_default();
            add_course(&mut sum.course, &flow.course);
        }
        let mean = |of: fn(&FlowTold) -> Option<f64>| {
            let values: Vec<f64> = flows.iter().filter_map(|flow| of(flow)).collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        };
        sum.batch_bytes = mean(|flow| flow.batch_bytes);
        let ms = |us: u64| us as f64 / 1e3;
        sum.strided_ms = STRIDED.map(|quantile| ms(strided.at(quantile)));
        sum.values = Metric::ALL.map(|metric| match metric {
            Metric::Throughput => sum.counted as f64 * f64::from(size) / MEGABYTE / seconds,
            Metric::Mean => ms(sum_us) / sum.counted.max(1) as f64,
            Metric::P50 => ms(latencies.at(0.5)),
            Metric::P95 => ms(latencies.at(0.95)),
            Metric::P99 => ms(latencies.at(0.99)),
            Metric::P999 => ms(latencies.at(0.999)),
            Metric::Max => ms(max_us),
            Metric::Io => mean(|flow| flow.io_time_ns),
            Metric::Ttc => seconds,
        });
        sum
    }

    /// A run of which nothing else is known.
    #[cfg(test)]
    pub(super) fn with_throughput(mb_per_s: f64) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.values[Metric::Throughput as usize] = mb_per_s;
        outcome
    }

    /// A line of the paper's tables.
    pub(super) fn metric(&self, metric: Metric) -> f64 {
        self.values[metric as usize]
    }

    /// [`STRIDED`] as each 200th record gives them, in milliseconds.
    pub(super) fn strided_ms(&self) -> [f64; 3] {
        self.strided_ms
    }

    /// Records of each node, where `replicas` has the leader of each partition first: node, records.
    pub(super) fn nodes(&self, replicas: &[Vec<u32>]) -> Vec<(u32, u64)> {
        let mut nodes = std::collections::BTreeMap::new();
        for (partition, records) in replicas.iter().zip(&self.partitions) {
            if let Some(leader) = partition.first() {
                *nodes.entry(*leader).or_insert(0) += records;
            }
        }
        nodes.into_iter().collect()
    }
}

fn add_course(sum: &mut Vec<(u64, u64)>, course: &[(u64, u64)]) {
    sum.resize(sum.len().max(course.len()), (0, 0));
    for ((records, max_us), (more, max_more)) in sum.iter_mut().zip(course) {
        *records += more;
        *max_us = (*max_us).max(*max_more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(latency_us: u64) -> Told {
        let flow = format!(
            "{{\"counted\": 10, \"failed\": 1, \"first_error\": \"late\", \"seconds\": 2.0, \
             \"sum_us\": {}, \"max_us\": {latency_us}, \"latencies\": [[{latency_us}, 10]], \
             \"strided\": [[7, 1]], \"course\": [[4, 5], [6, {latency_us}]], \"io_time_ns\": 3.0, \
             \"sent\": 12}}",
            10 * latency_us
        );
        serde_json::from_str(&format!("{{\"flows\": [{flow}], \"tool\": \"said\"}}")).unwrap()
    }

    #[test]
    fn producers_are_one_run_together() {
        let outcome = Outcome::of(&[told(1_000), told(3_000)], 100, vec![5, 6, 7]);
        assert_eq!(outcome.metric(Metric::Mean), 2.0);
        assert_eq!(outcome.metric(Metric::Max), 3.0);
        assert_eq!(outcome.metric(Metric::Ttc), 2.0);
        let megabytes = 20.0 * 100.0 / MEGABYTE / 2.0;
        assert!((outcome.metric(Metric::Throughput) - megabytes).abs() < 1e-9);
        assert_eq!(outcome.course, [(8, 5), (12, 3_000)]);
        assert_eq!((outcome.counted, outcome.failed), (20, 2));
        assert_eq!(outcome.strided_ms(), [0.007; 3]);
        let nodes = outcome.nodes(&[vec![1, 2], vec![2, 1], vec![2, 1]]);
        assert_eq!(nodes, [(1, 5), (2, 13)]);
    }
}
