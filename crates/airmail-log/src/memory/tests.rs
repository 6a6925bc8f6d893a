use super::*;

fn done(files: &mut MemoryFiles, op: FileOp) -> io::Result<Bytes> {
    files.submit(FileToken(7), op);
    let mut out = Vec::new();
    files.poll(&mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].token, FileToken(7));
    out.remove(0).result
}

fn create(files: &mut MemoryFiles, name: &str) -> io::Result<Bytes> {
    done(files, FileOp::Create { name: name.into() })
}

fn write(files: &mut MemoryFiles, name: &str, at: u64, bytes: &[u8]) -> io::Result<Bytes> {
    let parts = vec![Bytes::copy_from_slice(bytes)];
    let name = name.into();
    done(
        files,
        FileOp::Write {
            name,
            at,
            parts,
            sync: true,
            note: None,
        },
    )
}

#[test]
fn a_file_that_is_cut_is_shorter_and_grows_again_with_zeros() {
    let mut files = MemoryFiles::new();
    create(&mut files, "a").unwrap();
    write(&mut files, "a", 0, &[7; 100]).unwrap();
    let (name, length) = (FileName::from("a"), 40);
    done(
        &mut files,
        FileOp::Cut {
            name: name.clone(),
            length,
        },
    )
    .unwrap();
    assert_eq!(files.used(), 40);
    done(&mut files, FileOp::Cut { name, length: 60 }).unwrap();
    assert_eq!(files.used(), 40, "nothing is made longer");
    write(&mut files, "a", 80, &[9]).unwrap();
    let contents = files.contents("a").unwrap();
    assert_eq!(
        (&contents[..40], &contents[40..80]),
        (&[7; 40][..], &[0; 40][..])
    );
}

#[test]
fn what_was_written_is_read_across_pages() {
    let mut files = MemoryFiles::new();
    create(&mut files, "a").unwrap();
    let bytes: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
    write(&mut files, "a", 65_000, &bytes).unwrap();
    let all = files.contents("a").unwrap();
    assert_eq!(all.len(), 265_000);
    assert!(all[..65_000].iter().all(|&byte| byte == 0));
    assert_eq!(&all[65_000..], &bytes[..]);
    let tail = files.load(&"a".into(), 264_990, 100).unwrap();
    assert_eq!(&tail[..], &bytes[199_990..]);
    assert!(files.load(&"a".into(), 300_000, 100).unwrap().is_empty());
}

#[test]
fn a_fill_zeroes_and_lengthens() {
    let mut files = MemoryFiles::new();
    create(&mut files, "a").unwrap();
    write(&mut files, "a", 0, &[9; 100]).unwrap();
    let name: FileName = "a".into();
    let (from, to) = (50, 70_000);
    done(&mut files, FileOp::Fill { name, from, to }).unwrap();
    let all = files.contents("a").unwrap();
    assert_eq!(all.len(), 70_000);
    assert_eq!(&all[..50], &[9; 50]);
    assert!(all[50..].iter().all(|&byte| byte == 0));
}

#[test]
fn names_are_kept_apart_and_errors_name_the_file() {
    let mut files = MemoryFiles::new();
    create(&mut files, "a").unwrap();
    let again = create(&mut files, "a").unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    let missing = write(&mut files, "b", 0, b"x").unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    assert!(missing.to_string().starts_with("b:"));
    write(&mut files, "a", 0, b"x").unwrap();
    let (from, to) = ("a".into(), "b".into());
    done(&mut files, FileOp::Rename { from, to }).unwrap();
    assert_eq!(files.list().unwrap(), vec![("b".into(), 1)]);
    done(&mut files, FileOp::Remove { name: "b".into() }).unwrap();
    assert_eq!(files.list().unwrap(), vec![]);
}

#[test]
fn beyond_its_room_it_is_full_and_unchanged() {
    let mut files = MemoryFiles::new();
    create(&mut files, "a").unwrap();
    files.set_room(Some(10));
    write(&mut files, "a", 0, &[1; 10]).unwrap();
    write(&mut files, "a", 0, &[2; 10]).unwrap();
    let full = write(&mut files, "a", 5, &[3; 6]).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    assert_eq!(&files.contents("a").unwrap()[..], &[2; 10]);
}

#[test]
fn a_clone_is_a_copy_of_what_is_there() {
    let mut files = MemoryFiles::new();
    create(&mut files, "a").unwrap();
    write(&mut files, "a", 0, b"one").unwrap();
    let copy = files.clone();
    write(&mut files, "a", 0, b"two").unwrap();
    assert_eq!(&copy.contents("a").unwrap()[..], b"one");
}
