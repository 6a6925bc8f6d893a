//! Stamp that the collector adds to each record: its source, in two headers of text.
//!
//! `airmail-source: CLUSTER/TOPIC/PARTITION` and `airmail-range: FROM-NUMBER`. The number is the record's own
//! in its source; the range accounts for everything up to it, so a number that the source never gives out
//! (compacted away, or a transaction's marker) is no hole. A record that is collected twice gets
//! the same stamp but perhaps with a wider range. Where collectors follow one another, the last of
//! each name counts.

use std::fmt;
use std::str::FromStr;

/// The header with the source.
pub const SOURCE_HEADER: &str = "airmail-source";
/// The header with the range.
pub const RANGE_HEADER: &str = "airmail-range";

/// The numbers that a record accounts for: from `from` to its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The first of them; at most `number`.
    pub from: u64,
    /// The record's own: Kafka's offset, or the count of a topic's messages that were collected before.
    pub number: u64,
}

/// The two headers of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Cluster, topic and partition.
    pub source: String,
    /// The numbers that the record accounts for.
    pub range: Range,
}

/// A text that is no range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("range {0:?}: FROM-NUMBER, the first not above the second")]
pub struct RangeInvalid(pub String);

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.number)
    }
}

impl FromStr for Range {
    type Err = RangeInvalid;

    fn from_str(text: &str) -> Result<Range, RangeInvalid> {
        let invalid = || RangeInvalid(text.to_owned());
        let (from, number) = text.split_once('-').ok_or_else(invalid)?;
        let (from, number) = (from.parse(), number.parse());
        match (from, number) {
            (Ok(from), Ok(number)) if from <= number => Ok(Range { from, number }),
            _ => Err(invalid()),
        }
    }
}

impl Stamp {
    /// Reads the headers of a record, given as name and value in their order; none where either is missing
    /// or is not in a collector's form.
    pub fn read<'a>(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Option<Stamp> {
        let (mut source, mut range) = (None, None);
        for (name, value) in headers {
            match name {
                SOURCE_HEADER => source = Some(value),
                RANGE_HEADER => range = Some(value),
                _ => {}
            }
        }
        Some(Stamp {
            source: std::str::from_utf8(source?).ok()?.to_owned(),
            range: std::str::from_utf8(range?).ok()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_it_is_written_and_nothing_else_is_one() {
        let range = Range { from: 7, number: 9 };
        assert_eq!(range.to_string(), "7-9");
        assert_eq!("7-9".parse(), Ok(range));
        for wrong in ["", "7", "9-7", "7-", "-9", "7-9-11", "a-b"] {
            assert_eq!(wrong.parse::<Range>(), Err(RangeInvalid(wrong.to_owned())));
        }
    }

    #[test]
    fn of_two_collectors_in_a_row_the_last_counts() {
        let headers = |names: &[(&'static str, &'static str)]| {
            let pairs = names.iter().map(|(name, value)| (*name, value.as_bytes()));
            Stamp::read(pairs.collect::<Vec<_>>())
        };
        let stamp = headers(&[
            (SOURCE_HEADER, "far/A/0"),
            (RANGE_HEADER, "1-1"),
            ("other", "x"),
            (SOURCE_HEADER, "near/A/1"),
            (RANGE_HEADER, "4-5"),
        ]);
        let range = Range { from: 4, number: 5 };
        let source = "near/A/1".to_owned();
        assert_eq!(stamp, Some(Stamp { source, range }));
        assert_eq!(headers(&[(RANGE_HEADER, "1-1")]), None);
    }
}
