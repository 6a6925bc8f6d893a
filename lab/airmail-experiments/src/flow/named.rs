//! Serialization of values by their names, for types whose own crate has none.

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};
use std::fmt::Display;
use std::str::FromStr;

pub(super) fn serialize<T: Display, S: Serializer>(
    named: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(named)
}

pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(D::Error::custom)
}
