//! A file that fits in one head: at most 500 lines, its tests not counted. Functions are clippy's.

use super::Complaints;
use crate::workspace::File;

const LINES_MAX: usize = 500;

/// Complains of a file that is too long.
pub(crate) fn check(file: &File) -> Complaints {
    let lines = file.product_lines().len();
    if lines > LINES_MAX {
        vec![format!(
            "{}: {lines} lines without tests; at most {LINES_MAX}: divide it",
            file.path
        )]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: String) -> File {
        File {
            path: path.to_owned(),
            text,
        }
    }

    #[test]
    fn a_long_file_is_told() {
        assert_eq!(check(&file("src/a.rs", "x\n".repeat(501))).len(), 1);
    }

    #[test]
    fn tests_do_not_count() {
        let text = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            "x\n".repeat(500),
            "y\n".repeat(99)
        );
        assert!(check(&file("src/a.rs", text)).is_empty());
        assert!(check(&file("src/a/tests.rs", "x\n".repeat(900))).is_empty());
    }
}
