package org.apache.kafka.tools;

import org.apache.kafka.clients.producer.KafkaProducer;

import java.io.IOException;
import java.util.List;
import java.util.Properties;
import java.util.function.Function;

/**
 * Kafka's own {@code kafka-producer-perf-test}, loop and all, with a producer of ours under it. It
 * stands in Kafka's package because the tool lets only that replace its producer.
 */
public final class TimedPerformance extends ProducerPerformance {
    private final Function<Properties, KafkaProducer<byte[], byte[]>> producers;

    /** Runs with what {@code producers} makes of the tool's producer properties. */
    public TimedPerformance(Function<Properties, KafkaProducer<byte[], byte[]>> producers) {
        this.producers = producers;
    }

    /**
     * Runs the tool to its end.
     *
     * @param arguments as on the tool's command line
     * @throws IOException if a file that they name cannot be read
     */
    public void run(List<String> arguments) throws IOException {
        start(arguments.toArray(new String[0]));
    }

    @Override
    KafkaProducer<byte[], byte[]> createKafkaProducer(Properties properties) {
        return producers.apply(properties);
    }
}
