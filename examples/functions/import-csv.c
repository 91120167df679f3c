/* Imports CSV (RFC 4180, the first line names the fields) into a table, completely or not at all, with its caller's rights.
   TABLE in its environment names the table. With OWNER_FIELD, each record belongs to the caller. */
#include <stdio.h>

#include "tenantry.h"

struct text {
  char *bytes;
  size_t length, room;
};

static void add(struct text *to, const char *bytes, size_t length) {
  if (to->length + length + 1 > to->room) {
    to->room = 2 * (to->length + length + 1);
    to->bytes = realloc(to->bytes, to->room);
    if (to->bytes == NULL) abort();
  }
  memcpy(to->bytes + to->length, bytes, length);
  to->length += length;
  to->bytes[to->length] = '\0';
}

static void say(struct text *to, const char *text) { add(to, text, strlen(text)); }

static void say_json(struct text *to, const char *bytes, size_t length) {
  say(to, "\"");
  for (size_t n = 0; n < length; n++) {
    unsigned char one = (unsigned char)bytes[n];
    char escaped[8];
    if (one == '"' || one == '\\') add(to, (char[]){'\\', (char)one}, 2);
    else if (one < 0x20) add(to, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", one));
    else add(to, &bytes[n], 1);
  }
  say(to, "\"");
}

static void say_name(struct text *to, const char *bytes, size_t length) {
  say(to, "\"");
  for (size_t n = 0; n < length; n++) {
    if (bytes[n] == '"') say(to, "\"");
    add(to, &bytes[n], 1);
  }
  say(to, "\"");
}

enum after { FIELD, LINE, END };

/* Reads one field of the text into `field`, and returns what follows it. */
static enum after read_field(const char **at, const char *end, struct text *field) {
  field->length = 0;
  add(field, "", 0);
  bool quoted = *at < end && **at == '"';
  if (quoted) (*at)++;
  for (; *at < end; (*at)++) {
    if (quoted && **at == '"') {
      if (*at + 1 < end && (*at)[1] == '"') (*at)++;
      else {
        quoted = false;
        continue;
      }
    } else if (!quoted && (**at == ',' || **at == '\n' || (**at == '\r' && *at + 1 < end && (*at)[1] == '\n'))) {
      char sign = **at;
      *at += sign == '\r' ? 2 : 1;
      return sign == ',' ? FIELD : *at < end ? LINE : END;
    }
    add(field, *at, 1);
  }
  return END;
}

static int refuse(const char *error) {
  printf("Status: 422\nContent-Type: application/json\n\n%s", error);
  return 0;
}

int main(void) {
  struct text csv = {0}, names = {0}, records = {0}, field = {0}, columns[256] = {{0}};
  size_t count = 0, rows = 0;
  /* The stack has no more than 64 KB. */
  static char chunk[65536];
  for (size_t got; (got = fread(chunk, 1, sizeof chunk, stdin)) > 0;) add(&csv, chunk, got);
  if (csv.length == 0) return refuse("{\"message\":\"there is nothing to import\"}");

  const char *at = csv.bytes, *end = csv.bytes + csv.length;
  enum after after = FIELD;
  while (after == FIELD) {
    if (count == sizeof columns / sizeof *columns) return refuse("{\"message\":\"there are too many fields\"}");
    after = read_field(&at, end, &columns[count]);
    if (count > 0) say(&names, ", ");
    say_name(&names, columns[count].bytes, columns[count].length);
    count++;
  }
  say(&records, "[");
  while (after != END) {
    say(&records, rows++ == 0 ? "{" : ",{");
    size_t n = 0;
    do {
      if (n == count) return refuse("{\"message\":\"a line has more fields than the first\"}");
      after = read_field(&at, end, &field);
      if (n > 0) say(&records, ",");
      say_json(&records, columns[n].bytes, columns[n].length);
      say(&records, ":");
      if (field.length == 0) say(&records, "null");
      else say_json(&records, field.bytes, field.length);
      n++;
    } while (after == FIELD);
    say(&records, "}");
  }
  say(&records, "]");

  struct tenantry_answer table = tenantry_env("TABLE"), owner = tenantry_env("OWNER_FIELD"), user = tenantry_env("TENANTRY_USER_ID");
  struct text sql = {0}, parameters = {0};
  say(&sql, "insert into ");
  say_name(&sql, table.bytes, table.length);
  say(&sql, " (");
  say(&sql, names.bytes);
  if (owner.ok) {
    say(&sql, ", ");
    say_name(&sql, owner.bytes, owner.length);
  }
  say(&sql, ") select ");
  say(&sql, names.bytes);
  if (owner.ok) say(&sql, ", $2");
  /* The types of the table's columns decide how the texts are converted. */
  say(&sql, " from json_populate_recordset(null::");
  say_name(&sql, table.bytes, table.length);
  say(&sql, ", $1)");
  say(&parameters, "[");
  say_json(&parameters, records.bytes, records.length);
  if (owner.ok) {
    say(&parameters, ",");
    if (user.ok) say_json(&parameters, user.bytes, user.length);
    else say(&parameters, "null");
  }
  say(&parameters, "]");
  struct tenantry_answer answer = tenantry_query(sql.bytes, parameters.bytes);
  if (!answer.ok) return refuse(answer.bytes);
  char line[64];
  snprintf(line, sizeof line, "%zu records were imported", rows);
  tenantry_log(TENANTRY_INFO, line);
  printf("{\"imported\":%zu}", rows);
  return 0;
}
