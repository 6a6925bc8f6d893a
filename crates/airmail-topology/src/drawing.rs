//! The cluster as a picture, as the paper draws it (Kafka thesis, figures 3.2 to 3.8 and 6.4 to 6.6): a box for each
//! node, in it a box for each partition that it leads, in the colour of its topic's max group. A node on which
//! groups overlap has a red frame; a node that is down a dashed one; partitions that a node follows are pale.
//!
//! It is written as SVG by hand, with no font and no script in it: any browser shows it.

use crate::cluster::Cluster;
use crate::groups::MaxGroups;
use crate::leaders::Leaders;
use crate::node_set::{NodeSet, Place};
use crate::overlaps::Overlaps;
use std::fmt::Write as _;

/// Pixels.
const MARGIN: usize = 20;
const NODE_WIDTH: usize = 190;
const PARTITION_WIDTH: usize = 82;
const PARTITION_HEIGHT: usize = 24;
const GAP: usize = 8;
const TITLE: usize = 34;
const LEGEND_LINE: usize = 22;
/// Most nodes in a row.
const NODES_MAX: usize = 8;
const PARTITIONS_PER_ROW: usize = 2;
/// Most partitions in a node's box, leaders and followers together; the others are given as a
/// number.
const PARTITIONS_MAX: usize = 40;
/// Max groups in the legend.
const GROUPS_MAX: usize = 40;
/// Letters of a name.
const NAME_MAX: usize = 9;
const LEGEND_MAX: usize = 60;
/// Okabe and Ito's, which those who confuse red and green can tell apart, in pale.
const COLOURS: [&str; 7] = [
    "#f3cf80", "#80cfb9", "#80b9d8", "#eab080", "#e6bcd4", "#abdaf4", "#cfcf80",
];
const GREY: &str = "#dddddd";

/// One line in a node's box.
struct Item {
    topic: usize,
    partition: usize,
    leads: bool,
}

/// The cluster as an SVG document.
///
/// ```
/// use airmail_topology::{Cluster, drawing};
///
/// let text = r#"{"nodes": [1, 2], "topics": {"A": [[1, 2], [2, 1]]}}"#;
/// let cluster = Cluster::new(serde_json::from_str(text)?)?;
/// assert!(drawing(&cluster).starts_with("<svg "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn drawing(cluster: &Cluster) -> String {
    let groups = MaxGroups::of(cluster);
    let picture = Picture {
        shared: Overlaps::of(&groups, cluster.nodes().len()).shared(),
        group_of: group_of(cluster, &groups),
        items: items(cluster),
        cluster,
    };
    let columns = cluster.nodes().len().clamp(1, NODES_MAX);
    let width = 2 * MARGIN + columns * (NODE_WIDTH + GAP) - GAP;
    let mut body = String::new();
    let mut y = MARGIN;
    let places: Vec<Place> = (0..).take(cluster.nodes().len()).collect();
    for row in places.chunks(NODES_MAX) {
        let height = row.iter().map(|place| picture.height(*place)).max();
        let height = height.unwrap_or(0);
        for (column, place) in row.iter().enumerate() {
            let x = MARGIN + column * (NODE_WIDTH + GAP);
            picture.node(&mut body, *place, [x, y], height);
        }
        y += height + GAP;
    }
    y += GAP;
    y = legend(&mut body, cluster, &groups, y);
    let height = y + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

struct Picture<'a> {
    cluster: &'a Cluster,
    shared: NodeSet,
    group_of: Vec<Option<usize>>,
    items: Vec<Vec<Item>>,
}

impl Picture<'_> {
    fn height(&self, place: Place) -> usize {
        let items = self.items[place as usize].len();
        let rows = items.min(PARTITIONS_MAX).div_ceil(PARTITIONS_PER_ROW);
        let more = usize::from(items > PARTITIONS_MAX) * LEGEND_LINE;
        TITLE + rows.max(1) * (PARTITION_HEIGHT + GAP) + more + GAP
    }

    fn node(&self, out: &mut String, place: Place, [x, y]: [usize; 2], height: usize) {
        let (stroke, dashes) = match () {
            () if self.cluster.offline().contains(place) => {
                ("#888888", " stroke-dasharray=\"6 4\"")
            }
            () if self.shared.contains(place) => ("#d55e00", ""),
            () => ("#282828", ""),
        };
        let id = self.cluster.id(place);
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{NODE_WIDTH}\" height=\"{height}\" rx=\"10\" \
             fill=\"#fafafa\" stroke=\"{stroke}\" stroke-width=\"2\"{dashes}/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">Node {id}</text>",
            x + NODE_WIDTH / 2,
            y + 22,
        );
        let items = &self.items[place as usize];
        for (index, item) in items.iter().take(PARTITIONS_MAX).enumerate() {
            let column = index % PARTITIONS_PER_ROW;
            let x = x + GAP + column * (PARTITION_WIDTH + GAP);
            let y = y + TITLE + index / PARTITIONS_PER_ROW * (PARTITION_HEIGHT + GAP);
            self.partition(out, item, [x, y]);
        }
        if items.len() > PARTITIONS_MAX {
            let more = items.len() - PARTITIONS_MAX;
            let (x, y) = (x + NODE_WIDTH / 2, y + height - GAP - 4);
            let _ = writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">and {more} more</text>"
            );
        }
    }

    fn partition(&self, out: &mut String, item: &Item, [x, y]: [usize; 2]) {
        let colour = self.group_of[item.topic].map_or(GREY, colour);
        let (opacity, title) = if item.leads {
            ("1", "leader")
        } else {
            ("0.35", "follower")
        };
        let topic = &self.cluster.topics()[item.topic].name;
        let (whole, short) = (escaped(topic), escaped(&shortened(topic, NAME_MAX)));
        let number = item.partition;
        let _ = writeln!(
            out,
            "<g opacity=\"{opacity}\"><title>{whole} {number}, {title}</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{PARTITION_WIDTH}\" height=\"{PARTITION_HEIGHT}\" \
             rx=\"5\" fill=\"{colour}\" stroke=\"#555555\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{short} {number}</text></g>",
            x + PARTITION_WIDTH / 2,
            y + 17,
        );
    }
}

fn group_of(cluster: &Cluster, groups: &MaxGroups) -> Vec<Option<usize>> {
    let topics = cluster.topics().iter();
    let sets = topics.map(|topic| Leaders::without(topic, cluster.offline()).nodes());
    sets.map(|nodes| groups.find(&nodes)).collect()
}

/// Items of each node: the partitions that it leads, then those that it follows.
fn items(cluster: &Cluster) -> Vec<Vec<Item>> {
    let mut items: Vec<Vec<Item>> = Vec::new();
    items.resize_with(cluster.nodes().len(), Vec::new);
    for (topic, members) in cluster.topics().iter().enumerate() {
        for (partition, kept) in members.partitions.iter().enumerate() {
            for place in &kept.replicas {
                items[*place as usize].push(Item {
                    topic,
                    partition,
                    leads: kept.leader == Some(*place),
                });
            }
        }
    }
    for items in &mut items {
        items.sort_by_key(|item| !item.leads);
    }
    items
}

fn legend(out: &mut String, cluster: &Cluster, groups: &MaxGroups, mut y: usize) -> usize {
    let count = groups.iter().len();
    for (index, group) in groups.iter().take(GROUPS_MAX).enumerate() {
        let names = group.topics.iter().take(LEGEND_MAX);
        let names: Vec<&str> = names.map(|topic| &*cluster.topics()[*topic].name).collect();
        let nodes = group.nodes.iter().take(LEGEND_MAX);
        let nodes: Vec<String> = nodes.map(|place| cluster.id(place).to_string()).collect();
        let names = escaped(&shortened(&names.join(", "), LEGEND_MAX));
        let nodes = shortened(&nodes.join(", "), LEGEND_MAX);
        let (text, colour) = (MARGIN + 26, colour(index));
        let _ = writeln!(
            out,
            "<rect x=\"{MARGIN}\" y=\"{y}\" width=\"18\" height=\"16\" rx=\"4\" fill=\"{colour}\" \
             stroke=\"#555555\"/>\
             <text x=\"{text}\" y=\"{}\">max group {index}: {names} on {nodes}</text>",
            y + 13,
        );
        y += LEGEND_LINE;
    }
    if count > GROUPS_MAX {
        let more = count - GROUPS_MAX;
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{}\">and {more} more max groups</text>",
            y + 13
        );
        y += LEGEND_LINE;
    }
    y
}

fn colour(group: usize) -> &'static str {
    COLOURS[group % COLOURS.len()]
}

fn shortened(text: &str, letters_max: usize) -> String {
    if text.chars().count() > letters_max {
        text.chars().take(letters_max - 1).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(text: &str) -> String {
        drawing(&Cluster::new(serde_json::from_str(text).unwrap()).unwrap())
    }

    #[test]
    fn nodes_on_which_groups_overlap_stand_out() {
        let apart = draw(r#"{"nodes":[1,2],"topics":{"A":[[1]],"B":[[2]]}}"#);
        assert!(!apart.contains("#d55e00"));
        let overlapping = draw(r#"{"nodes":[1,2],"topics":{"A":[[1],[2]],"B":[[2]]}}"#);
        assert_eq!(overlapping.matches("#d55e00").count(), 1);
    }

    #[test]
    fn a_name_cannot_break_the_document() {
        let svg = draw(r#"{"nodes":[1],"topics":{"<a&b>":[[1]]}}"#);
        assert!(svg.contains("&lt;a&amp;b&gt;") && !svg.contains("<a&b>"));
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let partitions = vec!["[1]"; PARTITIONS_MAX + 7].join(",");
        let svg = draw(&format!(
            r#"{{"nodes":[1],"topics":{{"A":[{partitions}]}}}}"#
        ));
        assert!(svg.contains("and 7 more"));
    }

    #[test]
    fn an_empty_cluster_is_drawn() {
        assert!(draw(r#"{"nodes":[],"topics":{}}"#).ends_with("</svg>\n"));
    }
}
