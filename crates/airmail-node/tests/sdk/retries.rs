//! Errors that the table calls waited for are waited for by every call, within its time; nothing
//! else is, and no change is made twice.

use crate::faulty_proxy::FaultyProxy;
use crate::node::{Node, PATIENCE};
use airmail_client::core::BackoffConfig;
use airmail_client::mailbox::{
    AccountId, Outgoing, QueueId, QueueSettings, Receive, Recipients, Selection, Take,
};
use airmail_client::{Client, ClientBuilder, Error, ErrorCode, Start};
use std::time::Duration;

/// Every kind of call that the SDK makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Connect,
    ListNamespaces,
    CreateNamespace,
    UpdateNamespace,
    Flow,
    Topics,
    History,
    Subscribe,
    SubscribeMany,
    Publish,
    CreateAccount,
    FindAccount,
    ListAccounts,
    CountMessages,
    Send,
    Peek,
    Lease,
}

use Call::*;

const CALLS: [Call; 17] = [
    Connect,
    ListNamespaces,
    CreateNamespace,
    UpdateNamespace,
    Flow,
    Topics,
    History,
    Subscribe,
    SubscribeMany,
    Publish,
    CreateAccount,
    FindAccount,
    ListAccounts,
    CountMessages,
    Send,
    Peek,
    Lease,
];

impl Call {
    /// Its name in the API.
    fn name(self) -> &'static str {
        match self {
            Connect | ListNamespaces => "ListNamespaces",
            CreateNamespace => "CreateNamespace",
            UpdateNamespace => "UpdateNamespace",
            Flow => "GetFlow",
            Topics => "ListTopics",
            History => "History",
            Subscribe | SubscribeMany => "Subscribe",
            Publish => "Publish",
            CreateAccount => "CreateAccount",
            FindAccount => "FindAccount",
            ListAccounts => "ListAccounts",
            CountMessages => "CountMessages",
            Send => "Send",
            Peek | Lease => "Receive",
        }
    }

    /// Whether it may not be made again where it is not known what became of it.
    fn is_change(self) -> bool {
        let changes = [CreateNamespace, UpdateNamespace, CreateAccount, Send, Lease];
        changes.contains(&self)
    }
}

/// A node behind a proxy, with a queue that has a message.
struct World {
    node: Node,
    proxy: FaultyProxy,
    queue: QueueId,
    account: AccountId,
    /// For messages.
    wait: Duration,
}

impl World {
    async fn new() -> World {
        let node = Node::in_memory().await;
        let proxy = FaultyProxy::before(node.address).await;
        let client = node.client().await;
        client.publish("t", "x").await.unwrap();
        let mailbox = client.mailbox();
        let settings = QueueSettings::default();
        let queue = mailbox.create_queue("queue", settings).await.unwrap();
        let account = mailbox.create_account("account").await.unwrap();
        let world = World {
            node,
            proxy,
            queue,
            account,
            wait: PATIENCE,
        };
        mailbox.send(world.message()).await.unwrap();
        client.close().await.unwrap();
        world
    }

    fn message(&self) -> Outgoing {
        let to = Recipients::Direct(self.account);
        Outgoing::new(self.queue, self.account, to, "a message")
    }

    fn client(&self) -> ClientBuilder {
        let backoff = BackoffConfig {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(4),
        };
        Client::builder()
            .url(format!("airmail://{}", self.proxy.address))
            .connect_timeout(PATIENCE)
            .call_timeout(PATIENCE)
            .delivery_timeout(PATIENCE)
            .backoff(backoff)
    }

    /// Makes a call by a client of its own, under a plan that begins when that has connected: what came
    /// of it, and how often it was made. `nth` makes names new.
    async fn call(
        &self,
        call: Call,
        nth: usize,
        plan: impl FnOnce(&FaultyProxy),
    ) -> (Option<ErrorCode>, u32) {
        let proxy = &self.proxy;
        proxy.pass();
        if call == Connect {
            plan(proxy);
            let done = self.client().connect().await;
            return (
                done.err().map(|error| error.code()),
                proxy.calls(call.name()),
            );
        }
        let client = self.client().connect().await.unwrap();
        plan(proxy);
        let done = tokio::time::timeout(2 * PATIENCE, self.ask(call, nth, &client)).await;
        let calls = proxy.calls(call.name());
        proxy.pass();
        client.close().await.unwrap();
        let done = done.unwrap_or_else(|_| panic!("{call:?} waits for ever"));
        (done.err().map(|error| error.code()), calls)
    }

    async fn ask(&self, call: Call, nth: usize, client: &Client) -> Result<(), Error> {
        let (admin, mailbox) = (client.admin(), client.mailbox());
        let name = format!("n{nth}");
        let receive = Receive::new(self.queue, self.account);
        match call {
            Connect => Ok(()),
            ListNamespaces => admin.list().await.map(drop),
            CreateNamespace => admin.create(&name, None, None, None).await.map(drop),
            UpdateNamespace => {
                let kept = Some(airmail_model::Retention::default());
                let update = admin.update("default", None, kept, None, None);
                update.await.map(drop)
            }
            Flow => admin.flow().await.map(drop),
            Topics => client.topics().next().await.map(drop),
            History => client.history("t").open()?.next().await.map(drop),
            Subscribe => {
                let subscription = client.subscribe("t").from(Start::Earliest);
                subscription.open().await.map(drop)
            }
            SubscribeMany => client.subscribe_many(["t", "u"]).open().await.map(drop),
            Publish => client.publish("t", "x").await.map(drop),
            CreateAccount => mailbox.create_account(&name).await.map(drop),
            FindAccount => mailbox.find_account("account").await.map(drop),
            ListAccounts => {
                let id = AccountId(0);
                let first = Selection::After { id, limit: 10 };
                mailbox.accounts(first).await.map(drop)
            }
            CountMessages => mailbox.counts(self.queue).await.map(drop),
            Send => mailbox.send(self.message()).await.map(drop),
            Peek => {
                let peek = receive.take(Take::Peek);
                mailbox.receive(peek, Duration::ZERO).await.map(drop)
            }
            Lease => {
                let lease = receive.take(Take::Lease { lease_ms: 1 });
                mailbox.receive(lease, self.wait).await.map(drop)
            }
        }
    }

    async fn end(self) {
        self.node.stop().await;
    }
}

fn error(code: ErrorCode) -> Error {
    let error = Error::new(code).field("namespace").value("default");
    error.retry_after(Duration::from_millis(2))
}

#[tokio::test]
async fn every_error_of_the_table_is_waited_for_or_told_as_the_table_says_by_every_call() {
    const TIMES: u32 = 2;
    let world = World::new().await;
    for (nth, &code) in ErrorCode::ALL.iter().enumerate() {
        for call in CALLS {
            let refuse = |proxy: &FaultyProxy| proxy.refuse(error(code), TIMES);
            let found = world.call(call, nth, refuse).await;
            // Whether a connection that broke had carried a change is not known.
            let unknown = code == ErrorCode::Disconnected && call.is_change();
            let expected = if !code.waited_for() {
                (Some(code), 1)
            } else if unknown {
                (Some(ErrorCode::OutcomeUnknown), 1)
            } else {
                (None, TIMES + 1)
            };
            assert_eq!(found, expected, "{call:?} and {code:?}");
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_change_whose_answer_is_lost_is_not_made_again_and_what_changes_nothing_is() {
    let world = World::new().await;
    for call in CALLS {
        // Streams begin anew by themselves, and a publish is told from its repetition.
        if [Subscribe, SubscribeMany, Publish].contains(&call) {
            continue;
        }
        let found = world.call(call, 0, |proxy| proxy.lose(1)).await;
        let expected = if call.is_change() {
            (Some(ErrorCode::OutcomeUnknown), 1)
        } else {
            (None, 2)
        };
        assert_eq!(found, expected, "{call:?}");
    }
    let client = world.node.client().await;
    client.admin().get("n0").await.unwrap();
    client.mailbox().find_account("n0").await.unwrap();
    // The first, and the one whose answer was lost: none is there twice.
    let counts = client.mailbox().counts(world.queue).await.unwrap();
    assert_eq!(counts.ready + counts.leased, 2, "{counts:?}");
    client.close().await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn a_call_that_is_never_answered_ends_in_its_time_and_says_for_what_it_waited() {
    let mut world = World::new().await;
    world.wait = Duration::ZERO;
    for call in CALLS {
        if [Connect, Publish].contains(&call) {
            continue;
        }
        let client = loop {
            let builder = world
                .client()
                .connect_timeout(Duration::from_millis(150))
                .call_timeout(Duration::from_millis(300));
            // A machine that stands still may take longer to connect than it is given.
            if let Ok(client) = builder.connect().await {
                break client;
            }
        };
        world.proxy.hold();
        let asked = tokio::time::timeout(PATIENCE, world.ask(call, 0, &client)).await;
        world.proxy.pass();
        let told = asked.unwrap_or_else(|_| panic!("{call:?} waits for ever"));
        let told = told.unwrap_err();
        let expected = if call.is_change() {
            ErrorCode::OutcomeUnknown
        } else {
            ErrorCode::Disconnected
        };
        assert_eq!(told.code(), expected, "{call:?}: {told}");
        assert!(
            told.found().contains("no answer within"),
            "{call:?}: {told}"
        );
        client.close().await.unwrap();
    }
    world.end().await;
}
