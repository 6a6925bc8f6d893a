package airmail.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;
import org.junit.jupiter.api.Test;

import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;

import javax.management.ObjectName;

/** Kafka's own producer makes and configures what its properties name; nothing is sent. */
class StockProducerTest {
    private static KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> properties = new HashMap<>();
        // Nobody listens there, and nobody is asked.
        properties.put("bootstrap.servers", "127.0.0.1:1");
        properties.put("key.serializer", ByteArraySerializer.class);
        properties.put("value.serializer", ByteArraySerializer.class);
        properties.putAll(more);
        return new KafkaProducer<>(properties);
    }

    private static boolean hasFeedback(String clientId) throws Exception {
        String name =
                "airmail.partitioner:type=Policy,policy=AdaptivePartitioner,client-id="
                        + ObjectName.quote(clientId);
        return (Boolean)
                ManagementFactory.getPlatformMBeanServer()
                        .getAttribute(new ObjectName(name), "FeedbackPresent");
    }

    private static Map<String, Object> adaptive(String clientId) {
        return Map.of(
                "partitioner.class", AdaptivePartitioner.class.getName(), "client.id", clientId);
    }

    private static Map<String, Object> adaptiveWithFeedback(String clientId) {
        Map<String, Object> properties = new HashMap<>(adaptive(clientId));
        properties.put("interceptor.classes", FlightInterceptor.class.getName());
        return properties;
    }

    @Test
    void the_tests_run_with_the_client_that_they_claim() {
        assertEquals(System.getProperty("kafka.version"), AppInfoParser.getVersion());
    }

    @Test
    void it_takes_every_policy_by_name() {
        for (Class<?> policy :
                new Class<?>[] {
                    PaperDefaultPartitioner.class,
                    ImprovedPartitioner.class,
                    NodePartitioner.class,
                    SqfPartitioner.class,
                    AdaptivePartitioner.class
                }) {
            producer(Map.of("partitioner.class", policy.getName())).close();
        }
    }

    @Test
    void partitioner_and_interceptor_find_each_other() throws Exception {
        try (KafkaProducer<byte[], byte[]> with = producer(adaptiveWithFeedback("with"));
                KafkaProducer<byte[], byte[]> without = producer(adaptive("without"))) {
            assertTrue(hasFeedback("with"));
            assertTrue(!hasFeedback("without"));
        }
    }

    @Test
    void an_interceptor_does_not_join_an_earlier_producer_of_its_name() throws Exception {
        try (KafkaProducer<byte[], byte[]> earlier = producer(adaptive("reused"))) {
            producer(adaptiveWithFeedback("reused")).close();
            assertTrue(!hasFeedback("reused"));
        }
    }

    @Test
    void a_misspelt_property_stops_the_producer_by_name() {
        KafkaException error =
                assertThrows(
                        KafkaException.class,
                        () ->
                                producer(
                                        Map.of(
                                                "partitioner.class",
                                                NodePartitioner.class.getName(),
                                                "airmail.partitioner.ignorekeys",
                                                "true")));
        Throwable cause = error.getCause() == null ? error : error.getCause();
        assertTrue(
                cause.getMessage().contains("airmail.partitioner.ignorekeys"), cause.getMessage());
    }
}
