//! The conformance suite on a storage whose numbers have holes; and that it finds one which tells them as
//! something else.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod sparse;
mod subjects;

use airmail_log::GapWhy;
use airmail_log::conformance::{numbering, run};
use airmail_log::journal::JournalConfig;
use sparse::WithHoles;
use subjects::InMemory;

fn with_holes(hole: GapWhy) -> WithHoles<InMemory> {
    WithHoles::new(InMemory::new(JournalConfig::memory(0)), hole)
}

mod holes_unused {
    use super::with_holes;
    use airmail_log::GapWhy;

    airmail_log::conformance!(with_holes(GapWhy::Unused));
}

#[test]
#[should_panic(expected = "it is told as lost")]
fn a_hole_told_as_a_loss_is_found_by_each_case_that_reads() {
    run(
        &mut with_holes(GapWhy::Loss),
        airmail_log::conformance::reading::two_readers_at_different_places_both_get_everything,
    );
}

#[test]
#[should_panic(expected = "left: Retention")]
fn a_hole_told_as_retention_is_found_by_the_numbering_cases() {
    run(
        &mut with_holes(GapWhy::Retention),
        numbering::holes_are_told_as_unused,
    );
}
