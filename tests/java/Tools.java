import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Timer;
import java.util.TimerTask;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools, one after the other, in one JVM. Each line of stdin is a JSON object with a main
 * class, its arguments, its input and how many seconds it may take. Each line of stdout is one with its exit status and
 * with what it printed. The status of a tool that takes too long is null, and the JVM ends with it. It also ends, and
 * says so, after a tool that has left a client behind: what that prints later would be taken for the next tool's.
 */
public class Tools {
    /** Goes where the tool that runs now prints. Scala and Log4j keep the first stream that they see. */
    private static final class Current extends OutputStream {
        private ByteArrayOutputStream text = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int octet) {
            text.write(octet);
        }

        @Override
        public synchronized void write(byte[] octets, int from, int length) {
            text.write(octets, from, length);
        }

        synchronized String take() {
            String printed = text.toString(StandardCharsets.UTF_8);
            text = new ByteArrayOutputStream();
            return printed;
        }
    }

    /** Thrown where a tool would end its JVM. */
    private static final class Ended extends Error {
        private Ended() {
            super("exit", null, false, false);
        }
    }

    private static final ObjectMapper json = new ObjectMapper();
    private static final List<Runnable> atExit = new ArrayList<>();
    private static Integer status;

    public static void main(String[] none) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = System.out;
        Current out = new Current();
        Current err = new Current();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure(Tools::end);
        Exit.setHaltProcedure(Tools::end);
        Exit.setShutdownHookAdder((name, hook) -> atExit.add(hook));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = json.readTree(line);
            System.setIn(new ByteArrayInputStream(request.get("input").asText().getBytes(StandardCharsets.UTF_8)));
            String[] arguments = json.convertValue(request.get("arguments"), String[].class);
            Timer timer = new Timer(true);
            timer.schedule(
                    new TimerTask() {
                        @Override
                        public void run() {
                            answer(answers, null, true, out, err);
                            Runtime.getRuntime().halt(1);
                        }
                    },
                    Math.round(1000 * request.get("seconds").asDouble()));
            int ended = run(request.get("main").asText(), arguments);
            timer.cancel();
            boolean last = leftClients();
            answer(answers, ended, last, out, err);
            if (last) {
                Runtime.getRuntime().halt(0);
            }
        }
    }

    private static boolean leftClients() {
        return Thread.getAllStackTraces().keySet().stream().anyMatch(each -> each.getName().startsWith("kafka-"));
    }

    private static synchronized void answer(
            PrintStream answers, Integer ended, boolean last, Current out, Current err) {
        ObjectNode answer = json.createObjectNode();
        answer.put("status", ended).put("last", last).put("stdout", out.take()).put("stderr", err.take());
        answers.println(answer);
        answers.flush();
    }

    private static int run(String main, String[] arguments) {
        status = null;
        int returned = 0;
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (ReflectiveOperationException error) {
            Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
            if (!(cause instanceof Ended)) {
                cause.printStackTrace();
                returned = 1;
            }
        }
        List<Runnable> hooks = List.copyOf(atExit);
        atExit.clear();
        hooks.forEach(Runnable::run);
        return status == null ? returned : status;
    }

    private static void end(int wanted, String message) {
        if (status == null) {
            status = wanted;
        }
        throw new Ended();
    }
}
