//! Patterns of topics' names: `*` stands for any text without `/`, `**` for any text, `\` before a
//! character for that character. MQTT's `+` is `*`, and its `#` is `**`.
//!
//! A pattern is matched without going back: for each byte of the name, the places of the pattern that can be
//! reached so far move on. So the cost is at most the product of the two lengths, whatever both are; going back
//! to a `*` and from there to a `**` would be that squared, for names that somebody has chosen for it.

use std::fmt;

/// The longest pattern, in bytes: as long as a topic's name may be by default.
pub const PATTERN_BYTES_MAX: usize = 1024;

/// A pattern of topics' names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Glob {
    /// Text before the first star.
    prefix: Box<str>,
    /// The rest, from the first star on.
    rest: Box<[Part]>,
}

/// A part of a pattern: a byte of a name, or a star. A character of several bytes is as many parts; no byte of
/// it is that of another character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Byte(u8),
    /// Any text without `/`.
    Star,
    /// Any text.
    DoubleStar,
}

/// The reason for which a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobError {
    /// It is empty, and no topic's name is.
    Empty,
    /// It has more than [`PATTERN_BYTES_MAX`] bytes: so many.
    TooLong(usize),
    /// It ends with a `\` that stands before nothing.
    NothingEscaped,
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GlobError::Empty => f.write_str("the pattern is empty"),
            GlobError::TooLong(bytes) => {
                write!(
                    f,
                    "the pattern has {bytes} bytes; at most {PATTERN_BYTES_MAX}"
                )
            }
            GlobError::NothingEscaped => {
                f.write_str("the pattern ends with `\\`, which has to stand before a character")
            }
        }
    }
}

impl std::error::Error for GlobError {}

impl Glob {
    /// Checks a pattern. Three stars or more are as two.
    ///
    /// # Errors
    /// It is empty, too long, or ends in the middle of an escape.
    pub fn parse(pattern: &str) -> Result<Glob, GlobError> {
        if pattern.is_empty() {
            return Err(GlobError::Empty);
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(GlobError::TooLong(pattern.len()));
        }
        let (mut prefix, mut rest) = (String::new(), Vec::new());
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            let literal = match letter {
                '*' => {
                    match rest.last_mut() {
                        Some(last @ (Part::Star | Part::DoubleStar)) => *last = Part::DoubleStar,
                        _ => rest.push(Part::Star),
                    }
                    continue;
                }
                '\\' => letters.next().ok_or(GlobError::NothingEscaped)?,
                literal => literal,
            };
            if rest.is_empty() {
                prefix.push(literal);
            } else {
                let mut bytes = [0; 4];
                rest.extend(literal.encode_utf8(&mut bytes).bytes().map(Part::Byte));
            }
        }
        Ok(Glob {
            prefix: prefix.into_boxed_str(),
            rest: rest.into_boxed_slice(),
        })
    }

    /// Text before the first star, unescaped.
    #[must_use]
    pub fn literal_prefix(&self) -> &str {
        &self.prefix
    }

    /// Memory of its own behind this value, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.prefix.len() + size_of_val(&*self.rest)
    }

    /// Whether a topic's name fits, all of it.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let Some(behind) = name.strip_prefix(&*self.prefix) else {
            return false;
        };
        match &*self.rest {
            [] => behind.is_empty(),
            [Part::DoubleStar] => true,
            [Part::Star] => !behind.contains('/'),
            rest => reaches_end(rest, behind.as_bytes()),
        }
    }
}

/// A pattern that matches the same names; three stars or more are two.
impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_special = |byte: u8| matches!(byte, b'*' | b'\\');
        let mut text = Vec::with_capacity(self.prefix.len() + self.rest.len());
        let literals = self.prefix.bytes().map(Part::Byte);
        for part in literals.chain(self.rest.iter().copied()) {
            match part {
                Part::Byte(byte) => {
                    text.extend(is_special(byte).then_some(b'\\'));
                    text.push(byte);
                }
                Part::Star => text.push(b'*'),
                Part::DoubleStar => text.extend(b"**"),
            }
        }
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

/// Whether all of a name leads to the end of the parts.
fn reaches_end(parts: &[Part], name: &[u8]) -> bool {
    // Places that can be reached: before each part, and behind the last one.
    let mut reached = [false; PATTERN_BYTES_MAX + 1];
    reached[0] = true;
    pass_stars(parts, &mut reached);
    for &byte in name {
        let mut is_any = false;
        // From the last place on, so that a place moves on by one part only.
        reached[parts.len()] = false;
        for (at, part) in parts.iter().enumerate().rev() {
            if !reached[at] {
                continue;
            }
            match part {
                Part::Byte(wanted) => {
                    reached[at] = false;
                    if *wanted == byte {
                        (reached[at + 1], is_any) = (true, true);
                    }
                }
                Part::Star => reached[at] = byte != b'/',
                Part::DoubleStar => {}
            }
            is_any |= reached[at];
        }
        if !is_any {
            return false;
        }
        pass_stars(parts, &mut reached);
    }
    reached[parts.len()]
}

/// A star may stand for nothing.
fn pass_stars(parts: &[Part], reached: &mut [bool; PATTERN_BYTES_MAX + 1]) {
    for (at, part) in parts.iter().enumerate() {
        if reached[at] && !matches!(part, Part::Byte(_)) {
            reached[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Glob::parse(pattern).unwrap().matches(name)
    }

    /// The definition: tries every text for every star.
    fn model(pattern: &[char], name: &[char]) -> bool {
        match pattern {
            [] => name.is_empty(),
            ['*', '*', rest @ ..] => (0..=name.len()).any(|n| model(rest, &name[n..])),
            ['*', rest @ ..] => {
                let free = name.iter().take_while(|letter| **letter != '/').count();
                (0..=free).any(|n| model(rest, &name[n..]))
            }
            ['\\', letter, rest @ ..] | [letter, rest @ ..] => {
                name.first() == Some(letter) && model(rest, &name[1..])
            }
        }
    }

    proptest! {
        #[test]
        fn a_pattern_matches_what_its_definition_says(pattern in "([abж/]|\\*|\\*\\*|\\\\\\*){1,8}", name in "[abж/*]{0,10}") {
            let letters = |text: &str| text.chars().collect::<Vec<char>>();
            prop_assert_eq!(matches(&pattern, &name), model(&letters(&pattern), &letters(&name)));
        }
    }

    proptest! {
        #[test]
        fn a_pattern_that_is_shown_is_read_as_the_same(pattern in "([abж/]|\\*|\\*\\*|\\\\\\*|\\\\\\\\){1,8}") {
            let glob = Glob::parse(&pattern).unwrap();
            prop_assert_eq!(Glob::parse(&glob.to_string()), Ok(glob));
        }
    }

    #[test]
    fn a_star_stays_between_slashes_and_two_do_not() {
        assert!(matches("orders/*/eu", "orders/7/eu"));
        assert!(!matches("orders/*/eu", "orders/7/8/eu"));
        assert!(matches("orders/**/eu", "orders/7/8/eu"));
        assert!(matches("orders/**", "orders/"));
        assert!(!matches("orders/**", "orders"));
        assert!(matches("***", "a/b"));
        assert!(matches(r"a\*b", "a*b"));
        assert!(!matches(r"a\*b", "a/b"));
        assert!(matches(r"\\", r"\"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert_eq!(Glob::parse(""), Err(GlobError::Empty));
        assert_eq!(Glob::parse("a\\"), Err(GlobError::NothingEscaped));
        assert_eq!(
            Glob::parse(&"a".repeat(1025)),
            Err(GlobError::TooLong(1025))
        );
    }

    #[test]
    fn the_prefix_is_what_stands_before_the_first_star() {
        let prefix = |pattern| Glob::parse(pattern).unwrap().literal_prefix().to_owned();
        assert_eq!(prefix(r"a\*/b*c"), "a*/b");
        assert_eq!(prefix("abc"), "abc");
        assert_eq!(prefix("**"), "");
    }
}
