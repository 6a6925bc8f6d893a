//! A sync (fdatasync, or a write with its sync) that fails under the running node, once, a few times,
//! or from then on: strace gives the node an error in place of the call.
//!
//! What must hold: an acknowledged message was written to a file that was synced, with success,
//! between that write and the ack. Stored messages can be read meanwhile. Where only some calls
//! fail the node stores again by itself. After a `kill -9` and a start, every acknowledged message
//! is there once, and no other more than once.

use super::Plan;
use super::victim::Victim;
use crate::sync_order::{Calls, may_trace};
use airmail_client::{Client, Item};
use airmail_model::{Limits, Message, TopicName};
use airmail_testkit::node::{self, Node};
use airmail_testkit::scale;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const CALLS: &str = "trace=read,recvfrom,recvmsg,readv,write,writev,sendto,sendmsg,pwrite64,pwritev,\
                     pwritev2,fdatasync";
const TOPIC: &str = "synced";
const MESSAGES: u32 = 40;
/// Number of refusals after which the node counts as storing nothing any more.
const REFUSED_MAX: u32 = 4;
/// Time for which a message is tried.
const PATIENCE: Duration = Duration::from_millis(1500);

#[test]
fn an_fdatasync_that_fails_never_leads_to_an_ack() {
    if scale::program("strace", "strace").is_none() {
        return;
    }
    if !may_trace() {
        scale::want("strace", "this process may not trace others");
    }
    let plan = Plan::new("sync", 2);
    for round in plan.rounds() {
        let directory = tempfile::tempdir().unwrap();
        let _watch = plan.watch(round, directory.path());
        let fault = Fault::choose(&mut plan.choices(round));
        let stored = round_of(&fault, directory.path());
        plan.tell(
            round,
            &format!("{}: {stored} of {MESSAGES} stored", fault.when),
        );
    }
}

/// A choice of a thread's calls that fail, in strace's words.
#[derive(Debug)]
struct Fault {
    when: String,
    /// Calls succeed again.
    passes: bool,
}

impl Fault {
    fn choose(choices: &mut SmallRng) -> Fault {
        // The first few are of the start: a log that was never opened has nothing to be read.
        let first = choices.random_range(10..50);
        let last = first + choices.random_range(0..4);
        let passes = choices.random_ratio(2, 3);
        let when = if passes {
            format!("{first}..{last}")
        } else {
            format!("{first}+")
        };
        Fault { when, passes }
    }
}

/// Publishes, one message after the other, while calls fail; gives how many were stored.
fn round_of(fault: &Fault, directory: &Path) -> usize {
    let victim = Victim::new(&directory.join("data"));
    let trace = directory.join("trace");
    let node = Node::spawn(traced(&victim, fault, &trace));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    let client = victim.client().delivery_timeout(PATIENCE).connect();
    let client = runtime.block_on(client).unwrap();
    let acknowledged = runtime.block_on(publish(&client));
    let read = runtime.block_on(history(&client));
    all_there_once(&acknowledged, &read);
    if fault.passes {
        let mut number = MESSAGES;
        node::wait_until("a message to be stored, for calls succeed again", || {
            number += 1;
            runtime.block_on(send(&client, number))
        });
    }
    node.kill();
    let mut text = String::new();
    node::wait_until("the trace's end", || {
        text = fs::read_to_string(&trace).unwrap_or_default();
        text.contains("+++ killed") || text.contains("+++ exited")
    });
    let calls = Calls::read(&text);
    for number in &acknowledged {
        let mark = mark(*number);
        assert!(
            calls.synced_before_its_ack(&mark),
            "{mark} was acknowledged and not synced"
        );
    }
    let _node = victim.start();
    all_there_once(&acknowledged, &runtime.block_on(history(&client)));
    acknowledged.len()
}

fn traced(victim: &Victim, fault: &Fault, trace: &Path) -> Command {
    let mut strace = Command::new("strace");
    let inject = format!("inject=fdatasync,pwritev2:error=EIO:when={}", fault.when);
    // -D: the node stays our child, so that it can be killed by its id.
    strace.args([
        "-D", "-f", "-y", "-xx", "-s", "100000", "-e", CALLS, "-e", &inject, "-o",
    ]);
    let serve = victim.command();
    strace
        .arg(trace)
        .arg(serve.get_program())
        .args(serve.get_args());
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    strace
}

/// Payload of a message, of which no other one's is a part.
fn mark(number: u32) -> String {
    format!("<mark {number:08} of the traced message>")
}

async fn publish(client: &Client) -> BTreeSet<u32> {
    let mut acknowledged = BTreeSet::new();
    let mut refused = 0;
    for number in 0..MESSAGES {
        if send(client, number).await {
            acknowledged.insert(number);
        } else {
            refused += 1;
        }
        if refused == REFUSED_MAX {
            break;
        }
    }
    acknowledged
}

/// Whether the message was acknowledged.
async fn send(client: &Client, number: u32) -> bool {
    let topic = TopicName::new(TOPIC, &Limits::DEFAULT).unwrap();
    let message = Message::new(topic, mark(number));
    let ack = client.publisher().send(message).await.unwrap();
    ack.await.is_ok()
}

async fn history(client: &Client) -> Vec<String> {
    let mut read = Vec::new();
    let mut history = client.history(TOPIC).open().unwrap();
    while let Some(item) = history.next().await.unwrap() {
        match item {
            Item::Message(message) => {
                read.push(String::from_utf8(message.payload.to_vec()).unwrap());
            }
            other => panic!("nothing is lost, and nothing expires: {other:?}"),
        }
    }
    read
}

/// Every acknowledged one is there, in order, and none twice.
#[track_caller]
fn all_there_once(acknowledged: &BTreeSet<u32>, read: &[String]) {
    assert!(
        read.is_sorted_by(|a, b| a < b),
        "reordered or twice: {read:?}"
    );
    for number in acknowledged {
        let mark = mark(*number);
        assert!(
            read.contains(&mark),
            "{mark} was acknowledged and is not there: {read:?}"
        );
    }
}
