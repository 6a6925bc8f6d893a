package airmail.kafka;

import static airmail.kafka.Clusters.led;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The adaptive policy with its interceptor, step by step; {@link AdaptiveFlowTest} lets records
 * flow.
 */
class AdaptivePartitionerTest {
    private static final byte[] VALUE = new byte[1_000];
    private static final int IN_BATCH =
            (16_384 - BatchBytes.BATCH_HEAD) / BatchBytes.of(null, VALUE);

    private final Cluster cluster = Clusters.of(Map.of("A", led(1, 2, 2)));
    private final FlightInterceptor interceptor = new FlightInterceptor();
    private long now = 1;
    private AdaptivePartitioner partitioner;

    @BeforeEach
    void configure() {
        partitioner =
                Clusters.configured(new AdaptivePartitioner(() -> now), "client.id", "adaptive");
        interceptor.configure(Map.of("client.id", "adaptive"));
    }

    @AfterEach
    void close() {
        partitioner.close();
        interceptor.close();
    }

    private int send() {
        interceptor.onSend(new ProducerRecord<>("A", VALUE));
        return partitioner.partition("A", null, null, null, VALUE, cluster);
    }

    private void answer(int partition, Exception error) {
        interceptor.onAcknowledgement(
                new RecordMetadata(new TopicPartition("A", partition), 0, 0, 0, -1, -1), error);
    }

    private NodeFlight node(int id) {
        return (NodeFlight) partitioner.tally(id);
    }

    private void passMillis(long millis) {
        now += millis * 1_000_000;
    }

    @Test
    void a_partition_keeps_its_turn_until_its_batch_is_full() {
        List<Integer> turns = new ArrayList<>();
        for (int i = 0; i < 4 * IN_BATCH; i++) {
            int partition = send();
            answer(partition, null);
            if (turns.isEmpty() || turns.get(turns.size() - 1) != partition) {
                assertEquals(0, i % IN_BATCH, "record " + i);
                turns.add(partition);
            }
        }
        assertEquals(List.of(0, 1, 0, 2), turns);
    }

    @Test
    void a_turn_ends_with_its_time_though_the_batch_is_not_full() {
        assertEquals(0, send());
        passMillis(99);
        assertEquals(0, send());
        passMillis(1);
        assertEquals(1, send());
    }

    @Test
    void a_record_larger_than_a_batch_has_a_turn_of_its_own() {
        byte[] large = new byte[20_000];
        int first = partitioner.partition("A", null, null, null, large, cluster);
        int second = partitioner.partition("A", null, null, null, large, cluster);
        assertEquals(0, first);
        assertEquals(1, second);
    }

    @Test
    void without_interceptor_nodes_have_their_turns() {
        Partitioner alone = Clusters.configured(new AdaptivePartitioner(() -> now));
        int[] given = new int[3];
        for (int i = 0; i < 40 * IN_BATCH; i++) {
            given[alone.partition("A", null, null, null, VALUE, cluster)]++;
        }
        assertEquals(20 * IN_BATCH, given[0]);
        assertEquals(10 * IN_BATCH, given[1]);
        assertEquals(10 * IN_BATCH, given[2]);
        alone.close();
    }

    @Test
    void what_is_in_flight_is_what_was_not_answered() {
        int size = BatchBytes.of(null, VALUE);
        for (int i = 0; i < 3; i++) {
            assertEquals(0, send());
        }
        assertEquals(3 * size, node(1).getBytesInFlight());
        answer(0, null);
        assertEquals(2 * size, node(1).getBytesInFlight());
        answer(0, new TimeoutException());
        answer(0, null);
        assertEquals(0, node(1).getBytesInFlight());
    }

    @Test
    void a_record_that_the_producer_refuses_is_not_in_flight() {
        send();
        answer(-1, new RecordTooLargeException());
        assertEquals(0, node(1).getBytesInFlight());
        assertEquals(0, node(1).getRecords());
        // Refused before it had a partition: nothing to take back, neither now nor of the one
        // before.
        send();
        interceptor.onSend(new ProducerRecord<>("A", VALUE));
        answer(-1, new TimeoutException());
        assertEquals(BatchBytes.of(null, VALUE), node(1).getBytesInFlight());
    }

    @Test
    void a_partition_that_the_application_chose_is_in_flight_too() {
        assertEquals(0, send());
        interceptor.onSend(new ProducerRecord<>("A", 0, null, null, VALUE));
        assertEquals(2 * BatchBytes.of(null, VALUE), node(1).getBytesInFlight());
        answer(0, null);
        answer(0, null);
        assertEquals(0, node(1).getBytesInFlight());
    }

    @Test
    void a_partition_that_cannot_be_is_not_made() {
        interceptor.onSend(new ProducerRecord<>("A", Integer.MAX_VALUE, null, null, VALUE));
        answer(Integer.MAX_VALUE, new TimeoutException());
        assertEquals(0, send());
        assertEquals(BatchBytes.of(null, VALUE), node(1).getBytesInFlight());
    }

    @Test
    void what_is_in_flight_moves_with_its_leader() {
        send();
        Cluster moved = Clusters.of(Map.of("A", led(2, 2, 2)));
        partitioner.partition("A", null, new byte[] {1}, null, VALUE, moved);
        assertEquals(0, node(1).getBytesInFlight());
        assertTrue(node(2).getBytesInFlight() >= 2 * VALUE.length);
    }

    @Test
    void keyed_records_go_by_key_and_count_as_in_flight() {
        byte[] key = {1, 2, 3};
        interceptor.onSend(new ProducerRecord<>("A", key, VALUE));
        int partition = partitioner.partition("A", key, key, null, VALUE, cluster);
        assertEquals(Murmur2.partition(key, 3), partition);
        assertTrue(node(Clusters.leader(cluster, "A", partition)).getBytesInFlight() > 0);
    }

    @Test
    void a_node_whose_records_fail_is_passed_over_then_tried_again() {
        for (int i = 0; i < 2 * IN_BATCH; i++) {
            answer(send(), null);
        }
        answer(0, new TimeoutException());
        for (int i = 0; i < 3 * IN_BATCH; i++) {
            int partition = send();
            answer(partition, null);
            assertTrue(partition != 0, "record " + i);
        }
        passMillis(1_000);
        boolean tried = false;
        for (int i = 0; i < 3 * IN_BATCH; i++) {
            int partition = send();
            answer(partition, null);
            tried |= partition == 0;
        }
        assertTrue(tried);
    }

    @Test
    void a_new_batch_of_an_older_client_moves_the_turn_and_counts_the_record_once() {
        // The first record opens a batch: it stays.
        int first = send();
        partitioner.onNewBatch("A", cluster, first);
        assertEquals(first, partitioner.partition("A", null, null, null, VALUE, cluster));
        assertEquals(first, send());
        // The batch has gone before it was full: the record that opens the next goes elsewhere.
        interceptor.onSend(new ProducerRecord<>("A", VALUE));
        assertEquals(first, partitioner.partition("A", null, null, null, VALUE, cluster));
        partitioner.onNewBatch("A", cluster, first);
        assertEquals(1, partitioner.partition("A", null, null, null, VALUE, cluster));
        assertEquals(2, node(1).getRecords());
        assertEquals(1, node(2).getRecords());
        assertEquals(BatchBytes.of(null, VALUE), node(2).getBytesInFlight());
    }
}
