//! Standard input: as one message, or line by line, in chunks of the lines that are there at once.
//!
//! Reading lines blocks, so it has a thread of its own, which the process does not wait for. Few
//! chunks wait: when nobody takes them, nothing more is read.

use airmail_model::{Error, ErrorCode};
use anyhow::Context as _;
use bytes::Bytes;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use tokio::sync::mpsc;

/// Lines in a chunk, at most.
const LINES: usize = 1024;
/// A chunk of this many bytes is complete.
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks that wait.
const CHUNKS: usize = 4;
/// No node takes a message of this size, so no more of one is held.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// All of standard input, as the content of one message.
///
/// # Errors
/// It cannot be read, or holds more than one message can.
pub fn whole() -> anyhow::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut input = io::stdin().lock().take(MESSAGE_BYTES_MAX + 1);
    let read = input
        .read_to_end(&mut all)
        .context("reading standard input")?;
    if read as u64 > MESSAGE_BYTES_MAX {
        return Err(too_long().into());
    }
    Ok(all)
}

/// Standard input holds more than one message can.
fn too_long() -> Error {
    Error::new(ErrorCode::MessageTooLarge)
        .field("standard input")
        .value(format!("more than {MESSAGE_BYTES_MAX} bytes"))
        .limit(format!("{MESSAGE_BYTES_MAX} bytes"))
}

/// Some lines, without their ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The number of the first, from 1.
    pub first: u64,
    /// Lines in order.
    pub lines: Vec<Bytes>,
}

/// Lines, as they come.
#[derive(Debug)]
pub struct Input(mpsc::Receiver<io::Result<Chunk>>);

impl Input {
    /// Those of standard input.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn of_stdin() -> io::Result<Input> {
        Input::of(io::stdin())
    }

    fn of(source: impl Read + Send + 'static) -> io::Result<Input> {
        let (chunks, input) = mpsc::channel(CHUNKS);
        let reader = move || read(BufReader::with_capacity(CHUNK_BYTES, source), &chunks);
        std::thread::Builder::new()
            .name("input".into())
            .spawn(reader)?;
        Ok(Input(input))
    }

    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// It cannot be read, in words.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is done.
    pub async fn next(&mut self) -> anyhow::Result<Option<Chunk>> {
        let chunk = self.0.recv().await.transpose();
        chunk.context("reading standard input")
    }
}

fn read(mut source: BufReader<impl Read>, chunks: &mpsc::Sender<io::Result<Chunk>>) {
    let mut first = 1;
    loop {
        let chunk = next_chunk(&mut source, first);
        let done = !matches!(&chunk, Ok(chunk) if !chunk.lines.is_empty());
        if let Ok(chunk) = &chunk {
            first += chunk.lines.len() as u64;
            if done {
                return;
            }
        }
        if chunks.blocking_send(chunk).is_err() || done {
            return;
        }
    }
}

/// Waits for one line, and takes those that are there with it. Empty at the end.
fn next_chunk(source: &mut BufReader<impl Read>, first: u64) -> io::Result<Chunk> {
    let mut chunk = Chunk {
        first,
        lines: Vec::new(),
    };
    let mut bytes = 0;
    loop {
        let mut line = Vec::new();
        let mut bounded = source.by_ref().take(MESSAGE_BYTES_MAX + 1);
        match bounded.read_until(b'\n', &mut line)? as u64 {
            0 => return Ok(chunk),
            read if read > MESSAGE_BYTES_MAX => {
                return Err(io::Error::new(ErrorKind::InvalidData, too_long()));
            }
            _ => {}
        }
        bytes += line.len();
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        chunk.lines.push(line.into());
        let full = chunk.lines.len() >= LINES || bytes >= CHUNK_BYTES;
        if full || !source.buffer().contains(&b'\n') {
            return Ok(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(text: Vec<u8>) -> Vec<Bytes> {
        let mut input = Input::of(io::Cursor::new(text)).unwrap();
        let mut lines = Vec::new();
        while let Some(chunk) = input.next().await.unwrap() {
            assert_eq!(chunk.first, lines.len() as u64 + 1);
            assert!(chunk.lines.len() <= LINES);
            lines.extend(chunk.lines);
        }
        lines
    }

    #[tokio::test]
    async fn every_line_comes_once_and_in_order() {
        let text: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
        let lines = lines_of(text.into_bytes()).await;
        let expected: Vec<String> = (0..5_000).map(|n| format!("line {n}")).collect();
        assert_eq!(lines, expected);
    }

    #[tokio::test]
    async fn empty_lines_count_and_the_last_needs_no_end() {
        assert_eq!(lines_of(b"\n\na".to_vec()).await, ["", "", "a"]);
        assert_eq!(lines_of(b"a\n".to_vec()).await, ["a"]);
        assert!(lines_of(Vec::new()).await.is_empty());
        assert_eq!(lines_of(b"\xff\r\n".to_vec()).await, [b"\xff\r".to_vec()]);
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_not_held_for_ever() {
        let mut input = Input::of(io::repeat(b'x')).unwrap();
        let error = input.next().await.unwrap_err();
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        assert_eq!(kind, Some(ErrorKind::InvalidData));
    }
}
