package airmail.kafka;

import static airmail.kafka.Clusters.configured;
import static airmail.kafka.Clusters.led;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.Set;

class MetadataChangeTest {
    private static List<PlannedPartitioner<?>> planned() {
        return List.of(
                configured(new ImprovedPartitioner()),
                configured(new NodePartitioner()),
                configured(new SqfPartitioner()),
                configured(new AdaptivePartitioner()));
    }

    @Test
    void a_layout_is_computed_once_for_each_state_of_the_cluster() {
        Cluster before = Clusters.figure64();
        Cluster after = Clusters.figure64();
        for (PlannedPartitioner<?> partitioner : planned()) {
            for (int i = 0; i < 100; i++) {
                Clusters.ask(partitioner, "A", before);
            }
            assertEquals(1, partitioner.getLayoutsComputed(), partitioner.getPolicy());
            for (int i = 0; i < 100; i++) {
                Clusters.ask(partitioner, "B", after);
            }
            assertEquals(2, partitioner.getLayoutsComputed(), partitioner.getPolicy());
            partitioner.close();
        }
    }

    @Test
    void partitions_that_are_added_get_their_turns() {
        String id = Clusters.newId();
        Cluster two = Clusters.of(id, Set.of(1, 2), Map.of("A", led(1, 2)));
        Cluster four = Clusters.of(id, Set.of(1, 2), Map.of("A", led(1, 2, 1, 2)));
        for (PlannedPartitioner<?> partitioner : planned()) {
            Clusters.ask(partitioner, "A", two);
            boolean[] had = new boolean[4];
            for (int i = 0; i < 100_000; i++) {
                had[Clusters.ask(partitioner, "A", four)] = true;
            }
            for (boolean turn : had) {
                assertTrue(turn, partitioner.getPolicy());
            }
            partitioner.close();
        }
    }

    @Test
    void a_topic_that_the_metadata_lacks_is_refused_by_name() {
        Cluster cluster = Clusters.figure64();
        for (Partitioner partitioner : planned()) {
            Exception error =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> Clusters.ask(partitioner, "C", cluster));
            assertTrue(error.getMessage().contains("topic C"), error.getMessage());
            partitioner.close();
        }
    }

    @Test
    void the_board_of_a_cluster_goes_with_its_last_producer() {
        Cluster cluster = Clusters.of(Map.of("A", led(1, 2)));
        Partitioner x = configured(new SqfPartitioner());
        Partitioner y = configured(new SqfPartitioner());
        assertEquals(0, Clusters.ask(x, "A", cluster));
        assertEquals(1, Clusters.ask(y, "A", cluster));
        assertEquals(0, Clusters.ask(x, "A", cluster));
        x.close();
        assertEquals(1, Clusters.ask(y, "A", cluster));
        assertEquals(0, Clusters.ask(y, "A", cluster));
        y.close();
        Partitioner anew = configured(new SqfPartitioner());
        assertEquals(0, Clusters.ask(anew, "A", cluster));
        anew.close();
    }
}
