package airmail.kafka;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A partitioner that computes what it chooses from when the cluster's metadata changes.
 *
 * <p>The way of a record takes no lock and allocates nothing: it compares the cluster's identity
 * and looks its topic up. When the cluster is another one, the first thread to see it computes the
 * new layout and the others wait for that, once; counters live on from layout to layout.
 *
 * @param <P> what the policy computes for a topic
 */
abstract class PlannedPartitioner<P> implements Partitioner, PolicyMXBean {
    private volatile ClusterLayout<P> layout = new ClusterLayout<>(null, Map.of());
    private final Map<Integer, NodeTally> tallies = new HashMap<>();
    private final Map<String, Rotation> rotations = new HashMap<>();
    private Settings settings;
    private Beans beans;
    private boolean ignoreKeys;
    private boolean counting;
    private volatile long layoutsComputed;

    @Override
    public void configure(Map<String, ?> properties) {
        settings = Settings.of(properties);
        ignoreKeys = settings.ignoreKeys();
        counting = settings.metrics();
        beans = new Beans(getPolicy(), settings.clientId(), counting);
        beans.show(this);
    }

    /** The plan for {@code topic}; its rotations are the same from layout to layout. */
    abstract P plan(TopicLayout topic);

    /** Called with all topics of a new state of the cluster, before a plan is made for each. */
    void changing(Cluster cluster, List<TopicLayout> topics) {}

    /** The tally of a node that was not seen before. */
    NodeTally tally(int node) {
        return new NodeTally(node);
    }

    final Settings settings() {
        return settings;
    }

    final P planOf(String topic, Cluster cluster) {
        ClusterLayout<P> current = layout;
        if (current.cluster != cluster) {
            current = compute(cluster);
        }
        return current.topic(topic);
    }

    private synchronized ClusterLayout<P> compute(Cluster cluster) {
        if (layout.cluster != cluster) {
            List<TopicLayout> topics = new ArrayList<>();
            for (String topic : cluster.topics()) {
                topics.add(TopicLayout.of(cluster, topic, this::tallyOf));
            }
            changing(cluster, topics);
            Map<String, P> plans = new HashMap<>();
            for (TopicLayout topic : topics) {
                plans.put(topic.topic, plan(topic));
            }
            layoutsComputed++;
            layout = new ClusterLayout<>(cluster, plans);
        }
        return layout;
    }

    private NodeTally tallyOf(int node) {
        NodeTally known = tallies.get(node);
        if (known == null) {
            known = tally(node);
            tallies.put(node, known);
            beans.show(known);
        }
        return known;
    }

    /** The topic's own rotation; only called while a layout is computed. */
    final Rotation rotation(String topic) {
        return rotations.computeIfAbsent(topic, name -> new Rotation(settings().start()));
    }

    /** The rotation among a topic's partitions on one node. */
    final Rotation rotation(String topic, int node) {
        // No topic's name has a slash.
        return rotation(topic + "/" + node);
    }

    final boolean isByKey(byte[] key) {
        return key != null && !ignoreKeys;
    }

    final boolean isCounting() {
        return counting;
    }

    final void count(Place place) {
        if (counting) {
            place.leader.count();
        }
    }

    @Override
    public void close() {
        beans.close();
    }

    @Override
    public final String getPolicy() {
        return getClass().getSimpleName();
    }

    @Override
    public final long getLayoutsComputed() {
        return layoutsComputed;
    }

    @Override
    public boolean isFeedbackPresent() {
        return false;
    }
}
