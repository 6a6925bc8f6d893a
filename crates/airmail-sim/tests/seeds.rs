//! A sample of seeds, as `airmail-sim --seeds` runs them in thousands.

use airmail_sim::{Run, Stage};

fn run_seeds(stage: Stage, seeds: impl IntoIterator<Item = u64>, steps: u64) {
    for seed in seeds {
        let run = Run {
            stage,
            seed,
            steps,
            plant: None,
            show: false,
        };
        if let Err(violation) = run.go() {
            panic!("{violation}\nreplay: {}", run.command());
        }
    }
}

#[test]
fn the_log_alone_keeps_its_guarantees_through_faults() {
    run_seeds(Stage::Storage, 0..60, 1_000);
}

#[test]
fn the_whole_node_keeps_its_guarantees_through_faults() {
    run_seeds(Stage::World, 0..60, 1_000);
}

#[test]
fn shards_that_are_linked_keep_the_guarantees_of_one() {
    run_seeds(Stage::Cluster, 0..30, 1_000);
}

#[test]
fn nodes_on_kafka_keep_the_guarantees_whatever_its_brokers_do() {
    run_seeds(Stage::Kafka, 0..60, 1_000);
}

/// An older epoch of a producer was refused as unknown where a newer one was over, and each epoch that it began was older
/// still: its messages waited for their delivery timeout.
#[test]
fn a_producer_that_another_has_succeeded_on_kafka_is_told_so() {
    run_seeds(Stage::Kafka, [1335, 4878], 1_500);
}

/// A leader that was isolated told a lower end than a subscriber's position, and the log began a new life.
#[test]
fn the_end_that_an_old_leader_tells_ends_no_life_of_a_log() {
    run_seeds(Stage::Kafka, [1126], 1_500);
}

/// Retention had removed the place of a late reader: it was swept for from there, out of range, and at once again.
#[test]
fn a_reader_whose_place_is_gone_on_kafka_keeps_no_node_busy() {
    run_seeds(Stage::Kafka, [698, 717, 957], 1_500);
}

/// A log is opened; the node is killed before the next checkpoint, so that what opened it is in the
/// system's cache alone; then the power is cut.
#[test]
fn a_log_outlives_a_power_cut_that_follows_a_kill() {
    run_seeds(Stage::Storage, [2091], 1_500);
}

/// A write of batches that readers had seen failed; they were to be written once more, and were lost to a
/// kill before. A checkpoint between knew their producer as if they were held, so that a retry was taken
/// for a duplicate.
#[test]
fn a_retry_of_what_a_kill_took_is_no_duplicate() {
    run_seeds(Stage::World, [1090], 1_500);
}

/// A check before a start took the indexes of what had been trimmed for missing; a segment of commands,
/// told by the checkpoint, for cut; and a segment that a full disk had let go before the next checkpoint
/// for lost, since a log weaker than `fsync` had skipped numbers long before.
#[test]
fn an_undamaged_directory_is_called_sound() {
    run_seeds(Stage::Storage, [487, 471, 5473], 1_500);
}

/// A subscription had asked for a number that its log had not got to, and the log began a new life: it was
/// told of a loss, though it had had nothing.
#[test]
fn who_waits_for_a_number_loses_nothing_when_the_log_begins_a_new_life() {
    run_seeds(Stage::World, [1224], 1_500);
}

/// Where a directory had been moved away and was back, and its lock was another's meanwhile, the simulator
/// did out of their order what the watch asked for; and the watch had storing go on before it knew of the
/// lock.
#[test]
fn a_directory_that_is_back_and_is_locked_by_another_is_not_stored_in() {
    run_seeds(Stage::Storage, [5861], 1_500);
}

/// A bit of the newest batches was flipped, and a power cut lost what told that they were durable: they
/// were taken for a torn write. Two faults at once, which the bytes do not tell apart.
#[test]
fn damage_is_told_where_the_end_of_the_data_is_known() {
    run_seeds(Stage::Storage, [9915], 1_500);
}

/// The end of a segment was cut off: behind what a process had told of before it was killed, and with the
/// header of one that was still written. The node could not know of either.
#[test]
fn an_end_that_is_cut_off_costs_what_was_there() {
    run_seeds(Stage::Storage, [22540, 21259], 1_500);
    run_seeds(Stage::World, [20098], 1_500);
}

/// A subscription from a time was told where it stood in a log from before a move, and then the first number of the next
/// log though its time began further on there.
#[test]
fn a_time_that_begins_in_a_later_log_is_told_where_it_begins() {
    run_seeds(Stage::World, [10], 1_500);
    run_seeds(Stage::Cluster, [43, 55], 1_500);
}

/// A log was ordered away with its map, and with its namespace before the first order was answered.
#[test]
fn a_namespace_is_deleted_while_an_earlier_map_of_it_is() {
    run_seeds(Stage::World, [196, 230, 249], 1_500);
}

/// A subscription that came upon two retired maps, one after the other, was told of the first one's numbers alone.
#[test]
fn every_retired_map_on_the_way_is_told() {
    run_seeds(Stage::World, [1080], 1_500);
}

/// A shard that had not heard of a move refused a position in one of the new logs as invalid.
#[test]
fn a_position_in_a_log_that_another_shard_knows_is_good() {
    run_seeds(Stage::Cluster, [10], 1_500);
}

/// Batches behind one that a sealed log had refused were asked for again for ever, and nothing went to the next log.
#[test]
fn what_a_sealed_log_never_stored_goes_to_the_next() {
    run_seeds(Stage::Cluster, [104, 114], 1_500);
}

/// A tower had the end of a sealed log from before the storage was killed, above which a log weaker than `fsync` went on:
/// readers waited between the two.
#[test]
fn a_sealed_log_that_went_on_above_after_a_kill_is_read_to_its_end() {
    run_seeds(Stage::Cluster, [306, 391], 1_500);
}

/// A history until now was asked for at a shard where the newest log was not open yet, though one between was: the shard
/// asked where it ends again and again, in one moment.
#[test]
fn an_end_in_a_log_that_is_not_open_yet_keeps_no_shard_busy() {
    run_seeds(Stage::Cluster, [1584, 1659], 1_500);
}

/// Gives up batches that were under way when the directory was moved away and were on the disk. A
/// power cut left those durable ends that were written with them, and readers were told of a loss.
#[test]
fn what_was_given_up_while_the_directory_was_away_is_no_loss() {
    run_seeds(Stage::Storage, [8722], 1_500);
}

/// A segment's file was cut in its header while the node wrote to it: its first record was gone too, and
/// all that was stored in it later with them.
#[test]
fn what_follows_a_lost_beginning_of_a_segment_is_served() {
    run_seeds(Stage::Storage, [8741], 1_500);
}

/// Publishers that had been refused often waited by themselves for up to 5 s, while a node with short
/// timers turned so often that they were taken for stuck after 2 s.
#[test]
fn a_client_that_waits_by_itself_is_not_stuck() {
    run_seeds(Stage::World, [5485], 1_500);
}

/// The newest batch of log 0 was hit in its segment before the checkpoint that had it once more: of one
/// that was acknowledged the namespace was lost, and after one that was not every command was refused for ever.
#[test]
fn damage_to_the_newest_of_log_0_loses_no_namespace() {
    run_seeds(Stage::World, [5820, 6933], 1_500);
}

/// A batch of unknown outcome, asked for again, was refused by a seal; a crash brought the batch back.
#[test]
fn what_a_seal_refused_is_not_stored() {
    run_seeds(Stage::Storage, [21384], 1_500);
}

/// A segment of commands failed while a checkpoint was written that had all of them, and went with it:
/// the checkpoint said that it was written to, and its file was called missing.
#[test]
fn a_segment_of_commands_that_went_with_its_checkpoint_is_not_missed() {
    run_seeds(Stage::Storage, [22427], 1_500);
}

/// The last write of commands was in the system's cache alone when the process was killed. The next one took
/// it for durable; then a power cut tore it, and the directory was called damaged.
#[test]
fn commands_that_a_kill_leaves_in_the_cache_are_no_damage_when_they_are_torn() {
    run_seeds(Stage::Storage, [11633, 13805, 14180], 1_500);
}

/// Commands were counted anew at each attempt to write them to a failing disk, and those counts were called
/// missing.
#[test]
fn commands_that_a_failing_disk_did_not_take_are_not_missed() {
    run_seeds(Stage::Storage, [16782], 1_500);
}

/// A log was opened, reserved numbers, and was opened again; a start gave its commands again with the first
/// opening left out. The next one met a reservation for a log that was not there, and left it out, too.
#[test]
fn a_reservation_that_is_given_again_is_for_a_log_that_is_there() {
    run_seeds(Stage::Storage, [4301], 1_500);
}

/// A log of `fsync` became one of `memory` while batches were written: they were durable and, beyond its
/// reservation, not visible. A reader by topic was told of the tail behind them, others of one before.
#[test]
fn what_is_durable_is_visible_when_a_log_needs_reservations_from_then_on() {
    run_seeds(Stage::Storage, [13736], 1_500);
}

/// The wall clock was far ahead, and was set back by seconds meanwhile. Retention goes by the monotone clock
/// then, and the simulator went by the wall clock.
#[test]
fn what_is_too_old_by_the_monotone_clock_may_go_while_the_wall_clock_is_astray() {
    run_seeds(Stage::Storage, [13667], 1_500);
}

/// A failing disk and a kill took the last messages of a log of `memory` that a reader had seen; the clock had
/// been set back, and the next message had the time of the last that was kept.
#[test]
fn the_times_of_messages_that_a_kill_takes_go_with_them() {
    run_seeds(Stage::Storage, [15489], 1_500);
}

/// A start left out a batch that had been written once more, among others of its log; when the block's table
/// was made again it was in it, out of order, and a reader was told of a loss before it.
#[test]
fn a_table_that_is_made_again_has_no_batch_that_was_left_out() {
    run_seeds(Stage::Storage, [17745], 1_500);
}

/// All files were set back to a copy, in which retention had removed what was acknowledged before. A retry of it was
/// rightly answered as stored; the simulator had forgotten that it had been durable.
#[test]
fn what_retention_had_removed_before_a_copy_was_made_is_known_to_its_producer_after_a_restore() {
    run_seeds(Stage::World, [2670], 1_500);
}

/// A tower's storage was busy for as long as its disk stood still, and the gateway asked it for a log's end as fast as it
/// refused: without end, in one moment of the clock.
#[test]
fn a_tower_that_refuses_to_say_where_a_log_ends_is_not_asked_without_end() {
    run_seeds(Stage::Cluster, [1342], 1_500);
}
