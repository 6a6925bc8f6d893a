//! Times that an append takes in a storage of known capacity, and the moments at which they change.
//!
//! Moments count from the first append, because only then does a run begin: how long a node has waited
//! for it says nothing. An append takes as long as was in force when its service began.
//!
//! Invariants: there is a time from the first append on; moments rise.

use airmail_model::quantity::Span;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// The longest service time of a `memory:` storage, in microseconds: a second.
pub const SERVICE_US_MAX: u32 = 1_000_000;
/// Most times that a storage may have one after another.
const TIMES_MAX: usize = 64;

/// Service times of one storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTimes {
    first: NonZeroU32,
    /// Moment of each change, and the time from then on.
    changes: Vec<(Duration, NonZeroU32)>,
}

impl ServiceTimes {
    /// One time for ever.
    #[must_use]
    pub fn fixed(service_us: NonZeroU32) -> ServiceTimes {
        ServiceTimes {
            first: service_us,
            changes: Vec::new(),
        }
    }

    /// Reads `N`, or `N@0s,N@TIME,…` with rising moments.
    ///
    /// # Errors
    /// What would have been right.
    pub fn parse(text: &str) -> Result<ServiceTimes, String> {
        let mut times: Option<ServiceTimes> = None;
        for part in text.split(',') {
            let (service_us, from) = match part.split_once('@') {
                Some((service_us, from)) => (service_us, moment(from)?),
                None if times.is_none() => (part, Duration::ZERO),
                None => return Err("N@TIME, as 40@3s".to_owned()),
            };
            let service_us = time(service_us)?;
            match &mut times {
                None if from.is_zero() => times = Some(ServiceTimes::fixed(service_us)),
                None => return Err("a first service_us at 0s".to_owned()),
                Some(times) => times.change(from, service_us)?,
            }
        }
        times.ok_or_else(|| "service_us=N".to_owned())
    }

    fn change(&mut self, from: Duration, service_us: NonZeroU32) -> Result<(), String> {
        let last = self
            .changes
            .last()
            .map_or(Duration::ZERO, |(from, _)| *from);
        if from <= last {
            return Err("moments that rise, as 20@0s,40@3s".to_owned());
        }
        if self.changes.len() + 1 >= TIMES_MAX {
            return Err(format!("at most {TIMES_MAX} times"));
        }
        self.changes.push((from, service_us));
        Ok(())
    }

    /// Time of an append whose service begins so long after the first append.
    pub(super) fn at(&self, since_first: Duration) -> Duration {
        let past = self
            .changes
            .partition_point(|(from, _)| *from <= since_first);
        let service_us = match past.checked_sub(1).and_then(|last| self.changes.get(last)) {
            Some((_, service_us)) => *service_us,
            None => self.first,
        };
        Duration::from_micros(service_us.get().into())
    }
}

impl fmt::Display for ServiceTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if !self.changes.is_empty() {
            f.write_str("@0s")?;
        }
        for (from, service_us) in &self.changes {
            let from = Span(*from).to_string().replace(' ', "");
            write!(f, ",{service_us}@{from}")?;
        }
        Ok(())
    }
}

fn time(text: &str) -> Result<NonZeroU32, String> {
    let service_us = text.parse::<NonZeroU32>().ok();
    let fits = service_us.filter(|service_us| service_us.get() <= SERVICE_US_MAX);
    fits.ok_or_else(|| format!("service_us from 1 to {SERVICE_US_MAX}"))
}

fn moment(text: &str) -> Result<Duration, String> {
    let span: Result<Span, String> = text.parse();
    span.map(|span| span.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["250", "20@0s,40@3s", "1@0s,1000000@3s500ms,7@1m"] {
            assert_eq!(ServiceTimes::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(ServiceTimes::parse("20@0s").unwrap().to_string(), "20");
    }

    #[test]
    fn each_time_holds_from_its_moment_until_the_next() {
        let times = ServiceTimes::parse("20@0s,40@3s,10@6s").unwrap();
        for (ms, us) in [
            (0, 20),
            (2_999, 20),
            (3_000, 40),
            (5_999, 40),
            (6_000, 10),
            (90_000, 10),
        ] {
            let since_first = Duration::from_millis(ms);
            assert_eq!(times.at(since_first), Duration::from_micros(us), "{ms}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_would_be_right() {
        for (text, expected) in [
            ("", "from 1 to 1000000"),
            ("0", "from 1 to 1000000"),
            ("20@1s", "at 0s"),
            ("20,40", "N@TIME"),
            ("20@0s,40@soon", "a time such as"),
            ("20@0s,40@3s,10@3s", "rise"),
            ("20@0s,0@3s", "from 1 to 1000000"),
        ] {
            let said = ServiceTimes::parse(text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
        let changes = (1..=64).map(|second| format!(",1@{second}s"));
        let many = format!("1{}", changes.collect::<String>());
        assert!(
            ServiceTimes::parse(&many)
                .unwrap_err()
                .contains("at most 64")
        );
    }
}
