package airmail.kafka;

import java.util.concurrent.atomic.AtomicLong;

/**
 * What is in flight to one partition: records that were given to the producer's buffers and are not
 * acknowledged.
 *
 * <p>Records are counted exactly; their bytes are taken as their mean size times that, since a
 * producer that reports a failure does not say of how many bytes. Every so often one record is a
 * <em>probe</em>: it is timed until as many were acknowledged as were sent with it, which within a
 * partition are the same ones. A probe that stays out shows a node that answers nothing.
 */
final class PartitionFlight {
    private static final long NO_PROBE = Long.MAX_VALUE;
    private static final float MEAN_WEIGHT = 1 / 16f;

    private final AtomicLong sent = new AtomicLong();
    private final AtomicLong ended = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();

    /** The probe's number among the sent; set after its time, and taken by whoever ends it. */
    private final AtomicLong probe = new AtomicLong(NO_PROBE);

    /** When the probe left; 0 when none is out. */
    private final AtomicLong probeSince = new AtomicLong();

    private volatile float meanBytes;
    private volatile NodeFlight leader;

    void ledBy(NodeFlight node) {
        leader = node;
    }

    /** A record of this size sets out; {@code bytes} 0 where the size is not known. */
    void depart(int bytes, long now) {
        if (bytes > 0) {
            float mean = meanBytes;
            meanBytes = mean == 0 ? bytes : mean + (bytes - mean) * MEAN_WEIGHT;
        }
        long number = sent.incrementAndGet();
        if (probeSince.get() == 0 && probeSince.compareAndSet(0, now | 1)) {
            probe.set(number);
        }
    }

    /** The record that set out last does not: the producer refused it, or it goes elsewhere. */
    void takeBack() {
        long left = sent.decrementAndGet();
        long number = probe.get();
        if (number != NO_PROBE && number > left && probe.compareAndSet(number, NO_PROBE)) {
            probeSince.set(0);
        }
    }

    /**
     * A record was acknowledged, or has failed; {@code nodeFailed} if that speaks against its node.
     */
    void arrive(long now, boolean nodeFailed) {
        long count = ended.incrementAndGet();
        NodeFlight node = leader;
        long number = probe.get();
        if (count >= number && number != NO_PROBE) {
            long since = probeSince.get();
            if (probe.compareAndSet(number, NO_PROBE)) {
                probeSince.set(0);
                if (node != null) {
                    node.observe(now - since, now);
                }
            }
        }
        if (nodeFailed) {
            failed.incrementAndGet();
            if (node != null) {
                node.observe(PeakLatency.MAX_NANOS, now);
            }
        }
    }

    long bytesInFlight() {
        return (long) (recordsInFlight() * meanBytes);
    }

    long recordsInFlight() {
        return Math.max(0, sent.get() - ended.get());
    }

    /** All that its node has answered, but for what speaks against it. */
    long recordsAnswered() {
        return ended.get() - failed.get();
    }

    /** How long the probe has been out, in nanoseconds; 0 when none is. */
    long probeAge(long now) {
        long since = probeSince.get();
        return since == 0 ? 0 : Math.max(0, now - since);
    }
}
