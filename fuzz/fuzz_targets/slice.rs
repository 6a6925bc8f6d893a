//! Slices: for any choice of records of any batch, the result has exactly those.

#![no_main]

use airmail_fuzz::{fuzz_target, read::read, seal::seal};
use airmail_model::Batch;

fuzz_target!(|data: &[u8]| {
    // The last byte chooses; the vectors' cases then stay whole batches.
    let Some((mask, bytes)) = data.split_last() else {
        return;
    };
    let Some(sealed) = seal(bytes) else {
        return;
    };
    let Ok((batch, _)) = Batch::check_stored(sealed.into()) else {
        return;
    };
    let keeps = |index: u16| mask & (1 << (index % 8)) != 0;
    let kept: Vec<u16> = batch
        .heads()
        .map(|(index, _)| index)
        .filter(|&index| keeps(index))
        .collect();
    let Some(slice) = batch.slice(|index, _| keeps(index)) else {
        assert!(kept.is_empty());
        return;
    };
    let sliced = slice.to_batch();
    assert_eq!(sliced.bytes().len(), slice.len());
    let (sliced, _) = Batch::check_stored(sliced.bytes().clone()).expect("a slice is a batch");
    assert!(sliced.is_sliced());
    assert_eq!(
        sliced.heads().map(|(index, _)| index).collect::<Vec<_>>(),
        kept
    );
    read(&sliced);
});
