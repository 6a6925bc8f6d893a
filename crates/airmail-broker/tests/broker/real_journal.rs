//! Delivery at the tail, catching up and history over the storage `memory`, which is the real journal.

use crate::client::{Client, Mode};
use crate::world::{LOG, NS, PLENTY, batch, topic};
use airmail_broker::{
    AllowAll, ClientInput, Engine, Principal, SessionId, ShardConfig, TurnOutput,
};
use airmail_log::memory::{self, MemoryStorage};
use airmail_model::frame::{
    Generation, Request, RequestId, Start, Subscribe, SubscriptionId, Until, Wanted,
};
use airmail_model::{Mono, Now, Wall};
use std::time::Duration;

struct Bench {
    node: Engine<MemoryStorage>,
    now: Now,
    client: Client,
}

const SESSION: SessionId = SessionId(1);

impl Bench {
    fn run(&mut self) {
        let mut quiet = 0;
        while quiet < 5 {
            let mut out = TurnOutput::default();
            let wake = self.node.turn(self.now, &mut out);
            let busy = !out.replies.is_empty() || wake.is_some_and(|at| at <= self.now.mono);
            quiet = if busy { 0 } else { quiet + 1 };
            for (_, reply) in out.replies {
                self.client.take(reply);
            }
            self.now.mono = self.now.mono.plus(Duration::from_millis(1));
            self.now.wall.0 += 1_000;
        }
    }

    fn request(&mut self, request: Request) {
        let session = SESSION;
        self.node
            .input(self.now, ClientInput::Request { session, request });
    }

    fn add(&mut self, n: u32, start: Start, until: Option<Until>) {
        self.client.expect(n, &Wanted::Topic(topic("a")), &start);
        self.request(Request::Add(Subscribe {
            subscription: SubscriptionId(n),
            generation: Generation(1),
            namespace: NS,
            wanted: Wanted::Topic(topic("a")),
            start,
            until,
            tell_expired: false,
            filter: None,
            headers_only: false,
            matches: false,
            lanes: airmail_model::frame::Lanes::Each,
        }));
    }
}

#[test]
fn live_late_and_history_agree_over_the_memory_journal() {
    let now = Now {
        mono: Mono(1),
        wall: Wall(1_000_000),
    };
    let storage = memory::open(7, now).expect("memory opens");
    let allow = || Box::new(AllowAll);
    let mut bench = Bench {
        node: Engine::new(ShardConfig::default(), storage, allow(), allow(), now)
            .expect("a fit storage"),
        now,
        client: Client::new(PLENTY),
    };
    bench.run();
    assert!(bench.node.shard().ready());
    bench.node.input(
        bench.now,
        ClientInput::Opened {
            session: SESSION,
            principal: Principal::default(),
            credit: PLENTY,
        },
    );
    bench.add(0, Start::Latest, None);
    bench.run();
    for n in 0..300_u64 {
        let text = n.to_string();
        let batch = batch(LOG, 1, &[("a", &text), ("b", "other"), ("a", &text)]);
        let request = RequestId(n);
        bench.request(Request::Publish {
            request,
            batch,
            begins_epoch: false,
        });
        if n == 150 {
            bench.run();
            bench.add(1, Start::Earliest, None);
        }
    }
    bench.run();
    bench.add(2, Start::Earliest, Some(Until::Now));
    bench.run();
    let client = &bench.client;
    assert_eq!(client.acks.len(), 300);
    assert_eq!(client.sub(0).got.len(), 600);
    assert_eq!(client.sub(1).got, client.sub(0).got);
    assert_eq!(client.sub(2).got, client.sub(0).got);
    assert_eq!(client.sub(1).mode, Mode::Live(LOG));
    assert_eq!(client.sub(2).mode, Mode::Complete);
}
