//! Acts on a node and its directory: each is a function with what it expects at once. The judge
//! checks what must hold in the end.

mod connections;
mod copies;
mod identities;
mod lives;
mod missing;
mod older;

use super::history::Begin;
use super::stage::Stage;
use airmail_testkit::scale;
use rand::Rng;
use rand::rngs::SmallRng;

/// Acts of one round.
const FEWEST: usize = 3;
const MOST: usize = 8;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// `kill -9`, under load, while starting or while stopping, and a start at once or after a while.
    Kill,
    /// SIGTERM, and a start at once or after a while.
    Stop,
    /// Clients are begun before the node: they wait.
    Late,
    /// Readers come, go and come back.
    Readers,
    /// The directory is copied, while the node runs or while it does not.
    Copy,
    /// An older copy is put where the directory was.
    Restore,
    /// A shard's directory is not there: the node refuses to start, and names it.
    Shard,
    /// The newest segments are gone: told by the check and to readers.
    Segments,
    /// Files that are made from others are gone: nothing is lost.
    Derived,
    /// A file is replaced by what it was earlier.
    Older,
    /// The identity is another directory's, while no node runs.
    Identity,
    /// LOCK, or more, is removed while the node runs, and a second node is started.
    Lock,
    /// The directory is renamed while the node runs, and put back.
    Renamed,
    /// Connections that say nothing, garbage or too little, and a reader that never reads.
    Strangers,
    /// The clock is a day ahead, and back again.
    Clock,
}

impl Act {
    const ALL: [(Act, &'static str); 15] = [
        (Act::Kill, "kill"),
        (Act::Stop, "stop"),
        (Act::Late, "late"),
        (Act::Readers, "readers"),
        (Act::Copy, "copy"),
        (Act::Restore, "restore"),
        (Act::Shard, "shard"),
        (Act::Segments, "segments"),
        (Act::Derived, "derived"),
        (Act::Older, "older"),
        (Act::Identity, "identity"),
        (Act::Lock, "lock"),
        (Act::Renamed, "renamed"),
        (Act::Strangers, "strangers"),
        (Act::Clock, "clock"),
    ];

    /// Name of the act in `AIRMAIL_PROVE_ACTS`.
    pub(super) fn name(self) -> &'static str {
        let named = Act::ALL.iter().find(|(act, _)| *act == self);
        named.map_or("", |(_, name)| name)
    }

    /// Those that may be drawn: all, or as `AIRMAIL_PROVE_ACTS` says.
    pub(super) fn allowed() -> Vec<Act> {
        let Some(names) = scale::acts() else {
            return Act::ALL.map(|(act, _)| act).to_vec();
        };
        let act = |name: &str| {
            let named = Act::ALL.iter().find(|(_, known)| *known == name.trim());
            named
                .unwrap_or_else(|| panic!("no act is called {name:?}"))
                .0
        };
        names.split(',').map(act).collect()
    }

    /// The acts of a round.
    pub(super) fn draw(choices: &mut SmallRng) -> Vec<Act> {
        let allowed = Act::allowed();
        let count = choices.random_range(FEWEST..=MOST);
        let drawn = (0..count).map(|_| allowed[choices.random_range(0..allowed.len())]);
        drawn.collect()
    }

    /// Does it. Before and after, a node runs.
    pub(super) fn perform(self, stage: &mut Stage, choices: &mut SmallRng) {
        match self {
            Act::Kill => lives::kill(stage, choices),
            Act::Stop => lives::stop(stage, choices),
            Act::Late => lives::late(stage, choices),
            Act::Readers => readers(stage, choices),
            Act::Copy => copies::copy(stage, choices),
            Act::Restore => copies::restore(stage, choices),
            Act::Shard => missing::shard(stage, choices),
            Act::Segments => missing::segments(stage, choices),
            Act::Derived => missing::derived(stage, choices),
            Act::Older => older::older(stage, choices),
            Act::Identity => identities::anothers(stage, choices),
            Act::Lock => identities::lock(stage, choices),
            Act::Renamed => identities::renamed(stage, choices),
            Act::Strangers => connections::strangers(stage, choices),
            Act::Clock => super::clock::jump(stage, choices),
        }
    }
}

/// One or two go, and one or two come or come back.
fn readers(stage: &mut Stage, choices: &mut SmallRng) {
    for _ in 0..choices.random_range(1..=2) {
        stage.readers.leave(choices);
    }
    for _ in 0..choices.random_range(1..=2) {
        let topic = stage.a_topic(choices);
        stage.readers.come(&topic, choices);
    }
    if stage.readers.running().next().is_none() {
        let topic = stage.a_topic(choices);
        stage.readers.follow(&topic, Begin::Earliest);
    }
}
