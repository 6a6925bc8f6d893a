package airmail.kafka;

import static airmail.kafka.Clusters.configured;
import static airmail.kafka.Clusters.led;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLongArray;

/** One producer, many threads: nothing is lost, and no turn is given twice. */
class ManyThreadsTest {
    private static final int THREADS = 32;
    private static final int RECORDS = 3_000;

    private static void together(Callable<Void> task) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            List<Future<Void>> running = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                running.add(threads.submit(task));
            }
            for (Future<Void> one : running) {
                one.get();
            }
        } finally {
            threads.shutdown();
        }
    }

    private static AtomicLongArray byPartition(
            Partitioner partitioner, Cluster cluster, int partitions) throws Exception {
        AtomicLongArray given = new AtomicLongArray(partitions);
        together(
                () -> {
                    for (int i = 0; i < RECORDS; i++) {
                        given.incrementAndGet(Clusters.ask(partitioner, "A", cluster));
                    }
                    return null;
                });
        partitioner.close();
        return given;
    }

    @Test
    void improved_gives_every_partition_the_same() throws Exception {
        Cluster cluster = Clusters.figure64();
        AtomicLongArray given = byPartition(configured(new ImprovedPartitioner()), cluster, 3);
        for (int i = 0; i < 3; i++) {
            assertEquals(THREADS * RECORDS / 3, given.get(i));
        }
    }

    @Test
    void the_node_policies_give_every_node_the_same() throws Exception {
        for (Partitioner partitioner :
                List.of(configured(new NodePartitioner()), configured(new SqfPartitioner()))) {
            AtomicLongArray given = byPartition(partitioner, Clusters.figure64(), 3);
            assertEquals(THREADS * RECORDS / 2, given.get(0));
            assertEquals(THREADS * RECORDS / 4, given.get(1));
            assertEquals(THREADS * RECORDS / 4, given.get(2));
        }
    }

    @Test
    void producers_that_share_a_board_balance_exactly() throws Exception {
        Cluster cluster = Clusters.figure64();
        Partitioner x = configured(new SqfPartitioner());
        Partitioner y = configured(new SqfPartitioner());
        AtomicLongArray load = new AtomicLongArray(4);
        together(
                () -> {
                    for (int i = 0; i < RECORDS; i++) {
                        int a = Clusters.ask(x, "A", cluster);
                        load.incrementAndGet(Clusters.leader(cluster, "A", a));
                        int b = Clusters.ask(y, "B", cluster);
                        load.incrementAndGet(Clusters.leader(cluster, "B", b));
                    }
                    return null;
                });
        x.close();
        y.close();
        for (int node = 1; node <= 3; node++) {
            assertEquals(THREADS * RECORDS * 2 / 3.0, load.get(node), THREADS);
        }
    }

    @Test
    void nothing_stays_in_flight_when_all_is_answered() throws Exception {
        String id = Clusters.newId();
        Cluster[] states = {
            Clusters.of(id, Set.of(1, 2, 3), Map.of("A", led(1, 2, 3))),
            Clusters.of(id, Set.of(1, 2), Map.of("A", led(1, 2, 1))),
        };
        AdaptivePartitioner partitioner =
                configured(new AdaptivePartitioner(), "client.id", "threads");
        FlightInterceptor interceptor = new FlightInterceptor();
        interceptor.configure(Map.of("client.id", "threads"));
        byte[] value = new byte[1_000];
        together(
                () -> {
                    for (int i = 0; i < RECORDS; i++) {
                        Cluster cluster = states[i / 1_000 % states.length];
                        interceptor.onSend(new ProducerRecord<>("A", value));
                        int partition =
                                partitioner.partition("A", null, null, null, value, cluster);
                        if (i % 10 == 0) {
                            partitioner.onNewBatch("A", cluster, partition);
                            partition =
                                    partitioner.partition("A", null, null, null, value, cluster);
                        }
                        Exception error = i % 7 == 0 ? new TimeoutException() : null;
                        interceptor.onAcknowledgement(
                                new RecordMetadata(
                                        new TopicPartition("A", partition), 0, 0, 0, -1, -1),
                                error);
                    }
                    return null;
                });
        long records = 0;
        for (int node = 1; node <= 3; node++) {
            NodeFlight flight = (NodeFlight) partitioner.tally(node);
            assertEquals(0, flight.getBytesInFlight());
            records += flight.getRecords();
        }
        assertEquals(THREADS * RECORDS, records);
        partitioner.close();
        interceptor.close();
    }

    @Test
    void metadata_may_change_at_any_time() throws Exception {
        String id = Clusters.newId();
        Cluster[] states = {
            Clusters.of(id, Set.of(1, 2, 3), Map.of("A", led(1, 2, 3))),
            Clusters.of(id, Set.of(1, 2), Map.of("A", led(1, 2, null))),
            Clusters.of(id, Set.of(1), Map.of("A", led(1, 1))),
            Clusters.of(id, Set.of(), Map.of("A", led(null, null, null))),
        };
        for (Partitioner partitioner :
                List.of(
                        configured(new PaperDefaultPartitioner()),
                        configured(new ImprovedPartitioner()),
                        configured(new NodePartitioner()),
                        configured(new SqfPartitioner()),
                        configured(new AdaptivePartitioner()))) {
            together(
                    () -> {
                        for (int i = 0; i < 600; i++) {
                            Cluster cluster = states[i / 7 % states.length];
                            int partition = Clusters.ask(partitioner, "A", cluster);
                            boolean online = !cluster.availablePartitionsForTopic("A").isEmpty();
                            assertTrue(partition < cluster.partitionCountForTopic("A"));
                            assertTrue(
                                    !online
                                            || cluster.partitionsForTopic("A")
                                                            .get(partition)
                                                            .leader()
                                                    != null);
                        }
                        return null;
                    });
            partitioner.close();
        }
    }
}
