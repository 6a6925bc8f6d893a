package airmail.kafka;

import org.apache.kafka.clients.producer.BufferExhaustedException;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.RetriableException;

import java.util.Map;

/**
 * Tells a producer's {@link AdaptivePartitioner} what was acknowledged, and when: {@code
 * interceptor.classes=airmail.kafka.FlightInterceptor}.
 *
 * <p>A stock producer tells each record's end to its interceptors, exactly once, and to nobody else
 * that one can configure. It changes no record. Where others change a record's partition, it stands
 * last.
 */
public final class FlightInterceptor implements ProducerInterceptor<Object, Object> {
    private FlightBoard board;

    @Override
    public void configure(Map<String, ?> properties) {
        String clientId = String.valueOf(properties.get(ProducerConfig.CLIENT_ID_CONFIG));
        board = FlightRegistry.join(clientId, FlightRegistry.Role.INTERCEPTOR, System::nanoTime);
        board.attach(true);
    }

    @Override
    public ProducerRecord<Object, Object> onSend(ProducerRecord<Object, Object> record) {
        board.sending(record.topic(), record.partition());
        return record;
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception exception) {
        if (metadata != null) {
            board.arrived(metadata.topic(), metadata.partition(), isOfNode(exception));
        }
    }

    /**
     * Whether a failure speaks against the node: not a record too large, nor our own full buffers.
     */
    private static boolean isOfNode(Exception exception) {
        return exception instanceof RetriableException
                && !(exception instanceof BufferExhaustedException);
    }

    @Override
    public void close() {
        board.attach(false);
        FlightRegistry.leave(board);
    }
}
