package airmail.kafka;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntFunction;

/**
 * Where a topic's partitions are: what a policy chooses from.
 *
 * <p>Partitions are in the order of their numbers and nodes in the order of their ids, whatever
 * order the metadata came in, so that equal clusters give equal choices.
 */
final class TopicLayout {
    /** The partitions of a topic that one node leads. */
    static final class NodePlaces {
        final int node;
        final Place[] places;

        NodePlaces(int node, List<Place> places) {
            this.node = node;
            this.places = places.toArray(new Place[0]);
        }
    }

    final String topic;

    /** All partitions; never empty. */
    final Place[] all;

    /** Those with a leader. */
    final Place[] available;

    /** The available ones by the node that leads them. */
    final NodePlaces[] nodes;

    private TopicLayout(String topic, List<Place> all, List<Place> available, NodePlaces[] nodes) {
        this.topic = topic;
        this.all = all.toArray(new Place[0]);
        this.available = available.toArray(new Place[0]);
        this.nodes = nodes;
    }

    /** What {@code cluster} says of {@code topic}, which must be in it. */
    static TopicLayout of(Cluster cluster, String topic, IntFunction<? extends NodeTally> tallies) {
        List<PartitionInfo> infos = new ArrayList<>(cluster.partitionsForTopic(topic));
        infos.sort(Comparator.comparingInt(PartitionInfo::partition));
        List<Place> all = new ArrayList<>();
        List<Place> available = new ArrayList<>();
        Map<Integer, List<Place>> byNode = new TreeMap<>();
        for (PartitionInfo info : infos) {
            int leader = leaderOf(info);
            Place place = new Place(info.partition(), tallies.apply(leader));
            all.add(place);
            if (leader != NodeTally.NO_NODE) {
                available.add(place);
                byNode.computeIfAbsent(leader, id -> new ArrayList<>()).add(place);
            }
        }
        NodePlaces[] nodes =
                byNode.entrySet().stream()
                        .map(entry -> new NodePlaces(entry.getKey(), entry.getValue()))
                        .toArray(NodePlaces[]::new);
        return new TopicLayout(topic, all, available, nodes);
    }

    static int leaderOf(PartitionInfo info) {
        Node leader = info.leader();
        return leader == null || leader.isEmpty() ? NodeTally.NO_NODE : leader.id();
    }

    /** The available partitions, or all of them if none is. */
    Place[] choices() {
        return available.length > 0 ? available : all;
    }

    /** Where Kafka places this key: among all partitions, so that it does not move with faults. */
    Place forKey(byte[] key) {
        return all[Murmur2.partition(key, all.length)];
    }
}
