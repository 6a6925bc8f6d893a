package airmail.kafka;

import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.LongSupplier;

/**
 * What one producer has in flight: its {@link AdaptivePartitioner} says what sets out, its {@link
 * FlightInterceptor} what arrives.
 */
final class FlightBoard {
    /** A thread's last record, for as long as it may still be taken back. */
    static final class Departure {
        private String topic;
        private Place place;
        private PartitionFlight flight;
        private int bytes;

        void set(String topic, Place place, PartitionFlight flight, int bytes) {
            this.topic = topic;
            this.place = place;
            this.flight = flight;
            this.bytes = bytes;
        }

        void forget() {
            topic = null;
            place = null;
            flight = null;
        }

        boolean isTo(String topic, int partition) {
            return place != null && this.topic == topic && place.partition == partition;
        }

        int bytes() {
            return bytes;
        }

        /** It does not set out after all, or elsewhere. Its node's tally forgets it. */
        void takeBack(boolean counted) {
            if (place == null) {
                return;
            }
            if (counted) {
                place.leader.takeBack();
            }
            if (flight != null) {
                flight.takeBack();
            }
            forget();
        }
    }

    private static final PartitionFlight[] NONE = {};

    /**
     * Above this an application's own choice of a partition is taken for a mistake, and not
     * counted.
     */
    private static final int CHOSEN_PARTITIONS_MAX = 1 << 14;

    final LongSupplier clock;
    private final ConcurrentMap<String, PartitionFlight[]> topics = new ConcurrentHashMap<>();
    private final ThreadLocal<Departure> departures = ThreadLocal.withInitial(Departure::new);
    private volatile boolean attached;
    private volatile boolean counting;

    FlightBoard(LongSupplier clock) {
        this.clock = clock;
    }

    /** Whether arrivals are reported. */
    boolean isAttached() {
        return attached;
    }

    void attach(boolean reporting) {
        attached = reporting;
    }

    /** Whether the partitioner counts records by node. */
    void counting(boolean counting) {
        this.counting = counting;
    }

    Departure departure() {
        return departures.get();
    }

    /**
     * The flights of a topic's first {@code partitions} partitions, the same ones on every call.
     */
    PartitionFlight[] flights(String topic, int partitions) {
        PartitionFlight[] known = topics.getOrDefault(topic, NONE);
        if (known.length >= partitions) {
            return known;
        }
        return topics.compute(
                topic,
                (name, old) -> {
                    int length = old == null ? 0 : old.length;
                    PartitionFlight[] grown =
                            old == null
                                    ? new PartitionFlight[partitions]
                                    : Arrays.copyOf(old, Math.max(length, partitions));
                    for (int i = length; i < grown.length; i++) {
                        grown[i] = new PartitionFlight();
                    }
                    return grown;
                });
    }

    /**
     * A send begins; {@code partition} if the application chose it, so that no partitioner is
     * asked.
     */
    void sending(String topic, Integer partition) {
        departure().forget();
        if (partition != null && partition >= 0 && partition < CHOSEN_PARTITIONS_MAX) {
            flights(topic, partition + 1)[partition].depart(0, clock.getAsLong());
        }
    }

    /** A record was acknowledged or has failed; {@code partition} negative if it never had one. */
    void arrived(String topic, int partition, boolean nodeFailed) {
        if (partition < 0) {
            // Refused between the partitioner and the buffers, on the thread that sends.
            departure().takeBack(counting);
            return;
        }
        PartitionFlight[] known = topics.getOrDefault(topic, NONE);
        if (partition < known.length) {
            known[partition].arrive(clock.getAsLong(), nodeFailed);
        }
    }
}
