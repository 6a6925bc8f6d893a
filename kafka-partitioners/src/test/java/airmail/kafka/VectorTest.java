package airmail.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.google.gson.Gson;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** {@code vectors/partitioners.json}, which the policies of every language must give. */
class VectorTest {
    private static final class Vectors {
        Map<String, Described> clusters;
        List<Case> cases;
    }

    private static final class Described {
        Set<Integer> nodes;
        Map<String, List<Integer>> topics;
    }

    private static final class Case {
        String name;
        List<String> policies;
        int start;
        boolean ignore_keys;
        boolean shared;
        List<Step> steps;
    }

    private static final class Step {
        String producer;
        String cluster;
        String topic;
        String key;
        int[] partitions;
    }

    private static final Map<String, Supplier<Partitioner>> POLICIES =
            Map.of(
                    "default", PaperDefaultPartitioner::new,
                    "improved", ImprovedPartitioner::new,
                    "node", NodePartitioner::new,
                    "sqf", SqfPartitioner::new);

    private static Vectors vectors() throws Exception {
        String path = System.getProperty("airmail.vectors");
        try (Reader reader = Files.newBufferedReader(Paths.get(path), StandardCharsets.UTF_8)) {
            return new Gson().fromJson(reader, Vectors.class);
        }
    }

    @TestFactory
    Stream<DynamicTest> each_case_gives_its_partitions() throws Exception {
        Vectors vectors = vectors();
        return vectors.cases.stream()
                .flatMap(
                        one ->
                                one.policies.stream()
                                        .map(
                                                policy ->
                                                        DynamicTest.dynamicTest(
                                                                policy + ": " + one.name,
                                                                () -> run(vectors, one, policy))));
    }

    @Test
    void every_policy_has_cases() throws Exception {
        List<Case> cases = vectors().cases;
        for (String policy : POLICIES.keySet()) {
            assertFalse(cases.stream().noneMatch(one -> one.policies.contains(policy)), policy);
        }
    }

    private static void run(Vectors vectors, Case one, String policy) {
        String id = Clusters.newId();
        Map<String, Cluster> clusters = new HashMap<>();
        vectors.clusters.forEach(
                (name, described) ->
                        clusters.put(name, Clusters.of(id, described.nodes, described.topics)));
        Map<String, Partitioner> producers = new HashMap<>();
        for (Step step : one.steps) {
            Partitioner partitioner =
                    producers.computeIfAbsent(
                            step.producer,
                            name ->
                                    Clusters.configured(
                                            POLICIES.get(policy).get(),
                                            "airmail.partitioner.start",
                                            one.start,
                                            "airmail.partitioner.ignore.keys",
                                            one.ignore_keys,
                                            "airmail.partitioner.sqf.shared",
                                            one.shared));
            byte[] key = step.key == null ? null : step.key.getBytes(StandardCharsets.UTF_8);
            int[] given = new int[step.partitions.length];
            for (int i = 0; i < given.length; i++) {
                given[i] =
                        partitioner.partition(
                                step.topic, step.key, key, null, null, clusters.get(step.cluster));
            }
            assertArrayEquals(
                    step.partitions,
                    given,
                    () -> step.producer + " to " + step.topic + " of " + step.cluster);
        }
        producers.values().forEach(Partitioner::close);
    }
}
