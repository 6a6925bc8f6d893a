package airmail.kafka;

import airmail.kafka.TopicLayout.NodePlaces;

/**
 * The paper's node partitioner (section 6.2.2, figure 6.2): round robin over the nodes that lead a
 * topic's partitions, and within a node over the partitions that it leads.
 *
 * <p>So each of the topic's nodes gets an equal part, however many partitions it leads, and of a
 * node's part each of its partitions an equal part: those that go back to their first owner after a
 * fault must not have been favoured. While no partition is available, it is round robin over all.
 */
public final class NodePartitioner extends TurnPartitioner {
    private static final class OverNodes extends Turns {
        private final NodePlaces[] nodes;
        private final Rotation rotation;
        private final Rotation[] within;

        OverNodes(TopicLayout topic, Rotation rotation, Rotation[] within) {
            super(topic);
            this.nodes = topic.nodes;
            this.rotation = rotation;
            this.within = within;
        }

        @Override
        Place next() {
            if (nodes.length == 0) {
                return rotation.next(topic.all);
            }
            int node = rotation.next(nodes.length);
            return within[node].next(nodes[node].places);
        }
    }

    @Override
    Turns plan(TopicLayout topic) {
        Rotation[] within = new Rotation[topic.nodes.length];
        for (int i = 0; i < within.length; i++) {
            within[i] = rotation(topic.topic, topic.nodes[i].node);
        }
        return new OverNodes(topic, rotation(topic.topic), within);
    }
}
