//! The URL of a storage whose logs are those of a parent in a tree:
//! `tree://HOST:PORT[,HOST:PORT…][?cache=SIZE&window=SIZE]`.

use super::url_parts::{self, UrlParts};
use airmail_model::quantity::ByteSize;
use std::fmt;

/// Default of `cache`.
const CACHE: ByteSize = ByteSize(64 << 20);
/// Default, and bounds, of `window`.
const WINDOW: ByteSize = ByteSize(16 << 20);
const WINDOW_MIN: ByteSize = ByteSize(64 << 10);
const WINDOW_MAX: ByteSize = ByteSize(1 << 30);
/// Most parents.
const PARENTS_MAX: usize = 16;

const EXPECTED: &str = "tree://HOST:PORT[,HOST:PORT…][?cache=SIZE&window=SIZE]";

/// Where the parents are, and what is kept of what they give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeUrl {
    /// Where the parents are reached by other nodes, `HOST:PORT` each, in the order in which they are tried. 1 to 16.
    pub parents: Vec<String>,
    /// Memory for what readers were given, in bytes. Default: 64 MiB.
    pub cache: ByteSize,
    /// Bytes of a log that are on their way at a time: at least what goes through in the time of a question to the
    /// parent and its answer. 64 KiB to 1 GiB. Default: 16 MiB, which is 1 Gbit/s at 130 ms.
    pub window: ByteSize,
}

impl TreeUrl {
    /// Reads what stands behind `tree:`.
    ///
    /// # Errors
    /// What it should have been.
    pub(super) fn parse(rest: &str) -> Result<TreeUrl, String> {
        let parts = UrlParts::read(rest, EXPECTED, (PARENTS_MAX, "parents"))?;
        let mut url = TreeUrl {
            parents: parts.addresses,
            cache: CACHE,
            window: WINDOW,
        };
        for (name, value) in parts.parameters {
            let size = || {
                let size = value.parse::<ByteSize>();
                size.map_err(|error| format!("{name}={error}"))
            };
            match name {
                "cache" => url.cache = size()?,
                "window" => url.window = size()?,
                _ => return Err(EXPECTED.to_owned()),
            }
        }
        if !(WINDOW_MIN.0..=WINDOW_MAX.0).contains(&url.window.0) {
            return Err(format!("window={WINDOW_MIN} to {WINDOW_MAX}"));
        }
        Ok(url)
    }
}

impl fmt::Display for TreeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TreeUrl {
            parents,
            cache,
            window,
        } = self;
        let others = [("cache", cache, CACHE), ("window", window, WINDOW)];
        let others = others.iter().filter(|(_, size, usual)| *size != usual);
        let others = others.map(|(name, size, _)| format!("{name}={size}"));
        url_parts::write(f, "tree", parents, others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_parents_and_what_is_kept() {
        let url = TreeUrl::parse("//a:7402, b:7402?cache=1GiB&window=32MiB").unwrap();
        assert_eq!(url.parents, ["a:7402", "b:7402"]);
        assert_eq!((url.cache.0, url.window.0), (1 << 30, 32 << 20));
        assert_eq!(
            url.to_string(),
            "tree://a:7402,b:7402?cache=1GiB&window=32MiB"
        );
        let url = TreeUrl::parse("//a:7402").unwrap();
        assert_eq!((url.cache, url.window), (CACHE, WINDOW));
        assert_eq!(url.to_string(), "tree://a:7402");
    }

    #[test]
    fn what_is_no_url_is_refused_with_what_it_should_have_been() {
        for (text, expected) in [
            ("a:7402", EXPECTED),
            ("//", EXPECTED),
            ("//a", EXPECTED),
            ("//a:99999", EXPECTED),
            ("//a:7402,", EXPECTED),
            ("//a:7402?size=1MiB", EXPECTED),
            ("//a:7402?cache", EXPECTED),
            ("//a:7402?window=1KiB", "window=64KiB to 1GiB"),
        ] {
            assert_eq!(TreeUrl::parse(text).unwrap_err(), expected, "{text}");
        }
        let many = format!("//{}", vec!["a:1"; 17].join(","));
        assert_eq!(TreeUrl::parse(&many).unwrap_err(), "at most 16 parents");
        assert!(
            TreeUrl::parse("//a:7402?cache=many")
                .unwrap_err()
                .starts_with("cache=")
        );
    }
}
