//! Permissions of a node's files: its own user may open them, and nobody else.
//!
//! A mode is given where a file or directory is made, never afterwards: in between anybody could
//! open it, and an open file stays open. The process's mask can only take from a mode, so these
//! files are open to no others under any mask. A file made otherwise (by an older version, or by an
//! operator who shares it with a group) keeps its mode: it is reported, with the command that
//! closes it.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The mode of a file: its owner reads and writes it.
pub(super) const FILE_MODE: u32 = 0o600;
/// The mode of a directory: its owner lists it, and makes and removes files in it.
const DIRECTORY_MODE: u32 = 0o700;
/// Mode bits that give rights to a group and to everybody.
const OTHERS: u32 = 0o077;
/// The part of a mode that `chmod` sets.
const PERMISSIONS: u32 = 0o7777;

/// A file or directory that others than its owner may open. Shown with the command that closes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    path: PathBuf,
    mode: u32,
    directory: bool,
}

impl Exposed {
    /// Looks at a file, or at a directory without its contents; `None` if its owner alone may open it.
    ///
    /// # Errors
    /// The system's error, also where there is nothing.
    pub fn look(path: &Path) -> io::Result<Option<Exposed>> {
        let about = fs::metadata(path)?;
        let mode = about.permissions().mode() & PERMISSIONS;
        let exposed = mode & OTHERS != 0;
        Ok(exposed.then(|| Exposed {
            path: path.to_owned(),
            mode,
            directory: about.is_dir(),
        }))
    }
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        let all = if self.directory { "-R " } else { "" };
        let word = shell_word(&path.to_string());
        write!(
            f,
            "others than its owner may open {path} (mode {mode:04o}); to close it: chmod {all}go= {word}",
            mode = self.mode
        )
    }
}

/// A path as a shell takes it for one word.
fn shell_word(path: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,:@=".contains(letter);
    if path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

/// Makes a directory, if there is none. Missing parents are no node's alone, and get the mode that
/// the process's mask leaves.
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    // Recursive: one that is there is no error.
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// Writes a file anew and syncs it. One that is there is removed, and not written over: it has whatever
/// mode it was made with.
pub(super) fn write_anew(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(FILE_MODE);
    let mut file: File = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & PERMISSIONS
    }

    #[test]
    fn what_is_made_is_for_its_owner_alone_also_in_place_of_what_was_not() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("above/data");
        create_directory(&path).unwrap();
        create_directory(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        let file = path.join("file");
        fs::write(&file, "of an older version, and longer").unwrap();
        set_mode(&file, 0o644);
        write_anew(&file, "new").unwrap();
        assert_eq!(mode(&file), 0o600);
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn what_others_may_open_is_told_with_the_command_that_closes_it() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("Ada's data");
        create_directory(&path).unwrap();
        assert_eq!(Exposed::look(&path).unwrap(), None);
        for (wide, digits) in [(0o755, "0755"), (0o710, "0710"), (0o702, "0702")] {
            set_mode(&path, wide);
            let told = Exposed::look(&path).unwrap().unwrap().to_string();
            let command = format!(
                "(mode {digits}); to close it: chmod -R go= '{}/Ada'\\''s data'",
                temp.path().display()
            );
            assert!(told.ends_with(&command), "{told}");
        }
        let file = temp.path().join("mail.sqlite");
        write_anew(&file, "").unwrap();
        assert_eq!(Exposed::look(&file).unwrap(), None);
        set_mode(&file, 0o640);
        let told = Exposed::look(&file).unwrap().unwrap().to_string();
        let command = format!("chmod go= {}", file.display());
        assert!(told.ends_with(&command), "{told}");
        assert!(Exposed::look(&path.join("nothing")).is_err());
    }
}
