//! One damage to one file, and the messages that it may cost.

use super::original::{Original, Span};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Damage that is done to a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// One bit is the other one.
    Flip { file: PathBuf, bit: u64 },
    /// The file ends here.
    Cut { file: PathBuf, length: u64 },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Flip { file, bit } => {
                let (byte, bit) = (bit / 8, bit % 8);
                write!(f, "{}: bit {bit} of byte {byte} flipped", file.display())
            }
            Damage::Cut { file, length } => {
                write!(f, "{}: cut to {length} bytes", file.display())
            }
        }
    }
}

impl Damage {
    /// One of the possible ones: every file is as likely as every other, and in a segment what is
    /// written is more likely than what is empty, and the few bytes of headers more than payloads.
    pub(crate) fn choose(original: &Original, choices: &mut SmallRng) -> Damage {
        let files: Vec<_> = original
            .files
            .iter()
            .filter(|(_, length)| *length > 0)
            .collect();
        let (file, length) = files[choices.random_range(0..files.len())].clone();
        let spans = original.spans.iter().filter(|span| span.file == file);
        let spans: Vec<&Span> = spans.collect();
        let anywhere = choices.random_range(0..length);
        let byte = if spans.is_empty() || choices.random_ratio(1, 4) {
            anywhere.min(if choices.random() { anywhere } else { 200 })
        } else {
            let span = spans[choices.random_range(0..spans.len())];
            let span = span.bytes.clone();
            let heads = span.end.min(span.start + 160);
            let end = if choices.random() { heads } else { span.end };
            choices.random_range(span.start..end)
        };
        if choices.random_ratio(3, 10) {
            return Damage::Cut { file, length: byte };
        }
        let bit = byte * 8 + choices.random_range(0..8);
        Damage::Flip { file, bit }
    }

    /// Does it to the copy in `directory`.
    pub(crate) fn inflict(&self, directory: &Path) {
        match self {
            Damage::Flip { file, bit } => {
                let path = directory.join(file);
                let mut bytes = fs::read(&path).unwrap();
                bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                fs::write(path, bytes).unwrap();
            }
            Damage::Cut { file, length } => {
                let file = File::options().write(true).open(directory.join(file));
                file.unwrap().set_len(*length).unwrap();
            }
        }
    }

    /// The messages that may be gone: a payload that was hit; a batch, where anything else of it
    /// was; what lay behind a cut, and the batch that it went through. Of files without messages:
    /// none.
    pub(crate) fn may_cost(&self, original: &Original) -> BTreeSet<(u32, u64)> {
        let mut cost = BTreeSet::new();
        for span in &original.spans {
            let all = span.messages.iter().map(|(place, _)| *place);
            match self {
                Damage::Flip { file, bit } if *file == span.file => {
                    let byte = bit / 8;
                    let hit = span
                        .messages
                        .iter()
                        .find(|(_, bytes)| bytes.contains(&byte));
                    match hit {
                        Some((place, _)) => drop(cost.insert(*place)),
                        // The bytes that fill a record up to a multiple of 8 belong to nothing.
                        None if span.bytes.contains(&byte) => cost.extend(all),
                        None => {}
                    }
                }
                Damage::Cut { file, length } if *file == span.file && span.bytes.end > *length => {
                    cost.extend(all);
                }
                _ => {}
            }
        }
        cost
    }
}
