package airmail.kafka;

/** A partition of a topic, and the node that leads it now. */
final class Place {
    final int partition;

    /**
     * Where its records are counted; the tally of {@link NodeTally#NO_NODE} while it has no leader.
     */
    final NodeTally leader;

    Place(int partition, NodeTally leader) {
        this.partition = partition;
        this.leader = leader;
    }
}
