package airmail.kafka;

import java.util.concurrent.TimeUnit;

/**
 * The latency of a node as one should expect it: at once as high as the worst that was just seen,
 * and forgotten exponentially (peak EWMA).
 *
 * <p>A node that gets worse is avoided after one sample. Forgetting goes on without samples, so
 * that a node that gets nothing is tried again; samples are bounded, so that this takes under a
 * second after any outage. Written by whoever gets an acknowledgement, read by whoever chooses; a
 * lost sample is made up for by the next.
 */
final class PeakLatency {
    /** A worse sample counts as this much. */
    static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final double decayNanos;
    private volatile double peakNanos;
    private volatile long seenAt;

    PeakLatency(int decayMs) {
        decayNanos = TimeUnit.MILLISECONDS.toNanos(decayMs);
    }

    void observe(long sampleNanos, long now) {
        double sample = Math.min(sampleNanos, MAX_NANOS);
        double peak = peakNanos;
        peakNanos = sample >= peak ? sample : sample + (peak - sample) * weight(now);
        seenAt = now;
    }

    double nanos(long now) {
        double peak = peakNanos;
        return peak == 0 ? 0 : peak * weight(now);
    }

    private double weight(long now) {
        return Math.exp(-Math.max(0, now - seenAt) / decayNanos);
    }
}
