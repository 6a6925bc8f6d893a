package airmail.kafka;

import static airmail.kafka.Clusters.configured;
import static airmail.kafka.Clusters.led;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;

/**
 * Section 6.4 of the paper: what each node gets when X sends α records to A, and Y β records to B.
 */
class LoadOfNodesTest {
    private static final int ALPHA = 6_000;
    private static final int BETA = 4_000;

    /** Sends both flows, mixed as evenly as they can be, and counts by node. */
    private static Map<Integer, Integer> load(
            Cluster cluster, Partitioner x, int alpha, Partitioner y, int beta) {
        Map<Integer, Integer> load = new TreeMap<>();
        int a = 0;
        int b = 0;
        while (a + b < alpha + beta) {
            boolean toA = (long) a * beta <= (long) b * alpha && a < alpha || b == beta;
            String topic = toA ? "A" : "B";
            int partition = Clusters.ask(toA ? x : y, topic, cluster);
            load.merge(Clusters.leader(cluster, topic, partition), 1, Integer::sum);
            if (toA) {
                a++;
            } else {
                b++;
            }
        }
        x.close();
        y.close();
        return load;
    }

    private static Map<Integer, Integer> apart(Cluster cluster, Supplier<Partitioner> policy) {
        String name = "airmail.partitioner.sqf.shared";
        return load(
                cluster,
                configured(policy.get(), name, false),
                ALPHA,
                configured(policy.get(), name, false),
                BETA);
    }

    @Test
    void the_node_policies_give_half_of_each_topic_to_each_of_its_nodes() {
        Map<Integer, Integer> table = Map.of(1, ALPHA / 2, 2, (ALPHA + BETA) / 2, 3, BETA / 2);
        assertEquals(table, apart(Clusters.figure64(), NodePartitioner::new));
        assertEquals(table, apart(Clusters.figure64(), SqfPartitioner::new));
    }

    @Test
    void the_default_gives_node_2_two_thirds_of_one_topic_and_half_of_the_other() {
        Map<Integer, Integer> table =
                Map.of(1, ALPHA / 3, 2, ALPHA * 2 / 3 + BETA / 2, 3, BETA / 2);
        assertEquals(table, apart(Clusters.figure64(), PaperDefaultPartitioner::new));
        assertEquals(table, apart(Clusters.figure64(), ImprovedPartitioner::new));
    }

    @Test
    void without_partial_overlap_the_node_policies_balance_each_group() {
        Cluster figure65 = Clusters.of(Map.of("A", led(1, 2, 2), "B", led(3, 4)));
        Map<Integer, Integer> halves = Map.of(1, ALPHA / 2, 2, ALPHA / 2, 3, BETA / 2, 4, BETA / 2);
        assertEquals(halves, apart(figure65, NodePartitioner::new));
        assertEquals(halves, apart(figure65, SqfPartitioner::new));
        // The default has not adapted: nodes 1 and 2 stand 1 to 2.
        assertEquals(
                Map.of(1, ALPHA / 3, 2, ALPHA * 2 / 3, 3, BETA / 2, 4, BETA / 2),
                apart(figure65, PaperDefaultPartitioner::new));
    }

    @Test
    void with_complete_overlap_every_policy_balances_all_nodes() {
        int third = (ALPHA + 4_500) / 3;
        Supplier<Cluster> figure66 =
                () -> Clusters.of(Map.of("A", led(1, 2, 3), "B", led(1, 2, 3)));
        for (Supplier<Partitioner> policy :
                List.<Supplier<Partitioner>>of(
                        PaperDefaultPartitioner::new,
                        ImprovedPartitioner::new,
                        NodePartitioner::new,
                        SqfPartitioner::new)) {
            Map<Integer, Integer> load =
                    load(
                            figure66.get(),
                            configured(policy.get()),
                            ALPHA,
                            configured(policy.get()),
                            4_500);
            assertEquals(Map.of(1, third, 2, third, 3, third), load);
        }
    }

    @Test
    void a_shared_sqf_gives_equal_thirds_though_nodes_overlap_in_part() {
        int each = 6_000;
        Map<Integer, Integer> load =
                load(
                        Clusters.figure64(),
                        configured(new SqfPartitioner()),
                        each,
                        configured(new SqfPartitioner()),
                        each);
        assertEquals(Map.of(1, each * 2 / 3, 2, each * 2 / 3, 3, each * 2 / 3), load);
    }

    @Test
    void a_shared_sqf_comes_as_near_as_one_flow_lets_it() {
        // B alone can reach node 3, and has too little for a third of all.
        Map<Integer, Integer> load =
                load(
                        Clusters.figure64(),
                        configured(new SqfPartitioner()),
                        9_000,
                        configured(new SqfPartitioner()),
                        1_000);
        // The first record of B meets two empty queues, and may go to either.
        assertEquals(4_500, load.get(1), 1);
        assertEquals(4_500, load.get(2), 1);
        assertEquals(1_000, load.get(3), 1);
    }

    @Test
    void a_shared_sqf_still_rotates_within_a_node() {
        Cluster cluster = Clusters.figure64();
        Partitioner x = configured(new SqfPartitioner());
        Partitioner y = configured(new SqfPartitioner());
        int[] ofA = new int[3];
        for (int i = 0; i < 3_000; i++) {
            ofA[Clusters.ask(x, "A", cluster)]++;
            Clusters.ask(y, "B", cluster);
        }
        x.close();
        y.close();
        assertEquals(ofA[1], ofA[2], 1);
    }
}
