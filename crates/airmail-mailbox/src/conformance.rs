//! The suite that every store must pass: the promises of [`crate::MailboxStore`], claim by claim.
//!
//! A store's tests invoke [`conformance!`](crate::conformance!) with a function that makes mailboxes
//! on a new, empty store and runs a claim on them; each claim becomes a test of its own. No claim
//! depends on how fast the store is: where something takes time, a reader waits for it.

#![expect(
    clippy::unwrap_used,
    reason = "a claim that does not hold stops its test"
)]

pub mod directory;
mod fixture;
pub mod leasing;
pub mod ordering;
pub mod receiving;
pub mod waiting;

pub use fixture::Fixture;

/// Makes a test of each claim. `$run` gets a claim: a function from [`crate::Mailboxes`] to a
/// future.
#[macro_export]
macro_rules! conformance {
    ($run:path) => {
        $crate::conformance!($run, directory:
            a_name_is_taken_once
            what_is_not_there_is_not_found
            names_have_1_to_255_characters
            accounts_and_queues_are_listed
            a_list_is_read_in_pages_or_by_number
            a_number_is_never_given_again
            a_queue_with_messages_is_deleted_only_by_force
            an_account_with_messages_is_deleted_only_by_force
            a_queue_for_dead_letters_outlives_those_that_use_it
            what_a_queue_holds_is_counted_and_purged
        );
        $crate::conformance!($run, receiving:
            a_ping_comes_back
            the_oldest_is_read_first
            reading_without_removing_leaves_it
            a_message_is_as_it_was_sent
            a_message_is_for_its_receiver_alone
            a_broadcast_is_for_everyone_and_removed_once
            an_empty_queue_says_so
            a_message_is_found_by_its_sender
            the_queues_that_hold_something_are_listed
            a_message_for_another_may_not_be_read
            many_are_sent_at_once_and_each_stands_alone
            many_are_taken_at_once_oldest_first
            what_is_too_large_is_refused
            an_answer_holds_no_more_than_its_bytes
        );
        $crate::conformance!($run, leasing:
            a_leased_message_is_at_one_reader
            an_acknowledged_message_is_gone
            a_lease_that_ended_cannot_be_settled
            a_lease_that_ends_hands_the_message_out_again
            an_extended_lease_does_not_end
            a_released_message_comes_again_and_counts_its_deliveries
            a_message_handed_out_too_often_is_a_dead_letter
            a_delayed_message_comes_when_it_is_due
            what_expires_is_handed_to_nobody
            what_expires_goes_to_the_dead_letters
        );
        $crate::conformance!($run, ordering:
            higher_priorities_go_before
            what_comes_back_goes_before_what_is_younger
            messages_of_a_key_are_handed_out_one_at_a_time
            a_key_stays_in_order_through_releases
            readers_at_once_never_get_the_same
        );
        $crate::conformance!($run, waiting:
            a_waiting_reader_gets_what_is_sent
            a_wait_ends_without_a_message
            each_of_many_waiting_readers_gets_one
            a_waiting_reader_gets_what_is_released
            a_waiting_reader_gets_the_next_of_a_key
            a_reader_that_gave_up_leaves_the_message_to_others
            readers_that_wait_are_sent_away_and_all_else_goes_on
            what_is_to_do_and_was_done_is_counted
        );
    };
    ($run:path, $module:ident: $($claim:ident)*) => {
        $(
            #[test]
            fn $claim() {
                $run($crate::conformance::$module::$claim);
            }
        )*
    };
}
