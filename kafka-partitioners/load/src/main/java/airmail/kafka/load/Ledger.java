package airmail.kafka.load;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.HdrHistogram.AtomicHistogram;
import org.HdrHistogram.HistogramIterationValue;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;

/**
 * What one flow of records did: when each was acknowledged, in a histogram of all of them.
 *
 * <p>Kafka's tool keeps at most 500,000 latencies, at a fixed stride. Once that was a stride over
 * records in the order of sending, so with a policy that alternates strictly between two nodes an
 * even stride sees one node only. {@link #strided} keeps what such a stride sees, beside all.
 *
 * <p>The first records, told as warm-up, are sent as all others, and not counted.
 */
final class Ledger {
    /** The stride of a run of 100 million records, as the paper's were: every 200th. */
    static final int STRIDE = 200;

    /** The course of a run is told by windows of this length. */
    static final int WINDOW_MS = 250;

    /** Windows that are told: a run of ten minutes. What comes later is in the last one. */
    private static final int WINDOWS = 2_400;

    private static final long LONGEST_US = 3_600_000_000L;
    private static final int DIGITS = 3;

    private final long warmUp;
    private final long beganNanos = System.nanoTime();
    private final AtomicHistogram all = new AtomicHistogram(LONGEST_US, DIGITS);
    private final AtomicHistogram strided = new AtomicHistogram(LONGEST_US, DIGITS);
    private final AtomicLong sumUs = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final AtomicReference<String> firstError = new AtomicReference<>();
    private final AtomicLong lastNanos = new AtomicLong();
    private final AtomicLongArray windowRecords = new AtomicLongArray(WINDOWS);
    private final AtomicLongArray windowMaxUs = new AtomicLongArray(WINDOWS);
    private volatile long firstNanos;
    private volatile long countedNanos;
    private long sent;

    /** Does not count the first {@code warmUp} records. */
    Ledger(long warmUp) {
        this.warmUp = warmUp;
    }

    /** A record is about to be sent, by the flow's one thread; its number, from 0. */
    long sending(long nowNanos) {
        long number = sent++;
        if (number == 0) {
            firstNanos = nowNanos;
        }
        if (number == warmUp) {
            countedNanos = nowNanos;
        }
        return number;
    }

    /** The fate of a record is known. */
    void answered(long number, long sentNanos, Exception error) {
        long now = System.nanoTime();
        lastNanos.accumulateAndGet(now, Math::max);
        if (error != null) {
            failed.incrementAndGet();
            firstError.compareAndSet(null, error.toString());
            return;
        }
        long us = Math.min(Math.max((now - sentNanos) / 1_000, 1), LONGEST_US);
        int window = (int) Math.min((now - beganNanos) / 1_000_000 / WINDOW_MS, WINDOWS - 1);
        windowRecords.incrementAndGet(window);
        windowMaxUs.accumulateAndGet(window, us, Math::max);
        if (number < warmUp) {
            return;
        }
        all.recordValue(us);
        sumUs.addAndGet(us);
        if (number % STRIDE == 0) {
            strided.recordValue(us);
        }
    }

    /** Tells all of it; times in microseconds where not said otherwise. */
    ObjectNode told(ObjectMapper mapper) {
        ObjectNode told = mapper.createObjectNode();
        told.put("sent", sent);
        told.put("counted", all.getTotalCount());
        told.put("failed", failed.get());
        told.put("first_error", firstError.get());
        told.put("seconds", (lastNanos.get() - countedNanos) / 1e9);
        told.put("total_seconds", (lastNanos.get() - firstNanos) / 1e9);
        told.put("sum_us", sumUs.get());
        told.put("max_us", all.getMaxValue());
        told.set("latencies", counts(mapper, all));
        told.set("strided", counts(mapper, strided));
        ArrayNode course = told.putArray("course");
        int last = WINDOWS - 1;
        while (last > 0 && windowRecords.get(last) == 0) {
            last--;
        }
        for (int i = 0; i <= last; i++) {
            course.addArray().add(windowRecords.get(i)).add(windowMaxUs.get(i));
        }
        return told;
    }

    private static ArrayNode counts(ObjectMapper mapper, AtomicHistogram histogram) {
        ArrayNode counts = mapper.createArrayNode();
        for (HistogramIterationValue value : histogram.recordedValues()) {
            counts.addArray()
                    .add(histogram.medianEquivalentValue(value.getValueIteratedTo()))
                    .add(value.getCountAtValueIteratedTo());
        }
        return counts;
    }
}
