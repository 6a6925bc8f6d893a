//! A filter as it is typed.

use airmail_model::filter::Filter;

/// Reads a filter; what is wrong with a text is said with its line and column.
pub(super) fn filter(text: &str) -> Result<Filter, String> {
    Filter::parse(text).map_err(|error| error.to_string())
}
