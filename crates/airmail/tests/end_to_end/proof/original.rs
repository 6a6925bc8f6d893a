//! The data directory that is damaged, in a copy for each round: its messages, and the place of
//! each in its files.

use super::load::{self, Load, Topic};
use super::reading;
use super::stamp::{STAMP_BYTES, Stamp};
use super::victim::Victim;
use airmail_client::Client;
use airmail_log::journal::format::{ENVELOPE_BYTES, Envelope};
use airmail_model::{Durability, LogId};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Messages by their place: the topic, by its index, and the number.
pub(crate) type Messages = BTreeMap<(u32, u64), Stamp>;

/// A directory as a node left it.
#[derive(Debug)]
pub(crate) struct Original {
    pub(crate) path: PathBuf,
    pub(crate) topics: Vec<Topic>,
    /// Everything that was published to it.
    pub(crate) messages: Messages,
    /// The log of each topic.
    pub(crate) logs: BTreeMap<u32, LogId>,
    /// Its files, by their path from the directory, and how long each is.
    pub(crate) files: Vec<(PathBuf, u64)>,
    /// Where batches lie.
    pub(crate) spans: Vec<Span>,
}

/// A batch in a file, with the envelope before it.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) file: PathBuf,
    pub(crate) bytes: Range<u64>,
    /// Its messages, and where the payload of each lies.
    pub(crate) messages: Vec<((u32, u64), Range<u64>)>,
}

/// Ways in which the last node on the directory ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastEnd {
    Stopped,
    Killed,
}

const NAMESPACES: [(&str, u16); 2] = [("one", 1), ("four", 4)];
const TOPICS_OF_EACH: u32 = 4;
/// Runs of a node, each with producers of its own.
const LIVES: u32 = 3;
/// Rounds of publishing in each: every one leaves a batch or more in each log.
const GROUPS: u32 = 40;

impl Original {
    /// Makes one in `path`: several topics, logs, producers and segments, by nodes of which the
    /// first was killed and the last ended as `end` says.
    pub(crate) fn make(path: &Path, end: LastEnd, choices: &mut SmallRng) -> Original {
        let victim = Victim::new(path);
        let topics = topics();
        let load = Load::new(&victim, topics.clone());
        let mut next: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for life in 0..LIVES {
            let node = victim.start();
            let client = load.connect();
            load.runtime.block_on(async {
                if life == 0 {
                    make_namespaces(&client).await;
                }
                for _ in 0..GROUPS {
                    publish(&client, life, &topics, &mut next, choices).await;
                }
                client.close().await.unwrap();
            });
            if life == 0 || life + 1 == LIVES && end == LastEnd::Killed {
                node.kill();
            } else {
                assert!(node.stop().success());
            }
        }
        let mut original = Original {
            path: path.to_owned(),
            topics,
            messages: Messages::new(),
            logs: BTreeMap::new(),
            files: files(path, Path::new("")),
            spans: Vec::new(),
        };
        original.read(&load);
        let sent: u64 = next.values().sum();
        assert_eq!(original.messages.len() as u64, sent);
        original.find_batches();
        original
    }

    /// A copy of it, to be damaged.
    pub(crate) fn copy(&self, to: &Path) {
        for (file, _) in &self.files {
            let to = to.join(file);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(self.path.join(file), to).unwrap();
        }
    }

    /// Reads everything from a node that runs on a copy of it.
    fn read(&mut self, load: &Load) {
        let copy = tempfile::tempdir().unwrap();
        self.copy(copy.path());
        let victim = Victim::new(copy.path());
        let _node = victim.start();
        let client = load.runtime.block_on(victim.client().connect()).unwrap();
        for topic in &self.topics {
            let read = load.runtime.block_on(reading::history(&client, topic));
            assert!(read.lost.is_empty(), "{topic:?}: {:?}", read.lost);
            self.logs.insert(topic.index, read.log.unwrap());
            let messages = read.messages.into_iter();
            self.messages
                .extend(messages.map(|(number, stamp)| ((topic.index, number), stamp)));
        }
    }

    fn find_batches(&mut self) {
        let by_stamp: BTreeMap<Stamp, (u32, u64)> = self
            .messages
            .iter()
            .map(|(place, stamp)| (*stamp, *place))
            .collect();
        for (file, _) in &self.files {
            let bytes = fs::read(self.path.join(file)).unwrap();
            let mut at = 0;
            while at + ENVELOPE_BYTES < bytes.len() {
                let Some(envelope) = Envelope::decode(&bytes[at..]) else {
                    at += 8;
                    continue;
                };
                let end = at + ENVELOPE_BYTES + envelope.length as usize;
                let end = end.min(bytes.len());
                let messages = Stamp::find_all(&bytes[at..end]).filter_map(|(offset, stamp)| {
                    let first = (at + offset) as u64;
                    let place = by_stamp.get(&stamp)?;
                    Some((*place, first..first + u64::from(stamp.bytes)))
                });
                self.spans.push(Span {
                    file: file.clone(),
                    bytes: at as u64..end as u64,
                    messages: messages.collect(),
                });
                at = end.next_multiple_of(8);
            }
        }
        let found = self.spans.iter().flat_map(|span| &span.messages);
        let found: std::collections::BTreeSet<_> = found.map(|(place, _)| place).collect();
        assert_eq!(
            found.len(),
            self.messages.len(),
            "messages without a place in a file"
        );
    }
}

fn topics() -> Vec<Topic> {
    let names = NAMESPACES
        .iter()
        .flat_map(|(namespace, _)| (0..TOPICS_OF_EACH).map(move |number| (*namespace, number)));
    let topics = names.enumerate().map(|(index, (namespace, number))| Topic {
        namespace,
        name: format!("topic-{number}"),
        index: index as u32,
        reserves: false,
    });
    topics.collect()
}

async fn make_namespaces(client: &Client) {
    let admin = client.admin();
    for (name, logs) in NAMESPACES {
        let made = admin.create(name, Some(logs), None, Some(Durability::FSYNC));
        made.await.unwrap();
    }
}

/// Some messages to every topic, acknowledged before more are sent.
async fn publish(
    client: &Client,
    life: u32,
    topics: &[Topic],
    next: &mut BTreeMap<(u32, u32), u64>,
    choices: &mut SmallRng,
) {
    let mut acks = Vec::new();
    for topic in topics {
        let messages = (0..choices.random_range(1..12)).map(|_| {
            let number = next.entry((life, topic.index)).or_insert(0);
            *number += 1;
            let large = choices.random_ratio(1, 40);
            let most = if large { 60_000 } else { 400 };
            let stamp = Stamp {
                publisher: life,
                topic: topic.index,
                number: *number - 1,
                bytes: choices.random_range(STAMP_BYTES as u32 + 12..=most),
            };
            load::message(topic, stamp)
        });
        let publisher = client.publisher().namespace(topic.namespace);
        acks.push(publisher.send_all(messages.collect()).await.unwrap());
    }
    for ack in acks {
        assert_eq!(ack.await.unwrap().failed, 0);
    }
}

/// The files below `root`/`under`, by their path from `root`.
fn files(root: &Path, under: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(under)).unwrap() {
        let entry = entry.unwrap();
        let path = under.join(entry.file_name());
        let about = entry.metadata().unwrap();
        if about.is_dir() {
            found.extend(files(root, &path));
        } else {
            found.push((path, about.len()));
        }
    }
    found.sort();
    found
}
