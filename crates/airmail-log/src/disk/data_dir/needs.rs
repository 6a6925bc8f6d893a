//! Word in the identity of what a program has to know of, so that none opens the directory that does not.
//!
//! It is written before the first role is, or the first message of lane high, while the node has the directory: the identity
//! itself in its place, since its lock is held on that file, and then the copy. If the power fails in between, one of them
//! is sound; what needs it was not written then, so either is right.

use super::{DataDir, DataDirError, IDENTITY, IDENTITY_COPY, failed, read_one, write_identity};
use crate::disk::identity::{Identity, Needs};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

impl DataDir {
    /// Writes into both identities what a program has to know of, where they do not say as much.
    ///
    /// # Errors
    /// The system's error, or an identity that is damaged: what needs it may not be written then.
    pub fn note_needs(&self, needs: Needs) -> Result<(), DataDirError> {
        let names = [IDENTITY, IDENTITY_COPY];
        let written = names.map(|name| read_one(&self.path, name).ok());
        // What was noted since the start is in one of them at least.
        let noted = written.iter().flatten().map(|of| of.needs);
        let identity = Identity {
            needs: noted.fold(needs.max(self.identity.needs), Needs::max),
            ..self.identity
        };
        for ((name, is_held), written) in names.into_iter().zip([true, false]).zip(written) {
            if written.is_some_and(|written| identity.grows_to(&written)) {
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
