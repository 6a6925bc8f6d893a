//! Bytes from storage: they are refused, or the undamaged part of the batch can be served.

#![no_main]

use airmail_fuzz::{fuzz_target, read::read, seal::seal};
use airmail_model::Batch;
use bytes::Bytes;

fn check(bytes: Bytes) {
    let Ok((batch, damaged)) = Batch::check_stored(bytes) else {
        return;
    };
    read(&batch);
    let whole: Vec<u16> = (0..batch.records())
        .filter(|n| !damaged.contains(n))
        .collect();
    if let Some(slice) = batch.slice_of(&whole) {
        let bytes = slice.to_batch().bytes().clone();
        let (served, damaged) = Batch::check_stored(bytes).expect("a slice of a checked batch");
        assert!(damaged.is_empty());
        read(&served);
    }
}

fuzz_target!(|data: &[u8]| {
    check(Bytes::copy_from_slice(data));
    if let Some(sealed) = seal(data) {
        check(sealed.into());
    }
});
