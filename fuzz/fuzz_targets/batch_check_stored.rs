//! Bytes from storage, or for a subscriber that asked for no payloads: they are refused, or the
//! undamaged part of the batch can be served.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_fuzz::read::{expect_true_marks, read};
use airmail_fuzz::seal::seal;
use airmail_model::Batch;
use bytes::Bytes;

fn check_stored(bytes: Bytes) {
    let Ok((batch, damaged)) = Batch::check_stored(bytes) else {
        return;
    };
    read(&batch);
    let whole: Vec<u16> = (0..batch.records())
        .filter(|n| !damaged.contains(n))
        .collect();
    if let Some(slice) = batch.slice_of(&whole) {
        let slice = slice.to_batch();
        let bytes = slice.bytes().clone();
        let (served, damaged) = Batch::check_stored(bytes).expect("a slice of a checked batch");
        assert!(damaged.is_empty());
        assert_eq!(served, slice);
        read(&served);
        expect_true_marks(&served);
    }
}

fn check_headers(bytes: Bytes) {
    if let Ok(batch) = Batch::check_headers(bytes.clone()) {
        read(&batch);
        expect_true_marks(&batch);
        assert!(Batch::check_stored(bytes).is_err());
        // There is nothing more to leave out.
        let all: Vec<u16> = (0..batch.records()).collect();
        let whole = batch.slice_of(&all).map(|slice| slice.to_batch());
        assert_eq!(batch.headers_of(&all).map(|slice| slice.to_batch()), whole);
    }
}

fn check(bytes: Bytes) {
    check_stored(bytes.clone());
    check_headers(bytes);
}

fuzz_target!(|data: &[u8]| {
    check(Bytes::copy_from_slice(data));
    if let Some(sealed) = seal(data) {
        check(sealed.into());
    }
});
