package airmail.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.junit.jupiter.api.Test;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Set;

import javax.management.MBeanServer;
import javax.management.ObjectName;

class BeansTest {
    private static final MBeanServer SERVER = ManagementFactory.getPlatformMBeanServer();

    private static Set<ObjectName> names(String clientId) throws Exception {
        String query = "airmail.partitioner:client-id=" + ObjectName.quote(clientId) + ",*";
        return SERVER.queryNames(new ObjectName(query), null);
    }

    private static long records(Partitioner partitioner, String clientId, int node)
            throws Exception {
        String name =
                "airmail.partitioner:type=Node,policy="
                        + partitioner.getClass().getSimpleName()
                        + ",client-id="
                        + ObjectName.quote(clientId)
                        + ",node-id="
                        + node;
        return (Long) SERVER.getAttribute(new ObjectName(name), "Records");
    }

    @Test
    void every_policy_shows_its_records_by_node_until_it_is_closed() throws Exception {
        Cluster cluster = Clusters.figure64();
        for (Partitioner partitioner :
                List.of(
                        new PaperDefaultPartitioner(),
                        new ImprovedPartitioner(),
                        new NodePartitioner(),
                        new SqfPartitioner(),
                        new AdaptivePartitioner())) {
            String clientId = Clusters.newId();
            Clusters.configured(partitioner, "client.id", clientId);
            for (int i = 0; i < 30; i++) {
                Clusters.ask(partitioner, "A", cluster);
                partitioner.partition("B", null, new byte[] {(byte) i}, null, null, cluster);
            }
            long sum = 0;
            for (int node = 1; node <= 3; node++) {
                sum += records(partitioner, clientId, node);
            }
            assertEquals(60, sum, partitioner.getClass().getSimpleName());
            partitioner.close();
            assertTrue(names(clientId).isEmpty());
        }
    }

    @Test
    void without_metrics_nothing_is_shown() throws Exception {
        Partitioner partitioner =
                Clusters.configured(
                        new NodePartitioner(),
                        "client.id",
                        "quiet",
                        "airmail.partitioner.metrics",
                        false);
        Clusters.ask(partitioner, "A", Clusters.figure64());
        assertTrue(names("quiet").isEmpty());
        partitioner.close();
    }

    @Test
    void a_second_producer_of_one_name_works_without_metrics() throws Exception {
        Cluster cluster = Clusters.figure64();
        Partitioner first = Clusters.configured(new NodePartitioner(), "client.id", "twin");
        Partitioner second = Clusters.configured(new NodePartitioner(), "client.id", "twin");
        Clusters.ask(first, "A", cluster);
        Clusters.ask(second, "A", cluster);
        assertEquals(1, records(first, "twin", 1));
        second.close();
        assertEquals(1, records(first, "twin", 1));
        first.close();
    }
}
