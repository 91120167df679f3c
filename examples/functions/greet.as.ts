// Greets its caller: reads {"name": "…"} from standard input and writes JSON to standard output.
// Standard input is the body of the request. The caller's ID is in the environment.

/** Reads all of standard input. */
function readInput(): string {
  const chunk = new ArrayBuffer(4096);
  const bytes = new Array<u8>();
  for (;;) {
    const count = process.stdin.read(chunk);
    if (count <= 0) break;
    const view = Uint8Array.wrap(chunk, 0, <i32>count);
    for (let i = 0; i < view.length; i++) bytes.push(view[i]);
  }
  const all = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) all[i] = bytes[i];
  return String.UTF8.decode(all.buffer);
}

/** Returns the text of a member of a flat JSON object, which is enough for one name. */
function member(json: string, name: string): string {
  const key = '"' + name + '"';
  const at = json.indexOf(key);
  if (at < 0) return "";
  const begin = json.indexOf('"', json.indexOf(":", at + key.length)) + 1;
  const end = json.indexOf('"', begin);
  return begin > 0 && end > begin ? json.substring(begin, end) : "";
}

const user = member(readInput(), "name");
const caller = process.env.has("TENANTRY_USER_ID") ? process.env.get("TENANTRY_USER_ID") : "";
process.stdout.write('{"greeting":"Hello, ' + (user == "" ? "whoever you are" : user) + '!","user_id":"' + caller + '"}');
