//! The disk's files against bytes in memory: after writes, fills, reads, renames and restarts in
//! any order, a file holds the bytes written, past the page cache as well as through it; and a
//! reader sees them meanwhile, in every byte that is not being written.

#![allow(clippy::unwrap_used, reason = "a test")]

use airmail_log::Waker;
use airmail_log::disk::{DiskFiles, DiskOptions};
use airmail_log::files::{FileDone, FileOp, FileToken, Files};
use bytes::Bytes;
use proptest::prelude::*;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

const PAGE: usize = 4096;

#[derive(Clone, Debug)]
enum Step {
    /// Writes behind the last commit, with zeros to the end of the page.
    Append(usize, bool),
    /// Anywhere, of any length.
    Overwrite(usize, usize, bool),
    /// Fills this many pages behind everything that is written.
    Fill(usize),
    Read(usize, usize),
    /// All is done, and the whole file is compared.
    Settle,
    /// The file gets another life under another name.
    Recycle,
    Remove,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![
        4 => 1usize..300,
        3 => 300usize..9000,
        1 => Just(PAGE),
        1 => 500_000usize..1_200_000,
    ];
    let step = prop_oneof![
        12 => (length, prop::bool::weighted(0.8)).prop_map(|(bytes, sync)| Step::Append(bytes, sync)),
        1 => (0usize..40_000, 1usize..6000, any::<bool>())
            .prop_map(|(at, bytes, sync)| Step::Overwrite(at, bytes, sync)),
        3 => (1usize..100).prop_map(Step::Fill),
        8 => (0usize..60_000, 1usize..20_000).prop_map(|(back, bytes)| Step::Read(back, bytes)),
        1 => Just(Step::Settle),
        1 => Just(Step::Recycle),
        1 => Just(Step::Remove),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

/// The files, and what they are to hold.
struct Bench {
    temp: tempfile::TempDir,
    options: DiskOptions,
    files: DiskFiles,
    woken: Receiver<()>,
    done: Vec<FileDone>,
    tokens: u64,
    lives: u64,
    expected: Vec<u8>,
    /// Place behind the last append.
    written: usize,
    /// Writes under way, and the bytes that they change.
    writes: Vec<(FileToken, Range<usize>)>,
    fills: Vec<(FileToken, Range<usize>)>,
}

fn open(path: &Path, options: &DiskOptions) -> (DiskFiles, Receiver<()>) {
    let (wake, woken) = sync_channel(1);
    let waker: Waker = Arc::new(move || _ = wake.try_send(()));
    (DiskFiles::open(path, options, waker).unwrap(), woken)
}

impl Bench {
    fn new(direct: bool) -> Bench {
        let temp = tempfile::tempdir().unwrap();
        let options = DiskOptions {
            direct,
            ..DiskOptions::default()
        };
        let (files, woken) = open(temp.path(), &options);
        let mut bench = Bench {
            temp,
            options,
            files,
            woken,
            done: Vec::new(),
            tokens: 0,
            lives: 0,
            expected: Vec::new(),
            written: 0,
            writes: Vec::new(),
            fills: Vec::new(),
        };
        bench.create();
        bench
    }

    fn name(&self) -> String {
        format!("seg-{:016x}", self.lives)
    }

    fn submit(&mut self, op: FileOp) -> FileToken {
        self.tokens += 1;
        let token = FileToken(self.tokens);
        self.files.submit(token, op);
        token
    }

    fn answer(&mut self, token: FileToken) -> Bytes {
        loop {
            if let Some(at) = self.done.iter().position(|done| done.token == token) {
                return self.done.swap_remove(at).result.unwrap();
            }
            self.files.poll(&mut self.done);
            if self.done.iter().all(|done| done.token != token) {
                self.woken.recv().unwrap();
            }
        }
    }

    fn create(&mut self) {
        let name = self.name().as_str().into();
        let token = self.submit(FileOp::Create { name });
        self.answer(token);
        (self.written, self.expected) = (0, Vec::new());
    }

    fn write(&mut self, at: usize, bytes: Vec<u8>, sync: bool) {
        let end = at + bytes.len();
        // Nobody writes where a fill is under way.
        for (token, filled) in std::mem::take(&mut self.fills) {
            if filled.start < end.next_multiple_of(PAGE) && at < filled.end {
                self.answer(token);
            } else {
                self.fills.push((token, filled));
            }
        }
        self.expected.resize(self.expected.len().max(end), 0);
        self.expected[at..end].copy_from_slice(&bytes);
        let (one, two) = bytes.split_at(bytes.len() / 3);
        let parts = [one, &[], two].map(Bytes::copy_from_slice).to_vec();
        let name = self.name().as_str().into();
        let at_byte = at as u64;
        let token = self.submit(FileOp::Write {
            name,
            at: at_byte,
            parts,
            sync,
            note: None,
        });
        self.writes.push((token, at..end));
    }

    fn append(&mut self, length: usize, sync: bool) {
        let end = self.written + length;
        let mut bytes: Vec<u8> = (0..length).map(|n| (n * 7 + end) as u8 | 1).collect();
        bytes.resize(end.next_multiple_of(PAGE) - self.written, 0);
        self.write(self.written, bytes, sync);
        self.written = end;
    }

    fn fill(&mut self, pages: usize) {
        let ends = self.fills.iter().chain(&self.writes);
        let behind = ends.map(|(_, range)| range.end).max().unwrap_or(0);
        let from = behind.max(self.written).next_multiple_of(PAGE);
        let to = from + pages * PAGE;
        self.expected.resize(self.expected.len().max(to), 0);
        self.expected[from..to].fill(0);
        let name = self.name().as_str().into();
        let (first, last) = (from as u64, to as u64);
        let token = self.submit(FileOp::Fill {
            name,
            from: first,
            to: last,
        });
        self.fills.push((token, from..to));
    }

    fn read(&mut self, back: usize, length: usize) {
        let at = self.written.saturating_sub(back);
        let name = self.name().as_str().into();
        let (from, bytes) = (at as u64, length as u32);
        let token = self.submit(FileOp::Read {
            name,
            at: from,
            length: bytes,
            records: Vec::new(),
        });
        let found = self.answer(token);
        let under_way: Vec<_> = self.writes.iter().chain(&self.fills).collect();
        for (n, byte) in found.iter().enumerate() {
            let still = under_way
                .iter()
                .all(|(_, range)| !range.contains(&(at + n)));
            assert!(!still || *byte == self.expected[at + n], "byte {}", at + n);
        }
    }

    fn settle(&mut self) {
        for (token, _) in std::mem::take(&mut self.writes) {
            self.answer(token);
        }
        for (token, _) in std::mem::take(&mut self.fills) {
            self.answer(token);
        }
        let found = std::fs::read(self.temp.path().join(self.name())).unwrap();
        assert_eq!(found.len(), self.expected.len());
        let differs = found.iter().zip(&self.expected).position(|(a, b)| a != b);
        assert_eq!(differs, None);
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Append(length, sync) => self.append(length, sync),
            Step::Overwrite(at, length, sync) => {
                let at = at.min(self.written);
                self.write(at, vec![0xa5; length], sync);
                self.written = self.written.max(at + length);
            }
            Step::Fill(pages) => self.fill(pages),
            Step::Read(back, length) => self.read(back, length),
            Step::Settle => self.settle(),
            Step::Recycle => {
                self.settle();
                let from = self.name().as_str().into();
                self.lives += 1;
                let to = self.name().as_str().into();
                let token = self.submit(FileOp::Rename { from, to });
                self.answer(token);
                self.written = 0;
            }
            Step::Remove => {
                self.settle();
                let name = self.name().as_str().into();
                let token = self.submit(FileOp::Remove { name });
                self.answer(token);
                self.create();
            }
            Step::Restart => {
                self.settle();
                (self.files, self.woken) = open(self.temp.path(), &self.options);
            }
        }
    }
}

fn hold(steps: &[Step], direct: bool) {
    let mut bench = Bench::new(direct);
    for step in steps {
        bench.take(step);
    }
    bench.settle();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_past_the_cache_is_there_in_whatever_order(steps in steps()) {
        hold(&steps, true);
    }

    #[test]
    fn what_is_written_through_the_cache_is_there_in_whatever_order(steps in steps()) {
        hold(&steps, false);
    }
}
