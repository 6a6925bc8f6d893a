package airmail.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Kafka's format of a record, counted by hand; times and offsets take their two-byte form. */
class BatchBytesTest {
    @Test
    void a_record_is_as_long_as_in_a_batch() {
        // length 2, attributes 1, time 2, offset 2, key 1, length of value 2, value 100, headers 1
        assertEquals(111, BatchBytes.of(null, new byte[100]));
        // length 1, attributes 1, time 2, offset 2, key 1 + 3, value 1 + 10, headers 1
        assertEquals(22, BatchBytes.of(new byte[3], new byte[10]));
        // a value of none is one byte
        assertEquals(9, BatchBytes.of(null, null));
        // 1,000,000 takes three bytes, so does the body
        assertEquals(3 + 6 + 1 + 3 + 1_000_000, BatchBytes.of(null, new byte[1_000_000]));
    }
}
