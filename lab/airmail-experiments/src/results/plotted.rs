//! Measurements that were made several times, as points of a figure.

use airmail_bench::Spread;
use airmail_plot::Point;

/// Measurements that become a point with an error bar.
pub trait Plotted {
    /// The point at this place of the other axis.
    fn at(&self, x: f64) -> Point;
}

/// The median, from the least to the most.
impl Plotted for Spread {
    fn at(&self, x: f64) -> Point {
        Point::new(x, self.median).with_bar(self.least, self.most)
    }
}
