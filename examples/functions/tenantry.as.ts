// The host calls for functions in AssemblyScript: copy this file next to your own (docs/functions.md, "Host calls").
// A call that fails traps, with the host's error in the log. The `try…` functions return the response instead.

@external("tenantry", "log")
declare function hostLog(level: i32, text: usize, length: i32): void;
@external("tenantry", "env")
declare function hostEnv(name: usize, length: i32): i32;
@external("tenantry", "db_query")
declare function hostQuery(sql: usize, sqlLength: i32, parameters: usize, parametersLength: i32): i32;
@external("tenantry", "storage_get")
declare function hostGet(path: usize, length: i32): i32;
@external("tenantry", "storage_put")
declare function hostPut(path: usize, pathLength: i32, type: usize, typeLength: i32, bytes: usize, length: i32): i32;
@external("tenantry", "storage_delete")
declare function hostDelete(path: usize, length: i32): i32;
@external("tenantry", "http_fetch")
declare function hostFetch(request: usize, requestLength: i32, body: usize, length: i32): i32;
@external("tenantry", "take")
declare function hostTake(at: usize, size: i32): i32;

export enum Level { Debug, Info, Warn, Error }

/** The response to a call: its bytes, or the error as `{"code":…,"message":…}`. */
export class HostResponse {
  constructor(public readonly ok: bool, public readonly bytes: ArrayBuffer) {}

  get text(): string {
    return String.UTF8.decode(this.bytes);
  }
}

/** An HTTP response: `{"status":…,"headers":{…}}` as JSON, and the body. */
export class Fetched {
  constructor(public readonly head: string, public readonly body: ArrayBuffer) {}
}

function bytesOf(text: string): ArrayBuffer {
  return String.UTF8.encode(text);
}

function pointer(bytes: ArrayBuffer): usize {
  return changetype<usize>(bytes);
}

function response(result: i32): HostResponse {
  const ok = result >= 0;
  const bytes = new ArrayBuffer(ok ? result : -(result + 1));
  hostTake(pointer(bytes), bytes.byteLength);
  return new HostResponse(ok, bytes);
}

function needed(what: string, given: HostResponse): ArrayBuffer {
  if (!given.ok) {
    log(Level.Error, what + ": " + given.text);
    unreachable();
  }
  return given.bytes;
}

/** Writes a line to the function's log. */
export function log(level: Level, line: string): void {
  const bytes = bytesOf(line + "\n");
  hostLog(level, pointer(bytes), bytes.byteLength);
}

/** Returns a variable of the function's configuration, or `otherwise` if it is not set. */
export function env(name: string, otherwise: string = ""): string {
  const bytes = bytesOf(name);
  const given = response(hostEnv(pointer(bytes), bytes.byteLength));
  return given.ok ? given.text : otherwise;
}

/** Runs an SQL statement. `parameters`: a JSON array for $1, $2 …, or an empty text. */
export function tryQuery(sql: string, parameters: string = ""): HostResponse {
  const text = bytesOf(sql);
  const values = bytesOf(parameters);
  return response(hostQuery(pointer(text), text.byteLength, pointer(values), values.byteLength));
}

/** Runs an SQL statement. @returns `{"rows":[…],"count":n}` as JSON */
export function query(sql: string, parameters: string = ""): string {
  return String.UTF8.decode(needed("db_query", tryQuery(sql, parameters)));
}

/** Reads a file. `path`: `bucket/path/in/it`. */
export function tryGet(path: string): HostResponse {
  const bytes = bytesOf(path);
  return response(hostGet(pointer(bytes), bytes.byteLength));
}

export function get(path: string): ArrayBuffer {
  return needed("storage_get", tryGet(path));
}

export function tryPut(path: string, type: string, bytes: ArrayBuffer): HostResponse {
  const at = bytesOf(path);
  const kind = bytesOf(type);
  return response(hostPut(pointer(at), at.byteLength, pointer(kind), kind.byteLength, pointer(bytes), bytes.byteLength));
}

/** Writes a file. @returns the object as JSON: its `id`, `bucket`, `path`, `size` … */
export function put(path: string, type: string, bytes: ArrayBuffer): string {
  return String.UTF8.decode(needed("storage_put", tryPut(path, type, bytes)));
}

export function tryRemove(path: string): HostResponse {
  const bytes = bytesOf(path);
  return response(hostDelete(pointer(bytes), bytes.byteLength));
}

export function remove(path: string): void {
  needed("storage_delete", tryRemove(path));
}

/** Sends an HTTP request. `request`: `{"method":…,"url":…,"headers":{…}}` as JSON. */
export function tryFetch(request: string, body: ArrayBuffer = new ArrayBuffer(0)): HostResponse {
  const bytes = bytesOf(request);
  return response(hostFetch(pointer(bytes), bytes.byteLength, pointer(body), body.byteLength));
}

export function fetched(request: string, body: ArrayBuffer = new ArrayBuffer(0)): Fetched {
  const given = needed("http_fetch", tryFetch(request, body));
  const end = Uint8Array.wrap(given).indexOf(10);
  return new Fetched(String.UTF8.decode(given.slice(0, end)), given.slice(end + 1));
}
