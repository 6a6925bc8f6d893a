package airmail.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.junit.jupiter.api.Test;

/** Counters that reach the end of their range choose as before. */
class OverflowTest {
    @Test
    void shortest_queue_first_is_exact_while_its_counts_overflow() {
        Cluster cluster = Clusters.figure64();
        QueueBoard board = new QueueBoard(Long.MAX_VALUE - 5);
        Partitioner sqf = Clusters.configured(new SqfPartitioner(board));
        int[] load = new int[4];
        for (int i = 0; i < 30; i++) {
            for (String topic : new String[] {"A", "B"}) {
                load[Clusters.leader(cluster, topic, Clusters.ask(sqf, topic, cluster))]++;
            }
        }
        assertEquals(20, load[1]);
        assertEquals(20, load[2]);
        assertEquals(20, load[3]);
    }

    @Test
    void a_rotation_stays_within_its_list_when_it_overflows() {
        Rotation rotation = new Rotation(Long.MAX_VALUE - 2);
        for (int i = 0; i < 6; i++) {
            int turn = rotation.next(3);
            assertTrue(turn >= 0 && turn < 3, () -> "turn " + turn);
        }
    }

    @Test
    void node_turns_go_on_past_the_range_of_an_int() {
        Cluster cluster = Clusters.figure64();
        Partitioner node =
                Clusters.configured(
                        new NodePartitioner(), "airmail.partitioner.start", Integer.MAX_VALUE);
        int[] load = new int[3];
        for (int i = 0; i < 12; i++) {
            load[Clusters.ask(node, "A", cluster)]++;
        }
        assertEquals(6, load[0]);
        assertEquals(3, load[1]);
        assertEquals(3, load[2]);
    }
}
