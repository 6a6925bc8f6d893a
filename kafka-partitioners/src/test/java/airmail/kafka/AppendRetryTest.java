package airmail.kafka;

import static airmail.kafka.Clusters.configured;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.apache.kafka.common.Cluster;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.List;

/**
 * What clients before 4.0 do for a record that opens a batch: ask, tell of the new batch, ask
 * again.
 */
class AppendRetryTest {
    @BeforeEach
    void the_client_asks_twice() {
        assumeTrue(AppendRetry.POSSIBLE, "this client asks once");
    }

    private static int askTwice(TurnPartitioner partitioner, String topic, Cluster cluster) {
        int first = Clusters.ask(partitioner, topic, cluster);
        partitioner.onNewBatch(topic, cluster, first);
        assertEquals(first, Clusters.ask(partitioner, topic, cluster));
        return first;
    }

    @Test
    void a_record_that_opens_a_batch_has_one_turn() {
        Cluster cluster = Clusters.figure64();
        for (TurnPartitioner partitioner :
                List.of(
                        configured(new ImprovedPartitioner()),
                        configured(new NodePartitioner()),
                        configured(new SqfPartitioner()))) {
            int[] given = new int[3];
            for (int i = 0; i < 12; i++) {
                given[
                        i % 2 == 0
                                ? askTwice(partitioner, "A", cluster)
                                : Clusters.ask(partitioner, "A", cluster)]++;
            }
            int[] fair =
                    partitioner instanceof ImprovedPartitioner
                            ? new int[] {4, 4, 4}
                            : new int[] {6, 3, 3};
            assertArrayEquals(fair, given, partitioner.getPolicy());
            partitioner.close();
        }
    }

    @Test
    void the_papers_default_gives_one_turn_too() {
        Cluster cluster = Clusters.figure64();
        PaperDefaultPartitioner partitioner = configured(new PaperDefaultPartitioner());
        int first = Clusters.ask(partitioner, "A", cluster);
        partitioner.onNewBatch("A", cluster, first);
        assertEquals(first, Clusters.ask(partitioner, "A", cluster));
        assertEquals(first + 1, Clusters.ask(partitioner, "A", cluster));
        partitioner.close();
    }

    @Test
    void a_batch_of_a_record_that_was_not_ours_repeats_nothing() {
        Cluster cluster = Clusters.figure64();
        ImprovedPartitioner partitioner = configured(new ImprovedPartitioner());
        assertEquals(0, Clusters.ask(partitioner, "A", cluster));
        // The application chose partition 2 itself; nobody will ask for that record.
        partitioner.onNewBatch("A", cluster, 2);
        assertEquals(1, Clusters.ask(partitioner, "A", cluster));
        partitioner.close();
    }
}
