use super::*;
use crate::files::Note;
use std::sync::mpsc::{Receiver, sync_channel};

/// Files in a directory of their own, and a way to wait for completions.
struct Bench {
    temp: tempfile::TempDir,
    files: DiskFiles,
    woken: Receiver<()>,
    have: Vec<FileDone>,
}

impl Bench {
    fn new(options: &DiskOptions) -> Bench {
        let temp = tempfile::tempdir().unwrap();
        let (wake, woken) = sync_channel(1);
        let waker: Waker = Arc::new(move || _ = wake.try_send(()));
        let files = DiskFiles::open(temp.path(), options, waker).unwrap();
        let have = Vec::new();
        Bench {
            temp,
            files,
            woken,
            have,
        }
    }

    fn answer(&mut self, token: u64) -> io::Result<Bytes> {
        loop {
            if let Some(at) = self.have.iter().position(|d| d.token == FileToken(token)) {
                return self.have.remove(at).result;
            }
            self.files.poll(&mut self.have);
            if self.have.is_empty() {
                self.woken.recv().unwrap();
            }
        }
    }

    fn done(&mut self, op: FileOp) -> io::Result<Bytes> {
        self.files.submit(FileToken(1_000_000), op);
        self.answer(1_000_000)
    }

    fn contents(&self, name: &str) -> Vec<u8> {
        fs::read(self.temp.path().join(name)).unwrap()
    }
}

fn create(name: &str) -> FileOp {
    FileOp::Create { name: name.into() }
}

fn write(name: &str, at: u64, parts: &[&[u8]], sync: bool) -> FileOp {
    let parts = parts.iter().map(|part| Bytes::copy_from_slice(part));
    FileOp::Write {
        name: name.into(),
        at,
        parts: parts.collect(),
        sync,
        note: None,
    }
}

fn read_op(name: &str, at: u64, length: u32) -> FileOp {
    let name = name.into();
    FileOp::Read {
        name,
        at,
        length,
        records: Vec::new(),
    }
}

#[test]
fn writes_take_effect_in_order_of_submission() {
    let mut bench = Bench::new(&DiskOptions::default());
    bench.done(create("a")).unwrap();
    let mut expected = Vec::new();
    for n in 0..1000u64 {
        let part = n.to_le_bytes();
        let op = write("a", n * 8, &[&part[..3], &[], &part[3..]], n % 7 == 0);
        bench.files.submit(FileToken(n), op);
        expected.extend_from_slice(&part);
    }
    bench
        .files
        .submit(FileToken(1000), write("a", 0, &[b"last"], true));
    expected[..4].copy_from_slice(b"last");
    for n in 0..=1000 {
        bench.answer(n).unwrap();
    }
    assert_eq!(bench.contents("a"), expected);
}

/// Overwrites like commits do: each takes the place of the zeros that end the one before.
#[test]
fn writes_that_begin_inside_of_the_one_before_are_joined_as_if_done_in_turn() {
    let mut bench = Bench::new(&DiskOptions::default());
    bench.done(create("a")).unwrap();
    let mut expected = vec![0; 3000];
    for n in 0..1000u64 {
        let (at, part) = (n * 2, [n as u8 | 1; 3]);
        let zeros = vec![0; (n % 9) as usize];
        // Some end inside of what is there already, which is then not joined.
        let op = write("a", at, &[&part, &zeros], n % 3 == 0);
        bench.files.submit(FileToken(n), op);
        let end = at as usize + 3 + zeros.len();
        expected[at as usize..end].fill(0);
        expected[at as usize..at as usize + 3].copy_from_slice(&part);
    }
    for n in 0..1000 {
        bench.answer(n).unwrap();
    }
    let contents = bench.contents("a");
    assert_eq!(contents, expected[..contents.len()]);
}

#[test]
fn many_parts_are_written_whole() {
    let mut bench = Bench::new(&DiskOptions::default());
    bench.done(create("a")).unwrap();
    let bytes: Vec<u8> = (0..10_000u32).map(|n| (n % 251) as u8).collect();
    let parts: Vec<&[u8]> = bytes.chunks(3).collect();
    bench.done(write("a", 5, &parts, true)).unwrap();
    assert_eq!(&bench.contents("a")[5..], &bytes[..]);
    assert_eq!(bench.done(write("a", 0, &[], true)).unwrap(), Bytes::new());
}

#[test]
fn a_read_is_short_at_the_end_of_the_file() {
    let mut bench = Bench::new(&DiskOptions::default());
    bench.done(create("a")).unwrap();
    bench.done(write("a", 0, &[b"0123456789"], false)).unwrap();
    assert_eq!(&bench.done(read_op("a", 3, 4)).unwrap()[..], b"3456");
    assert_eq!(&bench.done(read_op("a", 8, 4)).unwrap()[..], b"89");
    assert!(bench.done(read_op("a", 10, 4)).unwrap().is_empty());
    let name = "a".into();
    assert_eq!(&bench.files.load(&name, 9, 4).unwrap()[..], b"9");
}

#[test]
fn a_fill_writes_zeros_and_leaves_the_rest() {
    let mut bench = Bench::new(&DiskOptions::default());
    bench.done(create("a")).unwrap();
    bench.done(write("a", 0, &[&[7; 4096]], true)).unwrap();
    let (from, to) = (4096, 4096 + 600_000);
    let name = "a".into();
    bench.done(FileOp::Fill { name, from, to }).unwrap();
    let contents = bench.contents("a");
    assert_eq!(contents.len(), 604_096);
    assert!(contents[..4096].iter().all(|&byte| byte == 7));
    assert!(contents[4096..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_file_that_is_cut_is_shorter_and_never_longer() {
    let mut bench = Bench::new(&DiskOptions::default());
    bench.done(create("a")).unwrap();
    bench.done(write("a", 0, &[&[7; 10_000]], true)).unwrap();
    for (length, left) in [(4096, 4096), (8192, 4096)] {
        let name = "a".into();
        bench.done(FileOp::Cut { name, length }).unwrap();
        assert_eq!(bench.contents("a"), vec![7; left]);
    }
    assert_eq!(&bench.done(read_op("a", 4094, 9)).unwrap()[..], &[7, 7]);
    let (name, length) = ("b".into(), 0);
    let gone = bench.done(FileOp::Cut { name, length }).unwrap_err();
    assert_eq!(gone.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_renamed_file_is_read_by_its_new_name_only() {
    let mut bench = Bench::new(&DiskOptions::default());
    for (name, text) in [("a", b"one"), ("b", b"two")] {
        bench.done(create(name)).unwrap();
        bench.done(write(name, 0, &[text], false)).unwrap();
        bench.done(read_op(name, 0, 9)).unwrap();
    }
    let (from, to) = ("a".into(), "b".into());
    bench.done(FileOp::Rename { from, to }).unwrap();
    assert_eq!(&bench.done(read_op("b", 0, 9)).unwrap()[..], b"one");
    let gone = bench.done(read_op("a", 0, 9)).unwrap_err();
    assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    bench.done(FileOp::Remove { name: "b".into() }).unwrap();
    assert_eq!(bench.files.list().unwrap(), vec![]);
}

#[test]
fn errors_name_the_file_and_keep_their_kind() {
    let mut bench = Bench::new(&DiskOptions::default());
    let missing = bench.done(write("nowhere", 0, &[b"x"], true)).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    assert!(missing.to_string().contains("nowhere"), "{missing}");
    bench.done(create("a")).unwrap();
    let twice = bench.done(create("a")).unwrap_err();
    assert_eq!(twice.kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn a_file_whose_sync_failed_is_never_synced_again() {
    let mut bench = Bench::new(&DiskOptions {
        fail_sync_after: Some(1),
        ..DiskOptions::default()
    });
    bench.done(create("a")).unwrap();
    bench.done(create("b")).unwrap();
    bench.done(write("a", 0, &[b"1"], true)).unwrap();
    bench.done(write("a", 1, &[b"2"], true)).unwrap_err();
    bench.done(write("a", 2, &[b"3"], true)).unwrap_err();
    bench.done(write("b", 0, &[b"1"], true)).unwrap();
}

#[test]
fn more_files_than_handles_are_served() {
    let mut bench = Bench::new(&DiskOptions {
        workers: 1,
        handles: 2,
        ..DiskOptions::default()
    });
    for n in 0..50 {
        bench.done(create(&format!("f{n}"))).unwrap();
        let text = format!("{n}").into_bytes();
        bench
            .done(write(&format!("f{n}"), 0, &[&text], false))
            .unwrap();
    }
    for n in 0..50u32 {
        let read = bench.done(read_op(&format!("f{n}"), 0, 9)).unwrap();
        assert_eq!(&read[..], n.to_string().as_bytes());
    }
    assert!(format!("{:?}", bench.files).contains("open: 2"));
}

#[test]
fn what_was_submitted_is_done_before_the_threads_end() {
    let bench = Bench::new(&DiskOptions::default());
    let Bench {
        temp, mut files, ..
    } = bench;
    files.submit(FileToken(1), create("a"));
    files.submit(FileToken(2), write("a", 0, &[b"kept"], true));
    drop(files);
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"kept");
}

#[test]
fn a_read_only_directory_reads_and_changes_nothing() {
    let mut bench = Bench::new(&DiskOptions::default());
    bench.done(create("a")).unwrap();
    bench.done(write("a", 0, &[b"text"], false)).unwrap();
    let mut files = crate::disk::ReadOnlyFiles::new(bench.temp.path());
    files.submit(FileToken(1), read_op("a", 1, 2));
    files.submit(FileToken(2), write("a", 0, &[b"no"], false));
    files.submit(FileToken(3), create("b"));
    let mut out = Vec::new();
    files.poll(&mut out);
    assert_eq!(&out[0].result.as_ref().unwrap()[..], b"ex");
    for done in &out[1..] {
        let error = done.result.as_ref().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
    }
    assert_eq!(files.list().unwrap(), vec![("a".into(), 4)]);
}

#[test]
fn a_note_is_written_when_its_sync_went_well_and_not_when_it_failed() {
    let options = DiskOptions {
        fail_sync_after: Some(1),
        ..DiskOptions::default()
    };
    let mut bench = Bench::new(&options);
    bench.done(create("a")).unwrap();
    bench.done(create("notes")).unwrap();
    let noted = |at, text: &'static [u8]| FileOp::Write {
        name: "a".into(),
        at,
        parts: vec![Bytes::from_static(b"data")],
        sync: true,
        note: Some(Note {
            name: "notes".into(),
            at,
            bytes: Bytes::from_static(text),
        }),
    };
    bench.done(noted(0, b"good")).unwrap();
    bench.done(noted(4, b"bad")).unwrap_err();
    // Behind both notes, by the order of the thread.
    bench.done(create("b")).unwrap();
    assert_eq!(bench.contents("notes"), b"good");
}
