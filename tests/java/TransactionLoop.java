import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consumes, transforms and produces, with the offsets in the transaction, as worker.py does: arguments are the broker, the
 * group, the topic to read, the topic to write, and the transactional id. Ends with any error, and whoever started it
 * starts another one; and when there was no sign of life for a while.
 */
public class TransactionLoop {
    private static final long HANGS_AFTER_MS =
            1000 * Long.parseLong(System.getenv().getOrDefault("BARNABAS_HANGS_AFTER", "20"));
    private static volatile boolean over = false;
    private static volatile long lastSign = System.nanoTime();

    public static void main(String[] arguments) {
        Thread loop = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            over = true;
            try {
                loop.join(2000);
            } catch (InterruptedException ignored) {
                // the end comes anyway
            }
        }));
        Thread watchdog = new Thread(TransactionLoop::watch);
        watchdog.setDaemon(true);
        watchdog.start();
        try {
            run(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
        } catch (Throwable error) {
            System.out.println(error);
            Runtime.getRuntime().halt(1);
        }
    }

    private static void watch() {
        while ((System.nanoTime() - lastSign) / 1_000_000 < HANGS_AFTER_MS) {
            try {
                Thread.sleep(500);
            } catch (InterruptedException error) {
                return;
            }
        }
        System.out.println("no sign of life for " + HANGS_AFTER_MS + " ms");
        Runtime.getRuntime().halt(3);
    }

    private static void run(String broker, String group, String source, String target, String transactionalId) {
        Properties reading = new Properties();
        reading.put("bootstrap.servers", broker);
        reading.put("group.id", group);
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("session.timeout.ms", "3000");
        reading.put("heartbeat.interval.ms", "300");
        reading.put("max.poll.records", "20");
        reading.put("fetch.max.wait.ms", "50");
        reading.put("reconnect.backoff.max.ms", "200");
        Properties writing = new Properties();
        writing.put("bootstrap.servers", broker);
        writing.put("transactional.id", transactionalId);
        writing.put("transaction.timeout.ms", "5000");
        writing.put("reconnect.backoff.max.ms", "200");
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
                var producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            while (!over) {
                lastSign = System.nanoTime();
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) continue;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
                for (ConsumerRecord<String, String> each : records) {
                    producer.send(new ProducerRecord<>(target, each.partition(), each.key(), "seen " + each.value()));
                    ends.put(new TopicPartition(source, each.partition()), new OffsetAndMetadata(each.offset() + 1));
                }
                producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
                producer.commitTransaction();
            }
        }
    }
}
