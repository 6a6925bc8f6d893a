package airmail.kafka;

import java.util.concurrent.atomic.LongAdder;

/** How many records one producer's partitioner has given to one node. */
class NodeTally implements NodeRecordsMXBean {
    /** Stands for the leader of a partition that has none. Kafka's ids are not negative. */
    static final int NO_NODE = -1;

    final int node;
    private final LongAdder records = new LongAdder();

    NodeTally(int node) {
        this.node = node;
    }

    final void count() {
        records.increment();
    }

    /** The producer asked again, and the record goes elsewhere. */
    final void takeBack() {
        records.decrement();
    }

    @Override
    public final long getRecords() {
        return records.sum();
    }
}
