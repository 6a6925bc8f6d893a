//! Slices: for any choice of records of any batch, the result has exactly those, with payloads or without.

#![no_main]

use airmail_fuzz::fuzz_target;
use airmail_fuzz::read::{expect_true_marks, read};
use airmail_fuzz::seal::seal;
use airmail_model::{Batch, Checked};

fuzz_target!(|data: &[u8]| {
    // The last byte chooses; the vectors' cases then stay whole batches.
    let Some((mask, bytes)) = data.split_last() else {
        return;
    };
    let Some(sealed) = seal(bytes) else {
        return;
    };
    let Ok((batch, damaged)) = Batch::check_stored(sealed.into()) else {
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
    let places: Vec<u16> = (0..sliced.records()).collect();
    let headers = sliced
        .headers_of(&places)
        .expect("some are kept")
        .to_batch();
    // Damage is not made good.
    let damaged = (0..)
        .zip(batch.heads())
        .any(|(place, (index, _))| keeps(index) && damaged.contains(&place));
    let checked = Batch::check_headers(headers.bytes().clone());
    assert_eq!(checked.is_err(), damaged);
    if let Ok(headers) = checked {
        read(&headers);
        expect_true_marks(&headers);
        expect_true_marks(&sliced);
        let of = |batch: &Checked<Batch>| -> Vec<_> {
            let records = batch.iter();
            records
                .map(|record| {
                    (
                        record.index,
                        record.topic,
                        record.attributes.as_bytes().to_vec(),
                    )
                })
                .collect()
        };
        assert_eq!(of(&headers), of(&sliced));
    }
});
