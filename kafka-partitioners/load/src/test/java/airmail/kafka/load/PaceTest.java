package airmail.kafka.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.concurrent.atomic.AtomicLongArray;

class PaceTest {
    @Test
    void a_flow_that_is_held_up_holds_the_other_in_proportion() throws Exception {
        Pace pace = new Pace();
        long[] records = {6_000, 4_000};
        Pace.Runner[] runners = {pace.join(records[0]), pace.join(records[1])};
        AtomicLongArray sent = new AtomicLongArray(2);
        Thread slow =
                new Thread(
                        () -> {
                            try {
                                for (int i = 0; i < records[1]; i++) {
                                    if (i % 500 == 0) {
                                        Thread.sleep(5);
                                    }
                                    runners[1].next();
                                    sent.incrementAndGet(1);
                                }
                            } catch (InterruptedException error) {
                                throw new IllegalStateException(error);
                            }
                        });
        slow.start();
        double farthest = 0;
        for (int i = 0; i < records[0]; i++) {
            runners[0].next();
            double ahead = (double) i / records[0] - (double) sent.get(1) / records[1];
            farthest = Math.max(farthest, ahead);
        }
        slow.join();
        assertTrue(farthest < 0.01, "ahead by " + farthest);
        assertEquals(records[1], sent.get(1));
    }

    @Test
    void a_flow_that_has_ended_holds_nobody() throws Exception {
        Pace pace = new Pace();
        Pace.Runner runner = pace.join(1_000);
        pace.join(1_000).end();
        for (int i = 0; i < 1_000; i++) {
            runner.next();
        }
    }
}
