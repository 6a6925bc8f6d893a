//! Identity of a data directory, in the file `identity`: a few lines of text that a human can read,
//! and a checksum over them, so that a damaged one is never believed.

use airmail_model::{NodeId, StorageName, Wall};
use std::fmt::{self, Write as _};

/// Version of an identity that says which storage of its node it is, or has more than one shard. Programs that know
/// the first version alone open the first shard of the first storage, and refuse this one; an identity of just that
/// is written in the first version.
const FURTHER: u32 = 2;
/// Version of an identity whose log 0 has roles. Programs that know no later one would give what is for some roles to
/// everybody, and refuse this one.
const ROLES: u32 = 3;
/// Version of an identity whose logs of lane high may hold something. Programs that know no later one would give it to
/// nobody, and leave it behind when a namespace is deleted or moved; they refuse this one.
const LANES: u32 = 4;
/// First line of the file.
const TITLE: &str = "airmail data directory";

/// Knowledge that a program needs to open a directory, besides what all know; each with those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// Nothing more.
    #[default]
    Nothing,
    /// Roles: log 0 has some, or is about to.
    Roles,
    /// Lanes: logs of lane high hold something, or are about to.
    Lanes,
}

/// The cluster and the node that a data directory belongs to. Written when it is made, and again when it
/// gets more shards, or needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster, by a number chosen at random when it was made.
    pub cluster: u64,
    /// The node.
    pub node: NodeId,
    /// Number of shards that its logs are spread over. It may grow afterwards, and never shrinks.
    pub shards: u16,
    /// When it was made.
    pub created: Wall,
    /// The storage of the node that it is: none for the node's first, which holds log 0.
    pub storage: StorageName,
    /// Knowledge that a program needs to open it.
    pub needs: Needs,
}

/// Reason for which an identity cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// A later version of Airmail has written it.
    #[error("format version {found}, and this program knows none after {known}: use a newer one")]
    Newer {
        /// The version that it gives.
        found: u32,
        /// [`Identity::VERSION`].
        known: u32,
    },
    /// It is damaged, in this way.
    #[error("damaged: {0}")]
    Damaged(&'static str),
}

impl Identity {
    /// The newest version of the directory's layout that this program reads and writes.
    pub const VERSION: u32 = LANES;

    /// The version that this one is written as.
    fn version(&self) -> u32 {
        match self.needs {
            Needs::Lanes => LANES,
            Needs::Roles => ROLES,
            Needs::Nothing if self.shards > 1 || !self.storage.is_first() => FURTHER,
            Needs::Nothing => 1,
        }
    }

    /// Whether this is `later` from before that got more shards or needs, or `later` itself.
    pub(super) fn grows_to(&self, later: &Identity) -> bool {
        let grown = Identity {
            shards: later.shards,
            needs: later.needs,
            ..*self
        };
        grown == *later && self.shards <= later.shards && self.needs <= later.needs
    }

    /// Reads the text of an `identity` file.
    ///
    /// # Errors
    /// A newer version, or damage. The version is believed before the checksum, which a newer
    /// version may have moved.
    pub fn parse(text: &str) -> Result<Identity, IdentityError> {
        let damaged = |what| Err(IdentityError::Damaged(what));
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return damaged("not begun as an identity is");
        }
        let Some(version) = field(lines.next(), "version").and_then(|v| v.parse::<u32>().ok())
        else {
            return damaged("no version");
        };
        if version > Identity::VERSION {
            return Err(IdentityError::Newer {
                found: version,
                known: Identity::VERSION,
            });
        }
        let number = |line, name| field(line, name).and_then(|v| u64::from_str_radix(v, 16).ok());
        let (Some(cluster), Some(node), Some(shards), Some(created)) = (
            number(lines.next(), "cluster"),
            number(lines.next(), "node"),
            field(lines.next(), "shards").and_then(|v| v.parse().ok()),
            field(lines.next(), "created-us").and_then(|v| v.parse().ok()),
        ) else {
            return damaged("a line is missing");
        };
        // Only a further storage has a name.
        let named = lines.next().filter(|line| line.starts_with("storage "));
        let storage = match named {
            Some(line) if version >= FURTHER => {
                field(Some(line), "storage").and_then(StorageName::new)
            }
            _ => Some(StorageName::FIRST),
        };
        let Some(storage) = storage else {
            return damaged("no storage");
        };
        let identity = Identity {
            cluster,
            node: NodeId(node),
            shards,
            created: Wall(created),
            storage,
            needs: match version {
                LANES => Needs::Lanes,
                ROLES => Needs::Roles,
                _ => Needs::Nothing,
            },
        };
        // Written again it must be the same to the byte, its checksum with it.
        if identity.to_string() != text {
            return damaged("its checksum does not match");
        }
        Ok(identity)
    }
}

/// The text of the file.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut body = format!(
            "{TITLE}\nversion {}\ncluster {:016x}\nnode {:016x}\nshards {}\ncreated-us {}\n",
            self.version(),
            self.cluster,
            self.node,
            self.shards,
            self.created.0
        );
        if !self.storage.is_first() {
            writeln!(body, "storage {}", self.storage)?;
        }
        let sum = crc32c::crc32c(body.as_bytes());
        writeln!(f, "{body}crc32c {sum:08x}")
    }
}

/// The rest of a line that begins with `name`.
fn field<'a>(line: Option<&'a str>, name: &str) -> Option<&'a str> {
    line?.strip_prefix(name)?.strip_prefix(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity {
        cluster: 1,
        node: NodeId(0xabcd_ef01_2345_6789),
        shards: 4,
        created: Wall(1_790_000_000_000_000),
        storage: StorageName::FIRST,
        needs: Needs::Nothing,
    };

    fn all() -> [Identity; 7] {
        let storage = StorageName::new("fast").unwrap();
        let named = Identity {
            storage,
            ..IDENTITY
        };
        let single = Identity { shards: 1, ..named };
        let needing = |needs, of| Identity { needs, ..of };
        let [roles, lanes] = [Needs::Roles, Needs::Lanes]
            .map(|needs| [IDENTITY, named].map(|of| needing(needs, of)));
        [
            IDENTITY, named, single, roles[0], roles[1], lanes[0], lanes[1],
        ]
    }

    #[test]
    fn what_was_written_is_read() {
        for identity in all() {
            assert_eq!(Identity::parse(&identity.to_string()), Ok(identity));
        }
    }

    #[test]
    fn one_shard_is_written_as_ever_and_more_so_that_older_programs_refuse_them() {
        let one = Identity {
            shards: 1,
            ..IDENTITY
        };
        let text = "airmail data directory\nversion 1\ncluster 0000000000000001\n\
                    node abcdef0123456789\nshards 1\ncreated-us 1790000000000000\ncrc32c ";
        assert!(one.to_string().starts_with(text));
        assert!(IDENTITY.to_string().contains("version 2\n"));
        assert_eq!(Identity::parse(&one.to_string()), Ok(one));
        assert!(one.grows_to(&IDENTITY) && IDENTITY.grows_to(&IDENTITY));
        assert!(!IDENTITY.grows_to(&one));
        let with_roles = Identity {
            needs: Needs::Roles,
            ..one
        };
        assert!(with_roles.to_string().contains("version 3\n"));
        assert!(one.grows_to(&with_roles) && !with_roles.grows_to(&one));
        let with_lanes = Identity {
            needs: Needs::Lanes,
            ..one
        };
        assert!(with_lanes.to_string().contains("version 4\n"));
        for before in [one, with_roles] {
            assert!(before.grows_to(&with_lanes) && !with_lanes.grows_to(&before));
        }
        let other = Identity { cluster: 2, ..one };
        assert!(!other.grows_to(&IDENTITY));
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        for identity in all() {
            let text = identity.to_string();
            for bit in 0..text.len() * 8 {
                let mut bytes = text.clone().into_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                if let Ok(text) = String::from_utf8(bytes) {
                    assert_ne!(Identity::parse(&text), Ok(identity), "bit {bit}: {text}");
                }
            }
        }
    }

    #[test]
    fn a_newer_version_is_named() {
        let text = IDENTITY.to_string().replace("version 2", "version 7");
        let (found, known) = (7, 4);
        assert_eq!(
            Identity::parse(&text),
            Err(IdentityError::Newer { found, known })
        );
    }
}
