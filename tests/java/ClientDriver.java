import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Java's clients, driven from another process: each line of standard input is a call, a JSON object with its name and
 * arguments, and each is answered by one line, {"result": ...} or {"error": the exception's class, "message": ...}.
 *
 * What is opened (an admin client, a producer, a consumer of one partition, a consumer in a group) is called by the
 * number that opening it returned. Bytes are in base64. Ends with its input.
 */
public class ClientDriver {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final long PATIENCE_SECONDS = 40;

    private final List<AutoCloseable> opened = new ArrayList<>();
    private final Map<Integer, TopicPartition> assigned = new HashMap<>();
    private final Map<Integer, Rebalances> rebalances = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        ClientDriver driver = new ClientDriver();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            System.out.println(driver.answer(MAPPER.readTree(line)));
        System.exit(0);
    }

    private ObjectNode answer(JsonNode call) {
        ObjectNode answer = MAPPER.createObjectNode();
        try {
            answer.set("result", MAPPER.valueToTree(perform(call)));
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            answer.put("error", cause.getClass().getSimpleName()).put("message", String.valueOf(cause.getMessage()));
        }
        return answer;
    }

    private Object perform(JsonNode call) throws Exception {
        String topic = call.path("topic").asText();
        switch (call.get("call").asText()) {
            case "open_admin":
                return open(Admin.create(settings(call)));
            case "open_producer":
                return open(new KafkaProducer<>(settings(call), new ByteArraySerializer(), new ByteArraySerializer()));
            case "open_consumer":
                return openConsumer(call);
            case "open_group_consumer":
                ByteArrayDeserializer plain = new ByteArrayDeserializer();
                int member = open(new KafkaConsumer<>(settings(call), plain, plain));
                rebalances.put(member, new Rebalances());
                return member;
            case "close":
                opened.set(call.get("on").asInt(), null).close();
                return null;
            case "create_topic":
                NewTopic created = new NewTopic(topic, Optional.of(call.get("partitions").asInt()), Optional.empty());
                return done(admin(call).createTopics(List.of(created.configs(strings(call.get("configs"))))).all());
            case "delete_topic":
                return done(admin(call).deleteTopics(List.of(topic)).all());
            case "create_partitions":
                NewPartitions total = NewPartitions.increaseTo(call.get("total_count").asInt());
                return done(admin(call).createPartitions(Map.of(topic, total)).all());
            case "alter_configs":
                return alterConfigs(call, topic);
            case "delete_records":
                RecordsToDelete before = RecordsToDelete.beforeOffset(call.get("before_offset").asLong());
                return done(admin(call).deleteRecords(Map.of(new TopicPartition(topic, 0), before)).all());
            case "partition_count":
                return partitionCount(call, topic);
            case "send":
                return send(call, topic);
            case "init_transactions":
                producer(call).initTransactions();
                return null;
            case "begin_transaction":
                producer(call).beginTransaction();
                return null;
            case "send_offsets_to_transaction":
                Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
                for (JsonNode each : call.get("offsets"))
                    positions.put(
                        new TopicPartition(each.get("topic").asText(), each.get("partition").asInt()),
                        new OffsetAndMetadata(each.get("offset").asLong()));
                ConsumerGroupMetadata group =
                    ((KafkaConsumer<?, ?>) opened.get(call.get("member").asInt())).groupMetadata();
                producer(call).sendOffsetsToTransaction(positions, group);
                return null;
            case "commit_transaction":
                producer(call).commitTransaction();
                return null;
            case "abort_transaction":
                producer(call).abortTransaction();
                return null;
            case "poll":
                return poll(call);
            case "subscribe":
                consumer(call).subscribe(MAPPER.convertValue(call.get("topics"), List.class), rebalances(call));
                return null;
            case "subscribe_pattern":
                consumer(call).subscribe(Pattern.compile(call.get("pattern").asText()), rebalances(call));
                return null;
            case "assignment":
                return partitions(consumer(call).assignment());
            case "rebalances":
                return rebalances(call).told();
            case "seek":
                consumer(call).seek(partition(call), call.get("offset").asLong());
                return null;
            case "seek_to_beginning":
                consumer(call).seekToBeginning(List.of(partition(call)));
                return null;
            case "seek_to_end":
                consumer(call).seekToEnd(List.of(partition(call)));
                return null;
            case "beginning_offset":
                return consumer(call).beginningOffsets(List.of(partition(call))).get(partition(call));
            case "end_offset":
                return consumer(call).endOffsets(List.of(partition(call))).get(partition(call));
            case "offset_for_time":
                Map<TopicPartition, Long> times = Map.of(partition(call), call.get("timestamp").asLong());
                OffsetAndTimestamp found = consumer(call).offsetsForTimes(times).get(partition(call));
                return found == null ? null : found.offset();
            default:
                throw new IllegalArgumentException("no such call: " + call);
        }
    }

    private int open(AutoCloseable client) {
        opened.add(client);
        return opened.size() - 1;
    }

    private int openConsumer(JsonNode call) {
        ByteArrayDeserializer plain = new ByteArrayDeserializer();
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(call), plain, plain);
        TopicPartition partition = new TopicPartition(call.get("topic").asText(), call.get("partition").asInt());
        consumer.assign(List.of(partition));
        int number = open(consumer);
        assigned.put(number, partition);
        return number;
    }

    private Object alterConfigs(JsonNode call, String topic) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        strings(call.get("configs")).forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        return done(admin(call).incrementalAlterConfigs(Map.of(resource, changes)).all());
    }

    private int partitionCount(JsonNode call, String topic) throws Exception {
        try {
            return done(admin(call).describeTopics(List.of(topic)).allTopicNames()).get(topic).partitions().size();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) return 0;
            throw error;
        }
    }

    private ArrayNode send(JsonNode call, String topic) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(call);
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (JsonNode each : call.get("records")) {
            Integer partition = each.get("partition").isNull() ? null : each.get("partition").asInt();
            Long timestamp = each.get("timestamp").isNull() ? null : each.get("timestamp").asLong();
            ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(topic, partition, timestamp, bytes(each.get("key")), bytes(each.get("value")));
            for (JsonNode header : each.get("headers"))
                record.headers().add(header.get(0).asText(), bytes(header.get(1)));
            futures.add(producer.send(record));
        }
        ArrayNode sent = MAPPER.createArrayNode();
        for (Future<RecordMetadata> future : futures) {
            RecordMetadata metadata = done(future);
            sent.addObject().put("partition", metadata.partition()).put("offset", metadata.offset());
        }
        return sent;
    }

    private ArrayNode poll(JsonNode call) {
        ArrayNode records = MAPPER.createArrayNode();
        for (ConsumerRecord<byte[], byte[]> record : consumer(call).poll(Duration.ofMillis(call.get("ms").asLong()))) {
            ObjectNode node = records.addObject().put("partition", record.partition()).put("offset", record.offset());
            node.put("timestamp", record.timestamp()).put("key", record.key()).put("value", record.value());
            ArrayNode headers = node.putArray("headers");
            for (Header header : record.headers()) headers.addArray().add(header.key()).add(header.value());
        }
        return records;
    }

    private AutoCloseable on(JsonNode call) {
        return opened.get(call.get("on").asInt());
    }

    private Admin admin(JsonNode call) {
        return (Admin) on(call);
    }

    @SuppressWarnings("unchecked")
    private KafkaProducer<byte[], byte[]> producer(JsonNode call) {
        return (KafkaProducer<byte[], byte[]>) on(call);
    }

    @SuppressWarnings("unchecked")
    private KafkaConsumer<byte[], byte[]> consumer(JsonNode call) {
        return (KafkaConsumer<byte[], byte[]>) on(call);
    }

    private TopicPartition partition(JsonNode call) {
        return assigned.get(call.get("on").asInt());
    }

    private Rebalances rebalances(JsonNode call) {
        return rebalances.get(call.get("on").asInt());
    }

    /** What the listener of a consumer in a group has been told since it was last asked. */
    private static class Rebalances implements ConsumerRebalanceListener {
        private final ArrayNode assigned = MAPPER.createArrayNode();
        private final ArrayNode revoked = MAPPER.createArrayNode();

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assigned.addAll(partitions(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            revoked.addAll(partitions(partitions));
        }

        ObjectNode told() {
            ObjectNode told = MAPPER.createObjectNode();
            told.putArray("assigned").addAll(assigned);
            told.putArray("revoked").addAll(revoked);
            assigned.removeAll();
            revoked.removeAll();
            return told;
        }
    }

    private static ArrayNode partitions(Collection<TopicPartition> partitions) {
        ArrayNode nodes = MAPPER.createArrayNode();
        for (TopicPartition each : partitions)
            nodes.addObject().put("topic", each.topic()).put("partition", each.partition());
        return nodes;
    }

    private static <T> T done(Future<T> future) throws Exception {
        return future.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    private static byte[] bytes(JsonNode node) throws Exception {
        return node.isNull() ? null : node.binaryValue();
    }

    private static Map<String, Object> settings(JsonNode call) {
        return new HashMap<>(strings(call.get("settings")));
    }

    private static Map<String, String> strings(JsonNode object) {
        Map<String, String> map = new HashMap<>();
        object.fields().forEachRemaining(field -> map.put(field.getKey(), field.getValue().asText()));
        return map;
    }
}
