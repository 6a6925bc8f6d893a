package airmail.kafka;

/**
 * What JMX shows of a partitioner: {@code airmail.partitioner:type=Policy,policy=…,client-id=…}.
 */
public interface PolicyMXBean {
    /** The partitioner's class, without its package. */
    String getPolicy();

    /** How often the layout was computed, because the cluster's metadata changed. */
    long getLayoutsComputed();

    /** Whether acknowledgements reach the policy: only ever true of AdaptivePartitioner. */
    boolean isFeedbackPresent();
}
