package airmail.kafka.load;

import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.errors.InterruptException;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;

/**
 * A stock producer that enters into a {@link Ledger} when each record is sent and acknowledged:
 * from before {@code send}, with what it waits there for room, as Kafka's tool does.
 */
final class TimedProducer extends KafkaProducer<byte[], byte[]> {
    /** The producer's own metrics that are told, by the name under which. */
    private static final Map<String, String> METRICS =
            Map.of(
                    "io-time-ns-avg", "io_time_ns",
                    "batch-size-avg", "batch_bytes",
                    "records-per-request-avg", "records_per_request",
                    "request-total", "requests");

    private final Ledger ledger;
    private final Pace.Runner runner;
    private final Map<String, Double> metrics = new HashMap<>();

    /** {@code runner} is null if it keeps no pace. */
    TimedProducer(Properties properties, Ledger ledger, Pace.Runner runner) {
        super(properties);
        this.ledger = ledger;
        this.runner = runner;
    }

    @Override
    public Future<RecordMetadata> send(
            ProducerRecord<byte[], byte[]> record, Callback callback) {
        awaitTurn();
        long now = System.nanoTime();
        long number = ledger.sending(now);
        return super.send(
                record,
                (metadata, error) -> {
                    ledger.answered(number, now, error);
                    callback.onCompletion(metadata, error);
                });
    }

    private void awaitTurn() {
        try {
            if (runner != null) {
                runner.next();
            }
        } catch (InterruptedException interrupted) {
            throw new InterruptException(interrupted);
        }
    }

    /** Sends what is left, reads the metrics while there are some, and closes. */
    @Override
    public void close() {
        flush();
        for (Map.Entry<MetricName, ? extends Metric> metric : metrics().entrySet()) {
            String name = METRICS.get(metric.getKey().name());
            Object value = metric.getValue().metricValue();
            if (name != null
                    && metric.getKey().group().equals("producer-metrics")
                    && value instanceof Double) {
                metrics.put(name, (Double) value);
            }
        }
        super.close();
    }

    /** Adds the metrics, as they were before it was closed. */
    void tell(ObjectNode told) {
        metrics.forEach(
                (name, value) -> {
                    if (!value.isNaN()) {
                        told.put(name, value);
                    }
                });
    }
}
