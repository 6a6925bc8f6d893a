//! A cluster of one broker, and all claims that one is enough for.

use crate::{claims, reading, starting, storing, topics, try_all};
use airmail_testkit::kafka::KafkaCluster;

/// 16 bytes in base64.
const ID: &str = "b25lLWJyb2tlci1vbmx5MQ";

#[test]
fn one_broker_keeps_what_the_trait_promises() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut cluster) = KafkaCluster::start(directory.path(), ID, 1) else {
        return;
    };
    let claims = claims![
        storing::records_come_back_at_the_offsets_of_their_reports_in_order_with_times_and_headers,
        storing::keys_and_contents_that_are_not_there_come_back_so,
        storing::a_record_of_two_mebibytes_is_stored_and_a_larger_one_is_invalid,
        storing::no_more_records_are_under_way_than_the_settings_allow,
        storing::closing_tells_everything_and_takes_nothing_more,
        reading::a_consumer_begins_in_the_middle,
        reading::the_end_is_told_once_and_again_after_more,
        reading::no_more_is_taken_than_asked_for_and_the_rest_is_told,
        reading::two_slots_read_one_partition_each_for_itself,
        reading::a_partition_can_be_read_again_in_its_slot_and_nothing_is_told_of_who_was_stopped,
        reading::a_slot_that_is_not_there_ends_its_consumer,
        reading::records_that_are_not_ours_have_no_time_of_sending,
        topics::a_watermark_is_never_below_an_acknowledged_record,
        topics::the_first_record_of_a_time_is_found,
        topics::a_topic_has_the_settings_that_it_was_made_with_and_those_that_were_altered,
        topics::topics_are_listed_and_deleted,
        topics::deleted_records_are_out_of_range,
        topics::a_topic_that_is_not_there_is_told_as_such_and_not_made,
        topics::a_broker_of_version_4_is_told_apart,
        starting::a_start_goes_on_from_a_statement_and_leaves_out_copies_of_what_was_trimmed,
    ];
    try_all(&mut cluster, &claims);
}
