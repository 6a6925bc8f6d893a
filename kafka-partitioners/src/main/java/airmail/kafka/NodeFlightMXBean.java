package airmail.kafka;

/** What JMX shows of a node under {@link AdaptivePartitioner}, beside the records it was given. */
public interface NodeFlightMXBean extends NodeRecordsMXBean {
    /**
     * Bytes of keys and values in the producer's buffers or on their way to the node, not yet
     * acknowledged: records in flight times their mean size.
     */
    long getBytesInFlight();

    /** The latency by which the node is judged now, in milliseconds. */
    double getLatencyMillis();
}
