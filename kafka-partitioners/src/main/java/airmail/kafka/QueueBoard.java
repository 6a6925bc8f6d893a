package airmail.kafka;

import airmail.kafka.TopicLayout.NodePlaces;

import org.apache.kafka.common.Node;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/**
 * How many records went to each node: the queues of which {@link SqfPartitioner} takes the
 * shortest.
 *
 * <p>One board for each cluster, shared by the producers of a JVM that send to it (figure 6.7), and
 * gone with the last of them. Counts are compared by their difference, so that they may overflow. A
 * node that comes, or comes back, does not begin at nought: it would get every record until it had
 * caught up.
 */
final class QueueBoard {
    private static final Map<String, QueueBoard> SHARED = new HashMap<>();

    private final String cluster;
    private final long start;
    private int producers;
    private final Map<Integer, AtomicLong> queues = new HashMap<>();

    /** A board of one's own, whose first nodes begin at {@code start}. */
    QueueBoard(long start) {
        this(null, start);
    }

    private QueueBoard(String cluster, long start) {
        this.cluster = cluster;
        this.start = start;
    }

    /**
     * The board of a cluster; each call wants one {@link #leave}. A cluster without an id has none.
     */
    static QueueBoard join(String cluster) {
        if (cluster == null) {
            return new QueueBoard(0);
        }
        synchronized (SHARED) {
            QueueBoard board = SHARED.computeIfAbsent(cluster, id -> new QueueBoard(id, 0));
            board.producers++;
            return board;
        }
    }

    void leave() {
        synchronized (SHARED) {
            producers--;
            if (cluster != null && producers == 0) {
                SHARED.remove(cluster);
            }
        }
    }

    /**
     * The queues of each topic's nodes, in the order of the nodes. Nodes that are not {@code alive}
     * any more go off the board first; one that is new begins where the least used of those stands
     * with which it shares a topic; where it shares several topics, at the highest of these.
     */
    synchronized Map<String, AtomicLong[]> arrange(List<Node> alive, List<TopicLayout> topics) {
        Set<Integer> ids = new HashSet<>();
        for (Node node : alive) {
            ids.add(node.id());
        }
        queues.keySet().retainAll(ids);
        Map<Integer, Long> begins = new HashMap<>();
        for (TopicLayout topic : topics) {
            long begin = leastOf(topic);
            for (NodePlaces node : topic.nodes) {
                if (!queues.containsKey(node.node)) {
                    begins.merge(node.node, begin, (one, other) -> other - one > 0 ? other : one);
                }
            }
        }
        begins.forEach((node, begin) -> queues.put(node, new AtomicLong(begin)));
        Map<String, AtomicLong[]> arranged = new HashMap<>();
        for (TopicLayout topic : topics) {
            AtomicLong[] ofTopic = new AtomicLong[topic.nodes.length];
            for (int i = 0; i < ofTopic.length; i++) {
                ofTopic[i] = queues.get(topic.nodes[i].node);
            }
            arranged.put(topic.topic, ofTopic);
        }
        return arranged;
    }

    /** The shortest queue of the topic's nodes that are on the board. */
    private long leastOf(TopicLayout topic) {
        AtomicLong least = null;
        for (NodePlaces node : topic.nodes) {
            AtomicLong queue = queues.get(node.node);
            if (queue != null && (least == null || queue.get() - least.get() < 0)) {
                least = queue;
            }
        }
        return least == null ? start : least.get();
    }

    /**
     * Adds a record to the shortest of {@code queues}, the first of equals, and says which that is.
     *
     * <p>Whoever finds that his choice has grown meanwhile looks again. Queues only grow, so the
     * one that he adds to was a shortest one at that moment: the policy is exact under any number
     * of threads.
     */
    static int add(AtomicLong[] queues) {
        while (true) {
            int least = 0;
            long length = queues[0].get();
            for (int i = 1; i < queues.length; i++) {
                long other = queues[i].get();
                if (other - length < 0) {
                    least = i;
                    length = other;
                }
            }
            if (queues[least].compareAndSet(length, length + 1)) {
                return least;
            }
        }
    }
}
