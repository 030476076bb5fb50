import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/** Runs kafka-consumer-groups once for each argument, which is its command line, and prints what each run printed. */
public class GroupCommands {
    public static void main(String[] commands) throws Exception {
        PrintStream stdout = System.out;
        Exit.setExitProcedure((status, message) -> {
            throw new IllegalStateException("exit " + status + " " + message);
        });
        List<String> printed = new ArrayList<>();
        for (String command : commands) {
            ByteArrayOutputStream text = new ByteArrayOutputStream();
            PrintStream stream = new PrintStream(text, true);
            System.setOut(stream);
            System.setErr(stream);
            try {
                ConsumerGroupCommand.main(command.split(" "));
            } catch (IllegalStateException exit) {
                stream.println(exit.getMessage());
            }
            printed.add(text.toString());
        }
        stdout.println(new ObjectMapper().writeValueAsString(Map.of("printed", printed)));
    }
}
