//! The state of a subscription at a node, as its user sees it.

/// State of a subscription at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Looking for a node, or waiting for its answer.
    Connecting,
    /// Live, at the tail: messages come as soon as they are published.
    Live,
    /// Detached, behind the tail: stored messages come, at the pace at which they are read.
    Detached,
}

impl Standing {
    /// Gives the state of what consists of these.
    pub(super) fn of_all(parts: &[Standing]) -> Standing {
        let is_any = |standing| parts.contains(&standing);
        if parts.is_empty() || is_any(Standing::Connecting) {
            Standing::Connecting
        } else if is_any(Standing::Detached) {
            Standing::Detached
        } else {
            Standing::Live
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_consists_of_several_is_live_when_all_of_them_are() {
        use Standing::{Connecting, Detached, Live};
        let table: [(&[Standing], Standing); 6] = [
            (&[], Connecting),
            (&[Live], Live),
            (&[Live, Live], Live),
            (&[Live, Detached], Detached),
            (&[Detached, Live, Connecting], Connecting),
            (&[Connecting], Connecting),
        ];
        for (parts, whole) in table {
            assert_eq!(Standing::of_all(parts), whole, "{parts:?}");
        }
    }
}
