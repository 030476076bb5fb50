import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/**
 * Kafka's hashes of topics, for another process: each line of standard input is a JSON object, and each is answered by one
 * line. Ends with its input.
 *
 * {"racks": [rack or null, of broker 0 and so on], "topics": {name: {"id", "replicas": [[broker] of partition 0 and so
 * on]}}} -> the hash of a group that reads all of them
 */
public class TopicHashes {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode cluster = new ObjectMapper().readTree(line);
            CoordinatorMetadataImage image = image(cluster);
            Map<String, Long> hashes = new HashMap<>();
            cluster.get("topics").fieldNames().forEachRemaining(name -> hashes.put(name, Utils.computeTopicHash(name, image)));
            System.out.println(Utils.computeGroupHash(hashes));
        }
    }

    private static CoordinatorMetadataImage image(JsonNode cluster) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        JsonNode racks = cluster.get("racks");
        for (int id = 0; id < racks.size(); id++) {
            String rack = racks.get(id).isNull() ? null : racks.get(id).asText();
            delta.replay(new RegisterBrokerRecord().setBrokerId(id).setRack(rack));
        }
        cluster.get("topics").fields().forEachRemaining(topic -> {
            Uuid id = Uuid.fromString(topic.getValue().get("id").asText());
            delta.replay(new TopicRecord().setName(topic.getKey()).setTopicId(id));
            JsonNode partitions = topic.getValue().get("replicas");
            IntStream.range(0, partitions.size()).forEach(index -> {
                List<Integer> replicas = StreamSupport.stream(partitions.get(index).spliterator(), false).map(JsonNode::asInt).toList();
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(index).setReplicas(replicas).setIsr(replicas));
            });
        });
        return new KRaftCoordinatorMetadataImage(delta.apply(MetadataProvenance.EMPTY));
    }
}
