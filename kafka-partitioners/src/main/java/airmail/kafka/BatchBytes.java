package airmail.kafka;

/**
 * How many bytes a record takes in a batch of Kafka's, before compression.
 *
 * <p>Headers and the exact distance in time and offset are not known here; the estimate is rather
 * high, for a partition that is left with room for one more record costs nothing, while one that is
 * left too late has a batch with a single record.
 */
final class BatchBytes {
    /** What a batch has before its first record. */
    static final int BATCH_HEAD = 61;

    /** Attributes, distances in time and in offset, number of headers. */
    private static final int RECORD_HEAD = 1 + 2 + 2 + 1;

    private BatchBytes() {}

    static int of(byte[] key, byte[] value) {
        long body = RECORD_HEAD + field(key) + field(value);
        return (int) Math.min(Integer.MAX_VALUE, prefix(body) + body);
    }

    private static long field(byte[] bytes) {
        return bytes == null ? 1 : prefix(bytes.length) + (long) bytes.length;
    }

    /**
     * The length of a length: a zigzag varint, which has 6 bits in its first byte and 7 in others.
     */
    private static int prefix(long length) {
        int prefix = 1;
        for (long left = length >>> 6; left > 0; left >>>= 7) {
            prefix++;
        }
        return prefix;
    }
}
