//! Sizes and times as people write them: `1MiB`, `5s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes: `512`, `64KiB`, `1MiB`, `2GiB`, `1TiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// Description of a valid size, for error messages.
pub const SIZE_EXPECTED: &str = "a size such as 512, 64KiB, 1MiB or 2GiB";

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let text = text.trim();
        let (digits, shift) = UNITS
            .iter()
            .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
            .unwrap_or((text, 0));
        let number: u64 = digits
            .trim()
            .replace('_', "")
            .parse()
            .map_err(|_| SIZE_EXPECTED.to_owned())?;
        number
            .checked_mul(1 << shift)
            .map(ByteSize)
            .ok_or_else(|| SIZE_EXPECTED.to_owned())
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |shift: u32| self.0 != 0 && self.0.is_multiple_of(1 << shift);
        match UNITS.iter().find(|(_, shift)| *shift > 0 && whole(*shift)) {
            Some((unit, shift)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A length of time: `250ms`, `5s`, `1h`, `7d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let parsed = humantime::parse_duration(text.trim());
        parsed
            .map(Span)
            .map_err(|_| "a time such as 250ms, 5s or 1h".to_owned())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("64KiB", 64 << 10),
            ("1MiB", 1 << 20),
            ("3GiB", 3 << 30),
            ("1537", 1537),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!(size, ByteSize(bytes));
            assert_eq!(size.to_string(), text);
        }
        assert_eq!("1 KiB".parse(), Ok(ByteSize(1024)));
        assert_eq!("7B".parse(), Ok(ByteSize(7)));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "KiB", "1MB", "-1", "1.5GiB", "99999999999TiB"] {
            assert_eq!(text.parse::<ByteSize>(), Err(SIZE_EXPECTED.to_owned()));
        }
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        for text in ["250ms", "5s", "1h", "7days"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string(), text);
        }
        assert!("soon".parse::<Span>().is_err());
    }
}
