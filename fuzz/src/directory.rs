//! A directory in memory that costs next to nothing to begin with: reads share the bytes, and a
//! file is copied only when it is written while another reference holds it.

use airmail_log::files::{FileDone, FileName, FileOp, FileToken, Files};
use bytes::{Bytes, BytesMut};
use std::io;

/// The files, by name in byte order. An operation is done when it is submitted.
#[derive(Clone)]
pub struct Directory {
    files: Vec<(FileName, Bytes)>,
    done: Vec<(FileToken, Result<Bytes, io::ErrorKind>)>,
}

impl Directory {
    /// These files, which are in byte order of name.
    pub fn new(files: Vec<(FileName, Bytes)>) -> Directory {
        assert!(files.is_sorted_by(|one, next| one.0 < next.0));
        Directory {
            files,
            done: Vec::new(),
        }
    }

    /// The files as they are.
    pub fn into_files(self) -> Vec<(FileName, Bytes)> {
        self.files
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.files
            .binary_search_by(|(other, _)| (**other).cmp(name))
    }

    fn existing(&mut self, name: &str) -> Result<&mut Bytes, io::ErrorKind> {
        let place = self.place(name).map_err(|_| io::ErrorKind::NotFound)?;
        Ok(&mut self.files[place].1)
    }

    fn apply(&mut self, op: FileOp) -> Result<Bytes, io::ErrorKind> {
        match op {
            FileOp::Create { name } => match self.place(&name) {
                Ok(_) => return Err(io::ErrorKind::AlreadyExists),
                Err(place) => self.files.insert(place, (name, Bytes::new())),
            },
            FileOp::Write {
                name,
                at,
                parts,
                sync,
                note,
            } => {
                self.write(&name, at, &parts)?;
                if let Some(note) = note.filter(|_| sync) {
                    // Nobody is told what becomes of it.
                    let _ = self.write(&note.name, note.at, &[note.bytes]);
                }
            }
            FileOp::Fill { name, from, to } => {
                let file = self.existing(&name)?;
                let mut bytes = BytesMut::from(std::mem::take(file));
                let (from, to) = (from as usize, to as usize);
                bytes.resize(bytes.len().max(to), 0);
                bytes[from..to].fill(0);
                *file = bytes.freeze();
            }
            FileOp::Read {
                name, at, length, ..
            } => return self.read(&name, at, length),
            FileOp::Rename { from, to } => {
                let place = self.place(&from).map_err(|_| io::ErrorKind::NotFound)?;
                let (_, bytes) = self.files.remove(place);
                match self.place(&to) {
                    Ok(place) => self.files[place].1 = bytes,
                    Err(place) => self.files.insert(place, (to, bytes)),
                }
            }
            FileOp::Cut { name, length } => {
                let file = self.existing(&name)?;
                file.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            }
            FileOp::Remove { name } => {
                let place = self.place(&name).map_err(|_| io::ErrorKind::NotFound)?;
                self.files.remove(place);
            }
        }
        Ok(Bytes::new())
    }

    fn write(&mut self, name: &str, at: u64, parts: &[Bytes]) -> Result<(), io::ErrorKind> {
        let file = self.existing(name)?;
        let mut bytes = BytesMut::from(std::mem::take(file));
        let mut at = usize::try_from(at).expect("files are small");
        for part in parts {
            put(&mut bytes, at, part);
            at += part.len();
        }
        *file = bytes.freeze();
        Ok(())
    }

    fn read(&mut self, name: &str, at: u64, length: u32) -> Result<Bytes, io::ErrorKind> {
        let file = self.existing(name)?;
        let at = file.len().min(usize::try_from(at).unwrap_or(usize::MAX));
        let end = file.len().min(at + length as usize);
        Ok(file.slice(at..end))
    }
}

fn put(bytes: &mut BytesMut, at: usize, part: &[u8]) {
    let over = bytes.len().clamp(at, at + part.len()) - at;
    if bytes.len() < at {
        bytes.resize(at, 0);
    }
    bytes[at..at + over].copy_from_slice(&part[..over]);
    bytes.extend_from_slice(&part[over..]);
}

impl Files for Directory {
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>> {
        let files = self.files.iter();
        Ok(files
            .map(|(name, bytes)| (name.clone(), bytes.len() as u64))
            .collect())
    }

    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes> {
        self.read(name, at, length).map_err(io::Error::from)
    }

    fn submit(&mut self, token: FileToken, op: FileOp) {
        let result = self.apply(op);
        self.done.push((token, result));
    }

    fn poll(&mut self, out: &mut Vec<FileDone>) {
        out.extend(self.done.drain(..).map(|(token, result)| {
            let result = result.map_err(io::Error::from);
            FileDone::new(token, result)
        }));
    }
}
