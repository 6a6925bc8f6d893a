//! One order of imports: those of one visibility stand in one block, which rustfmt sorts.
//!
//! rustfmt sorts within a block and leaves blocks where they are, so every blank line between imports is an
//! order of somebody's own. What has an attribute or a comment above it may stand apart.

use super::Complaints;
use crate::workspace::File;

/// Complains of each import that stands apart from those before it.
pub(crate) fn check(file: &File) -> Complaints {
    let mut complaints = Complaints::new();
    // The visibility of the import that has ended, and whether a blank line came since.
    let mut before: Option<(String, bool)> = None;
    let mut under_way: Option<String> = None;
    for (at, line) in file.text.lines().enumerate() {
        let begun = under_way.take().or_else(|| {
            let visibility = visibility(line)?;
            if before
                .as_ref()
                .is_some_and(|(other, apart)| *apart && *other == visibility)
            {
                complaints.push(format!(
                    "{}:{}: an import in a block of its own: rustfmt sorts one block",
                    file.path,
                    at + 1
                ));
            }
            Some(visibility)
        });
        match begun {
            Some(visibility) if line.trim_end().ends_with(';') => {
                before = Some((visibility, false))
            }
            Some(visibility) => under_way = Some(visibility),
            None if line.trim().is_empty() => {
                before = before.map(|(visibility, _)| (visibility, true));
            }
            None => before = None,
        }
    }
    complaints
}

/// Text before `use` on a line that begins an import.
fn visibility(line: &str) -> Option<String> {
    let (visibility, _) = line.trim_start().split_once("use ")?;
    let one = visibility.is_empty() || visibility == "pub " || visibility.starts_with("pub(");
    one.then(|| visibility.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        let file = File {
            path: "a.rs".into(),
            text: text.into(),
        };
        check(&file).len()
    }

    #[test]
    fn imports_of_one_visibility_stand_in_one_block() {
        assert_eq!(count("use std::fmt;\n\nuse crate::a;\n"), 1);
        assert_eq!(
            count("use a::{\n    b,\n};\n\nuse crate::{\n    c,\n};\n"),
            1
        );
        assert_eq!(count("use crate::a;\nuse std::fmt;\n"), 0);
    }

    #[test]
    fn what_is_of_another_kind_may_stand_apart() {
        assert_eq!(count("use crate::a;\n\npub use b::B;\n"), 0);
        assert_eq!(count("use crate::a;\n\n#[cfg(test)]\nuse b::B;\n"), 0);
        assert_eq!(count("use crate::a;\n\nfn f() {}\n\nuse b::B;\n"), 0);
    }
}
