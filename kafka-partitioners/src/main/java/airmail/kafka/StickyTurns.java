package airmail.kafka;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A topic under {@link AdaptivePartitioner}: stays with a partition until its batch is full, then
 * chooses the next node and a partition on it.
 *
 * <p>Which partition it is and how many bytes it got are one word, so that threads agree on both
 * without a lock: whoever finds it full chooses, and only one of those who do at once has his way.
 */
final class StickyTurns {
    /** How a choice is made. */
    static final class Rule {
        final int bytes;
        final long nanos;
        final double tolerance;

        Rule(Settings settings) {
            bytes = settings.stickyBytes() - BatchBytes.BATCH_HEAD;
            nanos = TimeUnit.MILLISECONDS.toNanos(settings.stickyMs());
            tolerance = settings.tolerance();
        }
    }

    /** A node of the topic, with its places as indices into {@link TopicLayout#choices}. */
    static final class Stop {
        final NodeFlight node;
        final int[] choices;
        final Rotation within;

        Stop(NodeFlight node, int[] choices, Rotation within) {
            this.node = node;
            this.choices = choices;
            this.within = within;
        }

        int next() {
            return choices[within.next(choices.length)];
        }
    }

    /** No partition was chosen yet. */
    private static final long NOWHERE = pack(-1, 0);

    final TopicLayout topic;

    /** By the number of the partition. */
    final PartitionFlight[] flights;

    private final Place[] choices;
    private final Stop[] stops;
    private final Rotation rotation;
    private final Rule rule;
    private final FlightBoard board;
    private final AtomicLong state = new AtomicLong(NOWHERE);
    private volatile long since;

    StickyTurns(
            TopicLayout topic,
            Stop[] stops,
            Rotation rotation,
            Rule rule,
            FlightBoard board,
            PartitionFlight[] flights) {
        this.topic = topic;
        this.choices = topic.choices();
        this.flights = flights;
        this.stops = stops;
        this.rotation = rotation;
        this.rule = rule;
        this.board = board;
    }

    /** The place of a record of {@code bytes} without a key. */
    Place next(int bytes, long now) {
        while (true) {
            long seen = state.get();
            int choice = choice(seen);
            int given = given(seen);
            boolean stays =
                    choice >= 0 && (long) given + bytes <= rule.bytes && now - since < rule.nanos;
            // A batch takes its first record whatever its size.
            if (!stays && !(choice >= 0 && given == 0)) {
                choice = choose(now);
                given = 0;
                since = now;
            }
            if (state.compareAndSet(seen, pack(choice, given + bytes))) {
                return choices[choice];
            }
        }
    }

    /**
     * The producer opens a batch in {@code partition} for a record of {@code bytes}, and asks for
     * the record's place again. If the record was the first that we sent there, it goes there
     * again; if not, the batch before it is full or on its way, and the next node is chosen.
     */
    void newBatch(int partition, int bytes) {
        long seen = state.get();
        int choice = choice(seen);
        if (choice >= 0 && choices[choice].partition == partition) {
            boolean first = given(seen) == bytes;
            state.compareAndSet(seen, first ? pack(choice, 0) : NOWHERE);
        }
    }

    /**
     * The node whose turn it is; or another, if that one is clearly better off (power of two
     * choices).
     */
    private int choose(long now) {
        if (stops.length == 0) {
            return rotation.next(choices.length);
        }
        int turn = rotation.next(stops.length);
        if (stops.length > 1 && board.isAttached()) {
            int other = ThreadLocalRandom.current().nextInt(stops.length - 1);
            if (other >= turn) {
                other++;
            }
            NodeFlight next = stops[turn].node;
            if (next.isWorseThan(stops[other].node, rule.bytes, rule.tolerance, now)) {
                turn = other;
            }
        }
        return stops[turn].next();
    }

    private static long pack(int choice, int given) {
        return (long) choice << Integer.SIZE | given;
    }

    private static int choice(long state) {
        return (int) (state >> Integer.SIZE);
    }

    private static int given(long state) {
        return (int) state;
    }
}
