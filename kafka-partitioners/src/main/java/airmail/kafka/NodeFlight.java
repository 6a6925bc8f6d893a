package airmail.kafka;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * What is in flight to one node, and how long it takes to answer.
 *
 * <p>Bytes in flight are summed over the partitions that the node leads <em>now</em>, when they are
 * asked for, once a batch: a batch whose leader moved is sent again to the new one, and no sum can
 * drift.
 */
final class NodeFlight extends NodeTally implements NodeFlightMXBean {
    /** Shorter latencies are all the same: below this, differences are noise. */
    private static final double LATENCY_FLOOR_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private static final PartitionFlight[] NONE = {};

    private final PeakLatency latency;
    private final LongSupplier clock;
    private volatile PartitionFlight[] led = NONE;

    NodeFlight(int node, int decayMs, LongSupplier clock) {
        super(node);
        this.latency = new PeakLatency(decayMs);
        this.clock = clock;
    }

    void leads(PartitionFlight[] flights) {
        led = flights;
        for (PartitionFlight flight : flights) {
            flight.ledBy(this);
        }
    }

    void observe(long sampleNanos, long now) {
        latency.observe(sampleNanos, now);
    }

    /**
     * What it costs to give this node {@code bytes} more: the latency to expect, times the bytes
     * that would then be in flight. Latency alone would send all to the quickest; bytes alone would
     * let a slow node hold as much of the producer's buffers as a quick one.
     */
    double cost(int bytes, long now) {
        return Math.max(LATENCY_FLOOR_NANOS, latencyNanos(now)) * (getBytesInFlight() + bytes);
    }

    private double latencyNanos(long now) {
        double nanos = latency.nanos(now);
        for (PartitionFlight flight : led) {
            nanos = Math.max(nanos, flight.probeAge(now));
        }
        return nanos;
    }

    @Override
    public long getBytesInFlight() {
        long bytes = 0;
        for (PartitionFlight flight : led) {
            bytes += flight.bytesInFlight();
        }
        return bytes;
    }

    @Override
    public double getLatencyMillis() {
        return latencyNanos(clock.getAsLong()) / TimeUnit.MILLISECONDS.toNanos(1);
    }
}
