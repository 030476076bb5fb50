import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import sun.misc.Signal;

/**
 * Java's clients under torture, as tests/integration/cluster/torture/client.py has them in Python: the argument is the
 * task in JSON. Each role has a thread, a client that fails is replaced by a new one, a library that hangs ends the
 * process. On SIGTERM producers finish, and "finished" is printed when they have. Consumers continue until the process is
 * killed.
 */
public class ClusterClient {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final long HANGS_AFTER_NS = 90_000_000_000L;
    private static final long MS_BETWEEN_SENDS = 100;
    private static final double SHARE_OF_ABORTS = 0.2;

    private static JsonNode task;
    private static FileOutputStream journal;
    private static volatile boolean over = false;

    public static void main(String[] arguments) throws Exception {
        task = MAPPER.readTree(arguments[0]);
        journal = new FileOutputStream(task.get("journal").asText(), true);
        Signal.handle(new Signal("TERM"), signal -> over = true);
        List<Chair> chairs = new ArrayList<>();
        for (JsonNode role : task.get("roles")) {
            Chair chair = new Chair(role.asText(), chairs.size());
            chairs.add(chair);
            chair.start();
        }
        boolean finished = false;
        while (true) {
            Thread.sleep(100);
            for (Chair chair : chairs)
                if (chair.isAlive() && System.nanoTime() - chair.lastSign > HANGS_AFTER_NS) {
                    System.err.println(chair.role + " gave no sign of life; it is at");
                    for (StackTraceElement element : chair.getStackTrace()) System.err.println("  " + element);
                    Runtime.getRuntime().halt(3);
                }
            if (!finished && chairs.stream().noneMatch(chair -> !chair.role.equals("member") && chair.isAlive())) {
                finished = true;
                System.out.println("finished");
            }
        }
    }

    private static class Chair extends Thread {
        final String role;
        final int number;
        volatile long lastSign = System.nanoTime();
        private String who;
        private Random random;
        private int sends;
        private String transaction;

        Chair(String role, int number) {
            this.role = role;
            this.number = number;
            setDaemon(true);
        }

        @Override
        public void run() {
            for (int lives = 0; lives == 0 || !over || role.equals("member"); lives++) {
                who = "java/" + role + "-" + number + "/" + task.get("life").asInt() + "." + lives;
                random = new Random((task.get("seed").asLong() + who).hashCode());
                sends = 0;
                transaction = null;
                ObjectNode opened = event("opened").put("kind", role);
                if (role.equals("member")) opened.put("group", "group-java");
                note(opened);
                try {
                    switch (role) {
                        case "transactional" -> transact();
                        case "member" -> consume();
                        default -> produce();
                    }
                } catch (Exception error) {
                    System.err.println(who + ": " + error);
                    pause(500);
                }
            }
        }

        private boolean goesOn() {
            lastSign = System.nanoTime();
            return !over;
        }

        private void produce() {
            Properties settings = common();
            boolean idempotent = role.equals("idempotent");
            settings.put("acks", idempotent ? "all" : task.get("acks").asText());
            settings.put("enable.idempotence", Boolean.toString(idempotent));
            settings.put("delivery.timeout.ms", "120000");
            var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
            try {
                while (goesOn()) send(producer);
                producer.flush();
            } finally {
                producer.close(Duration.ofSeconds(1));
            }
        }

        private void transact() {
            Properties settings = common();
            settings.put("transactional.id", "java-transactional");
            settings.put("transaction.timeout.ms", "10000");
            settings.put("max.block.ms", "30000");
            var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
            try {
                producer.initTransactions();
                for (int count = 0; goesOn(); count++) {
                    transaction = who + "#" + count;
                    producer.beginTransaction();
                    for (int left = 1 + random.nextInt(5); left > 0; left--) send(producer);
                    if (random.nextDouble() < SHARE_OF_ABORTS) {
                        producer.abortTransaction();
                        note(event("aborted").put("transaction", transaction));
                        continue;
                    }
                    note(event("commit").put("transaction", transaction));
                    producer.commitTransaction();
                    note(event("committed").put("transaction", transaction));
                }
            } finally {
                producer.close(Duration.ofSeconds(1));
            }
        }

        private void send(KafkaProducer<String, String> producer) {
            int partition = random.nextInt(task.get("partitions").asInt());
            String value = who + ":" + sends++;
            ObjectNode sending = event("send").put("partition", partition).put("value", value);
            if (transaction != null) sending.put("transaction", transaction);
            note(sending);
            String name = who;
            producer.send(new ProducerRecord<>(task.get("topic").asText(), partition, null, value), (metadata, error) -> {
                if (error == null) note(event("sent").put("who", name).put("value", value).put("offset", metadata.offset()));
            });
            pause(MS_BETWEEN_SENDS);
        }

        private void consume() {
            String topic = task.get("topic").asText();
            Properties settings = common();
            settings.put("group.id", "group-java");
            settings.put("isolation.level", "read_committed");
            settings.put("enable.auto.commit", "false");
            settings.put("auto.offset.reset", "earliest");
            settings.put("session.timeout.ms", "6000");
            settings.put("heartbeat.interval.ms", "1000");
            settings.put("max.poll.records", "50");
            settings.put("fetch.max.wait.ms", "100");
            settings.put("default.api.timeout.ms", "30000");
            try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                    public void onPartitionsRevoked(Collection<TopicPartition> revoked) {}

                    public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                        note(event("assigned"));
                    }
                });
                while (true) {
                    goesOn();
                    Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
                    for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(200))) {
                        note(event("read").put("partition", each.partition()).put("offset", each.offset()).put("value", each.value()));
                        ends.put(new TopicPartition(topic, each.partition()), new OffsetAndMetadata(each.offset() + 1));
                    }
                    if (ends.isEmpty()) continue;
                    try {
                        consumer.commitSync(ends);
                    } catch (KafkaException moved) {
                        continue; // the group or its coordinator; what was read will be read again
                    }
                    ends.forEach((partition, end) ->
                            note(event("offset committed").put("partition", partition.partition()).put("offset", end.offset())));
                }
            }
        }

        private ObjectNode event(String what) {
            // The same clock as Python's time.monotonic on Linux.
            return MAPPER.createObjectNode().put("at", System.nanoTime() / 1e9).put("who", who).put("what", what);
        }
    }

    private static Properties common() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", task.get("bootstrap").asText());
        settings.put("reconnect.backoff.max.ms", "500");
        settings.put("metadata.max.age.ms", "5000");
        return settings;
    }

    private static void note(ObjectNode event) {
        try {
            journal.write((MAPPER.writeValueAsString(event) + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (java.io.IOException error) {
            Runtime.getRuntime().halt(4);
        }
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
