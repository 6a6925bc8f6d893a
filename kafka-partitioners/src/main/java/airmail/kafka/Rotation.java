package airmail.kafka;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Round robin over a list whose length may change: a counter, and its remainder.
 *
 * <p>64 bits, so that it does not overflow in the life of a producer: the remainder of a counter
 * that wraps gives one entry twice wherever the length is no power of two. Should it wrap all the
 * same, the index stays within the list.
 */
final class Rotation {
    private final AtomicLong turn;

    Rotation(long start) {
        turn = new AtomicLong(start);
    }

    /** Whose turn it is, among {@code length}; the next one's turn comes after. */
    int next(int length) {
        return (int) ((turn.getAndIncrement() & Long.MAX_VALUE) % length);
    }

    Place next(Place[] places) {
        return places[next(places.length)];
    }
}
