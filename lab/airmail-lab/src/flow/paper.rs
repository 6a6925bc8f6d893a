//! The paper's numbers of figures, so that its readers find theirs.
//!
//! Section 5.7 and appendix A.1 are about memory, 5.8 and A.2 about Kafka, in whose place the disk stands too. Figures that the paper has not, such as those of our own limiter, have no number.

use super::case::Storage;
use airmail_experiments::flow::Distribution;
use airmail_flow::LimiterKind;

/// The paper's figures of one limiter on one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Figures {
    /// Figures by distribution: messages in flight, latency, throughput.
    curves: [[&'static str; 3]; 3],
    /// Figures by distribution: throughput and latency against messages in flight.
    relations: [&'static str; 3],
    /// Delivery latency, 99th percentile.
    delivery: &'static str,
}

const MEMORY_LAST_THREE_POINTS: Figures = Figures {
    curves: [
        ["5.4", "5.5", "5.6"],
        ["A.1", "A.3", "A.5"],
        ["A.2", "A.4", "A.6"],
    ],
    relations: ["5.7", "A.8", "A.9"],
    delivery: "5.8",
};
const MEMORY_ADAPTIVE: Figures = Figures {
    curves: [
        ["5.9", "5.10", "5.11"],
        ["A.10", "A.12", "A.14"],
        ["A.11", "A.13", "A.15"],
    ],
    relations: ["5.12", "A.17", "A.18"],
    delivery: "5.13",
};
const KAFKA_LAST_THREE_POINTS: Figures = Figures {
    curves: [
        ["5.14", "5.15", "5.16"],
        ["A.19", "A.21", "A.23"],
        ["A.20", "A.22", "A.24"],
    ],
    relations: ["5.17", "A.26", "A.27"],
    delivery: "5.18",
};
const KAFKA_ADAPTIVE: Figures = Figures {
    curves: [
        ["5.19", "5.20", "5.21"],
        ["A.28", "A.30", "A.32"],
        ["A.29", "A.31", "A.33"],
    ],
    relations: ["5.22", "A.35", "A.36"],
    delivery: "5.23",
};

/// Topics of the paper's figures of throughput and latency against messages in flight.
pub(super) const RELATION_TOPICS: u32 = 256;

/// The paper's figures of this limiter on this storage, if it has any.
pub(super) fn figures(storage: Storage, limiter: LimiterKind) -> Option<Figures> {
    match (storage, limiter) {
        (Storage::Memory, LimiterKind::LastThreePoints) => Some(MEMORY_LAST_THREE_POINTS),
        (Storage::Memory, LimiterKind::Adaptive) => Some(MEMORY_ADAPTIVE),
        (Storage::Disk | Storage::Kafka | Storage::KafkaApart, LimiterKind::LastThreePoints) => {
            Some(KAFKA_LAST_THREE_POINTS)
        }
        (Storage::Disk | Storage::Kafka | Storage::KafkaApart, LimiterKind::Adaptive) => {
            Some(KAFKA_ADAPTIVE)
        }
        _ => None,
    }
}

impl Figures {
    /// Figures of messages in flight, latency and throughput over time.
    pub(super) fn curves(&self, distribution: Distribution) -> [&'static str; 3] {
        self.curves[place(distribution)]
    }

    /// Figure of throughput and latency against messages in flight.
    pub(super) fn relation(&self, distribution: Distribution) -> &'static str {
        self.relations[place(distribution)]
    }

    /// Figure of delivery latency.
    pub(super) fn delivery(&self) -> &'static str {
        self.delivery
    }
}

fn place(distribution: Distribution) -> usize {
    match distribution {
        Distribution::Uniform => 0,
        Distribution::Normal => 1,
        Distribution::Poisson => 2,
    }
}

/// Beginning of a heading: the paper's figures, or those in whose place ours stand.
pub(super) fn prefix(storage: Storage, numbers: &[&str]) -> String {
    let word = if numbers.len() > 1 {
        "Figures"
    } else {
        "Figure"
    };
    let numbers = numbers.join(", ");
    match storage {
        _ if numbers.is_empty() => String::new(),
        Storage::Disk => format!("{word} {numbers} (disk in Kafka's place): "),
        Storage::KafkaApart => format!("{word} {numbers} (roles apart): "),
        _ => format!("{word} {numbers}: "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_figures_are_all_of_section_5_and_the_appendix_each_once() {
        let mut found = BTreeSet::new();
        for storage in [Storage::Memory, Storage::Disk] {
            for limiter in [LimiterKind::LastThreePoints, LimiterKind::Adaptive] {
                let figures = figures(storage, limiter).unwrap();
                let mut enter = |number| assert!(found.insert(number), "{number} twice");
                for distribution in Distribution::ALL {
                    figures
                        .curves(distribution)
                        .into_iter()
                        .for_each(&mut enter);
                    enter(figures.relation(distribution));
                }
                enter(figures.delivery());
            }
        }
        let section = (4..=23).map(|number| format!("5.{number}"));
        // A.7, A.16, A.25 and A.34 are figures of section 5 once more.
        let appendix = (1..=36).filter(|number| ![7, 16, 25, 34].contains(number));
        let appendix = appendix.map(|number| format!("A.{number}"));
        let all: BTreeSet<String> = section.chain(appendix).collect();
        assert_eq!(found, all.iter().map(String::as_str).collect());
    }

    #[test]
    fn disk_says_that_it_stands_in_kafkas_place() {
        assert_eq!(prefix(Storage::Memory, &["5.4"]), "Figure 5.4: ");
        let disk = prefix(Storage::Disk, &["5.14", "5.15"]);
        assert_eq!(disk, "Figures 5.14, 5.15 (disk in Kafka's place): ");
        assert_eq!(prefix(Storage::Disk, &[]), "");
        assert_eq!(prefix(Storage::Kafka, &["5.14"]), "Figure 5.14: ");
        let apart = prefix(Storage::KafkaApart, &["5.14"]);
        assert_eq!(apart, "Figure 5.14 (roles apart): ");
        assert_eq!(figures(Storage::Memory, LimiterKind::Gradient), None);
    }
}
