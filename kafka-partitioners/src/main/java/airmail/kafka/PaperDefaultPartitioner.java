package airmail.kafka;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.PartitionInfo;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The default partitioner of the paper (figures 2.1 and 6.1, left): by the key's hash; without a
 * key, round robin over the partitions that are available, or over all while none is.
 *
 * <p>Kafka's own until 2.3, which no client has any more: the baseline of tables 7.1 to 7.6. It is
 * written as it was, three look-ups and a counter that overflows into the sign, which is masked;
 * what is better is in {@link ImprovedPartitioner}. Unlike its successors in Kafka it moves on once
 * for each record ({@link AppendRetry}), as it did when clients asked only once.
 */
public final class PaperDefaultPartitioner implements Partitioner, PolicyMXBean {
    private final ConcurrentMap<String, AtomicInteger> topicToCounter = new ConcurrentHashMap<>();
    private final ConcurrentMap<Integer, NodeTally> tallies = new ConcurrentHashMap<>();
    private final AppendRetry retry = new AppendRetry();
    private Settings settings;
    private Beans beans;
    private boolean ignoreKeys;
    private boolean counting;

    @Override
    public void configure(Map<String, ?> properties) {
        settings = Settings.of(properties);
        ignoreKeys = settings.ignoreKeys();
        counting = settings.metrics();
        beans = new Beans(getPolicy(), settings.clientId(), counting);
        beans.show(this);
    }

    @Override
    public int partition(
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
        int partition = place(topic, keyBytes, cluster);
        if (counting) {
            count(cluster.partitionsForTopic(topic), partition);
        }
        if (AppendRetry.POSSIBLE) {
            retry.placed(topic, partition);
        }
        return partition;
    }

    private int place(String topic, byte[] keyBytes, Cluster cluster) {
        List<PartitionInfo> partitions = cluster.partitionsForTopic(topic);
        if (partitions.isEmpty()) {
            throw new IllegalArgumentException(
                    "topic "
                            + topic
                            + " is not in the cluster's metadata, which has "
                            + cluster.topics());
        }
        if (keyBytes != null && !ignoreKeys) {
            return Murmur2.partition(keyBytes, partitions.size());
        }
        int turn = nextValue(topic) & Integer.MAX_VALUE;
        List<PartitionInfo> available = cluster.availablePartitionsForTopic(topic);
        if (available.isEmpty()) {
            return turn % partitions.size();
        }
        return available.get(turn % available.size()).partition();
    }

    private int nextValue(String topic) {
        AtomicInteger counter = topicToCounter.get(topic);
        if (counter == null) {
            counter = new AtomicInteger(settings.start());
            AtomicInteger first = topicToCounter.putIfAbsent(topic, counter);
            if (first != null) {
                counter = first;
            }
        }
        return counter.getAndIncrement();
    }

    private void count(List<PartitionInfo> partitions, int partition) {
        int leader = NodeTally.NO_NODE;
        for (int i = 0; i < partitions.size(); i++) {
            if (partitions.get(i).partition() == partition) {
                leader = TopicLayout.leaderOf(partitions.get(i));
            }
        }
        NodeTally tally = tallies.get(leader);
        if (tally == null) {
            tally = new NodeTally(leader);
            NodeTally first = tallies.putIfAbsent(leader, tally);
            if (first == null) {
                beans.show(tally);
            } else {
                tally = first;
            }
        }
        tally.count();
    }

    /**
     * Clients before 4.0 call it when a record opens a batch, and then ask for its partition again.
     */
    @SuppressWarnings("deprecation")
    public void onNewBatch(String topic, Cluster cluster, int partition) {
        retry.newBatch(topic, partition);
    }

    @Override
    public void close() {
        beans.close();
    }

    @Override
    public String getPolicy() {
        return getClass().getSimpleName();
    }

    @Override
    public long getLayoutsComputed() {
        return 0;
    }

    @Override
    public boolean isFeedbackPresent() {
        return false;
    }
}
