package airmail.kafka;

import static airmail.kafka.Clusters.configured;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;

/** A record costs no memory: counted by the virtual machine, for the thread that asks. */
class AllocationTest {
    private static final int RECORDS = 50_000;

    /** For the whole run: what the measuring itself takes, and classes that load late. */
    private static final long SLACK_BYTES = 4_096;

    private static void assertAllocatesNothing(String what, Runnable record) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (int i = 0; i < RECORDS; i++) {
            record.run();
        }
        long before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
        for (int i = 0; i < RECORDS; i++) {
            record.run();
        }
        long bytes = threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
        assertTrue(
                bytes < SLACK_BYTES,
                () -> what + ": " + bytes + " bytes for " + RECORDS + " records");
    }

    @Test
    void no_policy_allocates_for_a_record() {
        Cluster cluster = Clusters.figure64();
        byte[] key = {1, 2, 3, 4, 5};
        byte[] value = new byte[100];
        for (Partitioner partitioner :
                List.of(
                        configured(new PaperDefaultPartitioner()),
                        configured(new ImprovedPartitioner()),
                        configured(new NodePartitioner()),
                        configured(new SqfPartitioner()),
                        configured(new AdaptivePartitioner()))) {
            String name = partitioner.getClass().getSimpleName();
            assertAllocatesNothing(
                    name, () -> partitioner.partition("A", null, null, null, value, cluster));
            assertAllocatesNothing(
                    name + " by key",
                    () -> partitioner.partition("A", null, key, null, value, cluster));
            partitioner.close();
        }
    }

    @Test
    void feedback_allocates_nothing_either() {
        Cluster cluster = Clusters.figure64();
        AdaptivePartitioner partitioner =
                configured(new AdaptivePartitioner(), "client.id", "feedback");
        FlightInterceptor interceptor = new FlightInterceptor();
        interceptor.configure(Map.of("client.id", "feedback"));
        byte[] value = new byte[100];
        ProducerRecord<Object, Object> record = new ProducerRecord<>("A", value);
        RecordMetadata[] answers = new RecordMetadata[3];
        for (int i = 0; i < answers.length; i++) {
            answers[i] = new RecordMetadata(new TopicPartition("A", i), 0, 0, 0, 0, 100);
        }
        assertAllocatesNothing(
                "AdaptivePartitioner with FlightInterceptor",
                () -> {
                    interceptor.onSend(record);
                    int partition = partitioner.partition("A", null, null, null, value, cluster);
                    interceptor.onAcknowledgement(answers[partition], null);
                });
        partitioner.close();
        interceptor.close();
    }
}
