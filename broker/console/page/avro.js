// Avro values, by a schema that whoever looks has given. A decoder is short, and here the browser does the work.

const DECODER = new TextDecoder("utf-8", { fatal: true });
const MOST_ITEMS = 100000;
const MOST_DEPTH = 64;
const REGISTRY_HEAD = 5; // a zero and the number of a schema, as serializers with a schema registry write it

export class AvroError extends Error {}

// A function from bytes to a value, or AvroError if this is not a schema.
export function avroReader(text) {
  let schema;
  try {
    schema = JSON.parse(text);
  } catch {
    throw new AvroError("A schema is JSON.");
  }
  const names = new Map();
  const read = compile(schema, names, "");
  return (bytes) => {
    if (bytes[0] === 0 && bytes.length >= REGISTRY_HEAD) {
      try {
        return whole(read, bytes.subarray(REGISTRY_HEAD));
      } catch (error) {
        if (!(error instanceof AvroError)) throw error;
      }
    }
    return whole(read, bytes);
  };
}

function whole(read, bytes) {
  const input = new Input(bytes);
  const value = read(input, 0);
  if (input.at !== bytes.length) throw new AvroError(`${bytes.length - input.at} bytes are left: it is of another schema.`);
  return value;
}

class Input {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  take(size) {
    if (size < 0 || this.at + size > this.bytes.length) throw new AvroError("It ends too soon.");
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }

  long() {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const [byte] = this.take(1);
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        const value = BigInt.asIntN(64, (result >> 1n) ^ -(result & 1n));
        return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : String(value);
      }
    }
    throw new AvroError("A number is too long.");
  }

  size() {
    const size = this.long();
    if (typeof size !== "number" || size < 0) throw new AvroError("A length is impossible.");
    return size;
  }
}

const PRIMITIVES = {
  null: () => null,
  boolean: (input) => input.take(1)[0] !== 0,
  int: (input) => input.long(),
  long: (input) => input.long(),
  float: (input) => { input.take(4); return input.view.getFloat32(input.at - 4, true); },
  double: (input) => { input.take(8); return input.view.getFloat64(input.at - 8, true); },
  bytes: (input) => hex(input.take(input.size())),
  string: (input) => {
    try {
      return DECODER.decode(input.take(input.size()));
    } catch (error) {
      throw error instanceof AvroError ? error : new AvroError("A text is not UTF-8.");
    }
  },
};

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fullName(schema, space) {
  if (typeof schema.name !== "string") throw new AvroError(`A ${schema.type} needs a name.`);
  return schema.name.includes(".") || !(schema.namespace ?? space) ? schema.name : `${schema.namespace ?? space}.${schema.name}`;
}

// A schema becomes a function that reads a value. A type may refer to itself, so names are looked up when they are used.
function compile(schema, names, space) {
  if (Array.isArray(schema)) {
    const branches = schema.map((each) => compile(each, names, space));
    return (input, depth) => {
      const branch = branches[input.size()];
      if (!branch) throw new AvroError("A union has no such branch.");
      return branch(input, depth);
    };
  }
  if (typeof schema === "string") return named(schema, names, space);
  if (schema === null || typeof schema !== "object") throw new AvroError("A schema is an object, a list or a name.");
  const { type } = schema;
  if (type === "record" || type === "error") return record(schema, names, space);
  if (type === "enum") {
    const { symbols } = schema;
    if (!Array.isArray(symbols)) throw new AvroError("An enum needs symbols.");
    return declare(schema, names, space, (input) => {
      const symbol = symbols[input.size()];
      if (symbol === undefined) throw new AvroError("An enum has no such symbol.");
      return symbol;
    });
  }
  if (type === "fixed") return declare(schema, names, space, (input) => hex(input.take(schema.size)));
  if (type === "array" || type === "map") return blocks(type, compile(type === "array" ? schema.items : schema.values, names, space));
  return compile(type, names, space); // a primitive with attributes, perhaps a logical type
}

function named(name, names, space) {
  if (Object.hasOwn(PRIMITIVES, name)) return PRIMITIVES[name];
  return (input, depth) => {
    const read = names.get(name) ?? names.get(`${space}.${name}`);
    if (!read) throw new AvroError(`The schema does not say what ${name} is.`);
    return read(input, depth);
  };
}

function declare(schema, names, space, read) {
  names.set(fullName(schema, space), read);
  return read;
}

function record(schema, names, space) {
  const name = fullName(schema, space);
  const inner = name.includes(".") ? name.slice(0, name.lastIndexOf(".")) : "";
  if (!Array.isArray(schema.fields)) throw new AvroError("A record needs fields.");
  let fields = [];
  const read = declare(schema, names, space, (input, depth) => {
    if (depth > MOST_DEPTH) throw new AvroError("It is too deep.");
    return Object.fromEntries(fields.map(([key, each]) => [key, each(input, depth + 1)]));
  });
  fields = schema.fields.map((each) => [String(each.name), compile(each.type, names, inner)]);
  return read;
}

function blocks(type, item) {
  return (input, depth) => {
    if (depth > MOST_DEPTH) throw new AvroError("It is too deep.");
    const items = [];
    for (let count = input.long(); count !== 0; count = input.long()) {
      if (count < 0) {
        count = -count;
        input.long(); // how many bytes follow, for whoever skips them
      }
      if (typeof count !== "number" || items.length + count > MOST_ITEMS) throw new AvroError("A list is too long.");
      for (let number = 0; number < count; number += 1) {
        items.push(type === "map" ? [PRIMITIVES.string(input), item(input, depth + 1)] : item(input, depth + 1));
      }
    }
    return type === "map" ? Object.fromEntries(items) : items;
  };
}
