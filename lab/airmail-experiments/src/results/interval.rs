//! A mean with its confidence interval, by Student's distribution.
//!
//! For independent runs, or the equal parts of one (batch means): a slow second follows a slow one,
//! so single measurements that follow one another closely would promise too much.

use airmail_plot::Point;
use std::fmt;

/// Confidence of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// 95 %.
    P95,
    /// 99 %.
    P99,
}

/// Two-sided quantiles of Student's distribution, by degrees of freedom from 1.
const STUDENT_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
const STUDENT_99: [f64; 30] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
    2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
    2.771, 2.763, 2.756, 2.750,
];
/// The same of the normal distribution.
const NORMAL_95: f64 = 1.959_964;
const NORMAL_99: f64 = 2.575_829;

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half of the interval's width; infinite where one value tells nothing of it.
    pub half_width: f64,
}

impl Interval {
    /// Interval of measured values; `None` of no values. Values that are not finite are left out.
    #[must_use]
    pub fn of(confidence: Confidence, values: impl IntoIterator<Item = f64>) -> Option<Interval> {
        let values = values.into_iter().filter(|value| value.is_finite());
        let values: Vec<f64> = values.collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let freedom = match values.len() {
            0 => return None,
            1 => {
                return Some(Interval {
                    mean,
                    half_width: f64::INFINITY,
                });
            }
            runs => runs - 1,
        };
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / freedom as f64 / count).sqrt();
        Some(Interval {
            mean,
            half_width: student(confidence, freedom) * error,
        })
    }

    /// Where it begins.
    #[must_use]
    pub fn low(&self) -> f64 {
        self.mean - self.half_width
    }

    /// Where it ends.
    #[must_use]
    pub fn high(&self) -> f64 {
        self.mean + self.half_width
    }

    /// Half of the interval as a share of the mean.
    #[must_use]
    pub fn relative(&self) -> f64 {
        match self.half_width {
            0.0 => 0.0,
            half_width => half_width / self.mean.abs(),
        }
    }

    /// Whether all of it is above a value.
    #[must_use]
    pub fn is_above(&self, value: f64) -> bool {
        self.low() > value
    }

    /// Whether all of it is below a value.
    #[must_use]
    pub fn is_below(&self, value: f64) -> bool {
        self.high() < value
    }

    /// The mean as a point of a figure, with its error bar where there is one.
    #[must_use]
    pub fn at(&self, x: f64) -> Point {
        let point = Point::new(x, self.mean);
        if self.half_width.is_finite() {
            point.with_bar(self.low(), self.high())
        } else {
            point
        }
    }
}

/// `mean [low, high]`, with as many digits after the point as the format asks for; of one run
/// `mean [ , ]`, as the paper on Kafka's partitioners prints what has no interval.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(0);
        write!(f, "{:.digits$} ", self.mean)?;
        if self.half_width.is_finite() {
            write!(f, "[{:.digits$}, {:.digits$}]", self.low(), self.high())
        } else {
            f.write_str("[ , ]")
        }
    }
}

/// Beyond the table by the first terms of the expansion around the normal distribution.
fn student(confidence: Confidence, freedom: usize) -> f64 {
    let (table, z) = match confidence {
        Confidence::P95 => (&STUDENT_95, NORMAL_95),
        Confidence::P99 => (&STUDENT_99, NORMAL_99),
    };
    if let Some(quantile) = table.get(freedom - 1) {
        return *quantile;
    }
    let freedom = freedom as f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / freedom + second / freedom.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_mean_and_students_interval() {
        let interval = Interval::of(Confidence::P99, [2.0, 4.0, f64::NAN, 4.0, 6.0]).unwrap();
        assert_eq!(interval.mean, 4.0);
        // Standard deviation 1.633, of four runs: 5.841 * 1.633 / 2.
        assert!((interval.half_width - 4.769).abs() < 0.001, "{interval:?}");
        assert_eq!(format!("{interval:.1}"), "4.0 [-0.8, 8.8]");
        assert!(interval.is_above(-1.0) && !interval.is_above(0.0));
        assert!(interval.is_below(9.0) && !interval.is_below(8.0));
        // 3.182 in place of 5.841.
        let narrower = Interval::of(Confidence::P95, [2.0, 4.0, 4.0, 6.0]).unwrap();
        assert!((narrower.half_width - 2.598).abs() < 0.001, "{narrower:?}");
        assert!((narrower.relative() - 0.6495).abs() < 0.001);
    }

    #[test]
    fn one_run_has_no_interval_and_excludes_nothing() {
        let interval = Interval::of(Confidence::P99, [3.0]).unwrap();
        assert_eq!(format!("{interval:.0}"), "3 [ , ]");
        assert!(!interval.is_above(0.0) && !interval.is_below(1e9));
        assert_eq!(Interval::of(Confidence::P99, []), None);
        let sure = Interval::of(Confidence::P95, [0.0; 5]).unwrap();
        assert_eq!((sure.half_width, sure.relative()), (0.0, 0.0));
    }

    #[test]
    fn the_quantiles_go_on_where_the_table_ends() {
        for (confidence, of_120) in [(Confidence::P95, 1.980), (Confidence::P99, 2.617)] {
            let student = |freedom| student(confidence, freedom);
            assert!((student(30) - student(31)).abs() < 0.01);
            // As any table has it.
            assert!((student(120) - of_120).abs() < 0.001);
        }
    }
}
