//! gRPC's framing: however a stream is cut into HTTP/2 frames, it gives the same messages and the
//! same error, and nothing is held for a message that was taken.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_proto::framing::{Deframer, PREFIX_BYTES, framed};
use airmail_proto::v1;
use bytes::Bytes;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use prost::Message as _;
use tonic::Code;

/// Nothing is begun behind this, so that an input costs little.
const STREAM_BYTES: usize = 8 << 10;
/// The largest batch: more than what a deframer gathers.
const BATCH_BYTES: u16 = 5000;
/// Number of frames that a stream is cut into at most; the rest comes in one.
const FRAMES: usize = 256;

#[derive(Arbitrary, Debug)]
enum Part {
    /// A publish of two batches of these sizes.
    Batches([u16; 2]),
    /// A frame of gRPC with whatever in it.
    Framed(Vec<u8>),
    /// The beginning of one, which may lie.
    Prefix { flag: u8, length: u32 },
    /// No frame at all, perhaps.
    Raw(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
struct Stream {
    message_bytes_max: u16,
    parts: Vec<Part>,
    /// The lengths of HTTP/2's frames, over and over.
    cuts: Vec<u16>,
}

/// End of a stream: the bytes of a message that is not complete, or an error.
type End = Result<usize, (Code, String)>;

fn batches(lengths: [u16; 2]) -> Bytes {
    let batch = |bytes: u16| v1::PublishBatch {
        request: bytes.into(),
        namespace: String::new(),
        begins_epoch: false,
        body: Some(v1::publish_batch::Body::Batch(
            vec![7; (bytes % BATCH_BYTES).into()].into(),
        )),
    };
    let batches = lengths.map(batch).into();
    framed(&v1::PublishRequest {
        kind: Some(v1::publish_request::Kind::Batches(v1::PublishBatches {
            batches,
        })),
    })
}

fn bytes(parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            Part::Batches(lengths) => out.extend(batches(*lengths)),
            Part::Framed(bytes) => {
                out.push(0);
                out.extend(u32::try_from(bytes.len()).expect("small").to_be_bytes());
                out.extend(bytes);
            }
            Part::Prefix { flag, length } => {
                out.push(*flag);
                out.extend(length.to_be_bytes());
            }
            Part::Raw(bytes) => out.extend(bytes),
        }
        if out.len() > STREAM_BYTES {
            break;
        }
    }
    out
}

/// Messages of the stream, read in one piece.
fn whole(mut stream: &[u8], message_bytes_max: usize) -> (Vec<v1::PublishRequest>, End) {
    let mut messages = Vec::new();
    loop {
        let Some((prefix, rest)) = stream.split_first_chunk::<PREFIX_BYTES>() else {
            return (messages, Ok(stream.len()));
        };
        let [flag, length @ ..] = *prefix;
        let length = u32::from_be_bytes(length) as usize;
        let code = match (flag, length > message_bytes_max) {
            (0, false) => None,
            (0, true) => Some(Code::OutOfRange),
            _ => Some(Code::Internal),
        };
        if let Some(code) = code {
            return (messages, Err((code, String::new())));
        }
        let Some((message, rest)) = rest.split_at_checked(length) else {
            return (messages, Ok(stream.len()));
        };
        match v1::PublishRequest::decode(message) {
            Ok(message) => messages.push(message),
            Err(error) => return (messages, Err((Code::Internal, error.to_string()))),
        }
        stream = rest;
    }
}

/// Messages of the stream, read in pieces.
fn cut(
    stream: &Bytes,
    cuts: &[u16],
    message_bytes_max: usize,
) -> (Vec<v1::PublishRequest>, End, bool) {
    let mut deframer = Deframer::new(message_bytes_max);
    let mut messages = Vec::new();
    let mut taken = 0;
    let mut rest = stream.clone();
    let mut cuts = cuts.iter().cycle().take(FRAMES);
    while !rest.is_empty() {
        let frame = cuts.next().map_or(rest.len(), |cut| usize::from(*cut));
        deframer.push(rest.split_to(frame.min(rest.len())));
        loop {
            match deframer.message::<v1::PublishRequest>() {
                Ok(Some(message)) => {
                    taken += framed_bytes(stream, taken);
                    messages.push(message);
                }
                Ok(None) => break,
                Err(status) => {
                    let said = (status.code(), status.message().to_owned());
                    return (messages, Err(said), false);
                }
            }
        }
    }
    (messages, Ok(stream.len() - taken), deframer.is_empty())
}

/// Bytes of the message that begins here.
fn framed_bytes(stream: &[u8], at: usize) -> usize {
    let length = stream[at + 1..at + PREFIX_BYTES].try_into();
    PREFIX_BYTES + u32::from_be_bytes(length.expect("four bytes")) as usize
}

fuzz_target!(|stream: Stream| {
    let Stream {
        message_bytes_max,
        parts,
        mut cuts,
    } = stream;
    // Empty frames may come, but not for ever.
    if cuts.iter().all(|cut| *cut == 0) {
        cuts.clear();
    }
    let max = message_bytes_max.into();
    let bytes = Bytes::from(bytes(&parts));
    let (messages, end) = whole(&bytes, max);
    let (found, found_end, empty) = cut(&bytes, &cuts, max);
    assert_eq!(found, messages);
    match (end, found_end) {
        (Ok(left), Ok(found)) => {
            assert_eq!(found, left);
            assert_eq!(empty, left == 0);
        }
        (Err((code, said)), Err((found, found_said))) => {
            assert_eq!(found, code);
            assert!(found_said.contains(&said), "{found_said} is not {said}");
        }
        (end, found) => panic!("{found:?}, where in one piece: {end:?}"),
    }
});
