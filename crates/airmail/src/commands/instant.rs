//! Places in a topic, as people write them: `earliest`, `17`, `2026-11-21T10:00:00Z`, `1h`, `pos1-…`.

use airmail_client::{Clock, Position, Start, SystemClock, Until};
use airmail_model::{AppendTime, Sequence, Wall};
use std::str::FromStr;
use std::time::Duration;

/// A place in a topic. A length of time is that long ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instant {
    /// Begins after the newest message.
    Latest,
    /// Begins with the oldest message kept.
    Earliest,
    /// Begins with this number.
    Sequence(u64),
    /// Begins at this time, in microseconds since 1970-01-01 UTC.
    Time(i64),
    /// This long ago.
    Ago(Duration),
    /// Where this position says.
    Position(Position),
}

/// Description of a valid place, for error messages.
const EXPECTED: &str = "expected earliest, latest, a sequence number, a time such as \
     2026-11-21T10:00:00Z, a length of time such as 1h, or a position (pos1-…)";

impl FromStr for Instant {
    type Err = String;

    fn from_str(text: &str) -> Result<Instant, String> {
        match text {
            "latest" => return Ok(Instant::Latest),
            "earliest" => return Ok(Instant::Earliest),
            _ => {}
        }
        if text.starts_with("pos1-") {
            let position = text.parse::<Position>();
            return position
                .map(Instant::Position)
                .map_err(|error| error.to_string());
        }
        if let Ok(number) = text.parse::<u64>() {
            return Ok(Instant::Sequence(number));
        }
        match text.parse::<jiff::Timestamp>() {
            Ok(time) => return Ok(Instant::Time(time.as_microsecond())),
            Err(error) if looks_like_a_time(text) => {
                let (first, last) = (jiff::Timestamp::MIN, jiff::Timestamp::MAX);
                return Err(format!("{error}; a time is from {first} to {last}"));
            }
            Err(_) => {}
        }
        let ago = humantime::parse_duration(text);
        ago.map(Instant::Ago).map_err(|_| EXPECTED.to_owned())
    }
}

impl Instant {
    /// Where a subscription or a look into history begins.
    #[must_use]
    pub fn start(self) -> Start {
        match self {
            Instant::Latest => Start::Latest,
            Instant::Earliest => Start::Earliest,
            Instant::Sequence(number) => Start::Sequence(Sequence(number)),
            Instant::Time(time) => Start::Time(AppendTime(time)),
            Instant::Ago(ago) => Start::Time(AppendTime(before_now(ago))),
            Instant::Position(position) => Start::Position(position),
        }
    }

    /// Where a look into history ends, the place itself not included.
    ///
    /// # Errors
    /// Description of places that cannot be an end.
    pub fn until(self) -> Result<Until, String> {
        match self {
            Instant::Latest => Ok(Until::Now),
            Instant::Sequence(number) => Ok(Until::Sequence(Sequence(number))),
            Instant::Time(time) => Ok(Until::Time(AppendTime(time))),
            Instant::Ago(ago) => Ok(Until::Time(AppendTime(before_now(ago)))),
            Instant::Earliest | Instant::Position(_) => {
                Err("--until takes latest, a sequence number, a time or a length of time".into())
            }
        }
    }
}

/// Whether somebody meant a time, be it one that there is or not.
fn looks_like_a_time(text: &str) -> bool {
    text.contains('T') && text.contains(':')
}

fn before_now(ago: Duration) -> i64 {
    let Wall(now) = SystemClock::default().now().wall;
    now.saturating_sub(i64::try_from(ago.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read() {
        let read = |text: &str| text.parse::<Instant>();
        assert_eq!(read("latest"), Ok(Instant::Latest));
        assert_eq!(read("earliest"), Ok(Instant::Earliest));
        assert_eq!(read("17"), Ok(Instant::Sequence(17)));
        assert_eq!(read("1970-01-01T00:00:01.5Z"), Ok(Instant::Time(1_500_000)));
        assert_eq!(read("1970-01-01T01:00:00+01:00"), Ok(Instant::Time(0)));
        assert_eq!(read("1h"), Ok(Instant::Ago(Duration::from_secs(3600))));
        let position = Position {
            namespace: airmail_model::NamespaceId(1),
            epoch: airmail_model::MapEpoch(1),
            logs: Vec::new(),
        };
        assert_eq!(read(&position.to_string()), Ok(Instant::Position(position)));
    }

    #[test]
    fn what_is_none_is_refused_with_what_would_be_one() {
        for text in ["", "soon", "-1", "2026-11-21", "1 parsec"] {
            assert_eq!(text.parse::<Instant>(), Err(EXPECTED.to_owned()), "{text}");
        }
        assert!(
            "pos1-AAAA"
                .parse::<Instant>()
                .unwrap_err()
                .starts_with("POSITION_INVALID")
        );
    }

    #[test]
    fn a_time_that_there_is_not_is_told_with_those_that_there_are() {
        assert!("9999-12-30T00:00:00Z".parse::<Instant>().is_ok());
        for text in [
            "9999-12-31T23:59:59Z",
            "10000-01-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
        ] {
            let told = text.parse::<Instant>().unwrap_err();
            assert!(told.contains("to 9999-12-30T22:00:00"), "{told}");
        }
    }

    #[test]
    fn not_every_place_is_an_end() {
        assert_eq!(Instant::Latest.until(), Ok(Until::Now));
        assert!(Instant::Earliest.until().is_err());
    }
}
