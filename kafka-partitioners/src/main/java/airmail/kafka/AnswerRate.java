package airmail.kafka;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * How many records a node acknowledges in a time, over about the last second.
 *
 * <p>Found by whoever chooses, not kept by whoever acknowledges: their number is read at most ten
 * times a second. Of several threads that could read it at once, one does.
 */
final class AnswerRate {
    private static final long READ_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final double MEMORY_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final LongSupplier acknowledged;

    /** When it was read last; 0: never. */
    private final AtomicLong readAt = new AtomicLong();

    private volatile long read;
    private volatile double perNano;

    AnswerRate(LongSupplier acknowledged) {
        this.acknowledged = acknowledged;
    }

    /** What is counted from now on was not counted before. */
    void restart() {
        readAt.set(0);
        perNano = 0;
    }

    /** Records in a nanosecond; 0 where nothing is known yet. */
    double perNano(long now) {
        long last = readAt.get();
        long nanos = now - last;
        if ((last == 0 || nanos >= READ_NANOS) && readAt.compareAndSet(last, now | 1)) {
            long before = read;
            read = acknowledged.getAsLong();
            if (last != 0) {
                double latest = (double) Math.max(0, read - before) / nanos;
                double memory = perNano == 0 ? 0 : Math.exp(-nanos / MEMORY_NANOS);
                perNano = latest + (perNano - latest) * memory;
            }
        }
        return perNano;
    }
}
