//! Policies that choose partitions: Kafka's built-in partitioner, the paper's default and its three
//! policies, and ours.

/// Package of our classes.
const PACKAGE: &str = "airmail.kafka.";

/// A policy, in the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Policy {
    /// The producer's own choice when no partitioner is configured
    BuiltIn,
    /// Kafka's default until 2.3, the paper's baseline
    Default,
    /// The paper's improved default
    Improved,
    /// The paper's node partitioner
    Node,
    /// The paper's SQF partitioner
    Sqf,
    /// Ours
    Adaptive,
}

impl Policy {
    /// All of them.
    pub(super) const ALL: [Policy; 6] = [
        Policy::BuiltIn,
        Policy::Default,
        Policy::Improved,
        Policy::Node,
        Policy::Sqf,
        Policy::Adaptive,
    ];

    /// Name in rows, and for `--policies`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Policy::BuiltIn => "built-in",
            Policy::Default => "default",
            Policy::Improved => "improved",
            Policy::Node => "node",
            Policy::Sqf => "sqf",
            Policy::Adaptive => "adaptive",
        }
    }

    /// Title in tables and figures.
    pub(super) fn title(self) -> &'static str {
        match self {
            Policy::BuiltIn => "Kafka's built-in",
            Policy::Default => "paper's default",
            Policy::Improved => "Improved",
            Policy::Node => "Node",
            Policy::Sqf => "SQF",
            Policy::Adaptive => "Adaptive",
        }
    }

    /// Properties that make a stock producer follow it.
    pub(super) fn properties(self) -> Vec<(String, String)> {
        let class = match self {
            Policy::BuiltIn => return Vec::new(),
            Policy::Default => "PaperDefaultPartitioner",
            Policy::Improved => "ImprovedPartitioner",
            Policy::Node => "NodePartitioner",
            Policy::Sqf => "SqfPartitioner",
            Policy::Adaptive => "AdaptivePartitioner",
        };
        let set = |name: &str, class: &str| (name.to_owned(), format!("{PACKAGE}{class}"));
        let mut properties = vec![set("partitioner.class", class)];
        if self == Policy::Adaptive {
            properties.push(set("interceptor.classes", "FlightInterceptor"));
        }
        properties
    }

    /// Whether it gives each of a topic's nodes the same, wherever its partitions are.
    pub(super) fn is_by_node(self) -> bool {
        matches!(self, Policy::Node | Policy::Sqf | Policy::Adaptive)
    }

    /// Its place among the colours.
    pub(super) fn colour(self) -> usize {
        self as usize
    }
}
