package airmail.kafka.load;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedClass;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingFile;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Many threads on one producer, watched by the Java machine's flight recorder: every wait for a
 * monitor and every thread that is parked for a lock, however short, with where it was.
 *
 * <p>The one line that it reads has {@code topic}, {@code threads}, {@code records} of each, {@code
 * size} and {@code properties}. It answers with a row for each class that was waited for and each
 * place from where, while a record was sent, and with how many of these waits were below a method
 * of ours.
 */
public final class Contention {
    private static final String OURS = "airmail.kafka.";
    private static final String OUR_LOAD = "airmail.kafka.load.";
    private static final List<String> EVENTS =
            List.of("jdk.JavaMonitorEnter", "jdk.ThreadPark", "jdk.JavaMonitorInflate");

    private Contention() {}

    private static final class Waits {
        private long count;
        private long nanos;
    }

    /** Ends with 1 if nothing could be sent. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader orders =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ObjectMapper mapper = new ObjectMapper();
        JsonNode told = mapper.readTree(orders.readLine());
        Path file = Files.createTempFile("airmail-contention-", ".jfr");
        try (Recording recording = new Recording()) {
            EVENTS.forEach(
                    event -> recording.enable(event).withStackTrace().withThreshold(Duration.ZERO));
            send(told, recording);
            recording.dump(file);
            System.out.println("sent " + mapper.writeValueAsString(read(mapper, file)));
        } finally {
            Files.delete(file);
        }
    }

    /** Sends by all threads; what the first tenth does to warm up is not recorded. */
    private static void send(JsonNode told, Recording recording) throws Exception {
        Properties properties = new Properties();
        for (Map.Entry<String, JsonNode> property : told.get("properties").properties()) {
            properties.put(property.getKey(), property.getValue().asText());
        }
        ByteArraySerializer bytes = new ByteArraySerializer();
        int threads = told.get("threads").asInt();
        int records = told.get("records").asInt();
        String topic = told.get("topic").asText();
        byte[] value = new byte[told.get("size").asInt()];
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(properties, bytes, bytes)) {
            Callable<?> send = () -> producer.send(new ProducerRecord<>(topic, value));
            together(threads, records / 10, send);
            recording.start();
            together(threads, records, send);
            producer.flush();
            recording.stop();
        }
    }

    private static void together(int threads, int times, Callable<?> task) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<?>> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            running.add(
                    pool.submit(
                            () -> {
                                for (int j = 0; j < times; j++) {
                                    task.call();
                                }
                                return null;
                            }));
        }
        for (Future<?> one : running) {
            one.get();
        }
        pool.shutdown();
    }

    private static ObjectNode read(ObjectMapper mapper, Path file) throws IOException {
        Map<String, Waits> waits = new TreeMap<>();
        Waits ours = new Waits();
        for (RecordedEvent event : RecordingFile.readAllEvents(file)) {
            String place = place(event);
            if (place == null) {
                continue;
            }
            if (isOurs(event)) {
                ours.count++;
                ours.nanos += event.getDuration().toNanos();
            }
            Waits row = waits.computeIfAbsent(lock(event) + "\t" + place, key -> new Waits());
            row.count++;
            row.nanos += event.getDuration().toNanos();
        }
        ObjectNode told = mapper.createObjectNode();
        told.put("ours", ours.count);
        told.put("ours_ms", ours.nanos / 1e6);
        var rows = told.putArray("waits");
        waits.forEach(
                (key, row) -> {
                    String[] parts = key.split("\t");
                    rows.addObject()
                            .put("lock", parts[0])
                            .put("at", parts[1])
                            .put("count", row.count)
                            .put("ms", row.nanos / 1e6);
                });
        return told;
    }

    private static String lock(RecordedEvent event) {
        String field = event.hasField("monitorClass") ? "monitorClass" : "parkedClass";
        RecordedClass of = event.getClass(field);
        return of == null ? "none" : of.getName();
    }

    /** The innermost method of Kafka or of ours; null if nothing was sent, and none of ours ran. */
    private static String place(RecordedEvent event) {
        if (event.getStackTrace() == null) {
            return null;
        }
        String place = null;
        boolean sending = isOurs(event);
        for (RecordedFrame frame : event.getStackTrace().getFrames()) {
            String type = frame.getMethod().getType().getName();
            boolean named = type.startsWith("org.apache.kafka.") || type.startsWith(OURS);
            if (place == null && named) {
                place = type + "." + frame.getMethod().getName();
            }
            sending |= type.equals(KafkaProducer.class.getName());
        }
        return sending ? place : null;
    }

    private static boolean isOurs(RecordedEvent event) {
        return event.getStackTrace().getFrames().stream()
                .map(frame -> frame.getMethod().getType().getName())
                .anyMatch(type -> type.startsWith(OURS) && !type.startsWith(OUR_LOAD));
    }
}
