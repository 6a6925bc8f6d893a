//! The cache makes reading cheaper, and nothing else.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod subjects;

use airmail_log::Scope;
use airmail_log::conformance::{log, run, spec};
use airmail_log::journal::JournalConfig;
use airmail_model::Durability;
use subjects::{OnKept, tiny};

/// Collects the deliveries to readers from several places while more is appended.
fn seen(cache_bytes: u64) -> Vec<Vec<(u64, String, Vec<u8>)>> {
    let config = JournalConfig {
        cache_bytes,
        ..tiny(JournalConfig::default())
    };
    let mut all = Vec::new();
    run(&mut OnKept::new(config), |d| {
        d.open_with(log(0), &spec(Durability::FSYNC));
        let append = |d: &mut airmail_log::conformance::Driver<'_, OnKept>, n: u32| {
            let payload = format!("{n}/{}", "x".repeat(500));
            d.append(log(0), &[("a", &payload), ("b", "other")]);
        };
        (0..100).for_each(|n| append(d, n));
        let readers = [1, 50, 51, 199, 201].map(|from| d.read(log(0), from, Scope::default(), 0));
        let mut records = vec![Vec::new(); readers.len()];
        for round in 0..200 {
            if round < 50 {
                append(d, 100 + round);
            }
            for (reader, records) in readers.iter().zip(&mut records) {
                d.credit(*reader, 2_000);
                records.extend(d.records(*reader));
            }
        }
        all = records;
    });
    all
}

#[test]
fn a_cache_of_any_size_or_none_changes_nothing_that_is_read() {
    let without = seen(0);
    let counts: Vec<usize> = without.iter().map(Vec::len).collect();
    assert_eq!(counts, [300, 251, 250, 102, 100]);
    for cache_bytes in [1, 2_000, 20_000, 1 << 20] {
        assert!(seen(cache_bytes) == without, "with {cache_bytes} bytes");
    }
}
