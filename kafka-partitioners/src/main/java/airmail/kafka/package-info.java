/**
 * Partitioners for Kafka's own producer that balance the nodes of a cluster, not its partitions
 * alone.
 *
 * <p>{@link airmail.kafka.PaperDefaultPartitioner}, {@link airmail.kafka.ImprovedPartitioner},
 * {@link airmail.kafka.NodePartitioner} and {@link airmail.kafka.SqfPartitioner} are those of the
 * paper (D. Burato, <cite>Load balancing and early fault detection in Apache Kafka clusters</cite>,
 * 2019, figures 2.1 and 6.1 to 6.7); {@link airmail.kafka.AdaptivePartitioner}, with {@link
 * airmail.kafka.FlightInterceptor}, is ours. Everything else is package-private.
 *
 * <p>A {@link airmail.kafka.ClusterLayout} is computed when the cluster's metadata changes; a
 * record then costs one look-up and one counter. {@link airmail.kafka.PlannedPartitioner} holds the
 * two together.
 */
package airmail.kafka;
