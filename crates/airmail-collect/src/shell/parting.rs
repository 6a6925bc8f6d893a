//! Last actions for sources that go while others stay.

use crate::collector::Effect;
use crate::source::Source;
use std::collections::BTreeMap;

/// Effects for the member, divided into those of sources that go and all others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parting {
    /// Last place asked to be committed for each source that goes.
    pub(super) last: BTreeMap<Source, u64>,
    /// All else, in its order. Commits of sources that stay are among it: the last commit of the others is
    /// refused more often than not, in the midst of a rebalance, and is not made again.
    pub(super) left: Vec<Effect>,
}

impl Parting {
    pub(super) fn of(effects: Vec<Effect>, going: &[Source]) -> Parting {
        let mut parting = Parting::default();
        for effect in effects {
            match effect {
                Effect::Commit { source, next } if going.contains(&source) => {
                    parting.last.insert(source, next);
                }
                other => parting.left.push(other),
            }
        }
        parting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(partition: i32, next: u64) -> Effect {
        Effect::Commit {
            source: source(partition),
            next,
        }
    }

    fn source(partition: i32) -> Source {
        Source {
            topic: 0,
            partition,
        }
    }

    #[test]
    fn what_a_source_that_stays_has_to_commit_does_not_go_with_the_others() {
        let pause = Effect::Pause(source(1));
        let effects = vec![commit(0, 4), commit(1, 7), pause, commit(0, 5)];
        let parting = Parting::of(effects, &[source(0)]);
        assert_eq!(parting.last, [(source(0), 5)].into());
        assert_eq!(parting.left, [commit(1, 7), pause]);
    }
}
