package airmail.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.common.utils.Utils;
import org.junit.jupiter.api.Test;

import java.util.Random;

class Murmur2Test {
    @Test
    void keys_go_where_the_client_would_put_them() {
        Random random = new Random(7);
        for (int length = 0; length < 300; length++) {
            byte[] key = new byte[length];
            random.nextBytes(key);
            assertEquals(Utils.murmur2(key), Murmur2.hash(key), "length " + length);
            assertEquals(Utils.toPositive(Utils.murmur2(key)) % 7, Murmur2.partition(key, 7));
        }
    }
}
