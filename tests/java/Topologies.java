import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestDataJsonConverter;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.slf4j.helpers.NOPLogger;

/**
 * How Kafka configures the topologies of streams groups, for another process: each line of standard input is a JSON object,
 * and each is answered by one line. Ends with its input.
 *
 * {"request": a StreamsGroupHeartbeat request as Kafka writes it in JSON, "topics": {name: partitions}} -> {"tasks":
 *   {subtopology: count}, "missing": [[topic, partitions]] in Kafka's order, "status", "detail"}
 *
 * An exception is answered by {"error": its class}.
 */
public class Topologies {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JsonNodeFactory.instance.objectNode();
            JsonNode call = MAPPER.readTree(line);
            try {
                configure(call, answer);
            } catch (RuntimeException error) {
                answer.removeAll();
                answer.put("error", error.getClass().getSimpleName());
            }
            out.println(MAPPER.writeValueAsString(answer));
        }
    }

    private static void configure(JsonNode call, ObjectNode answer) {
        StreamsTopology topology = StreamsTopology.fromHeartbeatRequest(
            StreamsGroupHeartbeatRequestDataJsonConverter.read(call.get("request"), (short) 0).topology());
        ConfiguredTopology found = InternalTopicManager.configureTopics(
            NOPLogger.NOP_LOGGER, "g", "m", 0, topology, image(call.get("topics")), Time.SYSTEM);
        ObjectNode tasks = answer.putObject("tasks");
        found.subtopologies().ifPresent(all -> all.forEach((id, each) -> tasks.put(id, each.numberOfTasks())));
        var missing = answer.putArray("missing");
        found.internalTopicsToBeCreated().forEach((name, topic) -> missing.addArray().add(name).add(topic.numPartitions()));
        found.topicConfigurationException().ifPresent(
            problem -> answer.put("status", problem.status().code()).put("detail", problem.getMessage()));
    }

    /** Only the number of partitions of a topic is asked for. */
    private static CoordinatorMetadataImage image(JsonNode topics) {
        return proxy(CoordinatorMetadataImage.class, (method, name) -> {
            if (!method.equals("topicMetadata")) throw new UnsupportedOperationException(method);
            if (!topics.has((String) name)) return Optional.empty();
            int count = topics.get((String) name).asInt();
            return Optional.of(proxy(CoordinatorMetadataImage.TopicMetadata.class, (asked, none) -> count));
        });
    }

    private interface Answer {
        Object to(String method, Object argument);
    }

    private static <T> T proxy(Class<T> type, Answer answer) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
            (self, method, arguments) -> answer.to(method.getName(), arguments == null ? null : arguments[0])));
    }
}
