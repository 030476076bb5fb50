import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogKey;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogValue;

/**
 * Prints messages as Kafka's own generated classes serialise them, one JSON object a line: name, version, what kind of
 * sample it is, the bytes in hex, and the values under Kafka's field names. A field that is absent has its default.
 *
 * The values come from a Random that is seeded by the message's name, version and kind, so two runs print the same.
 */
public class Golden {
    /** What a sample is like. */
    enum Kind {
        /** As the class is when new. */
        DEFAULT,
        /** Nothing null, nothing empty, every tagged field there. */
        FULL,
        /** Nulls where they are allowed, empty lists and strings, the ends of the numbers' ranges, some tagged fields. */
        SPARSE,
        /** The same with other luck. */
        SPARSE_AGAIN
    }

    private static final String[] WORDS = {"Josef K.", "Schloß", "Москва", "城", "𝄞 clef", "e\u0301", "x".repeat(200)};
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final Kind kind;
    private final Random random;

    private Golden(Kind kind, Random random) {
        this.kind = kind;
        this.random = random;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (Class<? extends Message> type : types()) {
            String name = type.getSimpleName().replaceFirst("Data$", "");
            int lowest = type.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
            int highest = type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
            for (int version = lowest; version <= highest; version++)
                for (Kind kind : Kind.values())
                    out.println(MAPPER.writeValueAsString(line(type, name, (short) version, kind)));
        }
        out.flush();
    }

    private static List<Class<? extends Message>> types() {
        List<Class<? extends Message>> types = new ArrayList<>();
        types.add(RequestHeaderData.class);
        types.add(ResponseHeaderData.class);
        for (ApiMessageType api : ApiMessageType.values())
            if (api.listeners().contains(ApiMessageType.ListenerType.BROKER)) {
                types.add(api.newRequest().getClass());
                types.add(api.newResponse().getClass());
            }
        types.add(OffsetCommitKey.class);
        types.add(OffsetCommitValue.class);
        types.add(GroupMetadataKey.class);
        types.add(GroupMetadataValue.class);
        types.add(TransactionLogKey.class);
        types.add(TransactionLogValue.class);
        return types;
    }

    private static ObjectNode line(Class<? extends Message> type, String name, short version, Kind kind)
            throws Exception {
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        Message message = type.getConstructor().newInstance();
        JsonNode chosen = NODES.objectNode();
        if (kind != Kind.DEFAULT) {
            Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
            chosen = new Golden(kind, new Random((name + version + kind).hashCode())).struct(schemas[version]);
            message = (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, chosen, version);
        }
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();

        Message understood = type.getConstructor().newInstance();
        understood.read(new ByteBufferAccessor(bytes.duplicate()), version);
        JsonNode values = (JsonNode) converter.getMethod("write", type, short.class).invoke(null, understood, version);
        putBackRecords(values, chosen);

        ObjectNode line = NODES.objectNode();
        line.put("name", name).put("version", version).put("kind", kind.name().toLowerCase());
        line.put("bytes", HexFormat.of().formatHex(MessageUtil.byteBufferToArray(bytes))).set("values", values);
        return line;
    }

    /** The converters read records and write empty ones in their place: take those that were chosen. */
    private static void putBackRecords(JsonNode values, JsonNode chosen) {
        if (values instanceof ObjectNode object && object.path("records").isBinary())
            object.set("records", chosen.get("records"));
        if (values instanceof ArrayNode array)
            for (int i = 0; i < array.size(); i++) putBackRecords(array.get(i), chosen.get(i));
        else
            values.fieldNames().forEachRemaining(name -> putBackRecords(values.get(name), chosen.path(name)));
    }

    private ObjectNode struct(Schema schema) {
        ObjectNode values = NODES.objectNode();
        for (BoundField bound : schema.fields()) {
            Field field = bound.def;
            if (field.type instanceof TaggedFields tagged) {
                for (Field one : tagged.fields().values())
                    if (kind == Kind.FULL || random.nextBoolean()) values.set(camelCase(one.name), value(one.type));
            } else {
                values.set(camelCase(field.name), value(field.type));
            }
        }
        return values;
    }

    private JsonNode value(Type type) {
        if (type.isNullable() && kind != Kind.FULL && random.nextInt(3) == 0) return NullNode.instance;
        if (type.isArray()) return array(type.arrayElementType().get());
        if (type instanceof Schema schema) return struct(schema);
        return switch (type.toString().replace("COMPACT_", "").replace("NULLABLE_", "")) {
            case "BOOLEAN" -> BooleanNode.valueOf(random.nextBoolean());
            case "INT8" -> IntNode.valueOf((int) number(Byte.MIN_VALUE, Byte.MAX_VALUE));
            case "INT16" -> IntNode.valueOf((int) number(Short.MIN_VALUE, Short.MAX_VALUE));
            case "UINT16" -> IntNode.valueOf((int) number(0, 65535));
            case "INT32" -> IntNode.valueOf((int) number(Integer.MIN_VALUE, Integer.MAX_VALUE));
            case "UINT32" -> LongNode.valueOf(number(0, 4294967295L));
            case "INT64" -> LongNode.valueOf(number(Long.MIN_VALUE, Long.MAX_VALUE));
            case "FLOAT64" -> DoubleNode.valueOf(random.nextGaussian() * 1e6);
            case "UUID" -> TextNode.valueOf(new Uuid(random.nextLong(), random.nextLong()).toString());
            case "STRING" -> TextNode.valueOf(empty() ? "" : WORDS[random.nextInt(WORDS.length)]);
            case "BYTES" -> BinaryNode.valueOf(bytes());
            case "RECORDS" -> BinaryNode.valueOf(records());
            default -> throw new IllegalArgumentException("no values for " + type);
        };
    }

    private ArrayNode array(Type element) {
        ArrayNode values = NODES.arrayNode();
        for (int size = empty() ? 0 : 1 + random.nextInt(2); size > 0; size--) values.add(value(element));
        return values;
    }

    private long number(long lowest, long highest) {
        if (kind == Kind.FULL) return 2 + random.nextLong(highest - 2);
        long[] notable = {lowest, highest, 0, 1, Math.max(-1, lowest)};
        return notable[random.nextInt(notable.length)];
    }

    private boolean empty() {
        return kind != Kind.FULL && random.nextInt(4) == 0;
    }

    private byte[] bytes() {
        byte[] bytes = new byte[empty() ? 0 : 1 + random.nextInt(20)];
        random.nextBytes(bytes);
        return bytes;
    }

    private byte[] records() {
        SimpleRecord record = new SimpleRecord(1_000_000L + random.nextInt(1000), bytes(), bytes());
        return MessageUtil.byteBufferToArray(MemoryRecords.withRecords(Compression.NONE, record).buffer());
    }

    private static String camelCase(String name) {
        StringBuilder camel = new StringBuilder();
        for (int i = 0; i < name.length(); i++)
            if (name.charAt(i) == '_') camel.append(Character.toUpperCase(name.charAt(++i)));
            else camel.append(name.charAt(i));
        return camel.toString();
    }
}
