import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.common.Node;

/** Prints, as one JSON object, what Java's Admin client learns from a bootstrap address: the cluster and its topics. */
public class DescribeCluster {
    public static void main(String[] arguments) throws Exception {
        ObjectNode found = new ObjectMapper().createObjectNode();
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("request.timeout.ms", 10_000);
        settings.put("default.api.timeout.ms", 20_000);
        try (Admin admin = Admin.create(settings)) {
            DescribeClusterResult cluster = admin.describeCluster();
            found.put("cluster_id", cluster.clusterId().get());
            found.put("controller", cluster.controller().get().id());
            for (Node node : cluster.nodes().get())
                found.withArray("nodes").addObject()
                    .put("id", node.id()).put("host", node.host()).put("port", node.port());
            ListTopicsOptions all = new ListTopicsOptions().listInternal(true);
            found.putArray("topics");
            for (String topic : new TreeSet<>(admin.listTopics(all).names().get())) found.withArray("topics").add(topic);
        }
        System.out.println(found);
    }
}
