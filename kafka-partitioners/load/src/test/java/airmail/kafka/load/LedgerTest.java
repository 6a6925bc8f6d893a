package airmail.kafka.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.errors.TimeoutException;
import org.junit.jupiter.api.Test;

class LedgerTest {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** A record that is acknowledged so long after it was sent. */
    private static void send(Ledger ledger, long latencyUs, Exception error) {
        long now = System.nanoTime();
        long number = ledger.sending(now);
        ledger.answered(number, now - latencyUs * 1_000, error);
    }

    private static long count(JsonNode histogram) {
        long count = 0;
        for (JsonNode value : histogram) {
            count += value.get(1).asLong();
        }
        return count;
    }

    @Test
    void warm_up_and_failures_are_not_counted() {
        Ledger ledger = new Ledger(2);
        for (int i = 0; i < 5; i++) {
            send(ledger, 1_000, i == 4 ? new TimeoutException("late") : null);
        }
        JsonNode told = ledger.told(MAPPER);
        assertEquals(5, told.get("sent").asLong());
        assertEquals(2, told.get("counted").asLong());
        assertEquals(2, count(told.get("latencies")));
        assertEquals(1, told.get("failed").asLong());
        assertTrue(told.get("first_error").asText().contains("late"));
    }

    @Test
    void an_even_stride_over_strict_alternation_sees_one_node_only() {
        Ledger ledger = new Ledger(0);
        int records = 20 * Ledger.STRIDE;
        for (int i = 0; i < records; i++) {
            // Every second record goes to a node that takes a quarter of an hour.
            send(ledger, i % 2 == 0 ? 1_000 : 900_000_000, null);
        }
        JsonNode told = ledger.told(MAPPER);
        assertEquals(records, count(told.get("latencies")));
        assertEquals(20, count(told.get("strided")));
        for (JsonNode value : told.get("strided")) {
            assertTrue(value.get(0).asLong() < 400_000_000, told.get("strided").toString());
        }
        double mean = told.get("sum_us").asDouble() / records;
        assertTrue(mean > 400_000_000, "the mean is of both: " + mean);
    }

    @Test
    void the_course_has_every_record_that_was_acknowledged() {
        Ledger ledger = new Ledger(3);
        for (int i = 0; i < 10; i++) {
            send(ledger, 7_000, null);
        }
        assertEquals(10, sum(ledger.told(MAPPER).get("course")));
    }

    private static long sum(JsonNode course) {
        long sum = 0;
        for (JsonNode window : course) {
            sum += window.get(0).asLong();
        }
        return sum;
    }
}
