//! A wall clock that is wrong by as much as a test wants, and changes while the node runs. In no release.

use airmail_model::clock::{Clock, SystemClock};
use airmail_model::{Mono, Now, Wall};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Time between two looks at the file.
const LOOK: Duration = Duration::from_millis(20);

/// Offset of a clock, in microseconds: `+1d`, `-2h`, `0s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset(pub i64);

impl FromStr for Offset {
    type Err = String;

    fn from_str(text: &str) -> Result<Offset, String> {
        let text = text.trim();
        let (sign, length) = match text.split_at_checked(1) {
            Some(("+", length)) => (1, length),
            Some(("-", length)) => (-1, length),
            _ => (1, text),
        };
        let length = humantime::parse_duration(length).map_err(|error| error.to_string())?;
        let micros = i64::try_from(length.as_micros()).map_err(|error| error.to_string())?;
        Ok(Offset(sign * micros))
    }
}

/// The system's clock, off by some time. What the file says counts as long as it can be read.
#[derive(Debug)]
pub struct WrongClock {
    right: SystemClock,
    file: Option<PathBuf>,
    /// The offset, and when the file was looked at last.
    found: Mutex<(Offset, Option<Mono>)>,
}

impl WrongClock {
    /// Off by `offset`, or by what `file` says.
    #[must_use]
    pub fn new(offset: Offset, file: Option<PathBuf>) -> WrongClock {
        WrongClock {
            right: SystemClock::new(),
            file,
            found: Mutex::new((offset, None)),
        }
    }

    fn offset(&self, now: Mono) -> Offset {
        let mut found = self.found.lock();
        let due = found.1.is_none_or(|at| at.plus(LOOK) <= now);
        if let Some(file) = self.file.as_ref().filter(|_| due) {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            found.0 = text.parse().unwrap_or(found.0);
            found.1 = Some(now);
        }
        found.0
    }
}

impl Clock for WrongClock {
    fn now(&self) -> Now {
        let now = self.right.now();
        let wall = now.wall.0.saturating_add(self.offset(now.mono).0);
        Now {
            wall: Wall(wall),
            ..now
        }
    }

    fn mono(&self) -> Mono {
        self.right.mono()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_a_sign_and_a_unit() {
        for (text, micros) in [
            ("+1d", 86_400_000_000),
            ("-2h\n", -7_200_000_000),
            ("5ms", 5_000),
            ("0s", 0),
        ] {
            assert_eq!(text.parse(), Ok(Offset(micros)));
        }
        for text in ["", "+", "1", "+-1s"] {
            assert!(text.parse::<Offset>().is_err(), "{text}");
        }
    }
}
