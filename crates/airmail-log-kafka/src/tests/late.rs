//! Claims about readers that are behind: how often the log is read for them, and who waits for whom.

use super::node::{BEGIN, Heard, Node, after};
use crate::config::KafkaConfig;
use crate::model::{Faults, ModelCluster};
use airmail_log::conformance::{Maker, log};
use airmail_log::{Call, Completion, LogStorage as _, ReaderId, Scope};
use airmail_model::{Now, Sequence};
use std::time::Duration;

/// Payload of each message, and their number: many windows of a sweep.
const BYTES: usize = 16 << 10;
const MESSAGES: usize = 200;
/// Credit that a reader begins with: a few messages.
const CREDIT: u32 = 64 << 10;
/// Time between two polls, and the most of them.
const TURN: Duration = Duration::from_millis(1);
const TURNS: u32 = 10_000;

/// A node with a log that is stored, of which nothing is at hand.
struct Stored {
    now: Now,
    node: Node,
    /// The number of each message.
    numbers: Vec<Sequence>,
}

impl Stored {
    fn new() -> Stored {
        let cluster = ModelCluster::new(1, Faults::NONE);
        let config = KafkaConfig {
            recent_bytes: 0,
            ..KafkaConfig::default()
        };
        let (mut now, mut node) = (BEGIN, Node::new(&cluster, config));
        let provisions = node.provision(&mut now, log(0), 1);
        let opened = node.open(&mut now, log(0), provisions);
        assert!(matches!(opened, Completion::Opened { .. }), "{opened:?}");
        let mut numbers = Vec::new();
        let text = ".".repeat(BYTES);
        for sequence in 0..MESSAGES as u64 {
            let batch = Maker::of(log(0), 1, 1).at(sequence).batch(&[("a", &text)]);
            let tag = node.call(|t| Call::Append {
                t,
                log: batch.log(),
                map: batch.map_epoch(),
                batch,
                sole: false,
            });
            match node.answer(&mut now, tag) {
                Completion::Appended { extent, .. } => numbers.push(extent.first),
                other => panic!("{other:?}"),
            }
        }
        let mut stored = Stored { now, node, numbers };
        (0..TURNS / 100).for_each(|_| stored.poll());
        stored
    }

    fn poll(&mut self) {
        self.now = after(self.now, TURN);
        self.node.poll(self.now);
    }

    /// Begins a reader at a message.
    fn read(&mut self, r: ReaderId, from: usize) {
        let from = self.numbers[from];
        self.node.storage.submit(Call::Read {
            r,
            log: log(0),
            from,
            scope: Box::new(Scope::default()),
            credit: CREDIT,
        });
        let heard = Heard {
            next: Some(from),
            ..Heard::default()
        };
        self.node.heard.insert(r, heard);
    }

    /// Polls until a reader has the last message, while these are given credit for what they have taken. The number of
    /// polls.
    fn until_last(&mut self, r: ReaderId, takers: &[ReaderId]) -> u32 {
        let mut taken = vec![0; takers.len()];
        for turn in 0..TURNS {
            self.poll();
            let last = self.numbers.last().map(|number| number.0);
            let messages = &self.node.heard[&r].messages;
            if messages.last().map(|(number, _)| *number) == last {
                return turn;
            }
            for (taker, taken) in takers.iter().zip(&mut taken) {
                let count = self.node.heard[taker].messages.len();
                let bytes = u32::try_from((count - *taken) * BYTES).unwrap();
                *taken = count;
                if bytes > 0 {
                    let r = *taker;
                    self.node.storage.submit(Call::Credit { r, bytes });
                }
            }
        }
        panic!("{r:?} has not come to the end");
    }

    /// Times that the whole log was read for readers.
    fn read_times(&self) -> f64 {
        self.node.storage.read_bytes() as f64 / (MESSAGES * BYTES) as f64
    }
}

#[test]
fn a_reader_that_is_given_credit_in_steps_has_the_log_read_once_whoever_is_ahead_of_it() {
    let mut stored = Stored::new();
    let (behind, ahead) = (ReaderId(u64::MAX), ReaderId(u64::MAX - 1));
    stored.read(behind, 0);
    stored.read(ahead, MESSAGES / 2);
    stored.until_last(behind, &[behind, ahead]);
    stored.until_last(ahead, &[ahead]);
    let times = stored.read_times();
    assert!(times > 0.9 && times < 1.2, "{times}");
}

#[test]
fn a_reader_that_gets_no_more_credit_is_left_behind_and_those_ahead_of_it_go_on() {
    let mut stored = Stored::new();
    let (behind, ahead) = (ReaderId(u64::MAX), ReaderId(u64::MAX - 1));
    stored.read(behind, 0);
    stored.read(ahead, MESSAGES / 2);
    let turns = stored.until_last(ahead, &[ahead]);
    let one_wait = 3_000;
    assert!(turns < one_wait, "{turns} ms of the model's");
    let taken = stored.node.heard[&behind].messages.len();
    assert!(taken < MESSAGES / 10, "{taken}");
}
