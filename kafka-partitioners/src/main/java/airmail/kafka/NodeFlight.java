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

    /** With more work before it than this a node is busy. */
    private static final double BUSY_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

    /** Of two busy nodes one is better off if its work is this much shorter. */
    private static final double BUSY_TOLERANCE = 1.05;

    private static final PartitionFlight[] NONE = {};

    private final PeakLatency latency;
    private final AnswerRate rate = new AnswerRate(this::recordsAnswered);
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
        rate.restart();
    }

    void observe(long sampleNanos, long now) {
        latency.observe(sampleNanos, now);
    }

    /**
     * Whether {@code other} should rather have the next {@code bytes}: where both are busy, the one
     * that will be done sooner; otherwise the one that costs less, unless that is less than {@code
     * tolerance} times.
     *
     * <p>Of two busy nodes a record that goes to the one with more work waits for longer, and when
     * no more are sent the other has nothing to do while it waits.
     */
    boolean isWorseThan(NodeFlight other, int bytes, double tolerance, long now) {
        double work = workNanos(bytes, now);
        double otherWork = other.workNanos(bytes, now);
        if (work > BUSY_NANOS && otherWork > BUSY_NANOS) {
            return work > BUSY_TOLERANCE * otherWork;
        }
        return cost(bytes, now) > tolerance * other.cost(bytes, now);
    }

    /**
     * How long it will take for what it has, by Little's law; 0 where its rate is not known, or it
     * has less than {@code bytes}: of a trickle nothing follows.
     */
    private double workNanos(int bytes, long now) {
        double perNano = rate.perNano(now);
        return perNano == 0 || getBytesInFlight() < bytes ? 0 : recordsInFlight() / perNano;
    }

    /**
     * What it costs to give this node {@code bytes} more: the latency to expect, times the bytes
     * that would then be in flight. Latency alone would send all to the quickest; bytes alone would
     * let a slow node hold as much of the producer's buffers as a quick one.
     */
    private double cost(int bytes, long now) {
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

    private long recordsInFlight() {
        long records = 0;
        for (PartitionFlight flight : led) {
            records += flight.recordsInFlight();
        }
        return records;
    }

    private long recordsAnswered() {
        long records = 0;
        for (PartitionFlight flight : led) {
            records += flight.recordsAnswered();
        }
        return records;
    }

    @Override
    public double getLatencyMillis() {
        return latencyNanos(clock.getAsLong()) / TimeUnit.MILLISECONDS.toNanos(1);
    }
}
