//! Tables 7.1 to 7.18 of the paper (D. Burato, *Load balancing and early fault detection in Apache
//! Kafka clusters*, 2019), and the conclusions that follow from them alone.
//!
//! The caption of 7.4 says B2; it is in the place of U1, and has its values. B1 and U1 have no replicas,
//! and one table each: which acks they were sent with is not said, and makes no difference there.

use super::metric::Metric;
use super::policy::Policy;
use super::scene::{Acks, Scene, Topic};

/// A mean with its 99 % confidence interval, where there is one.
pub(super) type Cell = (f64, f64, f64);

/// A table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// Number behind `7.`.
    pub(super) number: u32,
    pub(super) policy: Policy,
    pub(super) scene: Scene,
    /// Values in the order of [`Metric::ALL`].
    values: [Cell; 9],
}

impl Table {
    /// A metric's mean and interval.
    pub(super) fn cell(&self, metric: Metric) -> Cell {
        self.values[metric as usize]
    }

    /// A metric's mean.
    fn mean(&self, metric: Metric) -> f64 {
        self.cell(metric).0
    }

    /// The greatest mean latency that a distribution with the table's percentiles and maximum can have, in
    /// milliseconds: every record is as late as its percentile lets it be. What holds for each run holds
    /// for the means of runs.
    pub(super) fn mean_at_most(&self) -> f64 {
        let of = |metric| self.mean(metric);
        0.5 * of(Metric::P50)
            + 0.45 * of(Metric::P95)
            + 0.04 * of(Metric::P99)
            + 0.009 * of(Metric::P999)
            + 0.001 * of(Metric::Max)
    }

    /// Whether its percentiles are of other records than its mean.
    pub(super) fn is_impossible(&self) -> bool {
        self.mean(Metric::Mean) > self.mean_at_most()
    }
}

/// The table of a policy in a scene. Without replicas acks make no difference.
pub(super) fn table(policy: Policy, scene: Scene) -> Option<&'static Table> {
    let mut tables = TABLES.iter();
    tables.find(|table| table.policy == policy && table.scene == scene)
}

/// Compares a policy's table with the default's of the same scene: 1 better, -1 worse, each outside
/// the confidence intervals of both, 0 neither.
pub(super) fn against_default(table: &Table, metric: Metric) -> Option<i32> {
    let default = self::table(Policy::Default, table.scene)?;
    let ((_, low, high), (_, default_low, default_high)) =
        (table.cell(metric), default.cell(metric));
    let sign = if metric.is_more_better() { 1 } else { -1 };
    Some(if low > default_high {
        sign
    } else if high < default_low {
        -sign
    } else {
        0
    })
}

/// All of them.
pub(super) static TABLES: [Table; 18] = [
    Table {
        number: 1,
        policy: Policy::Default,
        scene: Scene::new(Topic::B1, Acks::One),
        values: [
            (62.48, 60.56, 64.41),
            (116.99, 94.67, 139.32),
            (1.78, 1.53, 2.03),
            (688.67, 556.15, 821.18),
            (1347.44, 1162.41, 1532.48),
            (1732.39, 1504.69, 1960.09),
            (2571.0, f64::NAN, f64::NAN),
            (12_008.24, 11_078.4, 12_938.08),
            (154.5, 149.55, 159.45),
        ],
    },
    Table {
        number: 2,
        policy: Policy::Default,
        scene: Scene::new(Topic::B2, Acks::All),
        values: [
            (15.79, 13.01, 18.56),
            (1917.82, 1730.55, 2105.09),
            (1617.5, 1048.11, 2186.89),
            (2667.9, 2094.32, 3241.48),
            (3418.95, 2745.13, 4092.77),
            (4356.25, 3666.4, 5046.1),
            (6624.0, f64::NAN, f64::NAN),
            (23_077.06, 21_610.39, 24_543.73),
            (638.2, 576.43, 699.97),
        ],
    },
    Table {
        number: 3,
        policy: Policy::Default,
        scene: Scene::new(Topic::B2, Acks::One),
        values: [
            (37.61, 35.88, 39.34),
            (641.77, 560.39, 723.15),
            (425.65, 220.63, 630.67),
            (1294.15, 1195.98, 1392.32),
            (1872.45, 1593.22, 2151.68),
            (2431.15, 2087.5, 2774.8),
            (3736.0, f64::NAN, f64::NAN),
            (17_516.85, 15_830.56, 19_203.15),
            (256.6, 243.32, 269.88),
        ],
    },
    Table {
        number: 4,
        policy: Policy::Default,
        scene: Scene::new(Topic::U1, Acks::One),
        values: [
            (63.17, 60.79, 65.56),
            (116.7, 88.33, 145.08),
            (3.44, 0.96, 5.93),
            (685.83, 578.35, 793.32),
            (1163.5, 1024.0, 1303.0),
            (1531.56, 1307.44, 1755.67),
            (2725.0, f64::NAN, f64::NAN),
            (11_683.05, 10_071.4, 13_294.71),
            (152.72, 146.64, 158.81),
        ],
    },
    Table {
        number: 5,
        policy: Policy::Default,
        scene: Scene::new(Topic::U2, Acks::All),
        values: [
            (13.61, 13.08, 14.13),
            (2117.2, 2039.17, 2195.24),
            (2992.94, 2724.68, 3261.21),
            (4070.72, 3958.65, 4182.79),
            (4833.5, 4708.17, 4958.83),
            (5667.39, 5273.73, 6061.05),
            (7780.0, f64::NAN, f64::NAN),
            (41_934.19, 40_519.12, 43_349.26),
            (704.94, 679.63, 730.26),
        ],
    },
    Table {
        number: 6,
        policy: Policy::Default,
        scene: Scene::new(Topic::U2, Acks::One),
        values: [
            (44.82, 40.9, 48.74),
            (402.23, 270.76, 533.7),
            (255.42, 82.16, 428.68),
            (1079.32, 987.08, 1171.55),
            (1633.32, 1461.28, 1805.35),
            (3605.47, 2488.8, 4722.15),
            (8243.0, f64::NAN, f64::NAN),
            (16_402.79, 13_213.75, 19_591.84),
            (219.74, 197.15, 242.32),
        ],
    },
    Table {
        number: 7,
        policy: Policy::Node,
        scene: Scene::new(Topic::B1, Acks::One),
        values: [
            (60.69, 59.1, 62.28),
            (131.79, 110.26, 153.31),
            (2.1, 1.5, 2.7),
            (765.2, 640.87, 889.53),
            (1411.6, 1226.7, 1596.5),
            (1844.95, 1644.08, 2045.82),
            (2641.0, f64::NAN, f64::NAN),
            (12_461.02, 11_527.49, 13_394.55),
            (158.9, 154.52, 163.28),
        ],
    },
    Table {
        number: 8,
        policy: Policy::Node,
        scene: Scene::new(Topic::B2, Acks::All),
        values: [
            (14.17, 14.07, 14.27),
            (2027.04, 2012.76, 2041.32),
            (1690.0, 1169.33, 2210.67),
            (2707.6, 2163.74, 3251.46),
            (3630.25, 3004.46, 4256.04),
            (4610.5, 4025.32, 5195.68),
            (7197.0, f64::NAN, f64::NAN),
            (24_560.92, 23_675.61, 25_446.23),
            (674.4, 669.83, 678.97),
        ],
    },
    Table {
        number: 9,
        policy: Policy::Node,
        scene: Scene::new(Topic::B2, Acks::One),
        values: [
            (39.01, 37.2, 40.83),
            (577.65, 494.84, 660.46),
            (489.75, 282.76, 696.74),
            (1356.25, 1215.68, 1496.82),
            (1965.45, 1696.11, 2234.79),
            (2557.4, 2230.67, 2884.13),
            (4273.0, f64::NAN, f64::NAN),
            (16_930.01, 14_581.28, 19_278.75),
            (247.2, 236.96, 257.44),
        ],
    },
    Table {
        number: 10,
        policy: Policy::Node,
        scene: Scene::new(Topic::U1, Acks::One),
        values: [
            (59.95, 56.04, 63.86),
            (161.3, 97.25, 225.36),
            (2.2, 1.84, 2.56),
            (435.2, 220.97, 649.43),
            (1194.47, 796.53, 1592.4),
            (1483.6, 1113.2, 1854.0),
            (2564.0, f64::NAN, f64::NAN),
            (11_465.13, 9669.87, 13_260.39),
            (162.0, 150.51, 173.49),
        ],
    },
    Table {
        number: 11,
        policy: Policy::Node,
        scene: Scene::new(Topic::U2, Acks::All),
        values: [
            (15.52, 15.45, 15.59),
            (1847.48, 1839.22, 1855.75),
            (16.4, 16.0, 16.8),
            (406.7, 316.13, 497.27),
            (1159.9, 1085.72, 1234.08),
            (1641.3, 1513.96, 1768.64),
            (6442.0, f64::NAN, f64::NAN),
            (29_475.75, 27_259.62, 31_691.87),
            (615.8, 612.96, 618.64),
        ],
    },
    Table {
        number: 12,
        policy: Policy::Node,
        scene: Scene::new(Topic::U2, Acks::One),
        values: [
            (41.67, 41.31, 42.02),
            (651.79, 637.81, 665.77),
            (3.0, 3.0, 3.0),
            (218.0, 176.83, 259.17),
            (706.33, 591.21, 821.45),
            (1045.11, 891.76, 1198.46),
            (3400.0, f64::NAN, f64::NAN),
            (18_045.37, 16_456.6, 19_634.15),
            (230.33, 228.48, 232.19),
        ],
    },
    Table {
        number: 13,
        policy: Policy::Sqf,
        scene: Scene::new(Topic::B1, Acks::One),
        values: [
            (61.99, 60.28, 63.7),
            (122.42, 103.97, 140.87),
            (2.0, 1.64, 2.36),
            (741.7, 649.56, 833.84),
            (1347.25, 1189.37, 1505.13),
            (1832.5, 1625.77, 2039.23),
            (2996.0, f64::NAN, f64::NAN),
            (11_491.45, 10_478.43, 12_504.47),
            (155.6, 151.12, 160.08),
        ],
    },
    Table {
        number: 14,
        policy: Policy::Sqf,
        scene: Scene::new(Topic::B2, Acks::All),
        values: [
            (14.12, 14.04, 14.19),
            (2035.37, 2023.8, 2046.95),
            (1923.15, 1438.47, 2407.83),
            (3428.55, 2957.9, 3899.2),
            (4300.2, 3705.37, 4895.03),
            (5176.35, 4597.25, 5755.45),
            (7543.0, f64::NAN, f64::NAN),
            (24_120.92, 23_116.33, 25_125.5),
            (676.9, 673.11, 680.69),
        ],
    },
    Table {
        number: 15,
        policy: Policy::Sqf,
        scene: Scene::new(Topic::B2, Acks::One),
        values: [
            (38.48, 37.18, 39.79),
            (610.0, 529.06, 690.95),
            (488.6, 308.71, 668.49),
            (1324.0, 1250.66, 1397.34),
            (2090.5, 1892.43, 2288.57),
            (2522.7, 2310.4, 2735.0),
            (3581.0, f64::NAN, f64::NAN),
            (17_204.29, 14_937.87, 19_470.71),
            (250.0, 241.86, 258.14),
        ],
    },
    Table {
        number: 16,
        policy: Policy::Sqf,
        scene: Scene::new(Topic::U1, Acks::One),
        values: [
            (54.65, 51.39, 57.91),
            (291.27, 201.19, 381.36),
            (2.0, 2.0, 2.0),
            (228.4, 152.94, 303.86),
            (749.05, 566.03, 932.07),
            (1213.8, 935.9, 1491.7),
            (3104.0, f64::NAN, f64::NAN),
            (18_139.45, 13_250.12, 23_028.78),
            (177.75, 166.96, 188.54),
        ],
    },
    Table {
        number: 17,
        policy: Policy::Sqf,
        scene: Scene::new(Topic::U2, Acks::All),
        values: [
            (15.45, 15.19, 15.7),
            (1857.56, 1827.09, 1888.03),
            (16.75, 15.99, 17.51),
            (2397.25, 1054.02, 3740.48),
            (3068.0, 1738.28, 4397.72),
            (3759.88, 2218.49, 5301.26),
            (6040.0, f64::NAN, f64::NAN),
            (29_973.12, 27_326.99, 32_619.25),
            (618.75, 608.67, 628.83),
        ],
    },
    Table {
        number: 18,
        policy: Policy::Sqf,
        scene: Scene::new(Topic::U2, Acks::One),
        values: [
            (42.06, 41.25, 42.88),
            (630.82, 584.78, 676.85),
            (3.0, 3.0, 3.0),
            (258.25, 172.73, 343.77),
            (684.85, 534.92, 834.78),
            (1312.85, 735.59, 1890.11),
            (5715.0, f64::NAN, f64::NAN),
            (17_948.38, 16_760.71, 19_136.04),
            (228.25, 224.22, 232.28),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_the_papers() {
        let table = table(Policy::Node, Scene::new(Topic::U2, Acks::All)).unwrap();
        assert_eq!(table.number, 11);
        assert_eq!(table.cell(Metric::Throughput), (15.52, 15.45, 15.59));
        assert_eq!(table.cell(Metric::Io).0, 29_475.75);
        for (table, number) in TABLES.iter().zip(1..) {
            assert_eq!(table.number, number);
            // 100 million records of 100 bytes: the two means of one thing.
            let megabytes = table.mean(Metric::Throughput) * table.mean(Metric::Ttc);
            assert!(
                (9_400.0..10_100.0).contains(&megabytes),
                "7.{number}: {megabytes}"
            );
        }
    }

    #[test]
    fn percentiles_of_strict_alternation_cannot_be() {
        let impossible = TABLES.iter().filter(|table| table.is_impossible());
        let numbers: Vec<u32> = impossible.map(|table| table.number).collect();
        assert_eq!(numbers, [11, 12, 16, 17, 18]);
    }

    #[test]
    fn the_papers_policies_lost_where_it_says_so_less_loudly() {
        let stands = |policy, topic, acks, metric| {
            against_default(table(policy, Scene::new(topic, acks)).unwrap(), metric)
        };
        let throughput = Metric::Throughput;
        for policy in [Policy::Node, Policy::Sqf] {
            assert_eq!(stands(policy, Topic::U2, Acks::All, throughput), Some(1));
            assert_eq!(stands(policy, Topic::U2, Acks::One, Metric::Mean), Some(-1));
        }
        assert_eq!(
            stands(Policy::Sqf, Topic::U1, Acks::One, throughput),
            Some(-1)
        );
    }
}
