package airmail.kafka;

import org.apache.kafka.common.Cluster;

/**
 * A policy that gives each record its turn, one at a time: Improved, Node and SQF.
 *
 * <p>A record moves it on once, whatever the client asks ({@link AppendRetry}).
 */
abstract class TurnPartitioner extends PlannedPartitioner<TurnPartitioner.Turns> {
    /** Whose turn it is within a topic. */
    abstract static class Turns {
        final TopicLayout topic;

        Turns(TopicLayout topic) {
            this.topic = topic;
        }

        /** The place of the next record without a key. */
        abstract Place next();
    }

    private final AppendRetry retry = new AppendRetry();

    @Override
    public final int partition(
            String topic,
            Object key,
            byte[] keyBytes,
            Object value,
            byte[] valueBytes,
            Cluster cluster) {
        if (AppendRetry.POSSIBLE) {
            int repeated = retry.partition(topic);
            if (repeated != AppendRetry.NEW) {
                return repeated;
            }
        }
        Turns turns = planOf(topic, cluster);
        Place place = isByKey(keyBytes) ? turns.topic.forKey(keyBytes) : turns.next();
        count(place);
        if (AppendRetry.POSSIBLE) {
            retry.placed(topic, place.partition);
        }
        return place.partition;
    }

    /**
     * Clients before 4.0 call it when a record opens a batch, and then ask for its partition again.
     */
    @SuppressWarnings("deprecation")
    public final void onNewBatch(String topic, Cluster cluster, int partition) {
        retry.newBatch(topic, partition);
    }
}
