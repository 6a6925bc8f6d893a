package airmail.kafka;

/**
 * The hash by which Kafka places a record with a key.
 *
 * <p>The clients have it too, but not in their public API, which is all that this jar relies on
 * from 3.3 to 4.x; a test holds the two against each other.
 */
final class Murmur2 {
    private static final int SEED = 0x9747b28c;
    private static final int MULTIPLIER = 0x5bd1e995;
    private static final int SHIFT = 24;

    private Murmur2() {}

    /** The partition of {@code key} among {@code partitions}, as Kafka's own producer places it. */
    static int partition(byte[] key, int partitions) {
        return (hash(key) & Integer.MAX_VALUE) % partitions;
    }

    static int hash(byte[] data) {
        int hash = SEED ^ data.length;
        int whole = data.length & ~3;
        for (int i = 0; i < whole; i += 4) {
            int word =
                    (data[i] & 0xff)
                            | (data[i + 1] & 0xff) << 8
                            | (data[i + 2] & 0xff) << 16
                            | (data[i + 3] & 0xff) << 24;
            word *= MULTIPLIER;
            word ^= word >>> SHIFT;
            word *= MULTIPLIER;
            hash = hash * MULTIPLIER ^ word;
        }
        int left = data.length - whole;
        if (left > 0) {
            for (int i = left - 1; i >= 0; i--) {
                hash ^= (data[whole + i] & 0xff) << (8 * i);
            }
            hash *= MULTIPLIER;
        }
        hash ^= hash >>> 13;
        hash *= MULTIPLIER;
        return hash ^ hash >>> 15;
    }
}
