//! The suite that every log storage must pass: the promises of [`crate::contract`], case by case.
//!
//! A storage's tests make a [`Subject`] of it and write [`conformance!`](crate::conformance!) once:
//! each case becomes a test of its own, named by its claim. A feature that the storage's
//! capabilities deny must be refused as `Unsupported`, and the cases check that instead.
//!
//! The suite has no I/O, thread or clock of its own: time is a number that the [`Driver`] moves,
//! and [`Subject::wait`] lets the storage's own threads work.

pub mod appending;
mod batches;
pub mod closing;
mod counted;
mod driver;
pub mod numbering;
pub mod places;
mod polling;
pub mod producers;
pub mod provisioning;
mod reader;
pub mod reading;
pub mod reopening;
pub mod sealing;
pub mod seeking;
pub mod topics;
pub mod trimming;
pub mod wants;
mod watch;

pub use batches::{EPOCH, Maker, log, spec};
pub use driver::Driver;
pub use reader::Seen;
pub use watch::Watch;

use crate::contract::LogStorage;
use airmail_model::Now;

/// A kind of storage under test, and the place where it stores.
pub trait Subject {
    /// The storage.
    type Storage: LogStorage;

    /// A new and empty one; what an earlier one stored is forgotten.
    fn fresh(&mut self, now: Now) -> Self::Storage;

    /// Ends a storage and opens it again on its stored data. One that does not outlive its
    /// process gives an empty one.
    fn reopen(&mut self, storage: Self::Storage, end: End, now: Now) -> Self::Storage;

    /// Whether stored data outlives the storage.
    fn outlives(&self) -> bool;

    /// Whether the storage's threads are at something that [`LogStorage::poll`] will tell.
    fn busy(&self) -> bool;

    /// Returns when there may be something to poll. Called only while [`Subject::busy`].
    fn wait(&mut self);
}

/// Ways in which a storage ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A clean stop: operations under way are finished first.
    Clean,
    /// A crash, like that of a process that is killed.
    Crash,
}

/// Runs one case on a fresh storage.
pub fn run<S: Subject>(subject: &mut S, case: impl FnOnce(&mut Driver<'_, S>)) {
    let mut driver = Driver::new(subject);
    case(&mut driver);
    driver.settle();
}

/// A case: its name, and what it does.
pub type Case<S> = (&'static str, fn(&mut Driver<'_, S>));

/// One test for each case, on the subject that the expression makes. For a subject that is dear to make, `cases` gives
/// all cases, to be run one after the other: `conformance!(cases of Kind)`.
#[macro_export]
macro_rules! conformance {
    (cases of $kind:ty) => {
        $crate::conformance! { @all cases $kind }
    };
    ($subject:expr) => {
        $crate::conformance! { @all tests $subject }
    };
    (@all $way:ident $of:tt) => {
        $crate::conformance! { @$way $of;
            numbering:
                dense_numbers_begin_at_one_and_follow_one_another
                a_record_has_its_batchs_number_and_its_index
                holes_are_told_as_unused
                a_reader_from_any_number_gets_what_follows
                a_reader_ends_at_a_bound_between_batches
                a_trim_between_batches_keeps_the_next;
            appending:
                appends_are_answered_in_call_order_refused_ones_too
                an_ack_says_at_least_what_the_log_asks
                append_times_keep_the_order_that_its_clock_promises
                an_append_made_with_another_map_is_refused
                an_older_map_does_not_open_a_log
                a_batch_of_4096_records_is_one_extent
                a_message_of_one_mebibyte_comes_back_whole
                many_logs_do_not_see_each_other
                more_durability_than_it_has_is_refused
                a_log_that_is_not_open_is_told_so
                bounds_say_what_is_there
                what_it_cannot_do_is_refused;
            reading:
                a_reader_gets_what_was_there_and_what_comes
                a_tail_reader_sees_only_what_comes_later
                a_reader_from_beyond_the_end_waits_there
                a_reader_from_inside_a_batch_gets_that_batch
                two_readers_at_different_places_both_get_everything
                a_rewind_beside_a_live_reader_disturbs_neither
                a_reader_may_be_restarted_as_often_as_one_likes
                a_reader_without_credit_gives_nothing
                credit_is_overdrawn_by_one_batch_at_most
                a_stopped_reader_ends_and_is_silent
                a_reader_ends_at_its_bound
                a_bound_in_the_future_is_waited_for
                a_far_reader_catches_up_while_appends_go_on;
            wants:
                a_reader_of_which_nothing_is_wanted_gives_nothing
                what_is_wanted_is_given
                what_was_wanted_first_is_given_from_the_beginning
                an_edit_takes_effect_where_it_is_told
                an_edit_of_parts_takes_effect_at_once
                what_nobody_wants_takes_no_credit_for_good;
            topics:
                a_topic_scope_is_tiled_with_unused_numbers
                a_topic_that_was_never_used_is_all_unused
                a_live_topic_reader_makes_progress_over_other_topics
                the_same_name_in_another_namespace_is_another_topic
                a_topic_is_found_in_a_long_log
                topics_are_listed_once_each_in_order
                topics_are_listed_by_prefix_and_page;
            trimming:
                a_trim_at_a_batch_edge_leaves_exactly_the_rest
                a_trim_inside_a_batch_keeps_that_batch
                a_trim_of_everything_leaves_the_numbers_going_on
                a_trim_backwards_changes_nothing
                a_gap_begins_where_the_reader_does
                a_reader_in_the_middle_of_what_is_trimmed_is_told
                a_long_log_is_trimmed_under_a_slow_reader
                retention_by_time_takes_what_is_older
                retention_by_size_takes_the_oldest
                retention_may_change_when_a_log_is_opened_again
                a_deleted_log_ends_its_readers_and_is_gone
                a_deleted_log_made_anew_is_empty;
            sealing:
                a_sealed_log_takes_nothing_more
                a_sealed_log_still_answers_retries
                a_sealed_log_says_of_nothing_that_may_be_stored_that_it_is_not
                bounds_tell_the_seal_and_the_first_one_counts
                readers_are_told_of_the_seal_at_the_end
                a_reader_at_the_tail_is_told_of_the_seal;
            producers:
                exactly_the_next_is_stored
                a_retry_gets_the_first_ones_result
                every_batch_in_flight_is_recognised
                a_retry_of_one_under_way_is_answered_with_it
                a_higher_sequence_is_refused_with_the_next
                a_batch_that_is_old_in_part_is_not_stored
                an_unknown_producer_is_refused
                an_older_epoch_is_fenced
                a_newer_epoch_begins_at_zero
                producers_are_told_apart_by_log_and_id
                what_follows_a_refused_batch_is_refused_too
                without_a_producer_nothing_is_a_duplicate;
            seeking:
                a_time_is_found_never_too_late
                a_logs_clock_is_that_of_its_append_times
                a_logs_clock_goes_on_while_the_wall_clock_is_set_back
                a_time_before_everything_is_the_first_number
                a_time_after_everything_is_the_end
                a_time_is_found_within_the_bounds
                a_time_in_a_long_log_is_found_near
                a_time_in_what_was_trimmed_is_the_first_kept;
            reopening:
                acknowledged_records_are_there_after_a_clean_stop
                acknowledged_records_are_there_after_a_crash
                numbers_are_never_used_again
                a_durable_log_keeps_its_incarnation
                a_log_that_is_lost_begins_a_new_incarnation
                retries_are_recognised_after_a_crash
                every_batch_in_flight_is_recognised_after_a_crash
                a_producer_is_known_though_its_records_are_trimmed
                an_older_epoch_is_still_fenced_after_a_crash
                a_new_life_keeps_what_is_there_and_holds_after_a_crash
                a_change_of_retention_keeps_what_is_there_after_a_crash
                a_trim_holds_after_a_crash
                a_seal_holds_after_a_crash
                a_delete_holds_after_a_crash
                a_map_epoch_holds_after_a_crash
                append_times_go_on_after_a_crash
                topics_and_times_are_found_after_reopening
                reopening_many_times_changes_nothing;
            places:
                a_spec_of_an_earlier_place_changes_nothing
                a_spec_of_a_later_place_is_taken_over
                a_deletion_of_an_earlier_place_changes_nothing
                a_spec_of_before_the_deletion_makes_no_log
                a_log_that_is_not_there_can_be_deleted
                an_open_that_a_deletion_overtakes_is_answered_as_one
                a_log_in_a_storage_that_it_has_not_is_elsewhere
                a_spec_of_an_earlier_place_changes_nothing_after_a_crash
                a_spec_of_before_the_deletion_makes_no_log_after_a_crash
                a_log_that_was_not_there_stays_deleted_after_a_crash;
            provisioning:
                a_log_is_opened_with_its_provisions_alone
                what_is_withdrawn_opens_no_log
                a_withdrawal_leaves_alone_what_was_made_besides
                a_log_that_was_not_opened_is_deleted_by_its_provisions;
            closing:
                what_was_accepted_is_answered_before_it_is_closed
                what_comes_after_a_close_is_refused_as_busy
                a_sound_storage_has_neither_trouble_nor_damage;
        }
    };
    (@cases $kind:ty; $($group:ident: $($case:ident)+;)+) => {
        [$($((
            stringify!($case),
            $crate::conformance::$group::$case as fn(&mut $crate::conformance::Driver<'_, $kind>),
        )),+),+]
    };
    (@tests $subject:expr; $($group:ident: $($case:ident)+;)+) => {
        $(
            mod $group {
                #[allow(unused_imports, reason = "the subject may need nothing of it")]
                use super::*;

                $(
                    #[test]
                    fn $case() {
                        let mut subject = $subject;
                        $crate::conformance::run(
                            &mut subject,
                            $crate::conformance::$group::$case,
                        );
                    }
                )+
            }
        )+
    };
}
