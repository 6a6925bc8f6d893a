package airmail.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;

import java.util.Map;

class SettingsTest {
    private static String refused(String name, Object value) {
        return assertThrows(ConfigException.class, () -> Settings.of(Map.of(name, value)))
                .getMessage();
    }

    @Test
    void what_is_refused_is_named_with_its_value_and_limit() {
        String message = refused("airmail.partitioner.adaptive.decay.ms", "0");
        assertTrue(message.contains("airmail.partitioner.adaptive.decay.ms"), message);
        assertTrue(message.contains("0") && message.contains("at least 1"), message);
        message = refused("airmail.partitioner.ignore.keys", "perhaps");
        assertTrue(message.contains("ignore.keys") && message.contains("perhaps"), message);
    }

    @Test
    void a_misspelt_name_is_refused() {
        String message = refused("airmail.partitioner.ignore.key", "true");
        assertTrue(message.contains("airmail.partitioner.ignore.key"), message);
    }

    @Test
    void a_batch_is_as_large_as_the_producers_unless_said_otherwise() {
        assertEquals(16_384, Settings.of(Map.of()).stickyBytes());
        assertEquals(65_536, Settings.of(Map.of("batch.size", "65536")).stickyBytes());
        Map<String, ?> both =
                Map.of("batch.size", 1, "airmail.partitioner.adaptive.sticky.bytes", 9);
        assertEquals(9, Settings.of(both).stickyBytes());
    }

    @Test
    void a_producer_that_lingers_is_not_hurried() {
        assertEquals(100, Settings.of(Map.of("linger.ms", "5")).stickyMs());
        assertEquals(500, Settings.of(Map.of("linger.ms", "500")).stickyMs());
    }
}
