package airmail.kafka;

import airmail.kafka.TopicLayout.NodePlaces;

import org.apache.kafka.common.Cluster;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The paper's SQF, shortest queue first (section 6.2.3, figure 6.3): a record goes to that of its
 * topic's nodes which has had the fewest records of all topics, and there to the next of the
 * partitions that the node leads.
 *
 * <p>The counts are shared by all producers of the JVM that send to the cluster (figure 6.7), so
 * that topics whose nodes overlap in part are balanced together; {@code
 * airmail.partitioner.sqf.shared=false} gives a producer counts of its own. While no partition is
 * available, it is round robin over all.
 */
public final class SqfPartitioner extends TurnPartitioner {
    private static final class OverQueues extends Turns {
        private final NodePlaces[] nodes;
        private final AtomicLong[] queues;
        private final Rotation rotation;
        private final Rotation[] within;

        OverQueues(TopicLayout topic, AtomicLong[] queues, Rotation rotation, Rotation[] within) {
            super(topic);
            this.nodes = topic.nodes;
            this.queues = queues;
            this.rotation = rotation;
            this.within = within;
        }

        @Override
        Place next() {
            if (nodes.length == 0) {
                return rotation.next(topic.all);
            }
            int node = QueueBoard.add(queues);
            return within[node].next(nodes[node].places);
        }
    }

    private QueueBoard board;
    private String boardOf;
    private Map<String, AtomicLong[]> queues = Map.of();

    public SqfPartitioner() {}

    /** With a board of one's own, whatever the properties say. */
    SqfPartitioner(QueueBoard board) {
        this.board = board;
    }

    @Override
    void changing(Cluster cluster, List<TopicLayout> topics) {
        String id = settings().sqfShared() ? cluster.clusterResource().clusterId() : null;
        if (board == null || (boardOf != null && !Objects.equals(boardOf, id))) {
            leave();
            board = QueueBoard.join(id);
            boardOf = id;
        }
        queues = board.arrange(cluster.nodes(), topics);
    }

    @Override
    Turns plan(TopicLayout topic) {
        Rotation[] within = new Rotation[topic.nodes.length];
        for (int i = 0; i < within.length; i++) {
            within[i] = rotation(topic.topic, topic.nodes[i].node);
        }
        return new OverQueues(topic, queues.get(topic.topic), rotation(topic.topic), within);
    }

    private synchronized void leave() {
        if (board != null) {
            board.leave();
            board = null;
        }
    }

    @Override
    public void close() {
        super.close();
        leave();
    }
}
