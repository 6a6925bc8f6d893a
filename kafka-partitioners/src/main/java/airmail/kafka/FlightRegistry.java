package airmail.kafka;

import java.util.HashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Where a producer's partitioner and its interceptor find each other: Kafka makes both, and tells
 * each no more than the producer's {@code client.id}.
 *
 * <p>Both are made by the producer's constructor, so by one thread: with it in the key, two
 * producers that were given one id are not mixed up. Whoever is made first leaves a board, the
 * other takes it away. A board that one of the same kind finds was left by a producer that has no
 * counterpart.
 */
final class FlightRegistry {
    /** Which of the two. */
    enum Role {
        PARTITIONER,
        INTERCEPTOR
    }

    private static final class Waiting {
        final Role role;
        final FlightBoard board;

        Waiting(Role role, FlightBoard board) {
            this.role = role;
            this.board = board;
        }
    }

    private static final Map<String, Waiting> WAITING = new HashMap<>();

    private FlightRegistry() {}

    /** The board of the producer that this thread is making; {@code clock} if it is a new one. */
    static synchronized FlightBoard join(String clientId, Role role, LongSupplier clock) {
        String key = clientId + '@' + Thread.currentThread().getId();
        Waiting waiting = WAITING.get(key);
        if (waiting != null && waiting.role != role) {
            WAITING.remove(key);
            return waiting.board;
        }
        FlightBoard board = new FlightBoard(clock);
        WAITING.put(key, new Waiting(role, board));
        return board;
    }

    /** Its owner is closed: if nobody came for it, nobody shall. */
    static synchronized void leave(FlightBoard board) {
        WAITING.values().removeIf(waiting -> waiting.board == board);
    }
}
