package airmail.kafka;

import org.apache.kafka.clients.producer.Partitioner;

/**
 * Lets a record be counted once though the producer asks for its partition twice.
 *
 * <p>Clients before 4.0 ask again for each record that opens a batch, after a call of {@code
 * onNewBatch}; a rotation that moves on then gives some partitions more than others (KAFKA-9965).
 * So what was given last is remembered for each thread, and given again. {@code onNewBatch} also
 * comes for records whose partition the application chose, for which nobody asks again: told apart
 * by topic and partition.
 */
final class AppendRetry {
    /** Whether this client asks twice; decided once, so that others pay nothing. */
    static final boolean POSSIBLE = asksTwice(Partitioner.class);

    /** A record that is asked for the first time. */
    static final int NEW = -1;

    private static final class Last {
        String topic;
        int partition;
        boolean again;
    }

    private final ThreadLocal<Last> last = ThreadLocal.withInitial(Last::new);

    private static boolean asksTwice(Class<?> partitioner) {
        for (java.lang.reflect.Method method : partitioner.getMethods()) {
            if (method.getName().equals("onNewBatch")) {
                return true;
            }
        }
        return false;
    }

    /** Where this very record, known by its topic's object, was placed already, or {@link #NEW}. */
    int partition(String topic) {
        Last last = this.last.get();
        boolean repeated = last.again && last.topic == topic;
        last.again = false;
        return repeated ? last.partition : NEW;
    }

    void placed(String topic, int partition) {
        Last last = this.last.get();
        last.topic = topic;
        last.partition = partition;
    }

    void newBatch(String topic, int partition) {
        Last last = this.last.get();
        last.again = last.topic == topic && last.partition == partition;
    }
}
