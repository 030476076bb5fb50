import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Java's share consumers against a broker: what they get, in which order and how often, as one JSON object. */
public class ShareConsumers {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        ObjectNode found = MAPPER.createObjectNode();
        found.set("implicit", implicit());
        found.set("explicit", explicit());
        found.set("limit", limit());
        found.set("closed", closed());
        found.set("transactions", transactions());
        System.out.println(found);
        System.exit(0);
    }

    /** Records are accepted by the next poll. */
    private static ArrayNode implicit() throws Exception {
        topic("java-implicit", "earliest", null);
        produce("java-implicit", 5);
        ArrayNode seen = MAPPER.createArrayNode();
        try (KafkaShareConsumer<String, String> consumer = consumer("java-implicit", "java-implicit")) {
            poll(consumer, 5, seen, null);
            produce("java-implicit", 2);
            poll(consumer, 2, seen, null);
            consumer.commitSync();
        }
        try (KafkaShareConsumer<String, String> consumer = consumer("java-implicit", "java-implicit")) {
            produce("java-implicit", 1);
            poll(consumer, 1, seen, null);
        }
        return seen;
    }

    /** Each record is accepted, released or rejected, and those that were released come again. */
    private static ArrayNode explicit() throws Exception {
        topic("java-explicit", "earliest", null);
        produce("java-explicit", 6);
        ArrayNode seen = MAPPER.createArrayNode();
        try (KafkaShareConsumer<String, String> consumer = consumer("java-explicit", "java-explicit")) {
            AcknowledgeType[] types = {AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT};
            poll(consumer, 6, seen, types);
            poll(consumer, 2, seen, new AcknowledgeType[] {AcknowledgeType.ACCEPT});
        }
        return seen;
    }

    /** A record that is always released comes as often as the group's limit allows. */
    private static ArrayNode limit() throws Exception {
        topic("java-limit", "earliest", Map.of("share.delivery.count.limit", "3"));
        produce("java-limit", 1);
        ArrayNode seen = MAPPER.createArrayNode();
        try (KafkaShareConsumer<String, String> consumer = consumer("java-limit", "java-limit")) {
            poll(consumer, 3, seen, new AcknowledgeType[] {AcknowledgeType.RELEASE});
            produce("java-limit", 1);
            poll(consumer, 1, seen, new AcknowledgeType[] {AcknowledgeType.ACCEPT});
        }
        return seen;
    }

    /** What a consumer has when it closes, another one gets. */
    private static ArrayNode closed() throws Exception {
        topic("java-closed", "earliest", null);
        produce("java-closed", 2);
        ArrayNode seen = MAPPER.createArrayNode();
        try (KafkaShareConsumer<String, String> consumer = consumer("java-closed", "java-closed")) {
            while (consumer.poll(Duration.ofMillis(200)).isEmpty()) { }
        }
        try (KafkaShareConsumer<String, String> consumer = consumer("java-closed", "java-closed")) {
            poll(consumer, 2, seen, new AcknowledgeType[] {AcknowledgeType.ACCEPT});
        }
        return seen;
    }

    /** A group that sees only what is committed. */
    private static ArrayNode transactions() throws Exception {
        topic("java-transactions", "earliest", Map.of("share.isolation.level", "read_committed"));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", servers, "transactional.id", "shared"),
                new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            for (boolean commit : new boolean[] {false, true, false, true}) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>("java-transactions", 0, null, commit ? "committed" : "aborted"));
                producer.flush();
                if (commit) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
        ArrayNode seen = MAPPER.createArrayNode();
        try (KafkaShareConsumer<String, String> consumer = consumer("java-transactions", "java-transactions")) {
            poll(consumer, 2, seen, new AcknowledgeType[] {AcknowledgeType.ACCEPT});
        }
        return seen;
    }

    private static void poll(
            KafkaShareConsumer<String, String> consumer, int count, ArrayNode seen, AcknowledgeType[] types) {
        int got = 0;
        while (got < count) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                String said = "";
                if (types != null) {
                    AcknowledgeType type = types[got % types.length];
                    consumer.acknowledge(record, type);
                    said = " " + type;
                }
                seen.add(record.value() + "@" + record.offset() + " " + record.deliveryCount().orElse((short) 0) + said);
                got++;
            }
            if (types == null) continue;
            for (Map.Entry<TopicIdPartition, Optional<KafkaException>> each : consumer.commitSync().entrySet())
                each.getValue().ifPresent(failure -> seen.add(failure.toString()));
        }
    }

    private static KafkaShareConsumer<String, String> consumer(String group, String topic) {
        KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(
            Map.of("bootstrap.servers", servers, "group.id", group,
                "share.acknowledgement.mode", group.equals("java-implicit") ? "implicit" : "explicit"),
            new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private static void topic(String name, String reset, Map<String, String> more) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            admin.createTopics(List.of(new NewTopic(name, 1, (short) 1))).all().get();
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, name);
            List<AlterConfigOp> operations = new java.util.ArrayList<>();
            operations.add(set("share.auto.offset.reset", reset));
            if (more != null) more.forEach((key, value) -> operations.add(set(key, value)));
            admin.incrementalAlterConfigs(Map.of(group, operations)).all().get();
        }
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    private static void produce(String topic, int count) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", servers), new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < count; number++)
                producer.send(new ProducerRecord<>(topic, 0, null, "r")).get();
        }
    }
}
