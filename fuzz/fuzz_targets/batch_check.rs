//! Bytes from a client: they are refused, or all of the batch can be read and it is good in storage
//! too.

#![no_main]

use airmail_fuzz::{fuzz_target, read::read, seal::seal};
use airmail_model::{Batch, Limits};
use bytes::Bytes;

fn check(bytes: Bytes) {
    if let Ok(batch) = Batch::check(bytes.clone(), &Limits::DEFAULT) {
        read(&batch);
        let (stored, damaged) = Batch::check_stored(bytes).expect("taken at the edge");
        assert!(damaged.is_empty());
        assert_eq!(stored, batch);
    }
}

fuzz_target!(|data: &[u8]| {
    check(Bytes::copy_from_slice(data));
    if let Some(sealed) = seal(data) {
        check(sealed.into());
    }
});
