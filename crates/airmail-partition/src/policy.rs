//! The policies, by name.

use std::fmt;
use std::str::FromStr;

/// Ways to choose a partition for records without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Round robin over available partitions, as Kafka's producers did until 2.3: the paper's baseline
    /// (figures 2.1 and 6.1), with its counter of 31 bits.
    Default,
    /// The same with a counter that does not overflow (section 6.2.1).
    Improved,
    /// Round robin over the topic's nodes, and within a node over its partitions (section 6.2.2).
    Node,
    /// The topic's node that has had the fewest records of all topics (section 6.2.3).
    Sqf,
    /// The node that can take them: bytes in flight and latency of each, a batch at a time. Ours.
    Adaptive,
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {0:?}: default, improved, node, sqf or adaptive")]
pub struct PolicyUnknown(pub String);

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 5] = [
        Policy::Default,
        Policy::Improved,
        Policy::Node,
        Policy::Sqf,
        Policy::Adaptive,
    ];

    /// The name that is typed, and that the vectors have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Policy::Default => "default",
            Policy::Improved => "improved",
            Policy::Node => "node",
            Policy::Sqf => "sqf",
            Policy::Adaptive => "adaptive",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = PolicyUnknown;

    fn from_str(text: &str) -> Result<Policy, PolicyUnknown> {
        let mut all = Policy::ALL.into_iter();
        let found = all.find(|policy| policy.name() == text);
        found.ok_or_else(|| PolicyUnknown(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_by_its_name_and_nothing_else() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("Node".parse::<Policy>().is_err());
    }
}
