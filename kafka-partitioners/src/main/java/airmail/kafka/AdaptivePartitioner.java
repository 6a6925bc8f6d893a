package airmail.kafka;

import airmail.kafka.FlightBoard.Departure;
import airmail.kafka.TopicLayout.NodePlaces;

import org.apache.kafka.common.Cluster;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Ours: balances a topic's nodes by what they can take, and keeps batches full.
 *
 * <p>It stays with a partition until a batch is full ({@link StickyTurns}). Then the next node has
 * its turn, as in {@link NodePartitioner}, unless one picked at random is clearly better off: by
 * the bytes that are in flight to each, times the latency to expect of it; where both are
 * busy, by how long each needs for what it has ({@link NodeFlight#isWorseThan}). A node that slows down, fails or stops answering is passed over as soon as
 * that shows; one that is back is tried again within a second.
 *
 * <p>What is in flight comes from {@link FlightInterceptor}, which must be in the producer's {@code
 * interceptor.classes}. Without it nothing is known of the nodes, and they have their turns, a
 * batch each; a warning says so once.
 */
public final class AdaptivePartitioner extends PlannedPartitioner<StickyTurns> {
    private static final Logger LOG = LoggerFactory.getLogger(AdaptivePartitioner.class);

    private final LongSupplier clock;
    private final Map<Integer, NodeFlight> nodes = new HashMap<>();
    private FlightBoard board;
    private StickyTurns.Rule rule;
    private boolean warned;

    public AdaptivePartitioner() {
        this(System::nanoTime);
    }

    AdaptivePartitioner(LongSupplier clock) {
        this.clock = clock;
    }

    @Override
    public void configure(Map<String, ?> properties) {
        super.configure(properties);
        rule = new StickyTurns.Rule(settings());
        board = FlightRegistry.join(settings().clientId(), FlightRegistry.Role.PARTITIONER, clock);
        board.counting(isCounting());
    }

    @Override
    public int partition(
            String topic,
            Object key,
            byte[] keyBytes,
            Object value,
            byte[] valueBytes,
            Cluster cluster) {
        StickyTurns turns = planOf(topic, cluster);
        int bytes = BatchBytes.of(keyBytes, valueBytes);
        long now = clock.getAsLong();
        Place place = isByKey(keyBytes) ? turns.topic.forKey(keyBytes) : turns.next(bytes, now);
        count(place);
        PartitionFlight flight = null;
        if (board.isAttached()) {
            flight = turns.flights[place.partition];
            flight.depart(bytes, now);
        }
        board.departure().set(topic, place, flight, bytes);
        return place.partition;
    }

    /**
     * Clients before 4.0 call it when a record opens a batch, and then ask for its partition again.
     */
    @SuppressWarnings("deprecation")
    public void onNewBatch(String topic, Cluster cluster, int partition) {
        Departure departure = board.departure();
        if (departure.isTo(topic, partition)) {
            int bytes = departure.bytes();
            departure.takeBack(isCounting());
            planOf(topic, cluster).newBatch(partition, bytes);
        }
    }

    @Override
    NodeTally tally(int node) {
        return nodes.computeIfAbsent(
                node, id -> new NodeFlight(id, settings().decayMs(), board.clock));
    }

    @Override
    void changing(Cluster cluster, List<TopicLayout> topics) {
        if (!board.isAttached() && !warned) {
            warned = true;
            LOG.warn(
                    "AdaptivePartitioner of producer {}: without interceptor.classes={} nothing is"
                        + " known of the nodes, and they have their turns, a batch each",
                    settings().clientId(),
                    FlightInterceptor.class.getName());
        }
        Map<NodeFlight, List<PartitionFlight>> led = new HashMap<>();
        nodes.values().forEach(node -> led.put(node, new ArrayList<>()));
        for (TopicLayout topic : topics) {
            PartitionFlight[] flights = flights(topic);
            for (Place place : topic.available) {
                led.get((NodeFlight) place.leader).add(flights[place.partition]);
            }
        }
        led.forEach((node, flights) -> node.leads(flights.toArray(new PartitionFlight[0])));
    }

    private PartitionFlight[] flights(TopicLayout topic) {
        return board.flights(topic.topic, 1 + topic.all[topic.all.length - 1].partition);
    }

    @Override
    StickyTurns plan(TopicLayout topic) {
        StickyTurns.Stop[] stops = new StickyTurns.Stop[topic.nodes.length];
        for (int i = 0; i < stops.length; i++) {
            NodePlaces node = topic.nodes[i];
            int[] choices = new int[node.places.length];
            for (int j = 0; j < choices.length; j++) {
                choices[j] = List.of(topic.available).indexOf(node.places[j]);
            }
            stops[i] =
                    new StickyTurns.Stop(
                            nodes.get(node.node), choices, rotation(topic.topic, node.node));
        }
        return new StickyTurns(topic, stops, rotation(topic.topic), rule, board, flights(topic));
    }

    @Override
    public boolean isFeedbackPresent() {
        return board.isAttached();
    }

    @Override
    public void close() {
        super.close();
        FlightRegistry.leave(board);
    }
}
