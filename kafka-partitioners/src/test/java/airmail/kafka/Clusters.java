package airmail.kafka;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Clusters for tests, said as the vectors say them: for each topic, its partitions' leaders. */
final class Clusters {
    /** Where the next cluster that shall share nothing with others takes its id from. */
    private static int ids;

    private Clusters() {}

    /** Leaders of a topic's partitions; null for none. */
    static List<Integer> led(Integer... by) {
        return new ArrayList<>(Arrays.asList(by));
    }

    static Cluster of(String id, Set<Integer> alive, Map<String, List<Integer>> topics) {
        Map<Integer, Node> nodes = new TreeMap<>();
        alive.forEach(node -> nodes.put(node, new Node(node, "node-" + node, 9092)));
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.forEach(
                (topic, leaders) ->
                        IntStream.range(0, leaders.size())
                                .forEach(
                                        partition -> {
                                            Integer leader = leaders.get(partition);
                                            Node node = leader == null ? null : nodes.get(leader);
                                            Node[] replicas =
                                                    node == null ? new Node[0] : new Node[] {node};
                                            partitions.add(
                                                    new PartitionInfo(
                                                            topic, partition, node, replicas,
                                                            replicas));
                                        }));
        return new Cluster(id, nodes.values(), partitions, Set.of(), Set.of());
    }

    /** A cluster with an id of its own, of all nodes that lead something. */
    static Cluster of(Map<String, List<Integer>> topics) {
        Set<Integer> alive =
                topics.values().stream()
                        .flatMap(List::stream)
                        .filter(leader -> leader != null)
                        .collect(Collectors.toSet());
        return of(newId(), alive, topics);
    }

    static synchronized String newId() {
        return "cluster-" + ids++;
    }

    /**
     * Figure 6.4: topic A has one partition on node 1 and two on node 2; B one each on nodes 2 and
     * 3.
     */
    static Cluster figure64() {
        return of(Map.of("A", led(1, 2, 2), "B", led(2, 3)));
    }

    /** A record without a key. */
    static int ask(Partitioner partitioner, String topic, Cluster cluster) {
        return partitioner.partition(topic, null, null, null, null, cluster);
    }

    static int leader(Cluster cluster, String topic, int partition) {
        return cluster.partitionsForTopic(topic).stream()
                .filter(info -> info.partition() == partition)
                .findFirst()
                .orElseThrow()
                .leader()
                .id();
    }

    /**
     * The policy, with turns that begin at 0 and the properties given as name, value, name, value.
     */
    static <P extends Partitioner> P configured(P partitioner, Object... properties) {
        Map<String, Object> map = new TreeMap<>();
        map.put("client.id", newId());
        map.put("airmail.partitioner.start", 0);
        for (int i = 0; i < properties.length; i += 2) {
            map.put((String) properties[i], properties[i + 1]);
        }
        partitioner.configure(map);
        return partitioner;
    }
}
