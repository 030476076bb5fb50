import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes records of every sort to a topic's partition 0: plainly, with each codec, and in transactions that are
 * committed and aborted. Prints nothing but an empty JSON object.
 *
 * Arguments: bootstrap address, topic, how many bytes of values to write.
 */
public class WriteRecords {
    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        int bytes = Integer.parseInt(arguments[2]);
        List<String> codecs = List.of("none", "gzip", "snappy", "lz4", "zstd");
        for (String codec : codecs)
            try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, codec, null)) {
                send(producer, partition, codec, bytes / codecs.size());
            }
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "lz4", "surveyor")) {
            producer.initTransactions();
            for (String end : List.of("committed", "aborted", "committed too", "aborted too")) {
                producer.beginTransaction();
                send(producer, partition, end, 1000);
                if (end.startsWith("committed")) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
        System.out.println("{}");
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String codec, String transactionalId) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("compression.type", codec);
        settings.put("linger.ms", 5);
        if (transactionalId != null) settings.put("transactional.id", transactionalId);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, TopicPartition partition, String name, int bytes) {
        long timestamp = System.currentTimeMillis() - 60_000;
        ProducerRecord<byte[], byte[]> bare = new ProducerRecord<>(partition.topic(), 0, timestamp, null, null, null);
        ProducerRecord<byte[], byte[]> rich =
            new ProducerRecord<>(partition.topic(), 0, timestamp + 1000, utf8("Schlüssel"), utf8(name));
        rich.headers().add("von", utf8("Klamm")).add("von", null).add("", new byte[0]);
        producer.send(bare);
        producer.send(rich);
        Random random = new Random(name.hashCode());
        for (int left = bytes; left > 0; ) {
            byte[] value = new byte[1 + random.nextInt(4000)];
            random.nextBytes(value);
            left -= value.length;
            // Now and then time goes back.
            timestamp += random.nextInt(100) - 20;
            producer.send(new ProducerRecord<>(partition.topic(), 0, timestamp, utf8(name + left), value));
        }
        producer.flush();
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
