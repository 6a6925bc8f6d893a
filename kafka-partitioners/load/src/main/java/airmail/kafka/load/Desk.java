package airmail.kafka.load;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/**
 * Makes topics with the leaders that are wanted, tells how many records each partition has, and
 * removes topics. Its argument is the brokers' addresses; an order is a line, {@code {"ask": …,
 * "topic": …}}, and so is the answer.
 */
public final class Desk {
    private static final long PATIENCE_MS = 60_000;
    private static final long BETWEEN_MS = 50;

    private final Admin admin;
    private final ObjectMapper mapper = new ObjectMapper();

    private Desk(Admin admin) {
        this.admin = admin;
    }

    /** Ends with its standard input. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader orders =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            Desk desk = new Desk(admin);
            for (String order = orders.readLine(); order != null; order = orders.readLine()) {
                System.out.println("answer " + desk.answer(order));
            }
        }
    }

    private String answer(String order) throws Exception {
        ObjectNode answer = mapper.createObjectNode();
        try {
            JsonNode asked = mapper.readTree(order);
            String topic = asked.get("topic").asText();
            switch (asked.get("ask").asText()) {
                case "create":
                    create(topic, asked.get("replicas"));
                    break;
                case "records":
                    answer.set("records", mapper.valueToTree(records(topic)));
                    break;
                case "delete":
                    admin.deleteTopics(List.of(topic)).all().get();
                    break;
                default:
                    answer.put("error", "ask: create, records or delete");
            }
        } catch (ExecutionException error) {
            answer.put("error", String.valueOf(error.getCause()));
        } catch (TimeoutException error) {
            answer.put("error", error.getMessage());
        }
        return mapper.writeValueAsString(answer);
    }

    /** With these replicas of each partition, the leader first; waits until they are in sync. */
    private void create(String topic, JsonNode replicas) throws Exception {
        Map<Integer, List<Integer>> wanted = new HashMap<>();
        Set<Integer> nodes = new HashSet<>();
        for (JsonNode partition : replicas) {
            List<Integer> ids = new ArrayList<>();
            partition.forEach(id -> ids.add(id.asInt()));
            nodes.addAll(ids);
            wanted.put(wanted.size(), ids);
        }
        until("nodes " + nodes + " are not all there", () -> living().containsAll(nodes));
        admin.createTopics(List.of(new NewTopic(topic, wanted))).all().get();
        until(topic + " is not led as it shall be", () -> isAs(topic, wanted));
    }

    private Set<Integer> living() throws Exception {
        Set<Integer> ids = new HashSet<>();
        for (Node node : admin.describeCluster().nodes().get()) {
            ids.add(node.id());
        }
        return ids;
    }

    private boolean isAs(String topic, Map<Integer, List<Integer>> wanted) throws Exception {
        TopicDescription is;
        try {
            is = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        } catch (ExecutionException notYet) {
            return false;
        }
        for (TopicPartitionInfo partition : is.partitions()) {
            List<Integer> ids = wanted.get(partition.partition());
            Node leader = partition.leader();
            if (leader == null
                    || leader.id() != ids.get(0)
                    || partition.isr().size() != ids.size()) {
                return false;
            }
        }
        return is.partitions().size() == wanted.size();
    }

    /** Records of each partition. */
    private List<Long> records(String topic) throws Exception {
        int partitions =
                admin.describeTopics(List.of(topic))
                        .allTopicNames()
                        .get()
                        .get(topic)
                        .partitions()
                        .size();
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (int i = 0; i < partitions; i++) {
            ends.put(new TopicPartition(topic, i), OffsetSpec.latest());
        }
        var offsets = admin.listOffsets(ends).all().get();
        List<Long> records = new ArrayList<>();
        for (int i = 0; i < partitions; i++) {
            records.add(offsets.get(new TopicPartition(topic, i)).offset());
        }
        return records;
    }

    private static void until(String complaint, Callable<Boolean> holds) throws Exception {
        for (long waited = 0; !holds.call(); waited += BETWEEN_MS) {
            if (waited > PATIENCE_MS) {
                throw new TimeoutException(complaint);
            }
            Thread.sleep(BETWEEN_MS);
        }
    }
}
