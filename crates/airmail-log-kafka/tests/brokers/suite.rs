//! The conformance suite on three real brokers: three replicas, of which two have to be in sync.
//!
//! The suite moves a clock of its own. What is timed here goes by the real one: where the suite lets time pass, this
//! waits, for [`PASSES_MAX`] at most. So the cases about retention are the model's alone.
//!
//! All cases take minutes. One in eight is run, and all of them if `AIRMAIL_TEST_KAFKA_SUITE` is `all`, or those whose
//! names contain what it says.

use crate::watched::{UnderWay, Watched};
use airmail_log::conformance::{self, Case, End, Subject};
use airmail_log::{Call, Capabilities, ClockState, Completion, LogStorage, Trouble};
use airmail_log_kafka::shell::{KafkaSettings, LibrdkafkaBrokers};
use airmail_log_kafka::{KafkaConfig, KafkaStorage};
use airmail_model::{Mono, Now, Wall};
use airmail_testkit::kafka::KafkaCluster;
use airmail_testkit::{scale, waiting};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// 16 bytes in base64.
const ID: &str = "Y29uZm9ybWFuY2Utc3VpdA";
/// Longest time that passes here where the suite lets more pass.
const PASSES_MAX: Duration = Duration::from_millis(100);
/// Time that the suite's own clock goes on by with each poll.
const POLL: Duration = Duration::from_millis(1);
/// Longest wait for news.
const LOOK: Duration = Duration::from_millis(5);
/// Cases that wait for the brokers to remove what is too old or too much, which they look for every few minutes.
const BY_RETENTION: [&str; 4] = [
    "a_spec_of_a_later_place_is_taken_over",
    "retention_by_time_takes_what_is_older",
    "retention_by_size_takes_the_oldest",
    "retention_may_change_when_a_log_is_opened_again",
];

#[test]
fn the_storage_conforms_on_three_brokers() {
    let directory = tempfile::tempdir().unwrap();
    let Some(cluster) = KafkaCluster::start(directory.path(), ID, 3) else {
        return;
    };
    let wanted = scale::suite_on_kafka();
    let is_wanted = |number: usize, name: &str| match wanted.as_str() {
        "" => number.is_multiple_of(8),
        "all" => true,
        part => name.contains(part),
    };
    let mut subject = OnBrokers::new(&cluster);
    let cases: Vec<Case<OnBrokers>> = airmail_log::conformance!(cases of OnBrokers).into();
    let (mut held, mut broken) = (0, Vec::new());
    for (number, (name, case)) in cases.into_iter().enumerate() {
        if BY_RETENTION.contains(&name) || !is_wanted(number, name) {
            continue;
        }
        println!("{name} …");
        let _waiting = waiting::waiting(name);
        match catch_unwind(AssertUnwindSafe(|| conformance::run(&mut subject, case))) {
            Ok(()) => held += 1,
            Err(_) => broken.push(name),
        }
    }
    assert!(broken.is_empty(), "these do not hold: {broken:?}");
    assert!(held > 0, "no case is named like {wanted}");
    println!("{held} cases hold");
}

/// A kind of storage on brokers that outlive it; topics of each new one have a prefix of their own.
struct OnBrokers {
    bootstrap: String,
    fresh: u64,
    opened: u64,
    under_way: Arc<Mutex<UnderWay>>,
}

impl OnBrokers {
    fn new(cluster: &KafkaCluster) -> OnBrokers {
        OnBrokers {
            bootstrap: cluster.bootstrap(),
            fresh: 0,
            opened: 0,
            under_way: Arc::default(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "real brokers have real time")]
    fn open(&mut self, now: Now) -> OfRealTime {
        self.opened += 1;
        self.under_way = Arc::default();
        let config = KafkaConfig {
            prefix: format!("suite{}", self.fresh),
            seed: self.opened,
            ..KafkaConfig::default()
        };
        let me = thread::current();
        let waker = Arc::new(move || me.unpark());
        let settings = KafkaSettings::new(&self.bootstrap);
        let brokers = Watched {
            brokers: LibrdkafkaBrokers::open(settings, waker).unwrap(),
            under_way: Arc::clone(&self.under_way),
        };
        OfRealTime {
            storage: KafkaStorage::new(config, brokers),
            begun: Instant::now(),
            told: now.mono,
        }
    }
}

impl Subject for OnBrokers {
    type Storage = OfRealTime;

    fn fresh(&mut self, now: Now) -> OfRealTime {
        self.fresh += 1;
        self.open(now)
    }

    fn reopen(&mut self, mut storage: OfRealTime, end: End, now: Now) -> OfRealTime {
        if end == End::Clean {
            storage.close(now);
            waiting::until("a storage is closed", LOOK, || {
                storage.poll(storage.at_rest(), &mut Vec::new());
                storage.is_closed().then_some(()).ok_or(String::new())
            });
        }
        drop(storage);
        self.open(now)
    }

    fn outlives(&self) -> bool {
        true
    }

    fn busy(&self) -> bool {
        self.under_way.lock().is_any()
    }

    fn wait(&mut self) {
        thread::park_timeout(LOOK);
    }
}

/// A storage by the real clock.
struct OfRealTime {
    storage: KafkaStorage<Watched>,
    begun: Instant,
    /// The suite's time of the last poll.
    told: Mono,
}

impl OfRealTime {
    /// The suite's time, as if none had passed since the last poll.
    fn at_rest(&self) -> Now {
        Now {
            mono: self.told,
            ..Now::default()
        }
    }

    #[expect(clippy::disallowed_methods, reason = "real brokers have real time")]
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Now {
            mono: Mono(1).plus(self.begun.elapsed()),
            wall: Wall(i64::try_from(wall.unwrap().as_micros()).unwrap()),
        }
    }
}

impl LogStorage for OfRealTime {
    fn capabilities(&self) -> Capabilities {
        self.storage.capabilities()
    }

    fn submit(&mut self, call: Call) {
        self.storage.submit(call);
    }

    fn poll(&mut self, now: Now, out: &mut Vec<Completion>) -> Option<Mono> {
        let passes = now.mono.since(self.told);
        if passes > POLL {
            thread::sleep(passes.min(PASSES_MAX));
        }
        self.told = now.mono;
        let real = self.now();
        let deadline = self.storage.poll(real, out)?;
        Some(now.mono.plus(deadline.since(real.mono)))
    }

    fn opened(&mut self) {
        self.storage.opened();
    }

    fn close(&mut self, _: Now) {
        self.storage.close(self.now());
    }

    fn is_closed(&self) -> bool {
        self.storage.is_closed()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.storage.trouble()
    }

    fn damage(&self) -> u64 {
        self.storage.damage()
    }

    fn read_bytes(&self) -> u64 {
        self.storage.read_bytes()
    }

    fn clock(&self) -> ClockState {
        self.storage.clock()
    }

    fn accept_clock(&mut self, now: Now) {
        self.storage.accept_clock(now);
    }
}
