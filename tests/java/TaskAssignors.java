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
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/**
 * Kafka's task assignor of streams groups, for another process: each line of standard input is a JSON object, and each
 * is answered by one line. Ends with its input.
 *
 * {"standbyReplicas", "subtopologies": {id: {"tasks", "stateful"}}, "members": [{"id", "process", "active": {subtopology:
 *   [partition]}, "standby"}]} -> {id: {"active": {subtopology: [partition]}, "standby", "warmup"}}
 *
 * Members are added to Kafka's hash table in the order in which they are given.
 */
public class TaskAssignors {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(MAPPER.writeValueAsString(assign(MAPPER.readTree(line))));
        }
    }

    private static ObjectNode assign(JsonNode call) {
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        for (JsonNode member : call.get("members")) {
            members.put(member.get("id").asText(), new AssignmentMemberSpec(
                Optional.empty(), Optional.empty(), tasks(member.get("active")), tasks(member.get("standby")), Map.of(),
                member.get("process").asText(), Map.of(), Map.of(), Map.of()));
        }
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        Map<String, String> configs = Map.of("num.standby.replicas", call.get("standbyReplicas").asText());
        new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), new Topology(call.get("subtopologies")))
            .members().forEach((memberId, given) -> {
                ObjectNode told = answer.putObject(memberId);
                tell(told.putObject("active"), given.activeTasks());
                tell(told.putObject("standby"), given.standbyTasks());
                tell(told.putObject("warmup"), given.warmupTasks());
            });
        return answer;
    }

    private static Map<String, Set<Integer>> tasks(JsonNode bySubtopology) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        bySubtopology.properties().forEach(entry -> {
            Set<Integer> partitions = new TreeSet<>();
            entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
            tasks.put(entry.getKey(), partitions);
        });
        return tasks;
    }

    private static void tell(ObjectNode answer, Map<String, Set<Integer>> tasks) {
        tasks.forEach((subtopology, partitions) -> {
            ArrayNode list = answer.putArray(subtopology);
            new TreeSet<>(partitions).forEach(list::add);
        });
    }

    private static class Topology implements TopologyDescriber {
        private final SortedMap<String, JsonNode> subtopologies = new TreeMap<>();

        Topology(JsonNode given) {
            given.properties().forEach(entry -> subtopologies.put(entry.getKey(), entry.getValue()));
        }

        @Override
        public List<String> subtopologies() {
            return List.copyOf(subtopologies.keySet());
        }

        @Override
        public int maxNumInputPartitions(String subtopology) {
            return subtopologies.get(subtopology).get("tasks").asInt();
        }

        @Override
        public boolean isStateful(String subtopology) {
            return subtopologies.get(subtopology).get("stateful").asBoolean();
        }
    }
}
