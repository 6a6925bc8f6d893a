//! Files that say whether anything is under way, so that a test can tell "later" from "never".

use crate::files::{FileDone, FileName, FileOp, FileToken, Files};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the operations that were submitted and not yet polled.
#[derive(Debug)]
pub struct Watch<F> {
    files: F,
    under_way: Arc<AtomicUsize>,
}

impl<F: Files> Watch<F> {
    /// Watches `files`; the count is shared.
    pub fn new(files: F, under_way: &Arc<AtomicUsize>) -> Watch<F> {
        under_way.store(0, Ordering::Release);
        Watch {
            files,
            under_way: Arc::clone(under_way),
        }
    }
}

impl<F: Files> Files for Watch<F> {
    fn list(&mut self) -> io::Result<Vec<(FileName, u64)>> {
        self.files.list()
    }

    fn load(&mut self, name: &FileName, at: u64, length: u32) -> io::Result<Bytes> {
        self.files.load(name, at, length)
    }

    fn submit(&mut self, token: FileToken, op: FileOp) {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        self.files.submit(token, op);
    }

    fn poll(&mut self, out: &mut Vec<FileDone>) {
        let before = out.len();
        self.files.poll(out);
        self.under_way
            .fetch_sub(out.len() - before, Ordering::AcqRel);
    }
}
