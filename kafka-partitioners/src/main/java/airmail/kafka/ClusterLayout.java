package airmail.kafka;

import org.apache.kafka.common.Cluster;

import java.util.Map;

/**
 * What a policy has computed for one state of the cluster's metadata (section 6.3 of the paper).
 *
 * <p>A client's {@code Cluster} is never changed, only replaced, so its identity says whether this
 * is still right. Nor is this: any thread may read it without synchronization.
 */
final class ClusterLayout<P> {
    /** Of whom the plans are; null before the first. */
    final Cluster cluster;

    private final Map<String, P> topics;

    ClusterLayout(Cluster cluster, Map<String, P> topics) {
        this.cluster = cluster;
        this.topics = topics;
    }

    P topic(String topic) {
        P plan = topics.get(topic);
        if (plan == null) {
            throw new IllegalArgumentException(
                    "topic "
                            + topic
                            + " is not in the cluster's metadata, which has "
                            + topics.keySet());
        }
        return plan;
    }
}
