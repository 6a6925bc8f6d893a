//! Bytes from a client: they are refused, or all of the batch can be read, its header says of its
//! records what they say, and it is good in storage too.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_fuzz::read::{expect_true_marks, read};
use airmail_fuzz::seal::seal;
use airmail_model::{Batch, Limits};
use bytes::Bytes;

fn check(bytes: Bytes) {
    if let Ok(batch) = Batch::check(bytes.clone(), &Limits::DEFAULT) {
        read(&batch);
        expect_true_marks(&batch);
        let told = (bytes[11] & 1 != 0, bytes[11] & 2 != 0);
        assert_eq!(told, (batch.is_expiring(), batch.is_restricted()));
        let (stored, damaged) = Batch::check_stored(bytes.clone()).expect("taken at the edge");
        assert!(damaged.is_empty());
        assert_eq!(stored, batch);
        assert!(Batch::check_headers(bytes).is_err());
    }
}

fuzz_target!(|data: &[u8]| {
    check(Bytes::copy_from_slice(data));
    if let Some(sealed) = seal(data) {
        check(sealed.into());
    }
});
