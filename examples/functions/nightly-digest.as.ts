// Writes a digest of a table's last day into a bucket. Deploy it with a schedule, "role": "service_role", and TABLE,
// TIME_FIELD (a datetime) and BUCKET in its environment. A call over HTTP does the same.
import { Level, env, log, put, query } from "./tenantry.as";

function name(text: string): string {
  return '"' + text.replaceAll('"', '""') + '"';
}

const table = env("TABLE");
const time = env("TIME_FIELD", "created_at");
const bucket = env("BUCKET", "digests");

// Postgres builds the whole document. `query` returns it as the only row.
const found = query(
  "select to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as day, " +
    "(select count(*) from " + name(table) + ") as records, " +
    "(select coalesce(json_agg(n order by n." + name(time) + "), '[]') from (select * from " + name(table) + " where " + name(time) + " > now() - interval '1 day' " +
    "order by " + name(time) + " desc limit 1000) n) as latest"
);

/** Returns the text between two texts. */
function between(text: string, before: string, after: string): string {
  const begin = text.indexOf(before) + before.length;
  return text.substring(begin, text.indexOf(after, begin));
}

const day = between(found, '"day":"', '"');
const path = bucket + "/" + table + "/" + day + ".json";
const row = found.substring(found.indexOf("[") + 1, found.lastIndexOf("]"));
put(path, "application/json", String.UTF8.encode(row));
log(Level.Info, "The digest of " + day + " has " + row.length.toString() + " characters.");
process.stdout.write('{"digest":"' + path + '"}');
