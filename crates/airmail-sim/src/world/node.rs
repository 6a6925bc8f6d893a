//! The node's process: its start, its turns, its streams' other ends.

use super::{End, World};
use crate::census::Kind;
use crate::files::a_while;
use crate::invariants::bounded::Budget;
use crate::invariants::{Checked, Violation};
use crate::plant::Plant;
use crate::tuning;
use airmail_broker::{AllowAll, ClientInput, Engine, Principal, SessionId, TurnOutput};
use airmail_log::journal::JournalStorage;
use airmail_model::frame::{DELIVERY_OVERHEAD_BYTES, Reply};

const ROUNDS_MAX: u32 = 2_000;

impl World {
    /// Starts the process on the disk's contents.
    pub(super) fn boot(&mut self) -> Checked {
        self.boots += 1;
        let files = self.weather.machine.boot();
        let mut chance = self.chance.fork();
        let mut config = tuning::journal(&mut chance, self.plant);
        config.renewed = self.restore.new_lives;
        let storage = JournalStorage::open(files, config, self.weather.now).map_err(|error| {
            let detail = format!("start {} failed: {error}", self.boots);
            Violation::new("G1 what was written can be opened", detail)
        })?;
        let config = tuning::shard(&mut chance, self.plant);
        let node = Engine::new(
            config,
            storage,
            Box::new(AllowAll),
            Box::new(AllowAll),
            self.weather.now,
        );
        let node = node.map_err(|error| {
            let detail = format!("start {} failed: {error}", self.boots);
            Violation::new("a shard can honour a journal", detail)
        })?;
        self.node = Some(node);
        self.evidence.count(Kind::Started);
        self.evidence.note(format_args!("start {}", self.boots));
        Ok(())
    }

    /// Whether the node takes streams.
    pub(super) fn is_ready(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.shard().ready())
    }

    /// Opens the streams that are due.
    pub(super) fn connect(&mut self) {
        if !self.is_ready() {
            return;
        }
        // As the node itself: every log has been opened, so each has begun its new life.
        self.restore.new_lives = false;
        let waits = self.restore.publishers_wait.is_some();
        let publishers = (0..self.publishers.len()).filter(|_| !waits);
        let publishers = publishers.map(End::Publisher);
        let ends: Vec<End> = publishers
            .chain((0..self.clients.len()).map(End::Client))
            .collect();
        for end in ends {
            let (link, credit) = match end {
                End::Publisher(at) => (&mut self.publishers[at].link, 0),
                End::Client(at) => {
                    let client = &mut self.clients[at];
                    (&mut client.link, client.credit)
                }
            };
            if link.session.is_some() || link.retry > self.weather.now.mono {
                continue;
            }
            self.last_session += 1;
            let session = SessionId(self.last_session);
            link.open(session);
            self.ends.insert(session, (end, Budget::new(credit)));
            let input = ClientInput::Opened {
                session,
                principal: Principal::default(),
                credit,
            };
            if let Some(node) = &mut self.node {
                node.input(self.weather.now, input);
            }
            match end {
                End::Publisher(at) => self.publishers[at].core.connected(),
                End::Client(at) => self.clients[at].connected(),
            }
            self.evidence.note(format_args!(
                "{} {end:?} has session {}",
                self.weather.now.mono.0, session.0
            ));
        }
    }

    /// Lets the disk and the node go on until neither has anything to do now.
    pub(super) fn turn(&mut self) -> Checked {
        let mut out = TurnOutput::default();
        for _ in 0..ROUNDS_MAX {
            self.weather.machine.disk().advance(self.weather.now.mono);
            let Some(node) = &mut self.node else {
                return Ok(());
            };
            self.wake = node.turn(self.weather.now, &mut out);
            let violation = self.weather.machine.disk().take_violation();
            if let Some(violation) = violation {
                return Err(violation);
            }
            let again = self.wake.is_some_and(|wake| wake <= self.weather.now.mono);
            let busy = again || self.weather.machine.disk().has_done();
            for (id, outcome) in out.outcomes.drain(..) {
                self.evidence.note(format_args!(
                    "{} {id:?} {outcome:?}",
                    self.weather.now.mono.0
                ));
                self.outcome(id, outcome)?;
            }
            for (session, reply) in out.replies.drain(..) {
                self.reply(session, reply)?;
            }
            self.closed.clear();
            if !busy {
                return Ok(());
            }
        }
        let detail = format!(
            "the node is never done in one moment; it wants {:?}",
            self.wake
        );
        Err(Violation::new("liveness", detail))
    }

    fn reply(&mut self, session: SessionId, mut reply: Reply) -> Checked {
        if self.closed.contains(&session) {
            return Ok(());
        }
        let Some((end, budget)) = self.ends.get_mut(&session) else {
            let detail = format!("session {} is closed, and is told of {reply:?}", session.0);
            return Err(Violation::new("G2 nothing comes after the end", detail));
        };
        self.heard += u64::from(!matches!(reply, Reply::Mark { .. }));
        let note = super::traffic::brief(&reply);
        self.evidence.note(format_args!(
            "{} {end:?} <- {note}",
            self.weather.now.mono.0
        ));
        if let Reply::Delivery(delivery) = &mut reply {
            let bytes = delivery.body.len() as u64 + u64::from(DELIVERY_OVERHEAD_BYTES);
            budget.spend(bytes, &format!("{end:?}"))?;
            if self.plant == Some(Plant::RangeOffByOne) {
                delivery.last = delivery.last.plus(1);
            }
        }
        let link = match *end {
            End::Publisher(at) => &mut self.publishers[at].link,
            End::Client(at) => &mut self.clients[at].link,
        };
        if self.chance.chance(self.weather.swarm.answers_late) {
            link.dawdle(self.weather.now.mono.plus(a_while(&mut self.chance)));
            let publisher = matches!(end, End::Publisher(_));
            self.evidence.add(Kind::AnsweredLate, u64::from(publisher));
        }
        link.reply(
            self.weather.now.mono,
            self.weather.swarm.net_delay,
            &mut self.chance,
            reply,
        );
        Ok(())
    }
}
