//! An id in the journal has a type of its own, for a mix-up there loses data.
//!
//! The rule: no field, parameter or variable whose name is or ends in one of [`IDS`] is declared with a raw
//! integer, or an option of one; and no two raw integers stand side by side in a tuple, a variant or a map,
//! where they have no names at all. The file that has the types is not held to it.

use super::Complaints;
use crate::workspace::File;

/// The last words of names that mean an id or a place.
const IDS: [&str; 8] = [
    "block",
    "id",
    "incarnation",
    "number",
    "offset",
    "segment",
    "sequence",
    "slot",
];

const RAW: [&str; 4] = ["u32", "u64", "i64", "usize"];

/// The folders and files that are held to it, without the `.rs` of a file.
const PLACES: [&str; 1] = ["crates/airmail-log/src/journal"];

/// Where the types are made of raw integers.
const TYPES: &str = "crates/airmail-log/src/journal/id.rs";

/// Complains of each id that is a raw integer.
pub(crate) fn check(file: &File) -> Complaints {
    if file.path != TYPES && PLACES.iter().any(|place: &&str| file.is_in(place)) {
        complaints(file)
    } else {
        Complaints::new()
    }
}

fn complaints(file: &File) -> Complaints {
    let lines = file.product_lines();
    let mut complaints = Complaints::new();
    for (at, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (name, kind) in raw_ids(line) {
            complaints.push(format!(
                "{}:{}: `{name}: {kind}` is a raw integer: an id has a type of its own",
                file.path,
                at + 1
            ));
        }
        if has_nameless(line) {
            complaints.push(format!(
                "{}:{}: raw integers side by side, without names: types of their own, or a struct",
                file.path,
                at + 1
            ));
        }
    }
    complaints
}

/// Whether two raw integers stand side by side as types.
fn has_nameless(line: &str) -> bool {
    let parts: Vec<&str> = line.split(", ").collect();
    parts.windows(2).any(|pair| {
        let last = pair[0].rsplit(|c| !is_word(c)).next();
        let first = pair[1].split(|c| !is_word(c)).next();
        [last, first]
            .iter()
            .flatten()
            .all(|word| RAW.contains(word))
    })
}

/// The declarations on a line that are ids of a raw type.
fn raw_ids(line: &str) -> Vec<(&str, &str)> {
    let colons = line.match_indices(": ");
    let declared = colons.filter_map(|(at, colon)| {
        let before = &line[..at];
        let name_at = before.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
        let (name, rest) = (&before[name_at..], &line[at + colon.len()..]);
        let last = name.rsplit('_').next().unwrap_or_default();
        let kind = raw_type(rest)?;
        IDS.contains(&last).then_some((name, kind))
    });
    declared.collect()
}

/// The raw type that a text begins with; `None` if it begins with another, or with a path.
fn raw_type(text: &str) -> Option<&str> {
    let text = text.strip_prefix('&').unwrap_or(text);
    let text = text.strip_prefix("mut ").unwrap_or(text);
    let text = text.strip_prefix("Option<").unwrap_or(text);
    let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    let (kind, rest) = text.split_at(end);
    (RAW.contains(&kind) && !rest.starts_with("::")).then_some(kind)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> usize {
        let text = format!("{line}\n");
        complaints(&File {
            path: "crates/airmail-log/src/journal/a.rs".to_owned(),
            text,
        })
        .len()
    }

    #[test]
    fn an_id_that_is_a_raw_integer_is_told() {
        assert_eq!(told("    pub(super) segment: u64,"), 1);
        assert_eq!(
            told("fn read(&mut self, old_segment: u64, slot: u32, bytes: u32) {"),
            2
        );
        assert_eq!(told("    at_block: Option<u32>,"), 1);
        assert_eq!(told("let next = |offset: &mut u64| {"), 1);
    }

    #[test]
    fn raw_integers_without_names_are_told() {
        assert_eq!(told("    Filled(u64, u64),"), 1);
        assert_eq!(told("    gone: Vec<(u64, u32, u32)>,"), 1);
        assert_eq!(told("    durable: BTreeMap<u64, u64>,"), 1);
        assert_eq!(told("    free: BTreeMap<SegmentId, (Slot, u64)>,"), 0);
        assert_eq!(
            told("fn read(from: u64, u32_count: Count) -> (SegmentId, u64) {"),
            0
        );
        assert_eq!(told("fn copy(first_bytes: u64, more_bytes: u64) {"), 0);
    }

    #[test]
    fn a_type_of_its_own_a_value_and_a_size_are_allowed() {
        assert_eq!(told("    segment: SegmentId,"), 0);
        assert_eq!(told("    block_bytes: u64,"), 0);
        assert_eq!(
            told("Header { segment: u64::MAX, offset: u64::from(x) }"),
            0
        );
        assert_eq!(told("/// segment: u64 of old"), 0);
    }

    #[test]
    fn the_file_of_the_types_is_not_held_to_it() {
        let text = "    segment: u64,\n".to_owned();
        let path = TYPES.to_owned();
        assert!(check(&File { path, text }).is_empty());
    }
}
