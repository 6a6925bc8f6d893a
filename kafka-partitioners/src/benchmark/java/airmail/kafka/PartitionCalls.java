package airmail.kafka;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.clients.producer.RoundRobinPartitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * Calls of {@code partition()} a second, for records without a key: by one thread, and by four and by
 * 32 on one producer. "round-robin" is the stock client's, "default" the paper's; those end in
 * "+metrics" that also count by node.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class PartitionCalls {
    private static final int NODES = 3;
    private static final int PARTITIONS = 12;
    private static final int TOPICS = 20;
    private static final String TOPIC = "topic-7";

    /** Which policy is asked. */
    @Param({
        "round-robin",
        "default",
        "improved",
        "improved+metrics",
        "node",
        "node+metrics",
        "sqf",
        "sqf+metrics",
        "adaptive+metrics"
    })
    public String policy;

    private final byte[] value = new byte[100];
    private Partitioner partitioner;
    private Cluster cluster;

    /** Makes the policy and a cluster of 20 topics, 12 partitions each, on 3 nodes. */
    @Setup(Level.Trial)
    public void setUp() {
        Map<String, Object> properties = new TreeMap<>();
        properties.put("airmail.partitioner.metrics", policy.endsWith("+metrics"));
        partitioner = named(policy.replace("+metrics", ""));
        partitioner.configure(properties);
        List<Node> nodes = new ArrayList<>();
        for (int i = 0; i < NODES; i++) {
            nodes.add(new Node(i, "node-" + i, 9092));
        }
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int topic = 0; topic < TOPICS; topic++) {
            for (int i = 0; i < PARTITIONS; i++) {
                Node leader = nodes.get(i % NODES);
                Node[] replicas = {leader};
                partitions.add(new PartitionInfo("topic-" + topic, i, leader, replicas, replicas));
            }
        }
        cluster = new Cluster("benchmark", nodes, partitions, Set.of(), Set.of());
    }

    private static Partitioner named(String policy) {
        switch (policy) {
            case "round-robin":
                return new RoundRobinPartitioner();
            case "default":
                return new PaperDefaultPartitioner();
            case "improved":
                return new ImprovedPartitioner();
            case "node":
                return new NodePartitioner();
            case "sqf":
                return new SqfPartitioner();
            case "adaptive":
                return new AdaptivePartitioner();
            default:
                throw new IllegalArgumentException(
                        "policy " + policy + ": there is none of that name");
        }
    }

    /** By one thread. */
    @Benchmark
    @Threads(1)
    public int alone() {
        return partitioner.partition(TOPIC, null, null, null, value, cluster);
    }

    /** By four threads on one producer. */
    @Benchmark
    @Threads(4)
    public int four() {
        return partitioner.partition(TOPIC, null, null, null, value, cluster);
    }

    /** By 32 threads on one producer. */
    @Benchmark
    @Threads(32)
    public int many() {
        return partitioner.partition(TOPIC, null, null, null, value, cluster);
    }

    /** Takes its beans away. */
    @TearDown(Level.Trial)
    public void tearDown() {
        partitioner.close();
    }
}
