//! The wire between nodes: no bytes make a decoder panic, and what is taken for a message is put on the wire
//! again as the same message.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_link::{FromHost, ToHost};
use airmail_model::NodeId;
use airmail_wire::handshake::{Accepting, Asked, Connecting, Credentials, Node, Secret, VERSIONS};
use airmail_wire::{FRAME_BYTES_MAX, FrameReader, FrameWriter, OnWire};
use bytes::{Buf, BufMut, Bytes};

fuzz_target!(|data: &[u8]| {
    link::<ToHost>(data);
    link::<FromHost>(data);
    handshake(data);
});

/// The bytes as frames; each that is a message comes back as it was.
fn link<M: OnWire + Clone + PartialEq + std::fmt::Debug>(data: &[u8]) {
    let mut reader = FrameReader::new(FRAME_BYTES_MAX);
    reader.room().put_slice(data);
    while let Ok(Some(message)) = reader.message::<M>() {
        let mut writer = FrameWriter::default();
        writer.put(message.clone());
        let mut again = FrameReader::new(FRAME_BYTES_MAX);
        while writer.has_remaining() {
            let chunk = writer.chunk();
            again.room().put_slice(chunk);
            writer.advance(chunk.len());
        }
        let found = again.message().expect("what was written can be read");
        assert_eq!(found, Some(message));
    }
}

/// The bytes as frames of a peer that does not have the secret: it gets nowhere on either side.
fn handshake(data: &[u8]) {
    let credentials = || Credentials {
        node: Node {
            cluster: 1,
            name: "a".to_owned(),
            node: NodeId(2),
            boot: 3,
        },
        secret: Secret::new(vec![7; 32]),
        versions: VERSIONS,
        challenge: [5; 32],
    };
    let (mut connecting, _) = Connecting::begin(credentials(), &Asked::default());
    let mut accepting = Accepting::new(credentials());
    let mut reader = FrameReader::new(FRAME_BYTES_MAX);
    reader.room().put_slice(data);
    while let Ok(Some(frame)) = reader.frame() {
        let frame: Bytes = frame;
        let _ = connecting.step(frame.clone());
        assert!(!connecting.trusts(), "a stranger is trusted");
        let heard = accepting.step(frame);
        let is_known = matches!(heard, Ok(airmail_wire::handshake::Heard::Known(_)));
        assert!(!is_known, "a stranger is known");
    }
}
