/**
 * What the evaluation of the partitioners drives Kafka with: {@link airmail.kafka.load.Load} sends,
 * {@link airmail.kafka.load.Desk} makes topics and counts what is in them, {@link
 * airmail.kafka.load.Contention} watches the locks of a producer with many threads. Each is told
 * what to do by lines of JSON on standard input, answers by such lines, and ends when its input
 * does.
 */
package airmail.kafka.load;
