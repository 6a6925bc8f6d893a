package airmail.kafka;

/**
 * What JMX shows of a node: {@code airmail.partitioner:type=Node,policy=…,client-id=…,node-id=…}.
 */
public interface NodeRecordsMXBean {
    /** Records that this producer's partitioner gave to the node, with and without keys. */
    long getRecords();
}
