package airmail.kafka;

import static airmail.kafka.Clusters.led;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;

/**
 * Records flow through simulated nodes, a millisecond at a time: each answers so many records in
 * one, in order, and the producer's buffers hold so many. No thread and no clock of the machine
 * takes part.
 */
class AdaptiveFlowTest {
    private static final byte[] VALUE = new byte[1_000];
    private static final int NODES = 3;
    private static final RecordMetadata[] ANSWERS = answers();

    private final Cluster cluster = Clusters.of(Map.of("A", led(1, 2, 3, 1, 2, 3)));
    private final FlightInterceptor interceptor = new FlightInterceptor();
    private final List<Queue<Integer>> queues = new ArrayList<>();
    private final int[] answersEachMs = new int[NODES];
    private final int[] given = new int[NODES];
    private int buffersRecords = 6_000;
    private int buffered;
    private long now = 1;
    private AdaptivePartitioner partitioner;

    private static RecordMetadata[] answers() {
        RecordMetadata[] answers = new RecordMetadata[2 * NODES];
        for (int i = 0; i < answers.length; i++) {
            answers[i] = new RecordMetadata(new TopicPartition("A", i), 0, 0, 0, -1, VALUE.length);
        }
        return answers;
    }

    @BeforeEach
    void configure() {
        partitioner = Clusters.configured(new AdaptivePartitioner(() -> now), "client.id", "flow");
        interceptor.configure(Map.of("client.id", "flow"));
        for (int i = 0; i < NODES; i++) {
            queues.add(new ArrayDeque<>());
            answersEachMs[i] = 100;
        }
    }

    @AfterEach
    void close() {
        partitioner.close();
        interceptor.close();
    }

    /** Offers so many records each millisecond; what the buffers do not hold waits outside. */
    private void flow(int millis, int offered) {
        Arrays.fill(given, 0);
        for (int ms = 0; ms < millis; ms++) {
            now += 1_000_000;
            for (int i = 0; i < offered && buffered < buffersRecords; i++) {
                interceptor.onSend(new ProducerRecord<>("A", VALUE));
                int partition = partitioner.partition("A", null, null, null, VALUE, cluster);
                queues.get(partition % NODES).add(partition);
                given[partition % NODES]++;
                buffered++;
            }
            for (int node = 0; node < NODES; node++) {
                for (int i = 0; i < answersEachMs[node] && !queues.get(node).isEmpty(); i++) {
                    interceptor.onAcknowledgement(ANSWERS[queues.get(node).remove()], null);
                    buffered--;
                }
            }
        }
    }

    private int all() {
        return given[0] + given[1] + given[2];
    }

    private double part(int node) {
        return (double) given[node] / all();
    }

    @Test
    void nodes_that_do_well_have_equal_parts() {
        flow(2_000, 150);
        for (int node = 0; node < NODES; node++) {
            assertEquals(1.0 / NODES, part(node), 0.01, "node " + node);
        }
    }

    @Test
    void nodes_that_are_all_busy_get_what_they_can_take() {
        answersEachMs[0] = 20;
        flow(2_000, 1_000);
        flow(2_000, 1_000);
        assertEquals(20 / 220.0, part(0), 0.02);
        assertEquals(100 / 220.0, part(1), 0.02);
        assertEquals(100 / 220.0, part(2), 0.02);
    }

    @Test
    void nodes_that_are_all_busy_have_as_long_to_work_for_what_they_have() {
        buffersRecords = 220 * 3_000;
        answersEachMs[0] = 20;
        flow(10_000, 1_000);
        for (int node = 0; node < NODES; node++) {
            double workMs = (double) queues.get(node).size() / answersEachMs[node];
            assertEquals(3_000, workMs, 300, "node " + node);
        }
    }

    @Test
    void a_slow_node_does_not_hold_up_the_others() {
        answersEachMs[0] = 20;
        flow(1_000, 200);
        flow(1_000, 200);
        // Turns would give it a third, and the flow would be three times what it takes.
        assertEquals(200 * 1_000, all(), 200 * 1_000 * 0.05);
    }

    @Test
    void a_node_that_stops_is_left_within_a_second() {
        flow(1_000, 200);
        answersEachMs[0] = 0;
        flow(1_000, 200);
        flow(1_000, 200);
        assertTrue(part(0) < 0.002, () -> "part " + part(0));
        assertEquals(200 * 1_000, all(), "the others take it all");
    }

    @Test
    void a_node_that_is_back_is_used_within_a_second() {
        answersEachMs[0] = 0;
        flow(5_000, 200);
        answersEachMs[0] = 100;
        flow(1_000, 200);
        assertTrue(part(0) > 0, "tried");
        flow(2_000, 200);
        assertEquals(1.0 / NODES, part(0), 0.05);
    }

    @Test
    void a_trickle_leaves_a_node_that_stops_too() {
        flow(1_000, 1);
        answersEachMs[0] = 0;
        flow(1_000, 1);
        flow(1_000, 1);
        assertTrue(part(0) < 0.15, () -> "part " + part(0));
    }
}
