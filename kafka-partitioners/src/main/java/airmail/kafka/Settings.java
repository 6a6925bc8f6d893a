package airmail.kafka;

import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;

import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A partitioner's properties, among those of its producer.
 *
 * <p>A name with our prefix that we do not know is refused: a misspelt property that is ignored is
 * found too late.
 */
final class Settings {
    static final String PREFIX = "airmail.partitioner.";
    static final String IGNORE_KEYS = PREFIX + "ignore.keys";
    static final String START = PREFIX + "start";
    static final String METRICS = PREFIX + "metrics";
    static final String SQF_SHARED = PREFIX + "sqf.shared";
    static final String STICKY_BYTES = PREFIX + "adaptive.sticky.bytes";
    static final String STICKY_MS = PREFIX + "adaptive.sticky.ms";
    static final String DECAY_MS = PREFIX + "adaptive.decay.ms";
    static final String TOLERANCE = PREFIX + "adaptive.tolerance";

    /** The value of {@link #START} and {@link #STICKY_BYTES} by which we choose. */
    private static final int OURS = -1;

    private static final int BATCH_BYTES = 16_384;
    private static final int STICKY_MS_MAX = 60_000;

    private static final ConfigDef DEFINITION =
            new ConfigDef()
                    .define(
                            IGNORE_KEYS,
                            Type.BOOLEAN,
                            false,
                            Importance.MEDIUM,
                            "as the paper does")
                    .define(
                            START,
                            Type.INT,
                            OURS,
                            Range.atLeast(OURS),
                            Importance.LOW,
                            "first turn")
                    .define(METRICS, Type.BOOLEAN, true, Importance.LOW, "count, and show by JMX")
                    .define(SQF_SHARED, Type.BOOLEAN, true, Importance.MEDIUM, "as figure 6.7")
                    .define(
                            STICKY_BYTES,
                            Type.INT,
                            OURS,
                            Range.atLeast(OURS),
                            Importance.LOW,
                            "bytes that go to a partition before the next choice")
                    .define(
                            STICKY_MS,
                            Type.INT,
                            100,
                            Range.between(1, STICKY_MS_MAX),
                            Importance.LOW,
                            "longest time between choices")
                    .define(
                            DECAY_MS,
                            Type.INT,
                            150,
                            Range.between(1, STICKY_MS_MAX),
                            Importance.LOW,
                            "how fast a latency is forgotten")
                    .define(
                            TOLERANCE,
                            Type.DOUBLE,
                            2.0,
                            Range.between(1.0, 100.0),
                            Importance.LOW,
                            "how much worse a node may be and still have its turn")
                    .define(ProducerConfig.CLIENT_ID_CONFIG, Type.STRING, "", Importance.LOW, "")
                    .define(
                            ProducerConfig.BATCH_SIZE_CONFIG,
                            Type.INT,
                            BATCH_BYTES,
                            Importance.LOW,
                            "")
                    .define(ProducerConfig.LINGER_MS_CONFIG, Type.LONG, 0L, Importance.LOW, "");

    private final Map<String, Object> values;

    private Settings(Map<String, Object> values) {
        this.values = values;
    }

    /** Reads them; a {@link ConfigException} names the property, its value and what is allowed. */
    static Settings of(Map<String, ?> properties) {
        for (Map.Entry<String, ?> property : properties.entrySet()) {
            String name = property.getKey();
            if (name.startsWith(PREFIX) && !DEFINITION.names().contains(name)) {
                throw new ConfigException(name, property.getValue(), "there is no such property");
            }
        }
        return new Settings(DEFINITION.parse(properties));
    }

    boolean ignoreKeys() {
        return (Boolean) values.get(IGNORE_KEYS);
    }

    /**
     * Where a rotation begins: a place of its own, so that producers do not go in step (figure
     * 6.1).
     */
    int start() {
        int start = (Integer) values.get(START);
        return start == OURS ? ThreadLocalRandom.current().nextInt(Integer.MAX_VALUE) : start;
    }

    boolean metrics() {
        return (Boolean) values.get(METRICS);
    }

    boolean sqfShared() {
        return (Boolean) values.get(SQF_SHARED);
    }

    int stickyBytes() {
        int bytes = (Integer) values.get(STICKY_BYTES);
        return bytes == OURS ? (Integer) values.get(ProducerConfig.BATCH_SIZE_CONFIG) : bytes;
    }

    /** Not shorter than the producer lingers: that would cut one batch into several. */
    long stickyMs() {
        return Math.max(
                (Integer) values.get(STICKY_MS),
                (Long) values.get(ProducerConfig.LINGER_MS_CONFIG));
    }

    int decayMs() {
        return (Integer) values.get(DECAY_MS);
    }

    double tolerance() {
        return (Double) values.get(TOLERANCE);
    }

    String clientId() {
        return (String) values.get(ProducerConfig.CLIENT_ID_CONFIG);
    }
}
