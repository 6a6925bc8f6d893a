//! The readers of a round: subscriptions of the SDK, and `airmail sub` in processes of their own.
//! They come, go, and come back to their place; one that comes back is the same reader.

mod following;
mod printing;

use super::history::{Begin, Event, History};
use crate::proof::load::Topic;
use crate::proof::victim::Victim;
use airmail_client::{Position, Start};
use airmail_testkit::node::wait_until;
use following::Following;
use printing::Printing;
use rand::Rng;
use rand::rngs::SmallRng;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A reader that runs.
struct Reader {
    id: usize,
    topic: Topic,
    kind: Kind,
}

enum Kind {
    /// Reads through the SDK.
    Following {
        stop: Arc<Notify>,
        task: JoinHandle<Option<Position>>,
    },
    /// Reads by the command line.
    Printing(Printing),
}

/// A reader that has gone, and where it goes on. `None`: it had nothing yet.
#[derive(Clone, Debug)]
struct Saved {
    id: usize,
    topic: Topic,
    position: Option<Position>,
    prints: bool,
}

/// All of them.
pub(super) struct Readers {
    victim: Victim,
    history: Arc<History>,
    runtime: Arc<Runtime>,
    outputs: PathBuf,
    begun: usize,
    running: Vec<Reader>,
    saved: Vec<Saved>,
}

impl Readers {
    pub(super) fn new(
        victim: &Victim,
        history: &Arc<History>,
        runtime: &Arc<Runtime>,
        root: &Path,
    ) -> Readers {
        let outputs = root.join("printed");
        std::fs::create_dir_all(&outputs).unwrap();
        Readers {
            victim: victim.clone(),
            history: Arc::clone(history),
            runtime: Arc::clone(runtime),
            outputs,
            begun: 0,
            running: Vec::new(),
            saved: Vec::new(),
        }
    }

    /// The numbers of those that run.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        self.running.iter().map(|reader| reader.id)
    }

    fn next_id(&mut self) -> usize {
        self.begun += 1;
        self.begun - 1
    }

    /// One more, through the SDK.
    pub(super) fn follow(&mut self, topic: &Topic, from: Begin) {
        let id = self.next_id();
        let start = match from {
            Begin::Earliest => Start::Earliest,
            Begin::Latest => Start::Latest,
        };
        self.follow_from(id, topic, start, Some(from));
    }

    fn follow_from(&mut self, id: usize, topic: &Topic, start: Start, begins: Option<Begin>) {
        let stop = Arc::new(Notify::new());
        let following = Following {
            id,
            begins,
            topic: topic.clone(),
            start,
            stop: Arc::clone(&stop),
            history: Arc::clone(&self.history),
        };
        let task = self.runtime.spawn(following.run(self.victim.client()));
        self.running.push(Reader {
            id,
            topic: topic.clone(),
            kind: Kind::Following { stop, task },
        });
    }

    /// One more, by the command line, from the first message on.
    pub(super) fn print(&mut self, topic: &Topic) {
        let id = self.next_id();
        self.history.note(Event::Began {
            reader: id,
            topic: topic.index,
            from: Begin::Earliest,
        });
        self.print_from(id, topic, "earliest");
    }

    fn print_from(&mut self, id: usize, topic: &Topic, from: &str) {
        let printing = Printing::start(&self.victim, &self.history, &self.outputs, id, topic, from);
        self.running.push(Reader {
            id,
            topic: topic.clone(),
            kind: Kind::Printing(printing),
        });
    }

    /// Lets one go.
    pub(super) fn leave(&mut self, choices: &mut SmallRng) {
        if !self.running.is_empty() {
            let which = choices.random_range(0..self.running.len());
            let reader = self.running.swap_remove(which);
            self.save(reader);
        }
    }

    /// Lets one come that went before; else a new one.
    pub(super) fn come(&mut self, topic: &Topic, choices: &mut SmallRng) {
        match choices.random_range(0..5) {
            0 => self.follow(topic, Begin::Earliest),
            1 => self.follow(topic, Begin::Latest),
            2 => self.print(topic),
            _ if !self.saved.is_empty() => {
                let which = choices.random_range(0..self.saved.len());
                let saved = self.saved.swap_remove(which);
                self.resume(saved);
            }
            _ => {}
        }
    }

    /// Lets all come back that went.
    pub(super) fn all_come_back(&mut self) {
        for saved in std::mem::take(&mut self.saved) {
            self.resume(saved);
        }
    }

    /// Ends all.
    pub(super) fn end(&mut self) {
        for reader in std::mem::take(&mut self.running) {
            self.save(reader);
        }
    }

    fn save(&mut self, reader: Reader) {
        let Reader { id, topic, kind } = reader;
        let (position, prints) = match kind {
            Kind::Following { stop, task } => {
                stop.notify_one();
                wait_until("a subscription to end that was told to", || {
                    task.is_finished()
                });
                (self.runtime.block_on(task).unwrap(), false)
            }
            Kind::Printing(printing) => (printing.end(), true),
        };
        self.saved.push(Saved {
            id,
            topic,
            position,
            prints,
        });
    }

    fn resume(&mut self, saved: Saved) {
        let Saved {
            id,
            topic,
            position,
            prints,
        } = saved;
        match (prints, position) {
            (true, position) => {
                let from = position.map_or("earliest".to_owned(), |position| position.to_string());
                self.print_from(id, &topic, &from);
            }
            (false, Some(position)) => {
                self.follow_from(id, &topic, Start::Position(position), None);
            }
            // It never had an answer from a node, so it never began.
            (false, None) => self.follow(&topic, Begin::Latest),
        }
    }
}
