import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Encodes and decodes messages as Kafka's generated classes do, for another process: each line of standard input is a
 * JSON object, and each is answered by one line. Ends with its input.
 *
 * {"name", "do": "versions"} -> {"lowest", "highest"}
 * {"name", "do": "encode", "version", "values"} -> {"bytes" in hex}
 * {"name", "do": "decode", "version", "bytes"} -> {"values", "left": how many bytes were not read}
 * {"name", "do": "random", "version", "seed"} -> {"bytes", "values"}: a message that this program made up
 *
 * An exception is answered by {"error"}.
 */
public class MessageCodec {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final String[] WORDS = {"", "orders", "Schloß", "城", "𝄞 clef", "x".repeat(127), "y".repeat(200)};

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = NODES.objectNode();
            try {
                perform(MAPPER.readTree(line), answer);
            } catch (Throwable error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                answer.removeAll().put("error", cause.toString());
            }
            out.println(MAPPER.writeValueAsString(answer));
        }
    }

    private static void perform(JsonNode call, ObjectNode answer) throws Exception {
        String name = "org.apache.kafka.common.message." + call.get("name").asText() + "Data";
        Class<?> type = Class.forName(name);
        Class<?> converter = Class.forName(name + "JsonConverter");
        short version = (short) call.path("version").asInt();
        switch (call.get("do").asText()) {
            case "versions" -> {
                answer.put("lowest", type.getField("LOWEST_SUPPORTED_VERSION").getShort(null));
                answer.put("highest", type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null));
            }
            case "encode" -> answer.put("bytes", encode(read(converter, call.get("values"), version), version));
            case "decode" -> {
                ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(call.get("bytes").asText()));
                answer.set("values", decode(type, converter, bytes, version));
                answer.put("left", bytes.remaining());
            }
            case "random" -> {
                Schema schema = ((Schema[]) type.getField("SCHEMAS").get(null))[version];
                JsonNode values = struct(schema, new Random(call.get("seed").asLong()));
                String bytes = encode(read(converter, values, version), version);
                answer.put("bytes", bytes);
                ByteBuffer again = ByteBuffer.wrap(HexFormat.of().parseHex(bytes));
                answer.set("values", decode(type, converter, again, version));
            }
            default -> throw new IllegalArgumentException(call.toString());
        }
    }

    private static Message read(Class<?> converter, JsonNode values, short version) throws Exception {
        return (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, values, version);
    }

    private static String encode(Message message, short version) {
        ByteBuffer bytes = MessageUtil.toByteBuffer(message, version);
        return HexFormat.of().formatHex(MessageUtil.byteBufferToArray(bytes));
    }

    private static JsonNode decode(Class<?> type, Class<?> converter, ByteBuffer bytes, short version)
            throws Exception {
        Message message = (Message) type.getConstructor().newInstance();
        message.read(new ByteBufferAccessor(bytes), version);
        return (JsonNode) converter.getMethod("write", type, short.class).invoke(null, message, version);
    }

    private static ObjectNode struct(Schema schema, Random random) throws Exception {
        ObjectNode values = NODES.objectNode();
        for (BoundField bound : schema.fields()) {
            Field field = bound.def;
            if (field.type instanceof TaggedFields tagged) {
                for (Field one : fields(tagged).values())
                    if (random.nextBoolean()) values.set(camelCase(one.name), value(one.type, random));
            } else {
                values.set(camelCase(field.name), value(field.type, random));
            }
        }
        return values;
    }

    /** They have no accessor in this version of Kafka. */
    @SuppressWarnings("unchecked")
    private static Map<Integer, Field> fields(TaggedFields tagged) throws Exception {
        java.lang.reflect.Field fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return (Map<Integer, Field>) fields.get(tagged);
    }

    private static JsonNode value(Type type, Random random) throws Exception {
        if (type.isNullable() && random.nextInt(4) == 0) return NullNode.instance;
        if (type instanceof Schema schema) return struct(schema, random);
        if (type.isArray()) {
            ArrayNode array = NODES.arrayNode();
            for (int left = random.nextInt(4); left > 0; left--) array.add(value(type.arrayElementType().get(), random));
            return array;
        }
        if (type == Type.BOOLEAN) return BooleanNode.valueOf(random.nextBoolean());
        if (type == Type.INT8) return new IntNode((byte) random.nextInt());
        if (type == Type.INT16) return new IntNode((short) random.nextInt());
        if (type == Type.INT32) return new IntNode(random.nextInt());
        if (type == Type.INT64) return new LongNode(random.nextLong());
        if (type == Type.UINT16) return new IntNode(random.nextInt(1 << 16));
        if (type == Type.UUID) return new TextNode(new Uuid(random.nextLong(), random.nextLong()).toString());
        if (type.toString().contains("STRING")) return new TextNode(WORDS[random.nextInt(WORDS.length)]);
        throw new IllegalArgumentException(type.toString());
    }

    private static String camelCase(String name) {
        StringBuilder result = new StringBuilder();
        boolean raise = false;
        for (char each : name.toCharArray()) {
            if (each != '_') result.append(raise ? Character.toUpperCase(each) : each);
            raise = each == '_';
        }
        // The one name that the schemas and the converters write differently.
        return result.toString().equals("isKraftController") ? "isKRaftController" : result.toString();
    }
}
