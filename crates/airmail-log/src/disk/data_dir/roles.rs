//! Word in the identity that log 0 has roles, so that no program that knows none of them opens the directory.
//!
//! It is written before the first role is, while the node has the directory: the identity itself in its place, since its
//! lock is held on that file, and then the copy. If the power fails in between, one of them is sound; the role was not
//! written then, so either is right.

use super::{DataDir, DataDirError, IDENTITY, IDENTITY_COPY, failed, read_one, write_identity};
use crate::disk::identity::Identity;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

impl DataDir {
    /// Writes into both identities that log 0 has roles, where that is not there.
    ///
    /// # Errors
    /// The system's error, or an identity that is damaged: no role may be written then.
    pub fn note_roles(&self) -> Result<(), DataDirError> {
        for (name, is_held) in [(IDENTITY, true), (IDENTITY_COPY, false)] {
            let identity = Identity {
                has_roles: true,
                ..self.identity
            };
            if read_one(&self.path, name).ok() == Some(identity) {
                continue;
            }
            if is_held {
                let at = self.path.join(name);
                write_in_place(&at, &identity).map_err(failed("write", &at))?;
            } else {
                write_identity(&self.path, name, &identity)?;
            }
        }
        Ok(())
    }
}

fn write_in_place(path: &Path, identity: &Identity) -> io::Result<()> {
    let text = identity.to_string();
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}
