package airmail.kafka.load;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Sends records, in one or several flows at once.
 *
 * <p>The first line is an array of {@link Flow}s. It says {@code ready}, waits for {@code go}, and
 * says what each flow did, with what Kafka's tool said of the last one.
 */
public final class Load {
    private Load() {}

    /** Ends with 1 if a flow could not be sent. */
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        // The tool prints to standard output, a line each five seconds.
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader orders =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<Flow> flows = new ArrayList<>();
        Pace pace = new Pace();
        for (JsonNode told : mapper.readTree(orders.readLine())) {
            flows.add(new Flow(told, pace));
        }
        answers.println("ready");
        if (!"go".equals(orders.readLine())) {
            return;
        }
        endWith(orders);
        ObjectNode result = mapper.createObjectNode();
        ArrayNode each = result.putArray("flows");
        ExecutorService threads = Executors.newFixedThreadPool(flows.size());
        List<Future<?>> running = new ArrayList<>();
        for (Flow flow : flows) {
            running.add(
                    threads.submit(
                            () -> {
                                flow.run();
                                return null;
                            }));
        }
        for (Future<?> one : running) {
            one.get();
        }
        flows.forEach(flow -> each.add(flow.told(mapper)));
        result.put("tool", summary(said.toString(StandardCharsets.UTF_8)));
        answers.println("sent " + mapper.writeValueAsString(result));
        System.exit(0);
    }

    /** The tool's last line with percentiles. */
    private static String summary(String said) {
        return said.lines()
                .filter(line -> line.contains("99.9th"))
                .reduce("", (earlier, later) -> later);
    }

    /** Whoever gave the orders is gone: nobody wants the rest. */
    private static void endWith(BufferedReader orders) {
        Thread watch =
                new Thread(
                        () -> {
                            try {
                                while (orders.readLine() != null) {
                                    continue;
                                }
                            } catch (IOException gone) {
                                System.err.println(gone);
                            }
                            Runtime.getRuntime().halt(1);
                        },
                        "orders");
        watch.setDaemon(true);
        watch.start();
    }
}
