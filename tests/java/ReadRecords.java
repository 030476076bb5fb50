import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads the partition 0 of topics from beginning to end, and prints for each topic what a consumer of each isolation
 * level got, and which offsets it was told for some of the records' timestamps. Bytes are in base64.
 *
 * Arguments: bootstrap address, topics.
 */
public class ReadRecords {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) {
        ObjectNode found = MAPPER.createObjectNode();
        for (String topic : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            ObjectNode ofTopic = found.putObject(topic);
            for (String isolation : List.of("read_uncommitted", "read_committed"))
                read(arguments[0], new TopicPartition(topic, 0), isolation, ofTopic);
        }
        System.out.println(found);
    }

    private static void read(String bootstrap, TopicPartition partition, String isolation, ObjectNode found) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation);
        ByteArrayDeserializer plain = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, plain, plain)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            ArrayNode records = found.putArray(isolation);
            while (consumer.position(partition) < end)
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100)))
                    records.add(describe(record));
            if (isolation.equals("read_uncommitted")) {
                found.put("end_offset", end);
                ObjectNode offsets = found.putObject("offsets_for_timestamps");
                for (int i = 0; i < records.size(); i += 1 + records.size() / 30) {
                    long timestamp = records.get(i).get("timestamp").asLong();
                    long offset = consumer.offsetsForTimes(Map.of(partition, timestamp)).get(partition).offset();
                    offsets.put(Long.toString(timestamp), offset);
                }
            }
        }
    }

    private static ObjectNode describe(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = MAPPER.createObjectNode().put("offset", record.offset());
        node.put("timestamp", record.timestamp()).put("key", record.key()).put("value", record.value());
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) headers.addArray().add(header.key()).add(header.value());
        return node;
    }
}
