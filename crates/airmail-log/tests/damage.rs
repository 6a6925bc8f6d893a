//! Every kind of file, hit by a flipped bit or cut short: the journal opens, serves all undamaged
//! records, reports exactly the damaged ones, and never serves a message that nobody published;
//! `check` finds the losses that readers are told of, and changes nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod damaged;
mod subjects;

use damaged::{Directory, Random, Stop};

/// Flips in each file, at places chosen by a fixed seed.
const FLIPS: usize = 24;
/// The first bytes of each file, where its header is, are hit more often: every seventh.
const HEADER: usize = 64;
/// Places at which each file is cut.
const CUTS: usize = 8;

fn flips(stop: Stop) {
    let directory = Directory::written(stop);
    let (mut random, mut lost) = (Random(7), 0);
    for (name, length) in directory.targets() {
        let header = (0..HEADER.min(length))
            .step_by(7)
            .map(|byte| (byte, byte % 8));
        let anywhere = (0..FLIPS).map(|_| (random.below(length), random.below(8)));
        for (byte, bit) in header.chain(anywhere).collect::<Vec<_>>() {
            if byte < length {
                lost += directory.flipped(&name, byte, bit);
            }
        }
    }
    assert!(lost > 0, "none of it was damage");
}

fn cuts(stop: Stop) {
    let directory = Directory::written(stop);
    let (mut random, mut lost) = (Random(8), 0);
    for (name, length) in directory.targets() {
        for n in 0..CUTS {
            let at = if n == 0 { 0 } else { random.below(length) };
            lost += directory.cut(&name, at);
        }
    }
    assert!(lost > 0, "none of it was damage");
}

#[test]
fn a_flipped_bit_loses_no_more_than_it_hit() {
    flips(Stop::Clean);
}

#[test]
fn a_flipped_bit_loses_no_more_than_it_hit_after_a_crash() {
    flips(Stop::Crash);
}

#[test]
fn a_cut_file_loses_no_more_than_was_cut_off() {
    cuts(Stop::Clean);
}

#[test]
fn a_cut_file_loses_no_more_than_was_cut_off_after_a_crash() {
    cuts(Stop::Crash);
}

#[test]
fn a_missing_file_loses_no_more_than_it_held() {
    for stop in [Stop::Clean, Stop::Crash] {
        let (directory, mut lost) = (Directory::written(stop), 0);
        for (name, _) in directory.targets() {
            lost += directory.removed(&name);
        }
        assert!(lost > 0, "none of it was damage");
    }
}

#[test]
fn what_data_and_index_have_lost_together_is_told_as_lost() {
    let (directory, mut lost) = (Directory::written(Stop::Clean), 0);
    for step in [1, 4] {
        for flips in directory.index_and_data(step) {
            lost += directory.flipped_all(&flips);
        }
    }
    assert!(lost > 0, "none of it was damage");
}

/// Also where the commands that made the logs were in checkpoints alone.
#[test]
fn without_any_checkpoint_every_batch_is_still_there() {
    for stop in [Stop::Clean, Stop::Crash] {
        let directory = Directory::with_commands(stop, 2);
        assert!(directory.has_no_first_commands());
        assert_eq!(directory.removed("checkpoint-"), 0);
    }
}
