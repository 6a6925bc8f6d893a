package airmail.kafka.load;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.tools.TimedPerformance;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** One run of Kafka's tool: a producer, and what it sends to one topic. */
final class Flow {
    private final List<String> arguments;
    private final long warmUp;
    private final Pace.Runner runner;
    private Ledger ledger;
    private TimedProducer producer;

    /**
     * As told: {@code topic}, {@code records} in all, {@code warm_up} of them that do not count,
     * {@code size} of each in bytes, {@code rate} a second (-1: as many as can be), and the
     * producer's {@code properties}. Flows that are {@code in_step} keep {@code pace}.
     */
    Flow(JsonNode told, Pace pace) {
        warmUp = told.get("warm_up").asLong();
        runner = told.get("in_step").asBoolean() ? pace.join(told.get("records").asLong()) : null;
        arguments =
                new ArrayList<>(
                        List.of(
                                "--topic",
                                told.get("topic").asText(),
                                "--num-records",
                                told.get("records").asText(),
                                "--warmup-records",
                                Long.toString(warmUp),
                                "--record-size",
                                told.get("size").asText(),
                                "--throughput",
                                told.get("rate").asText(),
                                "--producer-props"));
        for (Map.Entry<String, JsonNode> property : told.get("properties").properties()) {
            arguments.add(property.getKey() + "=" + property.getValue().asText());
        }
    }

    /** Sends all of it, and waits until the fate of each record is known. */
    void run() throws IOException {
        ledger = new Ledger(warmUp);
        try {
            new TimedPerformance(
                            properties -> {
                                producer = new TimedProducer(properties, ledger, runner);
                                return producer;
                            })
                    .run(arguments);
        } finally {
            if (runner != null) {
                runner.end();
            }
        }
    }

    /** What it did. */
    ObjectNode told(ObjectMapper mapper) {
        ObjectNode told = ledger.told(mapper);
        producer.tell(told);
        return told;
    }
}
