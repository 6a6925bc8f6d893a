//! Messages that are put on the wire come off it, however the bytes are cut on their way; and what was damaged does not
//! come off it as something else, but for bits that no checksum covers.

#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod messages;

use airmail_link::{FromHost, ToHost};
use airmail_wire::{FRAME_BYTES_MAX, FrameReader, FrameWriter, Malformed, OnWire};
use bytes::{Buf, BufMut};
use messages::{batch, from_host, to_host};
use proptest::prelude::*;
use std::fmt::Debug;
use std::io::IoSlice;

/// Everything that a writer has, by its vectors of at most `slices`, of each of which at most `cut` bytes go.
fn sent(mut writer: FrameWriter, slices: usize, cut: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while writer.has_remaining() {
        let mut vector = vec![IoSlice::new(&[]); slices];
        let filled = writer.chunks_vectored(&mut vector);
        let all: Vec<u8> = vector[..filled]
            .iter()
            .flat_map(|s| s.iter().copied())
            .collect();
        let taken = all.len().min(cut);
        out.extend_from_slice(&all[..taken]);
        writer.advance(taken);
    }
    out
}

/// Messages that come of bytes which arrive `cut` at a time.
fn received<M: OnWire>(bytes: &[u8], cut: usize) -> Result<Vec<M>, Malformed> {
    let mut reader = FrameReader::new(FRAME_BYTES_MAX);
    let mut found = Vec::new();
    for piece in bytes.chunks(cut) {
        reader.room().put_slice(piece);
        while let Some(message) = reader.message()? {
            found.push(message);
        }
    }
    assert!(reader.is_empty(), "something is left over");
    Ok(found)
}

fn round_trip<M: OnWire + Clone + PartialEq + Debug>(messages: &[M], slices: usize, cut: usize) {
    let mut writer = FrameWriter::default();
    messages
        .iter()
        .cloned()
        .for_each(|message| writer.put(message));
    let bytes = writer.remaining();
    let sent = sent(writer, slices, cut);
    assert_eq!(sent.len(), bytes);
    let found: Vec<M> = received(&sent, cut).unwrap();
    assert_eq!(found, messages);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_is_asked_of_a_host_comes_off_the_wire_as_it_was(
        messages in prop::collection::vec(to_host(), 1..8),
        slices in 1..6_usize,
        cut in 1..70_000_usize,
    ) {
        round_trip::<ToHost>(&messages, slices, cut);
    }

    #[test]
    fn what_a_host_tells_comes_off_the_wire_as_it_was(
        messages in prop::collection::vec(from_host(), 1..8),
        slices in 1..6_usize,
        cut in 1..70_000_usize,
    ) {
        round_trip::<FromHost>(&messages, slices, cut);
    }

    #[test]
    fn damage_never_panics_and_never_makes_a_batch_another(
        message in from_host(),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let mut writer = FrameWriter::default();
        writer.put(message.clone());
        let mut bytes = sent(writer, 4, usize::MAX);
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        let mut reader = FrameReader::new(FRAME_BYTES_MAX);
        reader.room().put_slice(&bytes);
        if let (Ok(Some(found)), Some(before)) = (reader.message::<FromHost>(), batch_of(&message)) {
            prop_assert!(batch_of(&found).is_none_or(|after| after == before));
        }
    }
}

fn batch_of(message: &FromHost) -> Option<&[u8]> {
    let FromHost::Range {
        completion: airmail_log::Completion::Batch { stored, .. },
        ..
    } = message
    else {
        return None;
    };
    Some(stored.batch.bytes())
}

#[test]
fn a_large_batch_is_sent_as_it_lies_in_memory() {
    let large = batch(40_000);
    let mut writer = FrameWriter::default();
    writer.put(messages::append(large.clone()));
    let mut vector = [IoSlice::new(&[]); 4];
    let filled = writer.chunks_vectored(&mut vector);
    let memory = large.bytes().as_ptr_range();
    let is_it = |slice: &IoSlice<'_>| memory.contains(&slice.as_ptr());
    assert_eq!(
        vector[..filled].iter().filter(|slice| is_it(slice)).count(),
        1
    );
}

#[test]
fn signs_of_life_are_passed_over_wherever_they_stand() {
    let mut writer = FrameWriter::default();
    writer.put_alive();
    writer.put_alive();
    writer.put(ToHost::Begin { generation: 7 });
    writer.put_alive();
    let bytes = sent(writer, 4, usize::MAX);
    for cut in 1..bytes.len() {
        let found = received::<ToHost>(&bytes, cut).unwrap();
        assert!(
            matches!(&*found, [ToHost::Begin { generation: 7 }]),
            "{found:?}"
        );
    }
    let mut nothing = FrameWriter::default();
    nothing.put_alive();
    assert!(
        received::<ToHost>(&sent(nothing, 1, 1), 1)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_frame_that_is_too_long_is_refused_by_its_length() {
    let mut reader = FrameReader::new(100);
    reader.room().put_slice(&101_u32.to_be_bytes());
    let error = reader.message::<ToHost>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "a frame of 101 bytes, where at most 100 are allowed"
    );
}

#[test]
fn a_length_alone_takes_no_memory() {
    let mut reader = FrameReader::new(FRAME_BYTES_MAX);
    reader.room().put_slice(&(1_u32 << 31).to_be_bytes());
    assert!(reader.message::<ToHost>().unwrap().is_none());
    assert!(reader.room().capacity() <= 4 << 20);
}

#[test]
fn a_variant_that_is_not_known_is_told_by_name() {
    // Generation 1, and field 31 of a later version.
    let frame = [8, 1, 0xfa, 1, 0];
    let mut reader = FrameReader::new(100);
    reader.room().put_u32(5);
    reader.room().put_slice(&frame);
    let error = reader.message::<ToHost>().unwrap_err();
    assert_eq!(error.to_string(), "to_host.message is missing or not known");
}
