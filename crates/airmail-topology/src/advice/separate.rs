//! No overlap: nodes are divided among blocks of topics (Kafka thesis, figure 6.6).
//!
//! A block is a set of topics that share nodes; their number divides each topic's number of
//! partitions, so every topic of the block is led evenly. The search begins with a block for each
//! number of partitions, each on one node, joins the lightest where there are more blocks than
//! nodes, and then gives out the nodes that are left: the block with the highest load per node is
//! widened, or divided. It ends when no node is left or none helps. This is a heuristic: the best
//! division is a bin packing problem.

use super::NotOffered;
use super::placement::spread;
use crate::cluster::Cluster;
use crate::node_set::Place;
use crate::reassignment::Reassignment;

/// Topics that are led on the same nodes, and on how many.
#[derive(Clone, Debug)]
struct Block {
    topics: Vec<usize>,
    rate: f64,
    /// The greatest number that divides the number of partitions of each.
    divisor: usize,
    width: usize,
}

pub(super) fn plan(cluster: &Cluster) -> Result<Reassignment, NotOffered> {
    let living: Vec<Place> = cluster.living().collect();
    if living.is_empty() {
        return Err(NotOffered::NoNodes);
    }
    let blocks = divide(cluster, living.len());
    let mut reassignment = Reassignment::default();
    for (block, nodes) in blocks.iter().zip(settle(cluster, &blocks, living)) {
        for &topic in &block.topics {
            let changed = spread(topic, &cluster.topics()[topic], &nodes);
            reassignment.partitions.extend(changed);
        }
    }
    reassignment
        .partitions
        .sort_unstable_by_key(|changed| changed.partition);
    Ok(reassignment)
}

/// Blocks, the widest first, on at most `nodes` nodes.
fn divide(cluster: &Cluster, nodes: usize) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (index, topic) in cluster.topics().iter().enumerate() {
        let partitions = topic.partitions.len();
        match blocks.iter_mut().find(|block| block.divisor == partitions) {
            Some(block) => {
                block.topics.push(index);
                block.rate += topic.rate;
            }
            None => blocks.push(Block::of(cluster, vec![index])),
        }
    }
    while blocks.len() > nodes {
        blocks.sort_by(|one, other| other.rate.total_cmp(&one.rate));
        let lightest = [blocks.pop(), blocks.pop()].into_iter().flatten();
        let topics = lightest.flat_map(|block| block.topics).collect();
        blocks.push(Block::of(cluster, topics));
    }
    let mut free = nodes - blocks.len();
    while free > 0 {
        blocks.sort_by(|one, other| other.density().total_cmp(&one.density()));
        let better = blocks.iter().enumerate().find_map(|(index, block)| {
            let better = block
                .widened(free)
                .or_else(|| block.halved(cluster, free))?;
            Some((index, better))
        });
        let Some((index, better)) = better else {
            break;
        };
        let before = blocks.remove(index).width;
        free = free + before - better.iter().map(|block| block.width).sum::<usize>();
        blocks.extend(better);
    }
    blocks.sort_by(|one, other| (other.width, &one.topics).cmp(&(one.width, &other.topics)));
    blocks
}

impl Block {
    /// Makes a block of at least one topic, on one node.
    fn of(cluster: &Cluster, topics: Vec<usize>) -> Block {
        let each = topics.iter().map(|topic| &cluster.topics()[*topic]);
        Block {
            rate: each.clone().map(|topic| topic.rate).sum(),
            divisor: each.fold(0, |divisor, topic| gcd(divisor, topic.partitions.len())),
            topics,
            width: 1,
        }
    }

    /// Rate that each of its nodes gets.
    fn density(&self) -> f64 {
        self.rate / self.width as f64
    }

    /// Greatest width on this number of nodes.
    fn width_within(&self, nodes: usize) -> usize {
        let widths = (1..=nodes.min(self.divisor)).rev();
        let mut fitting = widths.filter(|width| self.divisor.is_multiple_of(*width));
        fitting.next().unwrap_or(1)
    }

    /// The same on the next larger number of nodes.
    fn widened(&self, free: usize) -> Option<Vec<Block>> {
        let mut widths = self.width + 1..=(self.width + free).min(self.divisor);
        let width = widths.find(|width| self.divisor.is_multiple_of(*width))?;
        Some(vec![Block {
            width,
            ..self.clone()
        }])
    }

    /// Two in its place, if both have less to do for each node: one as wide as it was, one on free nodes.
    fn halved(&self, cluster: &Cluster, free: usize) -> Option<Vec<Block>> {
        let widths = [self.width, self.width_within(free)];
        let mut topics = self.topics.clone();
        let rate = |topic: usize| cluster.topics()[topic].rate;
        topics.sort_by(|one, other| rate(*other).total_cmp(&rate(*one)));
        let mut halves = [(Vec::new(), 0.0), (Vec::new(), 0.0)];
        for topic in topics {
            // The largest first, each to where it leaves less to do.
            let then = |half: usize| (halves[half].1 + rate(topic)) / widths[half] as f64;
            let half = usize::from(then(1) < then(0));
            halves[half].0.push(topic);
            halves[half].1 += rate(topic);
        }
        if halves.iter().any(|(topics, _)| topics.is_empty()) {
            return None;
        }
        let blocks = halves
            .into_iter()
            .zip(widths)
            .map(|((mut topics, _), width)| {
                topics.sort_unstable();
                let block = Block::of(cluster, topics);
                Block { width, ..block }
            });
        let blocks: Vec<Block> = blocks.collect();
        let helps = blocks.iter().all(|block| block.density() < self.density());
        helps.then_some(blocks)
    }
}

/// Nodes for each block: those that lead and keep most of its partitions already.
fn settle(cluster: &Cluster, blocks: &[Block], mut free: Vec<Place>) -> Vec<Vec<Place>> {
    let each = blocks.iter().map(|block| {
        let mut kept = vec![0_usize; cluster.nodes().len()];
        for &topic in &block.topics {
            for partition in &cluster.topics()[topic].partitions {
                for (index, place) in partition.replicas.iter().enumerate() {
                    // A leader counts more than any number of followers of its partition.
                    kept[*place as usize] += if index == 0 {
                        partition.replicas.len()
                    } else {
                        1
                    };
                }
            }
        }
        free.sort_by_key(|place| (std::cmp::Reverse(kept[*place as usize]), *place));
        let mut nodes: Vec<Place> = free.drain(..block.width).collect();
        nodes.sort_unstable();
        nodes
    });
    each.collect()
}

fn gcd(one: usize, other: usize) -> usize {
    match other {
        0 => one,
        _ => gcd(other, one % other),
    }
}
