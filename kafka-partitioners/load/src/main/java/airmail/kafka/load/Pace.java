package airmail.kafka.load;

import java.util.ArrayList;
import java.util.List;

/**
 * Keeps flows in step: none is ahead of another by more than a part of its records, however the
 * machine runs their threads. What depends on the order of all their records depends on nothing else.
 */
final class Pace {
    /** The part of a flow's records that it may be ahead. */
    private static final double AHEAD = 0.002;

    private final List<Runner> runners = new ArrayList<>();

    /** A flow of so many records, which joins before any has begun. */
    synchronized Runner join(long records) {
        Runner runner = new Runner(records);
        runners.add(runner);
        return runner;
    }

    /** One flow. */
    final class Runner {
        private final long records;
        private long sent;
        private boolean hasEnded;

        private Runner(long records) {
            this.records = records;
        }

        /** Waits until its next record may be sent, and counts it. */
        void next() throws InterruptedException {
            synchronized (Pace.this) {
                while (isAhead()) {
                    Pace.this.wait();
                }
                sent++;
                Pace.this.notifyAll();
            }
        }

        /** It sends no more: nobody waits for it. */
        void end() {
            synchronized (Pace.this) {
                hasEnded = true;
                Pace.this.notifyAll();
            }
        }

        private boolean isAhead() {
            return runners.stream()
                    .anyMatch(other -> !other.hasEnded && part() > other.part() + AHEAD);
        }

        private double part() {
            return (double) sent / records;
        }
    }
}
