//! Topics of which some nodes lead more partitions than others. The Kafka thesis, section 3.5.4 and figure 3.8:
//! no group overlaps, and still one node has more to do, as producers spread over partitions.

use crate::cluster::Cluster;
use crate::groups::MaxGroups;
use crate::leaders::Leaders;

/// A topic that its own group's nodes do not lead in equal parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uneven {
    /// The topic's max group, as an index.
    pub group: usize,
    /// The topic, as an index.
    pub topic: usize,
    /// The leaders of its partitions, with their counts.
    pub leaders: Leaders,
}

impl Uneven {
    /// All of a cluster, in the order of groups and topics.
    #[must_use]
    pub fn of(cluster: &Cluster, groups: &MaxGroups) -> Vec<Uneven> {
        let mut found = Vec::new();
        for (group, members) in groups.iter().enumerate() {
            for &topic in &members.topics {
                let leaders = Leaders::without(&cluster.topics()[topic], cluster.offline());
                if leaders.difference() > 0 {
                    found.push(Uneven {
                        group,
                        topic,
                        leaders,
                    });
                }
            }
        }
        found
    }
}
