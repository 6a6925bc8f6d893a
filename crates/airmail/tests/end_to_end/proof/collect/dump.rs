//! The records of both clusters in the end, and the check that they are as promised.

use super::Flow;
use crate::collect::stamp;
use airmail_collect::{Restorer, Stamp};
use airmail_testkit::kafka::KafkaCluster;
use rdkafka::message::Message as _;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A record where it was produced.
#[derive(Clone, Copy, Debug)]
struct Original {
    number: u64,
    time_ms: i64,
}

/// A record where it was collected to.
#[derive(Clone, Debug)]
struct Copy {
    partition: i32,
    stamp: Stamp,
    key: Option<String>,
    number: u64,
    time_ms: i64,
}

/// One flow, at both ends.
#[derive(Debug)]
pub(super) struct Dumped {
    /// Records of the small cluster by source, then by offset.
    originals: BTreeMap<String, BTreeMap<u64, Original>>,
    /// Records of the main cluster, in order for each partition.
    copies: Vec<Copy>,
}

impl Dumped {
    pub(super) fn read(small: &KafkaCluster, main: &KafkaCluster, flow: Flow) -> Dumped {
        let number = |payload: Option<&[u8]>| {
            std::str::from_utf8(payload.unwrap())
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        let mut originals: BTreeMap<String, BTreeMap<u64, Original>> = BTreeMap::new();
        small.read(flow.from, flow.partitions, |message| {
            let source = format!(
                "{}/{}/{}",
                crate::collect::SMALL,
                flow.from,
                message.partition()
            );
            let offset = u64::try_from(message.offset()).unwrap();
            let original = Original {
                number: number(message.payload()),
                time_ms: message.timestamp().to_millis().unwrap(),
            };
            originals
                .entry(source)
                .or_default()
                .insert(offset, original);
        });
        let mut copies = Vec::new();
        main.read(flow.to, flow.target_partitions, |message| {
            copies.push(Copy {
                partition: message.partition(),
                stamp: stamp(message),
                key: message
                    .key()
                    .map(|key| String::from_utf8(key.to_owned()).unwrap()),
                number: number(message.payload()),
                time_ms: message.timestamp().to_millis().unwrap(),
            });
        });
        Dumped { originals, copies }
    }

    /// Nothing lost, nothing that was not there, and the order that was promised.
    pub(super) fn check(&self, flow: Flow) {
        self.check_whole();
        self.check_restored();
        match flow.order {
            "pinned" => {
                self.check_order("source", |copy| Some(copy.stamp.source.clone()));
                for copy in &self.copies {
                    let source = copy.stamp.source.rsplit_once('/').unwrap().1;
                    let source: i32 = source.parse().unwrap();
                    assert_eq!(copy.partition, source % flow.target_partitions, "{copy:?}");
                }
            }
            _ => self.check_order("key", |copy| copy.key.clone()),
        }
    }

    /// The producers' numbers of all that is in the main cluster.
    pub(super) fn numbers(&self) -> BTreeSet<u64> {
        self.copies.iter().map(|copy| copy.number).collect()
    }

    fn check_whole(&self) {
        let originals = self.originals.values().flat_map(BTreeMap::values);
        let originals: BTreeSet<u64> = originals.map(|original| original.number).collect();
        let copies = self.numbers();
        let lost: Vec<&u64> = originals.difference(&copies).collect();
        assert!(
            lost.is_empty(),
            "{} of {} lost: {lost:?}",
            lost.len(),
            originals.len()
        );
        assert!(originals == copies, "there is what nobody has sent");
    }

    /// A reader that follows the stamps has every source as it was, each record once.
    fn check_restored(&self) {
        let mut restorer = Restorer::new();
        let mut restored = Vec::new();
        for copy in &self.copies {
            restorer.take(&copy.stamp, copy, &mut restored);
        }
        assert_eq!(restorer.waiting(), 0, "there are holes");
        let mut sequences: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for copy in restored {
            let original = self.originals[&copy.stamp.source][&copy.stamp.range.number];
            assert_eq!(original.number, copy.number, "{copy:?}");
            sequences
                .entry(&copy.stamp.source)
                .or_default()
                .push(copy.number);
        }
        for (source, originals) in &self.originals {
            let whole: Vec<u64> = originals.values().map(|original| original.number).collect();
            assert!(sequences[&**source] == whole, "{source} is not restored");
        }
    }

    /// Within a partition what belongs together stands in order, the first of each record counted.
    fn check_order(&self, what: &str, together: impl Fn(&Copy) -> Option<String>) {
        let mut places: BTreeMap<String, i32> = BTreeMap::new();
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        let mut had: BTreeSet<(String, u64)> = BTreeSet::new();
        for copy in &self.copies {
            let Some(group) = together(copy) else {
                continue;
            };
            let place = *places.entry(group.clone()).or_insert(copy.partition);
            assert_eq!(
                place, copy.partition,
                "{what} {group} stands in two partitions"
            );
            let number = copy.stamp.range.number;
            if had.insert((group.clone(), number)) {
                let before = last.insert(group, number);
                assert!(
                    before < Some(number),
                    "{what}: {copy:?} stands behind {before:?}"
                );
            }
        }
    }

    /// Reports the records, and the latency that collecting adds, in all and in `calm`.
    pub(super) fn report(&self, calm: &Range<i64>) -> String {
        let mut first: BTreeMap<(&str, u64), i64> = BTreeMap::new();
        for copy in &self.copies {
            let at = first.entry((&copy.stamp.source, copy.stamp.range.number));
            let at = at.or_insert(copy.time_ms);
            *at = copy.time_ms.min(*at);
        }
        let (mut all, mut calmly) = (Vec::new(), Vec::new());
        for ((source, number), at) in &first {
            let original = self.originals[*source][number];
            let latency_ms = at - original.time_ms;
            all.push(latency_ms);
            if calm.contains(&original.time_ms) {
                calmly.push(latency_ms);
            }
        }
        let repeats = self.copies.len() - first.len();
        format!(
            "{} records, {repeats} of them also came again; latency added: {}; undisturbed: {}",
            first.len(),
            quantiles(all),
            quantiles(calmly),
        )
    }
}

fn quantiles(mut latencies_ms: Vec<i64>) -> String {
    latencies_ms.sort_unstable();
    let at = |part: usize| {
        latencies_ms
            .get((latencies_ms.len() * part / 100).min(latencies_ms.len().saturating_sub(1)))
    };
    match (at(50), at(99), latencies_ms.last()) {
        (Some(p50), Some(p99), Some(max)) => {
            format!(
                "p50 {p50} ms, p99 {p99} ms, max {max} ms of {}",
                latencies_ms.len()
            )
        }
        _ => "none".to_owned(),
    }
}
