//! A node's own counters, read from `/metrics`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest time that a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counters since a node began, as far as they explain what subscribers have of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Times that a live subscription was detached, for it did not keep up.
    pub detached: u64,
    /// Bytes read for subscriptions that are behind.
    pub late_bytes: u64,
}

impl Counters {
    /// Asks the node whose HTTP server is at `HOST:PORT`.
    ///
    /// # Errors
    /// It does not answer.
    pub fn of(address: &str) -> io::Result<Counters> {
        Ok(Counters::read(&metrics(address)?))
    }

    /// Increase since an earlier look.
    #[must_use]
    pub fn since(self, before: &Counters) -> Counters {
        Counters {
            detached: self.detached.saturating_sub(before.detached),
            late_bytes: self.late_bytes.saturating_sub(before.late_bytes),
        }
    }

    fn read(text: &str) -> Counters {
        let counter = |name: &str| {
            let of_name = |line: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
            text.lines().find_map(of_name).unwrap_or_default()
        };
        Counters {
            detached: counter("airmail_detached_total "),
            late_bytes: counter("airmail_caravan_bytes_total "),
        }
    }
}

/// The values of some metrics of a node, in their order: each the sum of all samples whose name, with
/// or without labels, begins so.
///
/// # Errors
/// The node whose HTTP server is at `HOST:PORT` does not answer.
pub fn sums(address: &str, metrics_wanted: &[&str]) -> io::Result<Vec<f64>> {
    let text = metrics(address)?;
    let sum = |wanted: &&str| sum(&text, wanted);
    Ok(metrics_wanted.iter().map(sum).collect())
}

fn sum(text: &str, wanted: &str) -> f64 {
    let value = |line: &str| {
        let rest = line.strip_prefix(wanted)?;
        let rest = rest.strip_prefix(|next| next == ' ' || next == '{')?;
        rest.rsplit(' ').next()?.parse::<f64>().ok()
    };
    text.lines().filter_map(value).sum()
}

/// Answer of `/metrics`, with its head, from the node whose HTTP server is at `HOST:PORT`.
///
/// # Errors
/// It cannot be reached, or does not answer.
pub fn metrics(address: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_name_are_added_up() {
        let text = "a_total{x=\"1\"} 1.5\na_total{x=\"2\"} 2\na_total_more 7\nb 4\n";
        assert_eq!(sum(text, "a_total"), 3.5);
        assert_eq!(sum(text, "a_total{x=\"2\"}"), 2.0);
        assert_eq!((sum(text, "b"), sum(text, "c")), (4.0, 0.0));
    }

    #[test]
    fn counters_are_found_among_others() {
        let text = "# TYPE airmail_detached counter\nairmail_detached_total 7\n\
                    airmail_detached_subscriptions 1\nairmail_caravan_bytes_total 4096\n";
        let counters = Counters {
            detached: 7,
            late_bytes: 4096,
        };
        assert_eq!(Counters::read(text), counters);
    }
}
