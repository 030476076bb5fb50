import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Kafka's assignors of consumer groups and share groups, for another process: each line of standard input is a JSON object, and each is
 * answered by one line. Ends with its input.
 *
 * {"do": "assign", "assignor", "type", "topics": {id: count}, "members": [{"id", "instance", "rack", "topics": [id],
 *   "owned": [[id, [partition]]]}], "assignable": {id: [partition]} or null} -> {"members": {id: {topic id: [partition]}}, "askedForRacks"}
 * {"do": "order", "members": [id]} -> {"members": as a group's table lists them after they have joined in that order}
 *
 * Keys are added to Kafka's hash tables in the order in which they are given. An exception is answered by
 * {"error": its class, "message"}.
 */
public class Assignors {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Map<String, PartitionAssignor> ASSIGNORS =
        Map.of("uniform", new UniformAssignor(), "range", new RangeAssignor(), "simple", new SimpleAssignor());

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JsonNodeFactory.instance.objectNode();
            JsonNode call = MAPPER.readTree(line);
            try {
                if (call.get("do").asText().equals("assign")) assign(call, answer);
                else order(call.get("members"), answer.putArray("members"));
            } catch (Exception error) {
                answer.removeAll();
                answer.put("error", error.getClass().getSimpleName()).put("message", error.getMessage());
            }
            out.println(MAPPER.writeValueAsString(answer));
        }
    }

    private static void assign(JsonNode call, ObjectNode answer) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (JsonNode member : call.get("members")) {
            String memberId = member.get("id").asText();
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            for (JsonNode entry : member.get("owned")) {
                Uuid topicId = Uuid.fromString(entry.get(0).asText());
                // As a set that is made from a list in Java 19 or later; earlier ones take more room for 12, 24, 48, …
                Set<Integer> partitions = new HashSet<>(Math.max(16, (int) Math.ceil(entry.get(1).size() / 0.75)));
                for (JsonNode partition : entry.get(1)) {
                    partitions.add(partition.asInt());
                    owners.computeIfAbsent(topicId, __ -> new HashMap<>()).put(partition.asInt(), memberId);
                }
                owned.put(topicId, partitions);
            }
            Set<Uuid> topicIds = new LinkedHashSet<>();
            for (JsonNode topicId : member.get("topics")) topicIds.add(Uuid.fromString(topicId.asText()));
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.ofNullable(member.get("rack").textValue()),
                Optional.ofNullable(member.get("instance").textValue()),
                topicIds,
                new Assignment(owned)));
        }
        Topics topics = new Topics(call.get("topics"));
        GroupAssignment result = ASSIGNORS.get(call.get("assignor").asText()).assign(
            new GroupSpecImpl(
                members, SubscriptionType.valueOf(call.get("type").asText()), owners, assignable(call)), topics);
        ObjectNode assignments = answer.putObject("members");
        result.members().forEach((memberId, assignment) -> {
            ObjectNode partitions = assignments.putObject(memberId);
            assignment.partitions().forEach((topicId, numbers) -> {
                ArrayNode list = partitions.putArray(topicId.toString());
                new TreeSet<>(numbers).forEach(list::add);
            });
        });
        answer.put("askedForRacks", topics.askedForRacks);
    }

    private static Optional<Map<Uuid, Set<Integer>>> assignable(JsonNode call) {
        if (!call.hasNonNull("assignable")) return Optional.empty();
        Map<Uuid, Set<Integer>> assignable = new HashMap<>();
        call.get("assignable").properties().forEach(topic -> {
            Set<Integer> partitions = new HashSet<>();
            for (JsonNode partition : topic.getValue()) partitions.add(partition.asInt());
            assignable.put(Uuid.fromString(topic.getKey()), partitions);
        });
        return Optional.of(assignable);
    }

    private static void order(JsonNode memberIds, ArrayNode order) {
        TimelineHashMap<String, Boolean> members = new TimelineHashMap<>(new SnapshotRegistry(new LogContext()), 0);
        for (JsonNode memberId : memberIds) {
            members.put(memberId.asText(), false);
            members.put(memberId.asText(), true); // as when it has got its epoch
        }
        members.keySet().forEach(order::add);
    }

    private static class Topics implements SubscribedTopicDescriber {
        private final Map<Uuid, Integer> counts = new HashMap<>();
        private boolean askedForRacks = false;

        Topics(JsonNode topics) {
            topics.properties().forEach(topic -> counts.put(Uuid.fromString(topic.getKey()), topic.getValue().asInt()));
        }

        @Override
        public int numPartitions(Uuid topicId) {
            return counts.getOrDefault(topicId, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            askedForRacks = true;
            return Set.of("a rack");
        }
    }
}
